//===- JsonBatch.cpp - batches in the JSON of genrec-run ------------------===//

#include "JsonBatch.h"

#include "genrec_rt/error.h"

#include <map>
#include <string>
#include <vector>

using namespace genrec::rt;
namespace json = llvm::json;

namespace {

/// The name of a column within the rows of its domain: the path without the list's.
std::string getField(const genrec_model_desc &model, const genrec_feature_desc &feature) {
  std::string path = feature.column;
  const char *list = model.domains[feature.domain].column;
  if (!list)
    return path;
  std::string prefix = std::string(list) + ".";
  return path.rfind(prefix, 0) == 0 ? path.substr(prefix.size()) : "";
}

/// The key of a list within the rows of its parent.
std::string getListKey(const genrec_model_desc &model, int32_t domain) {
  std::string path = model.domains[domain].column;
  int32_t parent = model.domains[domain].parent;
  if (const char *above = model.domains[parent].column)
    path = path.substr(std::string(above).size() + 1);
  return path;
}

class Reader {
public:
  Reader(const genrec_model_desc &model, int32_t root) : model(model), batch(model), root(root) {}

  Batch read(const json::Array &rows, const json::Array *positions);

private:
  void readDomain(int32_t domain, const std::vector<const json::Value *> &rows);
  void readColumn(int32_t feature, const std::vector<const json::Value *> &rows);

  const genrec_model_desc &model;
  Batch batch;
  int32_t root;
};

/// The member `key` of a row, or the row itself where key is empty.
const json::Value *getMember(const json::Value &row, const std::string &key) {
  if (key.empty())
    return &row;
  const json::Object *object = row.getAsObject();
  return object ? object->get(key) : nullptr;
}

template <class T> void put(ColumnBatch &column, size_t row, T value) {
  reinterpret_cast<T *>(column.values.data())[row] = value;
}

void putValue(ColumnBatch &column, int32_t type, size_t row, const json::Value &value) {
  double number = value.getAsNumber().value_or(value.getAsBoolean().value_or(false));
  switch (type) {
  case GENREC_VALID:
    return put<uint8_t>(column, row, 0);
  case GENREC_I1:
    return put<uint8_t>(column, row, number != 0);
  case GENREC_I32:
    return put<int32_t>(column, row, static_cast<int32_t>(number));
  case GENREC_I64:
    return put<int64_t>(column, row, value.getAsInteger().value_or(static_cast<int64_t>(number)));
  case GENREC_F32:
    return put<float>(column, row, static_cast<float>(number));
  case GENREC_F64:
    return put<double>(column, row, number);
  default:
    throw Error("columns of this type are not read from JSON", "use another type");
  }
}

/// Strings are views into the column's text.
void putStrings(ColumnBatch &column, const std::vector<const json::Value *> &rows,
                const std::string &field) {
  std::vector<llvm::StringRef> texts;
  int64_t bytes = 0;
  for (const json::Value *row : rows) {
    const json::Value *value = getMember(*row, field);
    texts.push_back(value ? value->getAsString().value_or("") : "");
    bytes += static_cast<int64_t>(texts.back().size());
  }
  char *to = column.bytes.ensure(bytes);
  for (size_t row = 0; row < texts.size(); ++row) {
    const auto size = static_cast<int64_t>(texts[row].size());
    put<genrec_string>(column, row, {to, size});
    to = std::copy(texts[row].begin(), texts[row].end(), to);
  }
}

} // namespace

void Reader::readColumn(int32_t number, const std::vector<const json::Value *> &rows) {
  const genrec_feature_desc &feature = model.features[number];
  ColumnBatch &column = batch.columns[number];
  std::string field = getField(model, feature);
  column.given = true;
  column.values.ensure(static_cast<int64_t>(rows.size()) * rowBytes(feature));
  column.valid.ensure(static_cast<int64_t>(rows.size()));
  for (size_t row = 0; row < rows.size(); ++row) {
    const json::Value *value = getMember(*rows[row], field);
    bool isValid = value && value->kind() != json::Value::Null;
    column.valid.data()[row] = isValid;
    column.hasNulls |= !isValid;
    if (feature.type == GENREC_STRING)
      continue;
    auto width = static_cast<size_t>(feature.width);
    for (size_t i = 0; i < width; ++i)
      putValue(column, feature.type, row * width + i,
               isValid ? (*value->getAsArray())[i] : json::Value(0));
    if (width == 0)
      putValue(column, feature.type, row, isValid ? *value : json::Value(0));
  }
  if (feature.type == GENREC_STRING)
    putStrings(column, rows, field);
}

void Reader::readDomain(int32_t domain, const std::vector<const json::Value *> &rows) {
  batch.domains[domain].given = true;
  batch.domains[domain].count = static_cast<int64_t>(rows.size());
  for (int32_t feature = 0; feature < model.feature_count; ++feature)
    if (model.features[feature].domain == domain)
      readColumn(feature, rows);
  for (int32_t child = 0; child < model.domain_count; ++child) {
    if (model.domains[child].parent != domain || model.domains[child].kind != GENREC_DOMAIN_DATA)
      continue;
    std::string key = getListKey(model, child);
    std::vector<const json::Value *> below;
    std::vector<int64_t> offsets = {0};
    for (const json::Value *row : rows) {
      const json::Value *list = getMember(*row, key);
      if (const json::Array *entries = list ? list->getAsArray() : nullptr)
        for (const json::Value &entry : *entries)
          below.push_back(&entry);
      offsets.push_back(static_cast<int64_t>(below.size()));
    }
    batch.domains[child].offsets.ensure(static_cast<int64_t>(offsets.size()));
    std::copy(offsets.begin(), offsets.end(), batch.domains[child].offsets.data());
    readDomain(child, below);
  }
}

Batch Reader::read(const json::Array &rows, const json::Array *positions) {
  std::vector<const json::Value *> values;
  for (const json::Value &row : rows)
    values.push_back(&row);
  readDomain(root, values);
  batch.rows = static_cast<int64_t>(rows.size());
  batch.positions.ensure(batch.rows);
  for (int64_t row = 0; row < batch.rows; ++row)
    batch.positions.data()[row] =
        positions ? (*positions)[static_cast<size_t>(row)].getAsInteger().value_or(row) : row;
  return std::move(batch);
}

Batch driver::readRows(const genrec_model_desc &model, int32_t root, const json::Array &rows,
                       const json::Array *positions) {
  return Reader(model, root).read(rows, positions);
}
