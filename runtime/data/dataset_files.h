//===- dataset_files.h - The files of a dataset, on all ranks ----*- C++ -*-===//

#ifndef GENREC_RT_DATA_DATASET_FILES_H
#define GENREC_RT_DATA_DATASET_FILES_H

#include "../core/json.h"
#include "genrec_rt/dataset.h"
#include "parquet_file.h"

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace genrec::rt {

/// Rank 0 lists the files, opens all of them and reads their footers. It tells the others what is
/// in them; those open a file, and read its footer, when they first need it, and throw where it is
/// another one.
class DatasetFiles {
public:
  /// Collective; `comm` null: this process alone.
  DatasetFiles(const genrec_model_desc &model, const ReadRequest &request, const FileSpec &spec,
               Communicator *comm);

  size_t size() const { return summaries.size(); }
  const std::vector<std::string> &paths() const { return names; }
  /// Of folders in which something was skipped, a line each.
  const std::vector<std::string> &notes() const { return skipped; }
  const FileSummary &operator[](size_t file) const { return summaries[file]; }
  std::vector<DataFile> describe(const std::string &role) const;

  /// Throws Error where a file has another type of column for a feature than the first. Collective.
  void requireSameType(int32_t feature) const;

  /// What a key (GENREC_KEY) is in all files together.
  const std::shared_ptr<arrow::DataType> &keyType(int32_t feature) const {
    return keyTypes[feature];
  }

  /// The file, opened now where it was not. On any thread.
  const ParquetFile &open(size_t file) const;

private:
  /// On rank 0; what the others are told.
  Json openAll(const FileSpec &spec);

  const genrec_model_desc &model;
  ReadRequest request;
  Communicator *comm;
  std::vector<std::string> names, skipped;
  std::vector<FileSummary> summaries;
  KeyTypes keyTypes;
  struct Opened {
    std::mutex mutex;
    std::unique_ptr<const ParquetFile> file;
  };
  std::unique_ptr<Opened[]> opened;
};

/// Depths and types of columns of the first file of a dataset.
struct FoundColumns {
  std::string file;
  std::vector<ColumnPath> columns; ///< depth and type alone
};

/// Where `columns` are in the first of `files`; Error, listing what the file has, where it lacks
/// one. Rank 0 opens it. Collective; `comm` null: this process alone.
FoundColumns findColumns(const FileSpec &files, const std::vector<std::string> &columns,
                         Communicator *comm);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_DATASET_FILES_H
