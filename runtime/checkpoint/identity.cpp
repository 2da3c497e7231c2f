//===- identity.cpp - Is a checkpoint one of this model -------------------===//

#include "identity.h"

#include "../core/json.h"

#include <set>

namespace genrec::rt {

namespace {

/// Differences that are listed; the others are counted.
constexpr size_t kMostListed = 6;

/// The names under `key` in either that have other values, as "<what> 'x' was a, is b".
void compareByName(const Json &was, const Json &is, const char *key, const std::string &what,
                   std::vector<std::string> &differences) {
  const Json none = Json::object();
  const Json &before = was.contains(key) ? was[key] : none, &now = is.contains(key) ? is[key] : none;
  std::set<std::string> names;
  for (const Json *side : {&before, &now})
    for (const auto &[name, value] : side->items())
      names.insert(name);
  for (const std::string &name : names) {
    std::string quoted = what + " '" + name + "'";
    if (!now.contains(name))
      differences.push_back(quoted + " is only in the checkpoint");
    else if (!before.contains(name))
      differences.push_back(quoted + " is only in the model");
    else if (before[name] != now[name])
      differences.push_back(quoted + " was " + words(before[name]) + ", is " + words(now[name]));
  }
}

int64_t countOfOp(const Json &ops, const std::string &name) {
  if (!ops.contains(name) || !ops[name].is_array() || ops[name].empty() ||
      !ops[name][0].is_number_integer())
    return 0;
  return ops[name][0].get<int64_t>();
}

/// By name how many ops there were and are, and whose attributes are others.
void compareOps(const Json &was, const Json &is, std::vector<std::string> &differences) {
  const Json before = was.value("ops", Json::object()), now = is.value("ops", Json::object());
  std::set<std::string> names;
  for (const Json *side : {&before, &now})
    for (const auto &[name, value] : side->items())
      names.insert(name);
  for (const std::string &name : names) {
    int64_t had = countOfOp(before, name), has = countOfOp(now, name);
    if (had != has)
      differences.push_back("op '" + name + "' was there " + std::to_string(had) + " times, is " +
                            std::to_string(has));
    else if (before[name] != now[name])
      differences.push_back("op '" + name + "' has other attributes");
  }
}

std::string listed(std::vector<std::string> differences) {
  size_t more = differences.size() > kMostListed ? differences.size() - kMostListed : 0;
  differences.resize(differences.size() - more);
  std::string text;
  for (const std::string &difference : differences)
    text += (text.empty() ? "" : "; ") + difference;
  return more ? text + "; and " + std::to_string(more) + " more" : text;
}

} // namespace

std::string identityDifference(const std::string &wasText, const std::string &isText,
                               RestoreFor purpose) {
  Json was = Json::parse(wasText, nullptr, /*allow_exceptions=*/false);
  Json is = Json::parse(isText, nullptr, /*allow_exceptions=*/false);
  if (!was.is_object() || !is.is_object())
    return {};
  std::vector<std::string> differences;
  compareByName(was, is, "tables", "table", differences);
  compareByName(was, is, "parameters", "parameter", differences);
  if (was.value("structure", Json()) != is.value("structure", Json())) {
    size_t before = differences.size();
    compareByName(was, is, "columns", "column", differences);
    compareOps(was, is, differences);
    if (differences.size() == before)
      differences.push_back("its ops are connected in another way");
  }
  if (purpose == RestoreFor::training)
    compareByName(was, is, "optimizers", "the optimizer of", differences);
  return listed(std::move(differences));
}

std::string dataDifference(const std::vector<DataFile> &was, const std::vector<DataFile> &is) {
  if (was.empty() || is.empty())
    return {};
  for (size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
    if (was[i].isSame(is[i]))
      continue;
    std::string text = "file " + std::to_string(i + 1) + " of the " + is[i].role + ", " +
                       is[i].path + ", has ";
    return text +
           (was[i].bytes == is[i].bytes ? "other content"
                                        : "other bytes, " + std::to_string(is[i].bytes) + ",") +
           " than " + was[i].path + " had" +
           (was[i].bytes == is[i].bytes ? "" : " (" + std::to_string(was[i].bytes) + ")");
  }
  if (was.size() != is.size())
    return "there are " + std::to_string(is.size()) + " files, there were " +
           std::to_string(was.size());
  return {};
}

} // namespace genrec::rt
