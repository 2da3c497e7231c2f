//===- folder_lock.h - One run per checkpoint folder -------------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_FOLDER_LOCK_H
#define GENREC_RT_CHECKPOINT_FOLDER_LOCK_H

#include <string>

namespace genrec::rt {

/// Holds `<folder>/checkpoint.lock` while it lives. The lock is the kernel's (flock), so that it goes with a
/// process that is killed; the file stays, and says who holds it and which generation is being
/// written. Throws Error, naming process, host and time, where another one holds it.
class FolderLock {
public:
  explicit FolderLock(const std::string &folder);
  ~FolderLock();
  FolderLock(const FolderLock &) = delete;
  FolderLock &operator=(const FolderLock &) = delete;

  /// Notes that a generation is being written ("" for none), so that the next holder may remove
  /// what a killed process left of it.
  void setWriting(const std::string &generation);
  /// What the holder before was writing when it went; "" where it had done.
  const std::string &leftBehind() const { return left; }

private:
  void write(const std::string &generation);

  std::string path, since, left;
  int descriptor = -1;
  bool isOurs = false; ///< no file of that name that somebody else wrote
};

/// A shared lock on a generation's tensors: while a reader has it, they are not removed. `false`
/// where they are being removed.
bool lockShared(int descriptor);
/// Whether nobody reads the file: it is locked against readers, until the descriptor is closed.
bool lockAlone(int descriptor);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_FOLDER_LOCK_H
