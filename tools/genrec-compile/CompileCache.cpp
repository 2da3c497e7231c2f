//===- CompileCache.cpp - products of unchanged models --------------------===//

#include "CompileCache.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <vector>

using namespace genrec;
using namespace llvm;

/// Products kept; the ones used longest ago go first.
static constexpr size_t kMostEntries = 200;
static constexpr size_t kChecksumSize = 32;

std::string genrec::getDefaultCacheFolder() {
  auto get = [](StringRef name) { return sys::Process::GetEnv(name).value_or(""); };
  if (std::string folder = get("GENREC_CACHE"); !folder.empty())
    return folder;
  if (std::string cache = get("XDG_CACHE_HOME"); !cache.empty())
    return cache + "/genrec/compiled";
  std::string home = get("HOME");
  return home.empty() ? "" : home + "/.cache/genrec/compiled";
}

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

void CacheKey::add(StringRef piece) {
  hash.update(std::to_string(piece.size()) + ":");
  hash.update(piece);
}

void CacheKey::addFile(StringRef path) {
  auto file = MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return add("missing");
  add("file");
  add((*file)->getBuffer());
}

void CacheKey::addFolder(StringRef folder) {
  std::vector<std::string> paths;
  std::error_code error;
  for (sys::fs::recursive_directory_iterator it(folder, error), end; it != end && !error;
       it.increment(error))
    if (it->type() == sys::fs::file_type::regular_file)
      paths.push_back(it->path());
  std::sort(paths.begin(), paths.end());
  for (const std::string &path : paths) {
    add(StringRef(path).drop_front(folder.size()));
    addFile(path);
  }
}

std::string CacheKey::get() { return toHex(hash.final(), /*LowerCase=*/true); }

//===----------------------------------------------------------------------===//
// Entries: the product's bytes, then their SHA-256
//===----------------------------------------------------------------------===//

std::string CompileCache::getPath(StringRef key) const { return folder + "/" + key.str(); }

/// Writes aside and renames, so that nobody sees half a file.
static bool writeWhole(StringRef path, ArrayRef<StringRef> parts, bool isExecutable) {
  SmallString<128> partial;
  int descriptor;
  if (sys::fs::createUniqueFile(path + ".%%%%%%", descriptor, partial))
    return false;
  raw_fd_ostream os(descriptor, /*shouldClose=*/true);
  for (StringRef part : parts)
    os << part;
  os.close();
  bool isWritten = !os.has_error();
  os.clear_error();
  auto permissions = isExecutable ? sys::fs::all_read | sys::fs::all_exe | sys::fs::owner_write
                                  : sys::fs::all_read | sys::fs::owner_write;
  if (isWritten && !sys::fs::setPermissions(partial, permissions) &&
      !sys::fs::rename(partial, path))
    return true;
  sys::fs::remove(partial);
  return false;
}

bool CompileCache::fetch(StringRef key, StringRef output) const {
  if (folder.empty())
    return false;
  auto file =
      MemoryBuffer::getFile(getPath(key), /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file || (*file)->getBufferSize() <= kChecksumSize)
    return false;
  StringRef product = (*file)->getBuffer().drop_back(kChecksumSize);
  auto checksum = SHA256::hash(arrayRefFromStringRef(product));
  if (toStringRef(checksum) != (*file)->getBuffer().take_back(kChecksumSize))
    return false;
  if (!writeWhole(output, product, /*isExecutable=*/!output.ends_with(".o")))
    return false;
  int descriptor; // used now: not among the first to go
  if (!sys::fs::openFileForReadWrite(getPath(key), descriptor, sys::fs::CD_OpenExisting,
                                     sys::fs::OF_None)) {
    (void)sys::fs::setLastAccessAndModificationTime(descriptor, std::chrono::system_clock::now());
    (void)sys::Process::SafelyCloseFileDescriptor(descriptor);
  }
  return true;
}

void CompileCache::keep(StringRef key, StringRef product) const {
  if (folder.empty() || sys::fs::create_directories(folder))
    return;
  auto file = MemoryBuffer::getFile(product, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return;
  auto checksum = SHA256::hash(arrayRefFromStringRef((*file)->getBuffer()));
  writeWhole(getPath(key), {(*file)->getBuffer(), toStringRef(checksum)}, /*isExecutable=*/false);
  removeOldest();
}

void CompileCache::removeOldest() const {
  std::vector<std::pair<sys::TimePoint<>, std::string>> entries;
  std::error_code error;
  for (sys::fs::directory_iterator it(folder, error), end; it != end && !error; it.increment(error))
    if (ErrorOr<sys::fs::basic_file_status> status = it->status())
      entries.emplace_back(status->getLastModificationTime(), it->path());
  if (entries.size() <= kMostEntries)
    return;
  std::sort(entries.begin(), entries.end());
  entries.resize(entries.size() - kMostEntries);
  for (const auto &[time, path] : entries)
    sys::fs::remove(path);
}
