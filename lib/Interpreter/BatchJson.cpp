//===- BatchJson.cpp - batches as JSON ------------------------------------===//

#include "BatchSchema.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

namespace json = llvm::json;

/// The value at a dotted path below `value`; null where there is none.
static const json::Value *find(const json::Value *value, StringRef path) {
  while (value && !path.empty()) {
    auto [name, rest] = path.split('.');
    const json::Object *object = value->getAsObject();
    value = object ? object->get(name) : nullptr;
    path = rest;
  }
  return value;
}

static llvm::Error malformed(const Twine &message) {
  return llvm::createStringError("batch: " + message);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Reads the rows of each domain, parents first.
class JsonReader {
public:
  explicit JsonReader(ProgramOp program) : schema(getBatchSchema(program)) {}

  llvm::Expected<Batch> read(const json::Value &value);

private:
  using Elements = std::vector<const json::Value *>;

  llvm::Error readRoots(const json::Object &top);
  llvm::Error readRows(size_t domain, Elements elements);
  llvm::Error readList(size_t parent, size_t child);
  llvm::Error readColumn(size_t domain, const ColumnSchema &column);
  llvm::Expected<const json::Value *> findValue(size_t domain, ColumnPath column, int64_t row,
                                                int64_t &list);

  std::vector<DomainSchema> schema;
  std::vector<Elements> elements; ///< per domain, the JSON value of each row
  Batch batch;
};

/// Appends one JSON value to a column; null is stored as 0.
template <class T> bool append(std::vector<T> &values, const json::Value *value) {
  T &next = values.emplace_back();
  if (!value)
    return true;
  if constexpr (std::is_same_v<T, std::string>) {
    if (auto text = value->getAsString())
      return next = text->str(), true;
  } else if constexpr (std::is_same_v<T, double>) {
    if (auto number = value->getAsNumber())
      return next = *number, true;
    // JSON has no NaN and no infinity: they are written as strings.
    if (auto text = value->getAsString(); text && (*text == "nan" || text->ends_with("inf")))
      return next = *text == "nan" ? NAN : *text == "-inf" ? -INFINITY : INFINITY, true;
  } else {
    if (auto integer = value->getAsInteger())
      return next = *integer, true;
    if (auto boolean = value->getAsBoolean())
      return next = *boolean, true;
  }
  return false;
}

/// Appends the values of a row [n] from a JSON list of n.
bool appendRow(Column &column, const json::Value *value) {
  const json::Array *list = column.isVector && value ? value->getAsArray() : nullptr;
  if (column.isVector && value && (!list || static_cast<int64_t>(list->size()) != column.width))
    return false;
  for (int64_t i = 0; i < column.width; ++i) {
    const json::Value *entry = list ? &(*list)[i] : column.isVector ? nullptr : value;
    if (list && entry->kind() == json::Value::Null)
      return false;
    if (!std::visit([&](auto &values) { return append(values, entry); }, column.values))
      return false;
  }
  return true;
}

} // namespace

llvm::Expected<Batch> JsonReader::read(const json::Value &value) {
  const json::Object *top = value.getAsObject();
  if (!top)
    return malformed("must be an object with 'rows'");
  elements.resize(schema.size());
  if (llvm::Error error = readRoots(*top))
    return error;
  if (const json::Array *positions = top->getArray("positions"))
    for (const json::Value &position : *positions) {
      if (!position.getAsInteger())
        return malformed("'positions' must hold integers");
      batch.positions.push_back(*position.getAsInteger());
    }
  return std::move(batch);
}

llvm::Error JsonReader::readRoots(const json::Object &top) {
  for (size_t domain = 0; domain < schema.size(); ++domain) {
    if (schema[domain].parent >= 0)
      continue;
    const json::Object *catalogues = top.getObject("catalogues");
    const json::Array *rows = nullptr;
    if (!schema[domain].isCatalogue())
      rows = top.getArray("rows");
    else if (catalogues)
      rows = catalogues->getArray(schema[domain].name());
    if (!rows)
      return malformed(schema[domain].isCatalogue()
                           ? "'catalogues' has no list '" + schema[domain].name() + "'"
                           : "has no list 'rows'");
    Elements list;
    for (const json::Value &row : *rows)
      list.push_back(&row);
    if (llvm::Error error = readRows(domain, std::move(list)))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error JsonReader::readRows(size_t domain, Elements list) {
  elements[domain] = std::move(list);
  batch.domains[schema[domain].name()].count = static_cast<int64_t>(elements[domain].size());
  for (const ColumnSchema &column : schema[domain].columns)
    if (llvm::Error error = readColumn(domain, column))
      return error;
  for (int child : schema[domain].children)
    if (llvm::Error error = readList(domain, child))
      return error;
  return llvm::Error::success();
}

llvm::Error JsonReader::readList(size_t parent, size_t child) {
  StringRef path = getListPath(schema[parent], schema[child]);
  std::vector<int64_t> offsets{0};
  Elements list;
  for (auto [row, element] : llvm::enumerate(elements[parent])) {
    const json::Value *value = find(element, path);
    const json::Array *array = value ? value->getAsArray() : nullptr;
    if (value && !array && value->kind() != json::Value::Null)
      return malformed("row " + Twine(row) + " of @" + schema[parent].name() +
                       " must have a list '" + path + "'");
    if (array)
      for (const json::Value &entry : *array)
        list.push_back(&entry);
    offsets.push_back(static_cast<int64_t>(list.size()));
  }
  batch.domains[schema[child].name()].offsets = std::move(offsets);
  return readRows(child, std::move(list));
}

/// The JSON value of one row; null where there is none. `list` is the row's parent, which advances
/// as rows ascend.
llvm::Expected<const json::Value *> JsonReader::findValue(size_t domain, ColumnPath column,
                                                          int64_t row, int64_t &list) {
  if (column.kind != ColumnPath::parallel)
    return find(elements[domain][row], column.path);
  const std::vector<int64_t> &offsets = batch.domains[schema[domain].name()].offsets;
  while (offsets[list + 1] <= row)
    ++list;
  const json::Value *value = find(elements[schema[domain].parent][list], column.path);
  const json::Array *array = value ? value->getAsArray() : nullptr;
  int64_t length = offsets[list + 1] - offsets[list];
  if (!array || static_cast<int64_t>(array->size()) != length)
    return malformed("list '" + column.path + "' must have as many entries as '" +
                     schema[domain].path() + "' beside it, " + Twine(length));
  return &(*array)[row - offsets[list]];
}

llvm::Error JsonReader::readColumn(size_t domain, const ColumnSchema &schemaColumn) {
  Column column;
  column.width = schemaColumn.width;
  column.isVector = schemaColumn.isVector;
  Type element = schemaColumn.element;
  if (element && isa<FloatType>(element))
    column.values = std::vector<double>();
  else if (element && isa<StringType>(element))
    column.values = std::vector<std::string>();
  ColumnPath columnPath = getColumnPath(schema[domain], schemaColumn.path);
  int64_t list = 0;
  bool hasNulls = false;
  for (int64_t row = 0; row < static_cast<int64_t>(elements[domain].size()); ++row) {
    llvm::Expected<const json::Value *> found = findValue(domain, columnPath, row, list);
    if (!found)
      return found.takeError();
    const json::Value *value = *found;
    auto where = [&] {
      return ("row " + Twine(row) + " of @" + schema[domain].name() + ", column '" +
              schemaColumn.path + "'")
          .str();
    };
    if (!value && !schemaColumn.nullable)
      return malformed(where() + ": no value");
    bool isNull = !value || value->kind() == json::Value::Null;
    // A column of which programs read only the nulls may have any type.
    const json::Value *read = isNull || !element ? nullptr : value;
    if (!appendRow(column, read))
      return malformed(where() + ": the value is not of the feature's type");
    column.valid.push_back(!isNull);
    hasNulls |= isNull;
  }
  if (!hasNulls)
    column.valid.clear();
  batch.domains[schema[domain].name()].columns[schemaColumn.path] = std::move(column);
  return llvm::Error::success();
}

llvm::Expected<Batch> interpreter::batchFromJson(ProgramOp program, const json::Value &value) {
  return JsonReader(program).read(value);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static void setPath(json::Object &object, StringRef path, json::Value value) {
  auto [name, rest] = path.split('.');
  if (rest.empty()) {
    object[name] = std::move(value);
    return;
  }
  json::Value &below = object.try_emplace(name, json::Object()).first->second;
  setPath(*below.getAsObject(), rest, std::move(value));
}

static json::Value scalarAt(const Column &column, int64_t row) {
  if (auto *floats = std::get_if<std::vector<double>>(&column.values)) {
    double value = (*floats)[row];
    if (std::isfinite(value))
      return value;
    return std::isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
  }
  if (auto *integers = std::get_if<std::vector<int64_t>>(&column.values))
    return (*integers)[row];
  return std::get<std::vector<std::string>>(column.values)[row];
}

static json::Value valueAt(const Column &column, int64_t row) {
  if (!column.valid.empty() && !column.valid[row])
    return nullptr;
  if (!column.isVector)
    return scalarAt(column, row);
  json::Array list;
  for (int64_t i = 0; i < column.width; ++i)
    list.push_back(scalarAt(column, row * column.width + i));
  return list;
}

/// One row of a domain, with the rows of its child domains.
static json::Value rowToJson(const std::vector<DomainSchema> &schema, const Batch &batch,
                             size_t domain, int64_t row) {
  const BatchRows &rows = batch.domains.find(schema[domain].name())->second;
  json::Object object;
  for (const auto &[path, column] : rows.columns) {
    ColumnPath columnPath = getColumnPath(schema[domain], path);
    if (columnPath.kind == ColumnPath::element)
      return valueAt(column, row);
    if (columnPath.kind == ColumnPath::member)
      setPath(object, columnPath.path, valueAt(column, row));
  }
  for (int child : schema[domain].children) {
    auto below = batch.domains.find(schema[child].name());
    if (below == batch.domains.end())
      continue;
    const std::vector<int64_t> &offsets = below->second.offsets;
    json::Array list;
    for (int64_t entry = offsets[row]; entry < offsets[row + 1]; ++entry)
      list.push_back(rowToJson(schema, batch, child, entry));
    setPath(object, getListPath(schema[domain], schema[child]), std::move(list));
    for (const auto &[path, column] : below->second.columns) {
      ColumnPath columnPath = getColumnPath(schema[child], path);
      if (columnPath.kind != ColumnPath::parallel)
        continue;
      json::Array parallel;
      for (int64_t entry = offsets[row]; entry < offsets[row + 1]; ++entry)
        parallel.push_back(valueAt(column, entry));
      setPath(object, columnPath.path, std::move(parallel));
    }
  }
  return object;
}

json::Value interpreter::batchToJson(ProgramOp program, const Batch &batch) {
  std::vector<DomainSchema> schema = getBatchSchema(program);
  json::Object top, catalogues;
  for (size_t domain = 0; domain < schema.size(); ++domain) {
    auto rows = batch.domains.find(schema[domain].name());
    if (schema[domain].parent >= 0 || rows == batch.domains.end())
      continue;
    json::Array list;
    for (int64_t row = 0; row < rows->second.count; ++row)
      list.push_back(rowToJson(schema, batch, domain, row));
    (schema[domain].isCatalogue() ? catalogues[schema[domain].name()] : top["rows"]) =
        std::move(list);
  }
  if (!catalogues.empty())
    top["catalogues"] = std::move(catalogues);
  if (!batch.positions.empty())
    top["positions"] = json::Array(batch.positions);
  return top;
}
