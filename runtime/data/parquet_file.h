//===- parquet_file.h - One file of a dataset --------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_PARQUET_FILE_H
#define GENREC_RT_DATA_PARQUET_FILE_H

#include "decode.h"
#include "file_identity.h"

#include <memory>
#include <string>
#include <vector>

namespace parquet {
class FileMetaData;
}

namespace genrec::rt {

/// What is read, by the model's domain and feature indices.
struct ReadRequest {
  int32_t root = 0;
  std::vector<char> domains, features;
};

/// An opened file: its metadata, and where the model's columns are in it. Row
/// groups may be decoded from several threads at once.
class ParquetFile {
public:
  /// Throws Error where the file cannot be read, lacks a column or has one of
  /// another type or depth.
  ParquetFile(const genrec_model_desc &model, const ReadRequest &request, const std::string &path);

  const std::string &path() const { return name; }
  int groups() const { return static_cast<int>(groupRows.size()); }
  int64_t rowsOf(int group) const { return groupRows[group]; }
  /// About how many bytes the chunk of a row group will take.
  int64_t estimatedBytes(int group) const { return groupBytes[group]; }

  /// Throws Error also where the file is no longer the one that was opened.
  Chunk decode(int group, OrderWatch &order) const;

  /// Throws Error where a key (GENREC_KEY) has another type than in `first`.
  void requireSameKeys(const ParquetFile &first) const;

private:
  void planColumns(const ReadRequest &request, const parquet::arrow::SchemaManifest &manifest);
  /// Error where the file lacks what `what` reads.
  ColumnPath pathOf(const parquet::arrow::SchemaManifest &manifest, const std::string &path,
                    const std::string &what) const;
  ColumnPath pathOfDomain(const parquet::arrow::SchemaManifest &manifest, int32_t domain) const;
  ColumnPath pathOfFeature(const parquet::arrow::SchemaManifest &manifest, int32_t feature) const;
  void checkType(int32_t feature, const ColumnPath &path) const;

  const genrec_model_desc &model;
  std::string name;
  FileIdentity identity;
  FilePlan plan;
  std::shared_ptr<parquet::FileMetaData> metadata;
  std::vector<int64_t> groupRows, groupBytes;
};

/// Where a column is in a file; Error, listing what the file has, where it lacks it.
ColumnPath findColumn(const std::string &file, const std::string &column);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_PARQUET_FILE_H
