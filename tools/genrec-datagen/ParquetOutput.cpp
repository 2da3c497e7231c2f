//===- ParquetOutput.cpp - writes generated rows --------------------------===//

#include "ParquetOutput.h"

#include <arrow/io/file.h>
#include <parquet/arrow/writer.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

using namespace genrec::datagen;

void genrec::datagen::check(const arrow::Status &status, const std::string &what) {
  if (!status.ok())
    throw std::runtime_error(what + ": " + status.message() +
                             (status.detail() ? " (" + status.detail()->ToString() + ")" : ""));
}

TableWriter::TableWriter(std::shared_ptr<arrow::Schema> schema) : schema(std::move(schema)) {
  auto made = arrow::RecordBatchBuilder::Make(this->schema, arrow::default_memory_pool());
  check(made.status(), "building rows");
  builder = std::move(*made);
}

void TableWriter::write(const std::string &path) {
  auto batch = builder->Flush();
  check(batch.status(), path);
  auto table = arrow::Table::FromRecordBatches({*batch});
  check(table.status(), path);
  std::string aside = path + ".partial";
  auto file = arrow::io::FileOutputStream::Open(aside);
  check(file.status(), path);
  auto properties =
      parquet::WriterProperties::Builder().compression(parquet::Compression::ZSTD)->build();
  // Keeps the time zone and the nullability, which plain Parquet cannot say.
  auto arrowProperties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
  check(parquet::arrow::WriteTable(**table, arrow::default_memory_pool(), *file, 1 << 16,
                                   properties, arrowProperties),
        path);
  check((*file)->Close(), path);
  std::filesystem::rename(aside, path);
}

void genrec::datagen::writeText(const std::string &path, const std::string &text) {
  std::string aside = path + ".partial";
  {
    std::ofstream file(aside, std::ios::trunc);
    file << text;
    file.flush();
    if (!file)
      throw std::runtime_error(path + ": " + std::strerror(errno));
  }
  std::filesystem::rename(aside, path);
}
