//===- data_file.h - Telling one data file from another ---------*- C++ -*-===//

#ifndef GENREC_RT_DATA_FILE_H
#define GENREC_RT_DATA_FILE_H

#include <cstdint>
#include <string>
#include <vector>

namespace genrec::rt {

/// A file as it was when training read it. Its place may change, its content may not.
struct DataFile {
  std::string role; ///< "data", or "catalogue <name>"
  std::string path;
  int64_t bytes = 0;
  uint64_t checksum = 0; ///< of the Parquet footer and of some of the bytes before it

  bool isSame(const DataFile &other) const {
    return role == other.role && bytes == other.bytes && checksum == other.checksum;
  }
};

/// Sizes and checksums of files. Error, naming the file, where one cannot be read.
std::vector<DataFile> describeData(const std::string &role, const std::vector<std::string> &files);

} // namespace genrec::rt

#endif // GENREC_RT_DATA_FILE_H
