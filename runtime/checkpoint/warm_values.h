//===- warm_values.h - Values from files of several formats ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_WARM_VALUES_H
#define GENREC_RT_CHECKPOINT_WARM_VALUES_H

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace genrec::rt {

/// An array of numbers in a file, and the ids of its rows where it has them. Readers keep their
/// file open as long as they live.
struct WarmValues {
  std::string source; ///< for messages: "w.safetensors: 'head.weight'"
  std::string dtype;  ///< as safetensors names it: "F32"
  std::vector<int64_t> shape;
  /// Elements [first, first + count) as floats.
  std::function<void(int64_t first, int64_t count, float *to)> read;
  std::string idType; ///< of ids; "" where rows are numbered
  std::vector<int64_t> idShape;
  std::function<void(int64_t first, int64_t count, int64_t *to)> readIds;

  bool hasIds() const { return !idType.empty(); }
};

using NamedWarmValues = std::map<std::string, WarmValues>;

/// What an export has of the model: both files, of which export renames the parameters last.
inline constexpr const char *kParameterFile = "parameters.safetensors";
inline constexpr const char *kTableFile = "tables.safetensors";

/// Files and folders of values, each opened, and held to its checksums, once.
class WarmFiles {
public:
  /// All that a safetensors file, or the folder of an export or a checkpoint, holds: tensors by
  /// name, "<name>.ids" and "<name>.values" as one. Optimizer states are left out. Error where
  /// `path` is none of these.
  const NamedWarmValues &all(const std::string &path);

  /// What `path` holds for `name`: a .npy array, a Parquet table, or one of the above. `source` is
  /// what the entry says of it, or "".
  WarmValues one(const std::string &path, const std::string &name, const std::string &source);

private:
  std::map<std::string, NamedWarmValues> opened; ///< by path
};

WarmValues readNumpy(const std::string &path, const std::string &ids);
WarmValues readParquetVectors(const std::string &path, const std::string &columns);

/// Whether a path is that of a Parquet file, by its ending.
bool isParquetPath(const std::string &path);

/// The files of tensors behind a path as above.
std::vector<std::string> tensorFiles(const std::string &path);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_WARM_VALUES_H
