//===- json_fields.cpp - JSON that is not trusted ---------------------------===//

#include "json_fields.h"

#include <cmath>
#include <limits>
#include <set>

namespace genrec::rt {

namespace {

std::string rangeText(int64_t least, int64_t most) {
  std::string from = std::to_string(least);
  return most == INT64_MAX ? "an integer from " + from + " on"
                           : "an integer from " + from + " to " + std::to_string(most);
}

/// Whether an integer of any sign fits.
bool isWithin(const Json &value, int64_t least, int64_t most) {
  if (value.is_number_unsigned())
    return value.get<uint64_t>() <= static_cast<uint64_t>(INT64_MAX) &&
           value.get<int64_t>() >= least && value.get<int64_t>() <= most;
  return value.is_number_integer() && value.get<int64_t>() >= least && value.get<int64_t>() <= most;
}

/// Values of a message, which may be as long as the file.
std::string shortened(const Json &value) {
  std::string text = toText(value);
  return text.size() > 60 ? text.substr(0, 60) + "…" : text;
}

} // namespace

JsonDocument::JsonDocument(const std::string &text, std::string file, std::string troubleText)
    : path(std::move(file)), trouble(std::move(troubleText)) {
  std::vector<std::set<std::string>> open;
  std::string twice;
  auto see = [&](int, Json::parse_event_t event, Json &parsed) {
    if (event == Json::parse_event_t::object_start)
      open.emplace_back();
    else if (event == Json::parse_event_t::object_end)
      open.pop_back();
    else if (event == Json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second)
      twice = parsed.get<std::string>();
    return true;
  };
  value = Json::parse(text, see, /*allow_exceptions=*/false);
  if (!value.is_object())
    throw Error(path + ": " + trouble + ": no JSON object");
  if (!twice.empty())
    throw Error(path + ": " + trouble + ": field '" + twice + "' is there twice");
}

JsonFields JsonDocument::root() const { return {*this, value, ""}; }

Error JsonFields::error(const std::string &name, const std::string &what) const {
  return Error(document->path + ": " + document->trouble + ": field '" + name + "'" + place + " " +
               what);
}

const Json &JsonFields::raw(const char *name) const {
  auto found = object->find(name);
  if (found == object->end())
    throw error(name, "is missing");
  return *found;
}

int64_t JsonFields::integer(const char *name, int64_t least, int64_t most) const {
  const Json &value = raw(name);
  if (!isWithin(value, least, most))
    throw error(name, "is " + shortened(value) + ", it must be " + rangeText(least, most));
  return value.get<int64_t>();
}

uint64_t JsonFields::number64(const char *name) const {
  const Json &value = raw(name);
  if (!value.is_number_unsigned())
    throw error(name, "is " + shortened(value) + ", it must be an integer from 0 to 2^64 - 1");
  return value.get<uint64_t>();
}

bool JsonFields::boolean(const char *name) const {
  const Json &value = raw(name);
  if (!value.is_boolean())
    throw error(name, "is " + shortened(value) + ", it must be true or false");
  return value.get<bool>();
}

std::string JsonFields::text(const char *name) const {
  const Json &value = raw(name);
  if (!value.is_string())
    throw error(name, "is " + shortened(value) + ", it must be a string");
  return value.get<std::string>();
}

double JsonFields::real(const char *name) const {
  const Json &value = raw(name);
  if (value.is_number())
    return value.get<double>();
  if (value == "nan")
    return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf" || value == "-inf")
    return value == "inf" ? HUGE_VAL : -HUGE_VAL;
  throw error(name, "is " + shortened(value) + ", it must be a number");
}

std::vector<int64_t> JsonFields::integers(const char *name, int64_t least, int64_t most) const {
  const Json &value = raw(name);
  if (!value.is_array())
    throw error(name, "is " + shortened(value) + ", it must be a list");
  std::vector<int64_t> result;
  for (const Json &entry : value) {
    if (!isWithin(entry, least, most))
      throw error(name, "is " + shortened(value) + ", each must be " + rangeText(least, most));
    result.push_back(entry.get<int64_t>());
  }
  return result;
}

std::vector<std::string> JsonFields::texts(const char *name) const {
  const Json &value = raw(name);
  std::vector<std::string> result;
  for (const Json &entry : value.is_array() ? value : Json::array({nullptr})) {
    if (!entry.is_string())
      throw error(name, "is " + shortened(value) + ", it must be a list of strings");
    result.push_back(entry.get<std::string>());
  }
  return result;
}

JsonFields JsonFields::fields(const char *name) const {
  const Json &value = raw(name);
  if (!value.is_object())
    throw error(name, "is " + shortened(value) + ", it must be an object");
  return {*document, value, std::string(" of '") + name + "'"};
}

std::vector<JsonFields> JsonFields::list(const char *name) const {
  const Json &value = raw(name);
  if (!value.is_array())
    throw error(name, "is " + shortened(value) + ", it must be a list");
  std::vector<JsonFields> result;
  for (const Json &entry : value) {
    if (!entry.is_object())
      throw error(name, "is " + shortened(value) + ", it must be a list of objects");
    result.emplace_back(*document, entry,
                        " of '" + std::string(name) + "[" + std::to_string(result.size()) + "]'");
  }
  return result;
}

std::vector<std::pair<std::string, JsonFields>> JsonFields::members() const {
  std::vector<std::pair<std::string, JsonFields>> result;
  for (const auto &[name, value] : object->items()) {
    if (!value.is_object())
      throw error(name, "is " + shortened(value) + ", it must be an object");
    result.emplace_back(name, JsonFields(*document, value, " of '" + name + "'"));
  }
  return result;
}

Json realToJson(double value) {
  if (std::isfinite(value))
    return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

} // namespace genrec::rt
