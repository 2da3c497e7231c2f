//===- decode.h - From Arrow tables to chunks --------------------*- C++ -*-===//

#ifndef GENREC_RT_DATA_DECODE_H
#define GENREC_RT_DATA_DECODE_H

#include "chunk.h"
#include "column_path.h"

#include "genrec_rt/abi.h"

#include <arrow/type_fwd.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace genrec::rt {

/// By feature; null for what is no key.
using KeyTypes = std::vector<std::shared_ptr<arrow::DataType>>;

/// The columns of one file to read, by the model's indices; empty paths are not read.
struct FilePlan {
  std::vector<char> readDomain, readFeature;
  std::vector<ColumnPath> domainPaths, featurePaths;
  const KeyTypes *keyTypes = nullptr; ///< in all files
  std::vector<int> leaves; ///< ascending, each once
  int32_t root = 0;        ///< the domain of the file's rows
};

/// Where a decoded table comes from, for messages.
struct RowGroupLocation {
  std::string file;
  int group = 0;

  /// "train.parquet, row group 3, row 18,204".
  std::string row(int64_t row) const;
};

/// Counts of lists whose times fall, per feature, for one warning each.
class OrderWatch {
public:
  explicit OrderWatch(const genrec_model_desc &model);
  void count(int32_t feature, int64_t lists, const std::string &first);
  std::vector<std::string> warnings() const;

private:
  struct Entry {
    int64_t lists = 0;
    std::string first;
  };
  const genrec_model_desc &model;
  mutable std::mutex mutex;
  std::vector<Entry> entries;
};

/// Turns a row group into a chunk: walks lists into offsets, checks nulls, drops
/// padding, checks ids. Throws Error that names file, row group, row and column.
Chunk decodeTable(const genrec_model_desc &model, const FilePlan &plan, const arrow::Table &table,
                  const RowGroupLocation &location, OrderWatch &order);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_DECODE_H
