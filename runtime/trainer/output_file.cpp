//===- output_file.cpp - What predict writes ------------------------------===//

#include "output_file.h"

#include "../core/aside_file.h"
#include "../data/arrow_results.h"
#include "../data/leaf_values.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/shared/row_values.h"

#include <arrow/array.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/reader.h>
#include <arrow/ipc/writer.h>
#include <arrow/record_batch.h>
#include <arrow/type.h>
#include <parquet/arrow/writer.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

namespace genrec::rt {

namespace {

constexpr int64_t kRowsPerGroup = 1 << 16;

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
        kernels::widened(valueAt<kernels::Bf16>(values, index)));
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

/// Where no keys are written: the row's position in the data.
constexpr const char *kPosition = "row";

struct OutputFile::Impl {
  Impl(const std::string &path, const genrec_model_desc &model, std::vector<int32_t> outputList,
       std::vector<KeyColumn> keyList, Communicator *comm)
      : path(path), partial(path + ".partial"), outputs(std::move(outputList)),
        keys(std::move(keyList)), comm(comm) {
    arrow::FieldVector fields;
    if (keys.empty())
      fields.push_back(arrow::field(kPosition, arrow::int64(), false));
    for (const KeyColumn &key : keys)
      fields.push_back(arrow::field(key.path, key.type));
    for (int32_t output : outputs) {
      if (keys.empty() && std::string_view(model.outputs[output].name) == kPosition)
        throw Error("output 'row' has the name of the column that says which row each is of",
                    "name columns that say it with --keys, or rename the output");
      auto type = arrowType(model.outputs[output].type);
      auto nulls = static_cast<Nulls>(model.outputs[output].nulls);
      if (model.outputs[output].width > 0)
        type = arrow::list(arrow::field("element", type, nulls == Nulls::elements));
      bool isNullable =
          nulls == Nulls::rows || (nulls == Nulls::elements && model.outputs[output].width == 0);
      fields.push_back(arrow::field(model.outputs[output].name, type, isNullable));
    }
    schema = arrow::schema(fields);
    for (const auto &field : fields) {
      bool isKey = builders.size() < keys.size();
      auto made = arrow::MakeBuilder(isKey ? collectedType(field->type()) : field->type());
      checkWritten(made.status(), path);
      builders.push_back(std::move(*made));
    }
    runTogether(comm, [&] {
      if (isFirstRank(comm))
        open();
    });
  }

  void open() {
    try {
      begin();
    } catch (...) {
      discard(); // there will be no destructor
      throw;
    }
  }

  void begin() {
    auto opened = arrow::io::FileOutputStream::Open(partial);
    checkWritten(opened.status(), path);
    file = *opened;
    auto properties =
        parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
    auto arrowProperties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
    auto writing = parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), file,
                                                    properties, arrowProperties);
    checkWritten(writing.status(), path);
    writer = std::move(*writing);
  }

  ~Impl() { discard(); }

  /// Removes what is not whole.
  void discard() {
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
        checkWritten(positions.Append(batch.positions[rows.rootRows[row]]), path);
      return;
    }
    for (size_t i = 0; i < keys.size(); ++i) {
      const ColumnBatch &column = batch.columns[keys[i].feature];
      arrow::ArrayBuilder &to = *builders[i];
      for (int64_t row = 0; row < rows.count; ++row) {
        int64_t from = keys[i].isRoot ? rows.rootRows[row] : row;
        bool isNull = column.hasNulls && !column.valid[from];
        auto value = valueAt<genrec_string>(column.values.data(), from);
        checkWritten(isNull ? to.AppendNull() : appendKey(to, value), path);
      }
    }
  }

  void appendOutput(const OutputRows &rows, arrow::ArrayBuilder &to) {
    for (int64_t row = 0; row < rows.count; ++row) {
      if (rows.isNull(row)) {
        checkWritten(to.AppendNull(), path);
        continue;
      }
      if (rows.width == 0) {
        checkWritten(appendValue(to, rows.type, rows.values.data(), row), path);
        continue;
      }
      auto &list = static_cast<arrow::ListBuilder &>(to);
      checkWritten(list.Append(), path);
      for (int64_t i = 0; i < rows.width; ++i)
        checkWritten(rows.isNull(row, i) ? list.value_builder()->AppendNull()
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
      checkWritten(array.status(), path);
      auto data = (*array)->data()->Copy();
      data->type = schema->field(static_cast<int>(i))->type(); // of keys: see collectedType
      arrays.push_back(arrow::MakeArray(data));
    }
    checkWritten(writer->NewBufferedRowGroup(), path);
    checkWritten(writer->WriteRecordBatch(*arrow::RecordBatch::Make(schema, pending, arrays)),
                 path);
    written += std::exchange(pending, 0);
  }

  /// The schema in the types that builders collect.
  std::shared_ptr<arrow::Schema> collectedSchema() const {
    arrow::FieldVector fields = schema->fields();
    for (size_t i = 0; i < keys.size(); ++i)
      fields[i] = fields[i]->WithType(builders[i]->type());
    return arrow::schema(fields);
  }

  void appendPortion(Session &session, int32_t portion, const Batch &batch);
  void gather();
  std::shared_ptr<arrow::RecordBatch> takeCollected();
  void appendCollected(const std::vector<char> &bytes);
  int64_t close();

  std::string path, partial;
  std::vector<int32_t> outputs;
  std::vector<KeyColumn> keys;
  Communicator *comm;
  std::shared_ptr<arrow::Schema> schema;
  std::vector<std::unique_ptr<arrow::ArrayBuilder>> builders; ///< by field
  std::shared_ptr<arrow::io::FileOutputStream> file;
  std::unique_ptr<parquet::arrow::FileWriter> writer;
  int64_t pending = 0; ///< rows in the builders
  int64_t written = 0;
};

OutputFile::OutputFile(const std::string &path, const genrec_model_desc &model,
                       std::vector<int32_t> outputs, std::vector<KeyColumn> keys,
                       Communicator *comm)
    : impl(std::make_unique<Impl>(path, model, std::move(outputs), std::move(keys), comm)) {}

OutputFile::~OutputFile() = default;

/// Collects the rows of one of this rank's portions.
void OutputFile::Impl::appendPortion(Session &session, int32_t portion, const Batch &batch) {
  const OutputRows &first = session.output(outputs[0], portion);
  appendKeys(first, batch);
  size_t field = std::max<size_t>(keys.size(), 1);
  for (int32_t output : outputs) {
    const OutputRows &rows = session.output(output, portion);
    if (!rows.given || rows.count != first.count)
      throw Error("output '" + std::string(session.model().outputs[output].name) + "' gave " +
                  std::to_string(rows.count) + " rows, another output " +
                  std::to_string(first.count));
    appendOutput(rows, *builders[field++]);
  }
  pending += first.count;
}

/// Moves what the other ranks have collected behind what rank 0 has: portions are in the order of
/// ranks.
void OutputFile::Impl::gather() {
  std::shared_ptr<arrow::Buffer> mine;
  if (!isFirstRank(comm)) {
    auto bytes =
        arrow::ipc::SerializeRecordBatch(*takeCollected(), arrow::ipc::IpcWriteOptions::Defaults());
    checkWritten(bytes.status(), path);
    mine = *bytes;
  }
  int32_t ranks = comm->getSize();
  int64_t size = mine ? mine->size() : 0;
  std::vector<int64_t> sizes(ranks);
  comm->allGather(&size, sizes.data(), sizeof size);
  std::vector<std::vector<char>> received(ranks);
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  if (mine)
    send[0] = {mine->data(), size};
  for (int32_t rank = 1; isFirstRank(comm) && rank < ranks; ++rank) {
    received[rank].resize(sizes[rank]);
    receive[rank] = {received[rank].data(), sizes[rank]};
  }
  comm->exchange(send, receive);
  for (int32_t rank = 1; isFirstRank(comm) && rank < ranks; ++rank)
    appendCollected(received[rank]);
}

/// Takes what the builders hold.
std::shared_ptr<arrow::RecordBatch> OutputFile::Impl::takeCollected() {
  arrow::ArrayVector arrays;
  for (const std::unique_ptr<arrow::ArrayBuilder> &builder : builders) {
    auto array = builder->Finish();
    checkWritten(array.status(), path);
    arrays.push_back(*array);
  }
  return arrow::RecordBatch::Make(collectedSchema(), std::exchange(pending, 0), arrays);
}

void OutputFile::Impl::appendCollected(const std::vector<char> &bytes) {
  arrow::io::BufferReader reader(arrow::Buffer::Wrap(bytes));
  arrow::ipc::DictionaryMemo memo;
  auto batch = arrow::ipc::ReadRecordBatch(collectedSchema(), &memo,
                                           arrow::ipc::IpcReadOptions::Defaults(), &reader);
  checkWritten(batch.status(), path);
  for (size_t i = 0; i < builders.size(); ++i) {
    const arrow::ArrayData &column = *(*batch)->column_data(static_cast<int>(i));
    checkWritten(builders[i]->AppendArraySlice(arrow::ArraySpan(column), 0, column.length), path);
  }
  pending += (*batch)->num_rows();
}

void OutputFile::append(Session &session, const StepReport &report) {
  for (size_t portion = 0; portion < report.batches.size(); ++portion)
    impl->appendPortion(session, static_cast<int32_t>(portion), *report.batches[portion]);
  if (impl->comm)
    impl->gather();
  if (impl->pending >= kRowsPerGroup)
    impl->flush();
}

int64_t OutputFile::close() {
  int64_t rows = 0;
  runTogether(impl->comm, [&] {
    if (isFirstRank(impl->comm))
      rows = impl->close();
  });
  if (impl->comm)
    impl->comm->broadcast(&rows, sizeof rows, 0);
  return rows;
}

int64_t OutputFile::Impl::close() {
  flush();
  checkWritten(writer->Close(), path);
  syncFile(file->file_descriptor(), partial);
  checkWritten(file->Close(), path);
  if (std::rename(partial.c_str(), path.c_str()) != 0)
    throwFileError("rename to", path);
  file.reset(); // complete: the destructor must not remove it
  syncFolder(folderOf(path));
  return written;
}

} // namespace genrec::rt
