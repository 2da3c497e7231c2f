//===- column_path.h - Dotted paths in a file's schema -----------*- C++ -*-===//
//
// "history.movie" is field `movie` of the structs in list `history`. Lists need
// no name of their own: a path enters them by itself, at its end too, so that
// "interest" names the elements of a plain list.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DATA_COLUMN_PATH_H
#define GENREC_RT_DATA_COLUMN_PATH_H

#include <arrow/type_fwd.h>

#include <memory>
#include <string>
#include <vector>

namespace parquet::arrow {
struct SchemaManifest;
}

namespace genrec::rt {

struct ColumnPath {
  /// The field names to follow from the root.
  std::vector<std::string> names;
  /// Lists on the way, those at the end included.
  int32_t depth = 0;
  /// What lies at the end, below all lists.
  std::shared_ptr<arrow::DataType> type;
  /// The file's leaf columns to read: the path's own leaf, or for a path that
  /// ends at a struct its first one (enough for offsets).
  int leaf = -1;
  /// A step of the path, as a path, that the file has more than once: which one is meant cannot be
  /// told. Empty: none.
  std::string repeated;
};

/// Follows `path`; false where the schema lacks it.
bool findPath(const parquet::arrow::SchemaManifest &manifest, const std::string &path,
              ColumnPath &found);

/// The dotted paths of all leaves of the file.
std::vector<std::string> leafPaths(const parquet::arrow::SchemaManifest &manifest);

/// The column of Arrow's type null, null throughout, at which `path` ends too early: "history" of
/// "history.movie". "" where there is none.
std::string nullColumnAbove(const parquet::arrow::SchemaManifest &manifest,
                            const std::string &path);

/// list, large_list, fixed_size_list or map.
bool isList(const arrow::DataType &type);

/// What a file's type is called in messages: "string", "timestamp[us, tz=UTC]".
std::string typeName(const arrow::DataType &type);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_COLUMN_PATH_H
