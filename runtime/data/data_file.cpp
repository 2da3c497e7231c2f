//===- data_file.cpp - Telling one data file from another -----------------===//

#include "genrec_rt/data_file.h"

#include "../core/aside_file.h"
#include "../core/checksum.h"
#include "content_checksum.h"
#include "file_identity.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

constexpr int64_t kSampleBytes = 4096; ///< at each place that is looked at beside the footer
constexpr int64_t kSamples = 4;

struct Descriptor {
  explicit Descriptor(const std::string &path)
      : number(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (number < 0)
      throwFileError("open", path);
  }
  ~Descriptor() { close(number); }
  Descriptor(const Descriptor &) = delete;
  int number;
};

std::string readPiece(int descriptor, const std::string &path, int64_t offset, int64_t bytes) {
  std::string piece(static_cast<size_t>(bytes), '\0');
  for (int64_t done = 0; done < bytes;) {
    ssize_t got = pread(descriptor, piece.data() + done, static_cast<size_t>(bytes - done),
                        offset + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      throwFileError("read", path);
    if (got == 0)
      break; // shorter than it was a moment ago
    done += got;
  }
  return piece;
}

/// The footer holds the schema and, of every column chunk, place, sizes and mostly bounds of the
/// values. What was written without bounds and without compression may have equal footers with
/// other values, so that some of the bytes before it are looked at, too.
std::string characteristicBytes(int descriptor, const std::string &path, int64_t size) {
  uint32_t footer = 0;
  if (size >= kParquetTailBytes)
    std::memcpy(&footer, readPiece(descriptor, path, size - kParquetTailBytes, 4).data(), 4);
  int64_t body = std::max<int64_t>(0, size - kParquetTailBytes - static_cast<int64_t>(footer));
  std::string bytes = readPiece(descriptor, path, body, size - body);
  if (body <= kSamples * kSampleBytes)
    return bytes + readPiece(descriptor, path, 0, body);
  for (int64_t i = 0; i < kSamples; ++i)
    bytes += readPiece(descriptor, path, (body - kSampleBytes) / (kSamples - 1) * i, kSampleBytes);
  return bytes;
}

} // namespace

uint64_t contentChecksumOf(int descriptor, const std::string &path, int64_t size) {
  return checksumOf(characteristicBytes(descriptor, path, size));
}

std::vector<DataFile> describeData(const std::string &role, const std::vector<std::string> &files) {
  std::vector<DataFile> described;
  for (const std::string &path : files) {
    Descriptor file(path);
    struct stat status{};
    if (fstat(file.number, &status) != 0)
      throwFileError("read", path);
    described.push_back(
        {role, path, status.st_size, contentChecksumOf(file.number, path, status.st_size)});
  }
  return described;
}

} // namespace genrec::rt
