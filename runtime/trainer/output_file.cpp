//===- output_file.cpp - What predict writes ------------------------------===//

#include "output_file.h"

#include "../core/aside_file.h"
#include "../data/leaf_values.h"
#include "genrec_rt/error.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace genrec::rt {

namespace {

constexpr int64_t kRowsPerGroup = 1 << 16;

void check(const arrow::Status &status, const std::string &path) {
  if (!status.ok())
    throw Error(path + ": cannot be written: " + status.message() +
                (status.detail() ? " (" + status.detail()->ToString() + ")" : ""));
}

std::shared_ptr<arrow::DataType> arrowType(int32_t type) {
  switch (type) {
  case GENREC_I1:
    return arrow::boolean();
  case GENREC_I32:
    return arrow::int32();
  case GENREC_I64:
    return arrow::int64();
  case GENREC_F64:
    return arrow::float64();
  case GENREC_STRING:
    return arrow::utf8();
  default:
    return arrow::float32(); // bf16 too
  }
}

template <class T> T valueAt(const char *values, int64_t index) {
  T value;
  std::memcpy(&value, values + index * static_cast<int64_t>(sizeof(T)), sizeof value);
  return value;
}

float fromBf16(uint16_t bits) {
  uint32_t word = static_cast<uint32_t>(bits) << 16;
  float value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

/// Appends value `index` of an output of genrec_type `type`.
arrow::Status appendValue(arrow::ArrayBuilder &builder, int32_t type, const char *values,
                          int64_t index) {
  switch (type) {
  case GENREC_I1:
    return static_cast<arrow::BooleanBuilder &>(builder).Append(valueAt<uint8_t>(values, index));
  case GENREC_I32:
    return static_cast<arrow::Int32Builder &>(builder).Append(valueAt<int32_t>(values, index));
  case GENREC_I64:
    return static_cast<arrow::Int64Builder &>(builder).Append(valueAt<int64_t>(values, index));
  case GENREC_F64:
    return static_cast<arrow::DoubleBuilder &>(builder).Append(valueAt<double>(values, index));
  case GENREC_STRING: {
    auto text = valueAt<genrec_string>(values, index);
    return static_cast<arrow::StringBuilder &>(builder).Append(
        std::string_view(text.data, static_cast<size_t>(text.size)));
  }
  case GENREC_BF16:
    return static_cast<arrow::FloatBuilder &>(builder).Append(
        fromBf16(valueAt<uint16_t>(values, index)));
  default:
    return static_cast<arrow::FloatBuilder &>(builder).Append(valueAt<float>(values, index));
  }
}

/// The type of the builder for a key's values. Values of a fixed size are collected as fixed-size
/// bytes: both array types have the same memory layout.
std::shared_ptr<arrow::DataType> collectedType(const std::shared_ptr<arrow::DataType> &key) {
  int64_t bytes = bytesOfValue(*key);
  return bytes > 0 ? arrow::fixed_size_binary(static_cast<int32_t>(bytes)) : key;
}

/// Appends a key's bytes to a builder of collectedType.
arrow::Status appendKey(arrow::ArrayBuilder &builder, const genrec_string &key) {
  std::string_view bytes(key.data, static_cast<size_t>(key.size));
  switch (builder.type()->id()) {
  case arrow::Type::BOOL:
    return static_cast<arrow::BooleanBuilder &>(builder).Append(bytes[0] != 0);
  case arrow::Type::FIXED_SIZE_BINARY:
    return static_cast<arrow::FixedSizeBinaryBuilder &>(builder).Append(bytes);
  case arrow::Type::LARGE_STRING:
  case arrow::Type::LARGE_BINARY:
    return static_cast<arrow::LargeBinaryBuilder &>(builder).Append(bytes);
  default:
    return static_cast<arrow::BinaryBuilder &>(builder).Append(bytes);
  }
}

} // namespace

struct OutputFile::Impl {
  Impl(const std::string &path, const genrec_model_desc &model, std::vector<int32_t> outputList,
       std::vector<KeyColumn> keyList)
      : path(path), partial(path + ".partial"), outputs(std::move(outputList)),
        keys(std::move(keyList)) {
    arrow::FieldVector fields;
    if (keys.empty())
      fields.push_back(arrow::field("row", arrow::int64(), false));
    for (const KeyColumn &key : keys)
      fields.push_back(arrow::field(key.path, key.type));
    for (int32_t output : outputs) {
      auto type = arrowType(model.outputs[output].type);
      auto nulls = static_cast<Nulls>(model.outputs[output].nulls);
      if (model.outputs[output].width > 0)
        type = arrow::list(arrow::field("element", type, nulls == Nulls::elements));
      bool isNullable = nulls == Nulls::rows ||
                        (nulls == Nulls::elements && model.outputs[output].width == 0);
      fields.push_back(arrow::field(model.outputs[output].name, type, isNullable));
    }
    schema = arrow::schema(fields);
    for (const auto &field : fields) {
      bool isKey = builders.size() < keys.size();
      auto made = arrow::MakeBuilder(isKey ? collectedType(field->type()) : field->type());
      check(made.status(), path);
      builders.push_back(std::move(*made));
    }
    auto opened = arrow::io::FileOutputStream::Open(partial);
    check(opened.status(), path);
    file = *opened;
    auto properties =
        parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
    auto arrowProperties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    auto writing = parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), file,
                                                    properties, arrowProperties);
    check(writing.status(), path);
    writer = std::move(*writing);
  }

  ~Impl() {
    if (!file)
      return;
    writer.reset();
    (void)file->Close();
    std::remove(partial.c_str());
  }

  void appendKeys(const OutputRows &rows, const Batch &batch) {
    if (keys.empty()) {
      auto &positions = static_cast<arrow::Int64Builder &>(*builders[0]);
      for (int64_t row = 0; row < rows.count; ++row)
        check(positions.Append(batch.positions[rows.rootRows[row]]), path);
      return;
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const ColumnBatch &column = batch.columns[keys[i].feature];
      arrow::ArrayBuilder &to = *builders[i];
      for (int64_t row = 0; row < rows.count; ++row) {
        int64_t from = keys[i].isRoot ? rows.rootRows[row] : row;
        bool isNull = column.hasNulls && !column.valid[from];
        auto value = valueAt<genrec_string>(column.values.data(), from);
        check(isNull ? to.AppendNull() : appendKey(to, value), path);
      }
    }
  }

  void appendOutput(const OutputRows &rows, arrow::ArrayBuilder &to) {
    for (int64_t row = 0; row < rows.count; ++row) {
      if (rows.isNull(row)) {
        check(to.AppendNull(), path);
        continue;
      }
      if (rows.width == 0) {
        check(appendValue(to, rows.type, rows.values.data(), row), path);
        continue;
      }
      auto &list = static_cast<arrow::ListBuilder &>(to);
      check(list.Append(), path);
      for (int64_t i = 0; i < rows.width; ++i)
        check(rows.isNull(row, i) ? list.value_builder()->AppendNull()
                                  : appendValue(*list.value_builder(), rows.type,
                                                rows.values.data(), row * rows.width + i),
              path);
    }
  }

  void flush() {
    if (pending == 0)
      return;
    arrow::ArrayVector arrays;
    for (size_t i = 0; i < builders.size(); ++i) {
      auto array = builders[i]->Finish();
      check(array.status(), path);
      auto data = (*array)->data()->Copy();
      data->type = schema->field(static_cast<int>(i))->type(); // of keys: see collectedType
      arrays.push_back(arrow::MakeArray(data));
    }
    check(writer->NewBufferedRowGroup(), path);
    check(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, pending, arrays)), path);
    pending = 0;
  }

  std::string path, partial;
  std::vector<int32_t> outputs;
  std::vector<KeyColumn> keys;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders; ///< by field
  std::shared_ptr<arrow::io::FileOutputStream> file;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  int64_t pending = 0, written = 0;
};

OutputFile::OutputFile(const std::string &path, const genrec_model_desc &model,
                       std::vector<int32_t> outputs, std::vector<KeyColumn> keys)
    : impl(std::make_unique<Impl>(path, model, std::move(outputs), std::move(keys))) {}

OutputFile::~OutputFile() = default;

void OutputFile::append(Session &session, const Batch &batch) {
  const OutputRows &first = session.output(impl->outputs[0]);
  impl->appendKeys(first, batch);
  size_t field = std::max<size_t>(impl->keys.size(), 1);
  for (int32_t output : impl->outputs) {
    const OutputRows &rows = session.output(output);
    if (!rows.given || rows.count != first.count)
      throw Error("output '" + std::string(session.model().outputs[output].name) + "' gave " +
                  std::to_string(rows.count) + " rows, another output " +
                  std::to_string(first.count));
    impl->appendOutput(rows, *impl->builders[field++]);
  }
  impl->pending += first.count;
  impl->written += first.count;
  if (impl->pending >= kRowsPerGroup)
    impl->flush();
}

int64_t OutputFile::close() {
  impl->flush();
  check(impl->writer->Close(), impl->path);
  syncFile(impl->file->file_descriptor(), impl->partial);
  check(impl->file->Close(), impl->path);
  if (std::rename(impl->partial.c_str(), impl->path.c_str()) != 0)
    throwFileError("rename to", impl->path);
  impl->file.reset(); // complete: the destructor must not remove it
  syncFolder(folderOf(impl->path));
  return impl->written;
}

} // namespace genrec::rt
