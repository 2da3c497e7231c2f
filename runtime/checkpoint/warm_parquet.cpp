//===- warm_parquet.cpp - Vectors by id from Parquet for a warm start -----===//

#include "../core/text.h"
#include "genrec_rt/error.h"
#include "warm_values.h"

#include <arrow/api.h>
#include <arrow/io/file.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>

#include <algorithm>
#include <memory>

namespace genrec::rt {

namespace {

/// Rows of a Parquet table in memory: an id and a vector each.
struct Vectors {
  std::vector<int64_t> ids;
  std::vector<float> values;
  int64_t width = -1;
};

template <class T> T valueOf(arrow::Result<T> result, const std::string &path) {
  if (!result.ok())
    throw Error(path + ": cannot be read: " + result.status().message(),
                "it may be truncated, or no Parquet file: write it again");
  return std::move(*result);
}

bool isVector(const arrow::DataType &type) {
  arrow::Type::type id = type.id();
  if (id != arrow::Type::LIST && id != arrow::Type::LARGE_LIST &&
      id != arrow::Type::FIXED_SIZE_LIST)
    return false;
  auto entry = type.field(0)->type()->id();
  return entry == arrow::Type::FLOAT || entry == arrow::Type::DOUBLE ||
         entry == arrow::Type::HALF_FLOAT;
}

bool isId(const arrow::DataType &type) { return arrow::is_integer(type.id()); }

std::string describe(const arrow::Schema &schema) {
  std::vector<std::string> columns;
  for (const auto &field : schema.fields())
    columns.push_back("'" + field->name() + "' " + field->type()->ToString());
  return listNames(columns);
}

/// The one column that `fits`, or `wanted`; Error where there is none, or several.
std::string chooseColumn(const std::string &path, const arrow::Schema &schema,
                         const std::string &wanted, bool (*fits)(const arrow::DataType &),
                         const std::string &what) {
  std::vector<std::string> found;
  for (const auto &field : schema.fields())
    if (fits(*field->type()) && (wanted.empty() || wanted == field->name()))
      found.push_back(field->name());
  if (found.size() == 1)
    return found[0];
  std::string message = path + ": ";
  if (!wanted.empty())
    message += "has no column '" + wanted + "' of " + what;
  else
    message += found.empty() ? "has no column of " + what
                             : "has several columns of " + what + ": " + listNames(found);
  throw Error(message + "; it has " + describe(schema),
              "name the columns of ids and of vectors: " + path + ":<ids>,<vectors>");
}

[[noreturn]] void throwNull(const std::string &path, const std::string &column, int64_t row) {
  throw Error(path + ", row " + withThousands(row) + ": column '" + column + "' is null");
}

template <class List>
void appendLists(const List &lists, const std::string &path, const std::string &column,
                 Vectors &to) {
  auto floats = valueOf(arrow::Concatenate({lists.values()}), path);
  for (int64_t i = 0; i < lists.length(); ++i) {
    auto row = static_cast<int64_t>(to.values.size()) / std::max<int64_t>(1, to.width);
    if (lists.IsNull(i))
      throwNull(path, column, row);
    int64_t width = lists.value_length(i);
    if (to.width < 0)
      to.width = width;
    if (width != to.width)
      throw Error(path + ", row " + withThousands(row) + ": column '" + column + "' has " +
                  std::to_string(width) + " numbers, rows before it have " +
                  std::to_string(to.width));
    for (int64_t j = lists.value_offset(i); j < lists.value_offset(i) + width; ++j) {
      if (floats->IsNull(j))
        throwNull(path, column, row);
      switch (floats->type_id()) {
      case arrow::Type::FLOAT:
        to.values.push_back(static_cast<const arrow::FloatArray &>(*floats).Value(j));
        break;
      case arrow::Type::DOUBLE:
        to.values.push_back(
            static_cast<float>(static_cast<const arrow::DoubleArray &>(*floats).Value(j)));
        break;
      default: {
        uint16_t bits = static_cast<const arrow::HalfFloatArray &>(*floats).Value(j);
        _Float16 half;
        __builtin_memcpy(&half, &bits, sizeof half);
        to.values.push_back(static_cast<float>(half));
      }
      }
    }
  }
}

void appendVectors(const arrow::Array &array, const std::string &path, const std::string &column,
                   Vectors &to) {
  switch (array.type_id()) {
  case arrow::Type::LIST:
    return appendLists(static_cast<const arrow::ListArray &>(array), path, column, to);
  case arrow::Type::LARGE_LIST:
    return appendLists(static_cast<const arrow::LargeListArray &>(array), path, column, to);
  default:
    return appendLists(static_cast<const arrow::FixedSizeListArray &>(array), path, column, to);
  }
}

template <class T> void appendAs(const arrow::Array &array, std::vector<int64_t> &to) {
  const auto &numbers = static_cast<const arrow::NumericArray<T> &>(array);
  for (int64_t i = 0; i < numbers.length(); ++i)
    to.push_back(static_cast<int64_t>(numbers.Value(i)));
}

void appendIds(const arrow::Array &array, const std::string &path, const std::string &column,
               Vectors &to) {
  for (int64_t i = 0; i < array.length(); ++i)
    if (array.IsNull(i))
      throwNull(path, column, static_cast<int64_t>(to.ids.size()) + i);
  switch (array.type_id()) {
  case arrow::Type::INT64:
    return appendAs<arrow::Int64Type>(array, to.ids);
  case arrow::Type::UINT64:
    return appendAs<arrow::UInt64Type>(array, to.ids);
  case arrow::Type::INT32:
    return appendAs<arrow::Int32Type>(array, to.ids);
  case arrow::Type::UINT32:
    return appendAs<arrow::UInt32Type>(array, to.ids);
  case arrow::Type::INT16:
    return appendAs<arrow::Int16Type>(array, to.ids);
  case arrow::Type::UINT16:
    return appendAs<arrow::UInt16Type>(array, to.ids);
  case arrow::Type::INT8:
    return appendAs<arrow::Int8Type>(array, to.ids);
  default:
    return appendAs<arrow::UInt8Type>(array, to.ids);
  }
}

std::shared_ptr<Vectors> readVectors(const std::string &path, const std::string &columns) {
  auto file = valueOf(arrow::io::ReadableFile::Open(path), path);
  auto reader = valueOf(parquet::arrow::OpenFile(file, arrow::default_memory_pool()), path);
  std::shared_ptr<arrow::Schema> schema;
  if (arrow::Status status = reader->GetSchema(&schema); !status.ok())
    throw Error(path + ": cannot be read: " + status.message());
  size_t comma = columns.find(',');
  if (!columns.empty() && comma == std::string::npos)
    throw Error(path + ":" + columns + ": names one column",
                "name those of ids and of vectors: " + path + ":<ids>,<vectors>");
  std::string ids = columns.substr(0, std::min(comma, columns.size()));
  std::string vectors = columns.empty() ? "" : columns.substr(comma + 1);
  ids = chooseColumn(path, *schema, ids, isId, "integer ids");
  vectors = chooseColumn(path, *schema, vectors, isVector, "vectors (lists of floats)");
  auto found = std::make_shared<Vectors>();
  for (int group = 0; group < reader->num_row_groups(); ++group) {
    std::shared_ptr<arrow::Table> table;
    if (arrow::Status status = reader->ReadRowGroup(group, &table); !status.ok())
      throw Error(path + ": cannot be read: " + status.message());
    for (const auto &chunk : table->GetColumnByName(ids)->chunks())
      appendIds(*chunk, path, ids, *found);
    for (const auto &chunk : table->GetColumnByName(vectors)->chunks())
      appendVectors(*chunk, path, vectors, *found);
  }
  found->width = std::max<int64_t>(0, found->width);
  return found;
}

} // namespace

WarmValues readParquetVectors(const std::string &path, const std::string &columns) {
  std::shared_ptr<Vectors> vectors;
  try {
    vectors = readVectors(path, columns);
  } catch (const parquet::ParquetException &error) {
    throw Error(path + ": cannot be read: " + error.what(),
                "it may be truncated, or no Parquet file: write it again");
  }
  auto rows = static_cast<int64_t>(vectors->ids.size());
  WarmValues values;
  values.source = path;
  values.dtype = "F32";
  values.shape = {rows, vectors->width};
  values.read = [vectors](int64_t first, int64_t count, float *to) {
    std::copy_n(vectors->values.data() + first, count, to);
  };
  values.idType = "I64";
  values.idShape = {rows};
  values.readIds = [vectors](int64_t first, int64_t count, int64_t *to) {
    std::copy_n(vectors->ids.data() + first, count, to);
  };
  return values;
}

} // namespace genrec::rt
