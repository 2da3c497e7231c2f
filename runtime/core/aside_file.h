//===- aside_file.h - Files that appear whole or not at all ------*- C++ -*-===//

#ifndef GENREC_RT_CORE_ASIDE_FILE_H
#define GENREC_RT_CORE_ASIDE_FILE_H

#include <cstdint>
#include <string>

namespace genrec::rt {

/// Writes `<path>.partial` and renames it to `path` at the end. Whatever fails is
/// an Error that names the file and the reason ("No space left on device"); the
/// partial file is removed then.
///
/// Several processes may write parts of one file: one makes it, the others join, all write at places of
/// their own and flush, then the one that made it commits.
class AsideFile {
public:
  enum class Role { maker, joiner };

  explicit AsideFile(const std::string &path, Role role = Role::maker);
  ~AsideFile();
  AsideFile(const AsideFile &) = delete;
  AsideFile &operator=(const AsideFile &) = delete;

  void write(const void *data, int64_t bytes);
  /// Where the next bytes go.
  void seek(int64_t position);
  /// What was written is on disk, or an Error.
  void flushToDisk();
  /// Bytes of the file as it lies there.
  int64_t size() const;
  /// Flushes to disk, renames, and flushes the folder. Where that last step fails, the new
  /// file is there, but a power cut may bring the old one back.
  void commit();

private:
  void flush();
  void writeAll(const char *data, int64_t bytes);
  [[noreturn]] void fail(const char *doing);

  std::string path, partial;
  Role role;
  int descriptor = -1;
  std::string buffer;
};

/// Writes a small file aside and renames it.
void writeFile(const std::string &path, const std::string &text);

/// What `flag` names can be written when the time comes, which may be hours from now: the
/// folder, made where it is missing, or a file in a folder that is there. Throws Error.
void requireFolder(const std::string &flag, const std::string &folder);
void requireWritable(const std::string &flag, const std::string &file);

/// Makes a folder and those above it, so that they survive a power cut. Throws Error.
void makeFolders(const std::string &folder);

/// Makes a folder's entries (new names, renames) survive a power cut. Error where it cannot;
/// file systems that have no such call are as durable as they get.
void syncFolder(const std::string &folder);
/// The folder that a path lies in.
std::string folderOf(const std::string &path);

/// Flushes an open file to disk. Throws Error.
void syncFile(int descriptor, const std::string &path);

/// "cannot write x: No space left on device" from errno, as an Error.
[[noreturn]] void throwFileError(const std::string &doing, const std::string &path);

} // namespace genrec::rt

#endif // GENREC_RT_CORE_ASIDE_FILE_H
