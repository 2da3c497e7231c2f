//===- TinyData.cpp - Parquet files for the model written by hand ---------===//

#include "TinyData.h"

#include "TinyModel.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace genrec::rt::test {

namespace {

using Json = nlohmann::json;

void check(const arrow::Status &status) {
  if (!status.ok())
    throw std::runtime_error(status.ToString());
}

void append(arrow::ArrayBuilder &builder, const Json &value);

template <class Builder> void appendList(Builder &list, const Json &value) {
  check(list.Append());
  for (const Json &entry : value)
    append(*list.value_builder(), entry);
}

/// Appends one JSON value to a builder of any of the types that tests use.
void append(arrow::ArrayBuilder &builder, const Json &value) {
  using arrow::Type;
  if (value.is_null())
    return check(builder.AppendNull());
  switch (builder.type()->id()) {
  case Type::BOOL:
    return check(static_cast<arrow::BooleanBuilder &>(builder).Append(value.get<bool>()));
  case Type::INT16:
    return check(static_cast<arrow::Int16Builder &>(builder).Append(value.get<int16_t>()));
  case Type::INT32:
    return check(static_cast<arrow::Int32Builder &>(builder).Append(value.get<int32_t>()));
  case Type::INT64:
    return check(static_cast<arrow::Int64Builder &>(builder).Append(value.get<int64_t>()));
  case Type::TIMESTAMP:
    return check(static_cast<arrow::TimestampBuilder &>(builder).Append(value.get<int64_t>()));
  case Type::DATE32:
    return check(static_cast<arrow::Date32Builder &>(builder).Append(value.get<int32_t>()));
  case Type::FLOAT:
    return check(static_cast<arrow::FloatBuilder &>(builder).Append(value.get<float>()));
  case Type::DOUBLE:
    return check(static_cast<arrow::DoubleBuilder &>(builder).Append(value.get<double>()));
  case Type::STRING:
    return check(static_cast<arrow::StringBuilder &>(builder).Append(value.get<std::string>()));
  case Type::DICTIONARY:
    return check(
        static_cast<arrow::StringDictionaryBuilder &>(builder).Append(value.get<std::string>()));
  case Type::LIST:
    return appendList(static_cast<arrow::ListBuilder &>(builder), value);
  case Type::LARGE_LIST:
    return appendList(static_cast<arrow::LargeListBuilder &>(builder), value);
  case Type::FIXED_SIZE_LIST:
    return appendList(static_cast<arrow::FixedSizeListBuilder &>(builder), value);
  case Type::STRUCT: {
    auto &structs = static_cast<arrow::StructBuilder &>(builder);
    check(structs.Append());
    auto type = builder.type();
    for (int i = 0; i < type->num_fields(); ++i) {
      const std::string &name = type->field(i)->name();
      append(*structs.field_builder(i), value.contains(name) ? value[name] : Json(nullptr));
    }
    return;
  }
  default:
    throw std::runtime_error("no builder for " + builder.type()->ToString());
  }
}

} // namespace

TestFolder::TestFolder() {
  std::string pattern = std::filesystem::temp_directory_path() / "genrec-test-XXXXXX";
  if (!mkdtemp(pattern.data()))
    throw std::runtime_error("cannot make a folder for a test");
  path = pattern;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::shared_ptr<arrow::Table> tableOf(const std::shared_ptr<arrow::Schema> &schema,
                                      const std::string &json) {
  Json rows = Json::parse(json);
  arrow::ArrayVector columns;
  for (int i = 0; i < schema->num_fields(); ++i) {
    auto builder = arrow::MakeBuilder(schema->field(i)->type());
    check(builder.status());
    for (const Json &row : rows)
      append(**builder, row.at(i));
    auto array = (*builder)->Finish();
    check(array.status());
    columns.push_back(*array);
  }
  return arrow::Table::Make(schema, columns);
}

void writeParquet(const std::string &path, const arrow::Table &table, int64_t groupRows) {
  auto file = arrow::io::FileOutputStream::Open(path);
  check(file.status());
  auto properties = parquet::WriterProperties::Builder().build();
  auto arrowProperties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  check(parquet::arrow::WriteTable(table, arrow::default_memory_pool(), *file, groupRows,
                                   properties, arrowProperties));
  check((*file)->Close());
}

std::shared_ptr<arrow::Table> readParquet(const std::string &path) {
  auto file = arrow::io::ReadableFile::Open(path).ValueOrDie();
  auto reader = parquet::arrow::OpenFile(file, arrow::default_memory_pool()).ValueOrDie();
  return reader->ReadTable().ValueOrDie()->CombineChunks().ValueOrDie();
}

std::shared_ptr<arrow::Schema> tinySchema() {
  auto event = arrow::struct_({arrow::field("movie", arrow::int64())});
  return arrow::schema(
      {arrow::field("user", arrow::int64()), arrow::field("label", arrow::float32()),
       arrow::field("target", arrow::int64()), arrow::field("history", arrow::list(event))});
}

void writeTinyData(const std::string &path, uint64_t seed, int64_t users, int64_t movies,
                   int64_t groupRows) {
  Batch batch = tinyBatch(seed, users, movies);
  const auto *user = reinterpret_cast<const int64_t *>(batch.columns[0].values.data());
  const auto *label = reinterpret_cast<const float *>(batch.columns[1].values.data());
  const auto *target = reinterpret_cast<const int64_t *>(batch.columns[2].values.data());
  const auto *movie = reinterpret_cast<const int64_t *>(batch.columns[3].values.data());
  Json rows = Json::array();
  for (int64_t u = 0; u < users; ++u) {
    Json history = Json::array();
    const auto &offsets = batch.domains[kTinyHistory].offsets;
    for (int64_t i = offsets[u]; i < offsets[u + 1]; ++i)
      history.push_back({{"movie", movie[i]}});
    rows.push_back({user[u], label[u], target[u], history});
  }
  writeParquet(path, *tableOf(tinySchema(), rows.dump()), groupRows);
}

void writeTinyCatalogue(const std::string &path, int64_t count) {
  Json rows = Json::array();
  for (int64_t i = 0; i < count; ++i)
    rows.push_back({i});
  writeParquet(path, *tableOf(arrow::schema({arrow::field("movie", arrow::int64())}), rows.dump()));
}

std::string readText(const std::string &path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

} // namespace genrec::rt::test
