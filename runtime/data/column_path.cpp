//===- column_path.cpp - Dotted paths in a file's schema ------------------===//

#include "column_path.h"

#include <arrow/type.h>
#include <parquet/arrow/schema.h>

namespace genrec::rt {

namespace {

using parquet::arrow::SchemaField;

std::vector<std::string> split(const std::string &path) {
  std::vector<std::string> names;
  size_t begin = 0;
  for (size_t dot; (dot = path.find('.', begin)) != std::string::npos; begin = dot + 1)
    names.push_back(path.substr(begin, dot - begin));
  names.push_back(path.substr(begin));
  return names;
}

/// Enters the lists that `field` is made of.
const SchemaField *enterLists(const SchemaField *field, int32_t &depth) {
  while (isList(*field->field->type()) && field->children.size() == 1) {
    ++depth;
    field = &field->children[0];
  }
  return field;
}

/// Also says in `repeated` that there are several.
const SchemaField *childNamed(const std::vector<SchemaField> &children, const std::string &name,
                              bool &repeated) {
  const SchemaField *found = nullptr;
  for (const SchemaField &child : children)
    if (child.field->name() == name) {
      repeated |= found != nullptr;
      found = found ? found : &child;
    }
  return found;
}

int firstLeaf(const SchemaField *field) {
  while (!field->is_leaf()) {
    if (field->children.empty())
      return -1;
    field = &field->children[0];
  }
  return field->column_index;
}

void appendLeaves(const SchemaField &field, const std::string &prefix,
                  std::vector<std::string> &paths) {
  int32_t depth = 0;
  const SchemaField *inner = enterLists(&field, depth);
  std::string path = prefix + field.field->name();
  if (inner->is_leaf())
    paths.push_back(path);
  for (const SchemaField &child : inner->children)
    appendLeaves(child, path + ".", paths);
}

} // namespace

bool isList(const arrow::DataType &type) {
  switch (type.id()) {
  case arrow::Type::LIST:
  case arrow::Type::LARGE_LIST:
  case arrow::Type::FIXED_SIZE_LIST:
  case arrow::Type::MAP:
    return true;
  default:
    return false;
  }
}

std::string typeName(const arrow::DataType &type) { return type.ToString(); }

bool findPath(const parquet::arrow::SchemaManifest &manifest, const std::string &path,
              ColumnPath &found) {
  // A top-level column whose own name has dots comes first.
  std::vector<std::string> names = {path};
  bool isRepeated = false;
  const SchemaField *field = childNamed(manifest.schema_fields, path, isRepeated);
  if (!field) {
    names = split(path);
    field = childNamed(manifest.schema_fields, names[0], isRepeated);
  }
  found = {names, 0, nullptr, -1, isRepeated ? names[0] : ""};
  std::string prefix = names[0];
  for (size_t i = 1; field && i < names.size(); ++i) {
    isRepeated = false;
    field = childNamed(enterLists(field, found.depth)->children, names[i], isRepeated);
    prefix += "." + names[i];
    if (isRepeated && found.repeated.empty())
      found.repeated = prefix;
  }
  if (!field)
    return false;
  field = enterLists(field, found.depth);
  found.type = field->field->type();
  found.leaf = firstLeaf(field);
  return found.leaf >= 0;
}

std::string nullColumnAbove(const parquet::arrow::SchemaManifest &manifest,
                            const std::string &path) {
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
    ColumnPath above;
    if (findPath(manifest, path.substr(0, dot), above) && above.type->id() == arrow::Type::NA)
      return path.substr(0, dot);
  }
  return {};
}

std::vector<std::string> leafPaths(const parquet::arrow::SchemaManifest &manifest) {
  std::vector<std::string> paths;
  for (const SchemaField &field : manifest.schema_fields)
    appendLeaves(field, "", paths);
  return paths;
}

} // namespace genrec::rt
