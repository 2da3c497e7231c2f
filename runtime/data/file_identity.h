//===- file_identity.h - Whether a file is still the same --------*- C++ -*-===//

#ifndef GENREC_RT_DATA_FILE_IDENTITY_H
#define GENREC_RT_DATA_FILE_IDENTITY_H

#include <cstdint>
#include <string>

namespace genrec::rt {

/// A Parquet file ends with the length of its footer, 4 bytes, and a magic word of 4.
inline constexpr int64_t kParquetTailBytes = 8;

/// Identifies a version of a Parquet file. A run opens its files many times; the footer of one
/// version and row groups of another would decode to wrong rows.
struct FileIdentity {
  std::string machine; ///< what tells machines apart
  uint64_t device = 0, inode = 0;
  int64_t size = 0;
  int64_t changed = 0;          ///< nanoseconds since 1970 of the last writing
  uint64_t footerChecksum = 0;  ///< XXH3 of the footer: schema, offsets and statistics
  uint64_t contentChecksum = 0; ///< DataFile::checksum

  /// The identity of the open file `descriptor`. Throws Error, naming `path`, unless its last bytes
  /// are those of a Parquet file.
  static FileIdentity of(int descriptor, const std::string &path);

  /// Throws Error, saying what differs, if `path`, open as `descriptor`, has changed.
  void requireSame(int descriptor, const std::string &path) const;

  /// Throws Error if this, which a rank has at `path`, is not what rank 0 has there: `first`.
  /// Machines may have copies, with other times.
  void requireSameAs(const FileIdentity &first, const std::string &path) const;
};

} // namespace genrec::rt

#endif // GENREC_RT_DATA_FILE_IDENTITY_H
