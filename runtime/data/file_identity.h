//===- file_identity.h - Whether a file is still the same --------*- C++ -*-===//

#ifndef GENREC_RT_DATA_FILE_IDENTITY_H
#define GENREC_RT_DATA_FILE_IDENTITY_H

#include <cstdint>
#include <string>

namespace genrec::rt {

/// What a Parquet file is known by. A run opens its files many times; row groups of one file
/// and a footer of another would decode to rows that neither has.
struct FileIdentity {
  uint64_t device = 0, inode = 0;
  int64_t size = 0;
  int64_t changed = 0;         ///< nanoseconds since 1970 of the last writing
  uint64_t footerChecksum = 0; ///< XXH3 of the footer: schema, places and statistics

  /// Of the open file `descriptor`, which must be a Parquet file by its last bytes; else Error
  /// that names `path`.
  static FileIdentity of(int descriptor, const std::string &path);

  /// Throws Error, which says what differs, where `path`, open as `descriptor`, is no longer
  /// what it was.
  void requireSame(int descriptor, const std::string &path) const;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_FILE_IDENTITY_H
