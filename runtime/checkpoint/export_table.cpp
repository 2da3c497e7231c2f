//===- export_table.cpp - A table of a checkpoint as Parquet ---------------===//

#include "../core/aside_file.h"
#include "../core/text.h"
#include "../data/arrow_results.h"
#include "chained_rows.h"
#include "generations.h"
#include "genrec_rt/checkpoint.h"
#include "inspect.h"
#include "saved_tables.h"

#include <arrow/builder.h>
#include <arrow/io/interfaces.h>
#include <arrow/table.h>
#include <parquet/arrow/writer.h>

#include <numeric>

namespace genrec::rt {

namespace {

/// What Arrow writes goes to a file that appears whole or not at all.
class AsideStream final : public arrow::io::OutputStream {
public:
  explicit AsideStream(const std::string &path) : file(path) {}

  using arrow::io::OutputStream::Write;
  arrow::Status Write(const void *data, int64_t bytes) override {
    try {
      file.write(data, bytes);
    } catch (const Error &error) {
      return arrow::Status::IOError(error.what());
    }
    at += bytes;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return at; }
  arrow::Status Close() override {
    isClosed = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return isClosed; }
  void commit() { file.commit(); }

private:
  AsideFile file;
  int64_t at = 0;
  bool isClosed = false;
};

std::shared_ptr<arrow::RecordBatch> makeBatch(const std::shared_ptr<arrow::Schema> &schema,
                                              const ChainedRows &rows, int64_t first, int64_t count,
                                              const std::string &path) {
  int64_t width = rows.widthOf(".values");
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  std::vector<float> values(static_cast<size_t>(count * width));
  rows.read(".values", numbers.data(), count, width, values.data());
  arrow::Int64Builder ids;
  auto floats = std::make_shared<arrow::FloatBuilder>();
  arrow::ListBuilder vectors(arrow::default_memory_pool(), floats);
  for (int64_t i = 0; i < count; ++i) {
    checkWritten(ids.Append(rows.id(first + i)), path);
    checkWritten(vectors.Append(), path);
    checkWritten(floats->AppendValues(values.data() + i * width, width), path);
  }
  std::shared_ptr<arrow::Array> idArray, vectorArray;
  checkWritten(ids.Finish(&idArray), path);
  checkWritten(vectors.Finish(&vectorArray), path);
  return arrow::RecordBatch::Make(schema, count, {idArray, vectorArray});
}

} // namespace

int64_t exportTable(const std::string &path, const std::string &table, const std::string &out) {
  const NamedGeneration named = namedGeneration(path);
  CheckpointReader reader(named.folder, named.generation);
  std::vector<std::string> names = tableNames(reader.tensors());
  if (!reader.tensors().has(table + ".values"))
    throw Error(reader.tensors().path() + ": has no table '" + table + "'; it has " +
                    listNames(names),
                suggestion(table, names));
  ChainedRows rows(reader.links(), table);
  auto schema = arrow::schema({arrow::field("id", arrow::int64(), false),
                               arrow::field("vector", arrow::list(arrow::float32()), false)});
  auto stream = std::make_shared<AsideStream>(out);
  auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
  auto writing =
      parquet::arrow::FileWriter::Open(*schema, arrow::default_memory_pool(), stream, properties);
  checkWritten(writing.status(), out);
  forBlocks(rows.size(), [&](int64_t first, int64_t count) {
    checkWritten((*writing)->NewBufferedRowGroup(), out);
    checkWritten((*writing)->WriteRecordBatch(*makeBatch(schema, rows, first, count, out)), out);
  });
  checkWritten((*writing)->Close(), out);
  stream->commit();
  return rows.size();
}

} // namespace genrec::rt
