//===- json.h - JSON as the runtime writes it --------------------*- C++ -*-===//

#ifndef GENREC_RT_CORE_JSON_H
#define GENREC_RT_CORE_JSON_H

#include <nlohmann/json.hpp>

#include <string>

namespace genrec::rt {

using Json = nlohmann::ordered_json;

/// `json` as text, on one line, or indented by `indent` blanks a level. All JSON of the
/// runtime is written here: paths and column names need not be UTF-8, JSON must be, so
/// bytes that are not are written as U+FFFD. (The library's own dump throws at them.)
template <class AnyJson> std::string toText(const AnyJson &json, int indent = -1) {
  return json.dump(indent, ' ', false, AnyJson::error_handler_t::replace);
}

/// A string as it is, another value as toText.
inline std::string words(const Json &value) {
  return value.is_string() ? value.get<std::string>() : toText(value);
}

} // namespace genrec::rt

#endif // GENREC_RT_CORE_JSON_H
