//===- file_identity.cpp - Whether a file is still the same ---------------===//

#include "file_identity.h"

#include "../core/checksum.h"
#include "../core/text.h"
#include "../core/threads.h"
#include "content_checksum.h"
#include "genrec_rt/error.h"
#include "genrec_rt/kernels/shared/hash.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>

#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

constexpr const char *kTextEndings[] = {".csv", ".tsv", ".dat", ".txt", ".gz", ".zst"};

[[noreturn]] void throwUnreadable(const std::string &path, const std::string &why) {
  const bool isText = std::any_of(std::begin(kTextEndings), std::end(kTextEndings),
                                  [&](const char *ending) { return path.ends_with(ending); });
  throw Error(path + ": cannot be read: " + why,
              isText
                  ? "Parquet is read; text files become Parquet by genrec.data in Python"
                  : "it may be truncated, still being written, or no Parquet file: write it again");
}

void readAll(int descriptor, const std::string &path, char *to, int64_t bytes, int64_t from) {
  for (int64_t done = 0; done < bytes;) {
    ssize_t got = pread(descriptor, to + done, static_cast<size_t>(bytes - done), from + done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      throwUnreadable(path, got < 0 ? std::strerror(errno) : "it ends too early");
    done += got;
  }
}

uint64_t footerChecksumOf(int descriptor, const std::string &path, int64_t size) {
  char tail[kParquetTailBytes];
  if (size < 2 * kParquetTailBytes)
    throwUnreadable(path, "it has " + std::to_string(size) + " bytes");
  readAll(descriptor, path, tail, kParquetTailBytes, size - kParquetTailBytes);
  if (std::memcmp(tail + 4, "PAR1", 4) != 0)
    throwUnreadable(path, "it does not end as Parquet files do");
  uint32_t length = 0;
  std::memcpy(&length, tail, sizeof length);
  if (int64_t(length) > size - kParquetTailBytes)
    throwUnreadable(path, "its footer should have " + std::to_string(length) +
                              " bytes, the file has " + std::to_string(size));
  std::string footer(length, '\0');
  readAll(descriptor, path, footer.data(), length, size - kParquetTailBytes - length);
  return static_cast<uint64_t>(
      kernels::hashXxh3(genrec_string{footer.data(), int64_t(length)}, /*seed=*/0, /*bits=*/63));
}

FileIdentity statusOf(int descriptor, const std::string &path) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0)
    throwUnreadable(path, std::strerror(errno));
  static const std::string machine = ownCores().machine;
  FileIdentity identity;
  identity.machine = machine;
  identity.device = status.st_dev;
  identity.inode = status.st_ino;
  identity.size = status.st_size;
  identity.changed = int64_t(status.st_mtim.tv_sec) * 1'000'000'000 + status.st_mtim.tv_nsec;
  return identity;
}

/// What became of a file since it was `was`, by its status; "": nothing.
std::string changeOf(const FileIdentity &was, const FileIdentity &now) {
  if (now.device != was.device || now.inode != was.inode)
    return "another file has its name";
  if (now.size != was.size)
    return "it had " + std::to_string(was.size) + " bytes and has " + std::to_string(now.size);
  return now.changed != was.changed ? "it was written to" : "";
}

void requireUnchanged(const std::string &path, const std::string &change) {
  if (!change.empty())
    throw Error(path + ": was replaced while it is read: " + change,
                "write new data to new files, and keep files as they are while a run reads them; "
                "start again with the data as it should be");
}

/// In words, what machines must agree on.
std::string contentOf(const FileIdentity &file) {
  return withThousands(file.size) + " bytes, checksum " + toHex(file.contentChecksum);
}

constexpr const char *kOtherFooter = "its footer is another one";

} // namespace

FileIdentity FileIdentity::of(int descriptor, const std::string &path) {
  FileIdentity identity = statusOf(descriptor, path);
  identity.footerChecksum = footerChecksumOf(descriptor, path, identity.size);
  identity.contentChecksum = contentChecksumOf(descriptor, path, identity.size);
  return identity;
}

void FileIdentity::requireSame(int descriptor, const std::string &path) const {
  FileIdentity now = statusOf(descriptor, path);
  std::string change = changeOf(*this, now);
  if (change.empty() && footerChecksumOf(descriptor, path, now.size) != footerChecksum)
    change = kOtherFooter;
  requireUnchanged(path, change);
}

void FileIdentity::requireSameAs(const FileIdentity &first, const std::string &path) const {
  if (machine == first.machine && device == first.device && inode == first.inode) {
    std::string change = changeOf(first, *this);
    if (change.empty() && footerChecksum != first.footerChecksum)
      change = kOtherFooter;
    return requireUnchanged(path, change);
  }
  if (size != first.size || contentChecksum != first.contentChecksum)
    throw Error("has other data than rank 0: " + path + " of " + contentOf(*this) +
                    "; rank 0: " + contentOf(first),
                "start all ranks with the same data, and keep files as they are while a run reads "
                "them");
}

} // namespace genrec::rt
