//===- generations.h - The folders of a checkpoint's states ------*- C++ -*-===//

#ifndef GENREC_RT_CHECKPOINT_GENERATIONS_H
#define GENREC_RT_CHECKPOINT_GENERATIONS_H

#include "folder_lock.h"
#include "manifest.h"

#include <optional>
#include <string>
#include <vector>

namespace genrec::rt {

/// A checkpoint, or one of its generations.
struct NamedGeneration {
  std::string folder, generation; ///< "": the newest
};

/// What a user's path names: "checkpoint/step-1200" a generation of "checkpoint", others a folder.
NamedGeneration namedGeneration(const std::string &path);

/// A file's text, none where there is no such file. Error where it cannot be read.
std::optional<std::string> readTextFile(const std::string &path);

/// Makes the folder of a new generation under a name that nothing has: "step-1200", and for a run
/// that came back to a step "step-1200.2". Notes it in the lock first. Error where it cannot.
std::string makeGeneration(const std::string &folder, uint64_t step, FolderLock &lock);

/// Removes the files that a generation is made of, and its folder where nothing else is in it.
/// Only for names that a manifest or the lock has given. `false` where it is to be tried again: a
/// reader has it open, or the file system refused.
bool removeGeneration(const std::string &folder, const std::string &name);

/// The folders that have a generation's manifest, the greatest step first: for messages about a
/// folder whose own manifest cannot be read.
std::vector<std::string> listGenerations(const std::string &folder);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_GENERATIONS_H
