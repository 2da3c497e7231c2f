//===- json_fields.h - JSON that is not trusted ------------------*- C++ -*-===//
//
// Reads objects whose fields must be there, of the type and in the range that the
// caller says; every miss is an Error with file and field. No value of a file is
// used without having gone through here.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_JSON_FIELDS_H
#define GENREC_RT_CHECKPOINT_JSON_FIELDS_H

#include "../core/json.h"
#include "genrec_rt/error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace genrec::rt {

class JsonFields;

/// A file's text, parsed. An object that has a field twice is refused: readers differ in which
/// one they take.
class JsonDocument {
public:
  /// `trouble` begins what errors say behind the file's name: "is damaged", "broken header".
  JsonDocument(const std::string &text, std::string file, std::string trouble);

  JsonFields root() const;
  const std::string &file() const { return path; }

private:
  friend class JsonFields;

  Json value;
  std::string path, trouble;
};

/// One object of a document, which must outlive it.
class JsonFields {
public:
  JsonFields(const JsonDocument &document, const Json &object, std::string place)
      : document(&document), object(&object), place(std::move(place)) {}

  bool has(const char *name) const { return object->contains(name); }
  int64_t integer(const char *name, int64_t least, int64_t most) const;
  uint64_t number64(const char *name) const; ///< any of 64 bits without a sign
  bool boolean(const char *name) const;
  std::string text(const char *name) const;
  /// A double; NaN and infinities are "nan", "inf", "-inf".
  double real(const char *name) const;
  std::vector<int64_t> integers(const char *name, int64_t least, int64_t most) const;
  std::vector<std::string> texts(const char *name) const;
  JsonFields fields(const char *name) const;
  /// Of a list of objects.
  std::vector<JsonFields> list(const char *name) const;
  /// The names of this object with their values, which are objects.
  std::vector<std::pair<std::string, JsonFields>> members() const;
  const Json &raw(const char *name) const;

  /// "<file>: <trouble>: field 'x' of tensor 'y' <what>".
  Error error(const std::string &name, const std::string &what) const;

private:
  const JsonDocument *document;
  const Json *object;
  std::string place; ///< " of tensor 'x'", or ""
};

/// What `JsonFields::real` reads.
Json realToJson(double value);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_JSON_FIELDS_H
