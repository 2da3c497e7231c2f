//===- generations.cpp - The folders of a checkpoint's states -------------===//

#include "generations.h"

#include "../core/aside_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace genrec::rt {

NamedGeneration namedGeneration(const std::string &path) {
  std::filesystem::path whole = std::filesystem::path(path).lexically_normal();
  if (!whole.has_filename())
    whole = whole.parent_path();
  if (!isGenerationName(whole.filename()))
    return {path, ""};
  return {folderOf(whole), whole.filename()};
}

std::optional<std::string> readTextFile(const std::string &path) {
  int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 && (errno == ENOENT || errno == ENOTDIR))
    return std::nullopt;
  if (descriptor < 0)
    throwFileError("open", path);
  std::string text;
  char piece[1 << 16];
  while (true) {
    ssize_t got = ::read(descriptor, piece, sizeof piece);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0) {
      int reason = errno;
      close(descriptor);
      errno = reason;
      throwFileError("read", path);
    }
    if (got == 0)
      break;
    text.append(piece, static_cast<size_t>(got));
  }
  close(descriptor);
  return text;
}

std::string makeGeneration(const std::string &folder, uint64_t step, FolderLock &lock) {
  std::string stem = "step-" + std::to_string(step), name = stem;
  for (int copy = 2;; ++copy) {
    std::string path = folder + "/" + name;
    struct stat status{};
    if (lstat(path.c_str(), &status) != 0) {
      lock.setWriting(name);
      if (mkdir(path.c_str(), 0777) == 0)
        return name;
      if (errno != EEXIST)
        throwFileError("make folder", path);
    }
    name = stem + "." + std::to_string(copy);
  }
}

bool removeGeneration(const std::string &folder, const std::string &name) {
  std::string path = folder + "/" + name, tensors = path + "/" + kTensorFile;
  // Open for writing, since network file systems ask that of who wants a lock for himself.
  int descriptor = open(tensors.c_str(), O_RDWR | O_CLOEXEC);
  if (descriptor >= 0 && !lockAlone(descriptor)) {
    close(descriptor);
    return false;
  }
  for (const char *file : {kTensorFile, kManifestFile})
    for (const char *ending : {"", ".partial"})
      unlink((path + "/" + file + ending).c_str());
  if (descriptor >= 0)
    close(descriptor);
  // A folder with more in it is the user's to remove.
  return rmdir(path.c_str()) == 0 || errno == ENOENT || errno == ENOTEMPTY || errno == ENOTDIR;
}

std::vector<std::string> listGenerations(const std::string &folder) {
  std::vector<std::pair<uint64_t, std::string>> found;
  std::error_code ignored;
  for (const auto &entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::string name = entry.path().filename().string();
    if (isGenerationName(name) &&
        std::filesystem::exists(entry.path() / kManifestFile, ignored))
      found.emplace_back(std::strtoull(name.c_str() + 5, nullptr, 10), name);
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> names;
  for (auto &[step, name] : found)
    names.push_back(std::move(name));
  return names;
}

} // namespace genrec::rt
