//===- footer_check.h - Whether a Parquet footer can be true -----*- C++ -*-===//

#ifndef GENREC_RT_DATA_FOOTER_CHECK_H
#define GENREC_RT_DATA_FOOTER_CHECK_H

#include <cstdint>
#include <string>

namespace parquet {
class FileMetaData;
}

namespace genrec::rt {

/// Throws Error, which names `path` and what is wrong, where counts and sizes of the footer of
/// a file of `bytes` bytes contradict each other: Arrow believes them, and reads for ever or
/// beyond its arrays.
void checkFooter(const parquet::FileMetaData &footer, const std::string &path, int64_t bytes);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_FOOTER_CHECK_H
