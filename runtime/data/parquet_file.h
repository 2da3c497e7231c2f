//===- parquet_file.h - One file of a dataset --------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_PARQUET_FILE_H
#define GENREC_RT_DATA_PARQUET_FILE_H

#include "decode.h"
#include "file_identity.h"
#include "genrec_rt/error.h"

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

/// What ranks know of a file that rank 0 alone has opened.
struct FileSummary {
  std::string path;
  FileIdentity identity;
  /// By row group: its rows, and about how many bytes its chunk will take.
  std::vector<int64_t> groupRows, groupBytes;
};

/// An opened file: its metadata, and where the model's columns are in it. Row
/// groups may be decoded from several threads at once.
class ParquetFile {
public:
  /// Throws Error where the file cannot be read, lacks a column or has one of
  /// another type or depth. Keys are decoded to `keys`, which hold the values of all files by then.
  ParquetFile(const genrec_model_desc &model, const ReadRequest &request, const KeyTypes &keys,
              const std::string &path);
  /// The file that rank 0 has told of; Error also where this rank has another one.
  ParquetFile(const genrec_model_desc &model, const ReadRequest &request, const KeyTypes &keys,
              const FileSummary &told);
  /// Other columns of an opened file, which is not opened for them.
  ParquetFile(const ParquetFile &opened, const ReadRequest &request);

  const FileSummary &summary() const { return about; }

  /// Throws Error also where the file is no longer the one that was opened.
  Chunk decode(int group, OrderWatch &order) const;

  /// Throws Error where the column of a feature that is read has another type than in `first`.
  void requireSameType(int32_t feature, const ParquetFile &first, const std::string &help) const;
  /// Widens `types`, those of the keys (GENREC_KEY) in the files before, `first` and others, to
  /// hold this file's values. Throws Error where no type does.
  void widenKeyTypes(KeyTypes &types, const ParquetFile &first) const;

private:
  void open(const ReadRequest &request, const FileSummary *told);
  void measureGroups();
  void planColumns(const ReadRequest &request, const parquet::arrow::SchemaManifest &manifest);
  /// Error where the file lacks what `what` reads.
  ColumnPath pathOf(const parquet::arrow::SchemaManifest &manifest, const std::string &path,
                    const std::string &what) const;
  ColumnPath pathOfDomain(const parquet::arrow::SchemaManifest &manifest, int32_t domain) const;
  ColumnPath pathOfFeature(const parquet::arrow::SchemaManifest &manifest, int32_t feature) const;
  void checkType(int32_t feature, const ColumnPath &path) const;
  /// A column, which is `what`, has another type than in `first`.
  Error otherType(const char *what, int32_t feature, const ParquetFile &first,
                  const std::string &help) const;

  const genrec_model_desc &model;
  const std::string &name() const { return about.path; }

  FileSummary about;
  FilePlan plan;
  std::shared_ptr<parquet::FileMetaData> metadata;
};

/// Where columns are in a file; Error, listing what the file has, where it lacks one.
std::vector<ColumnPath> columnsOf(const std::string &file, const std::vector<std::string> &columns);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_PARQUET_FILE_H
