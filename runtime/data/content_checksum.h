//===- content_checksum.h - What tells data files apart ----------*- C++ -*-===//

#ifndef GENREC_RT_DATA_CONTENT_CHECKSUM_H
#define GENREC_RT_DATA_CONTENT_CHECKSUM_H

#include <cstdint>
#include <string>

namespace genrec::rt {

/// DataFile::checksum of the open file `descriptor` of `size` bytes. Throws Error, naming `path`,
/// where it cannot be read.
uint64_t contentChecksumOf(int descriptor, const std::string &path, int64_t size);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_CONTENT_CHECKSUM_H
