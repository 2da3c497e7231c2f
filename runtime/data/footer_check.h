//===- footer_check.h - Whether a Parquet footer can be true -----*- C++ -*-===//

#ifndef GENREC_RT_DATA_FOOTER_CHECK_H
#define GENREC_RT_DATA_FOOTER_CHECK_H

#include <cstdint>
#include <string>

namespace parquet {
class FileMetaData;
}

namespace genrec::rt {

/// Throws Error, naming `path` and the contradiction, if counts and sizes in the footer of a file
/// of `bytes` bytes are inconsistent. Arrow trusts them, and would loop or read out of bounds.
void checkFooter(const parquet::FileMetaData &footer, const std::string &path, int64_t bytes);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_FOOTER_CHECK_H
