//===- aside_file.cpp - Files that appear whole or not at all -------------===//

#include "aside_file.h"

#include "genrec_rt/error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

namespace {

constexpr size_t kBufferBytes = 1 << 20;

} // namespace

void throwFileError(const std::string &doing, const std::string &path) {
  int reason = errno;
  std::string help;
  if (reason == ENOSPC || reason == EDQUOT || reason == EFBIG)
    help = "free some space, or write to another folder";
  throw Error("cannot " + doing + " " + path + ": " + std::strerror(reason), help);
}

AsideFile::AsideFile(const std::string &path, Role role)
    : path(path), partial(path + ".partial"), role(role) {
  bool makes = role == Role::maker;
  descriptor = open(partial.c_str(), O_WRONLY | O_CLOEXEC | (makes ? O_CREAT | O_TRUNC : 0), 0644);
  if (descriptor < 0 && !makes && errno == ENOENT)
    throw Error("cannot open " + partial + ", which another rank made: it is not there",
                "ranks on several machines need a folder that all of them share");
  if (descriptor < 0)
    throwFileError(makes ? "create" : "open", partial);
  buffer.reserve(kBufferBytes);
}

AsideFile::~AsideFile() {
  if (descriptor < 0)
    return;
  close(descriptor);
  if (role == Role::maker)
    unlink(partial.c_str());
}

void AsideFile::fail(const char *doing) { throwFileError(doing, partial); }

void AsideFile::writeAll(const char *data, int64_t bytes) {
  while (bytes > 0) {
    ssize_t written = ::write(descriptor, data, static_cast<size_t>(bytes));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      fail("write");
    data += written;
    bytes -= written;
  }
}

void AsideFile::write(const void *data, int64_t bytes) {
  const char *from = static_cast<const char *>(data);
  if (buffer.size() + static_cast<size_t>(bytes) > kBufferBytes)
    flush();
  if (static_cast<size_t>(bytes) >= kBufferBytes)
    writeAll(from, bytes);
  else
    buffer.append(from, static_cast<size_t>(bytes));
}

void AsideFile::flush() {
  writeAll(buffer.data(), static_cast<int64_t>(buffer.size()));
  buffer.clear();
}

void AsideFile::seek(int64_t position) {
  flush();
  if (lseek(descriptor, position, SEEK_SET) != position)
    fail("write");
}

void AsideFile::flushToDisk() {
  flush();
  syncFile(descriptor, partial);
}

int64_t AsideFile::size() const {
  struct stat status{};
  if (fstat(descriptor, &status) != 0)
    throwFileError("read", partial);
  return status.st_size;
}

void AsideFile::commit() {
  flushToDisk();
  int closing = descriptor;
  descriptor = -1;
  if (close(closing) != 0 || rename(partial.c_str(), path.c_str()) != 0) {
    int reason = errno;
    unlink(partial.c_str());
    errno = reason;
    throwFileError("rename to", path);
  }
  syncFolder(folderOf(path));
}

void writeFile(const std::string &path, const std::string &text) {
  AsideFile file(path);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  file.commit();
}

static void requireAccess(const std::string &flag, const std::string &path,
                          const std::string &folder) {
  if (access(folder.c_str(), W_OK | X_OK) == 0)
    return;
  const int reason = errno;
  throw Error(flag + " " + path + ": cannot be written: " +
                  (reason == ENOENT ? "there is no folder " + folder : std::strerror(reason)),
              reason == ENOENT ? "make it, or name another place"
                               : "name another place, or make it writable");
}

void makeFolders(const std::string &folder) {
  if (folder.empty() || std::filesystem::is_directory(folder))
    return;
  std::string above = folderOf(folder);
  if (above != folder)
    makeFolders(above);
  if (mkdir(folder.c_str(), 0777) == 0)
    return syncFolder(above);
  int reason = errno;
  if (std::filesystem::is_directory(folder)) // "a/", or made by another process meanwhile
    return;
  errno = reason == EEXIST ? ENOTDIR : reason;
  throwFileError("make folder", folder);
}

void requireFolder(const std::string &flag, const std::string &folder) {
  try {
    makeFolders(folder);
  } catch (const Error &error) {
    throw Error(flag + " " + folder + ": " + error.what(), "name another place");
  }
  requireAccess(flag, folder, folder);
}

void requireWritable(const std::string &flag, const std::string &file) {
  if (std::filesystem::is_directory(file))
    throw Error(flag + " " + file + ": is a folder", "name a file");
  requireAccess(flag, file, folderOf(file));
}

std::string folderOf(const std::string &path) {
  std::string folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder;
}

void syncFile(int descriptor, const std::string &path) {
  if (fsync(descriptor) != 0)
    throwFileError("flush to disk", path);
}

void syncFolder(const std::string &folder) {
  int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0)
    throwFileError("open folder", folder);
  int reason = fsync(descriptor) == 0 ? 0 : errno;
  close(descriptor);
  bool cannotBeAsked = reason == EINVAL || reason == ENOTSUP;
  if (reason != 0 && !cannotBeAsked) {
    errno = reason;
    throwFileError("flush folder", folder);
  }
}

} // namespace genrec::rt
