//===- inspect.h - Looking at checkpoints without their model ----*- C++ -*-===//
//
// What genrec-checkpoint does. A path names a checkpoint's folder, meaning its newest generation,
// or one generation's: "ckpt/step-1200".
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_INSPECT_H
#define GENREC_RT_CHECKPOINT_INSPECT_H

#include <cstdint>
#include <string>
#include <vector>

namespace genrec::rt {

/// A line per generation, the oldest first: step, epoch, bytes, whether it is full, rows of its
/// tables; what is wrong with it where it cannot be opened. Error where the folder has no
/// checkpoint.
std::vector<std::string> listCheckpoint(const std::string &folder);

/// What verifying found of one generation.
struct Verified {
  std::string line; ///< "step-1200: whole, …", or the error
  bool isWhole;
};
/// Reads every byte of the generations that a path names, and of those that they are built on, and
/// holds them to their checksums.
std::vector<Verified> verifyCheckpoint(const std::string &path);

/// Lines on what is in one and not in the other, or different; none where all is the same, to the
/// bit. Optimizer states are compared where both have them. Error where either cannot be read.
std::vector<std::string> compareCheckpoints(const std::string &before, const std::string &after);

/// Writes a table as Parquet: columns "id" and "vector" (lists of floats), by slice and id. Returns
/// the rows.
int64_t exportTable(const std::string &path, const std::string &table, const std::string &out);

/// Makes a checkpoint of step 0 in a new folder: of a compiled model (a shared object) with the
/// values that `entries` give, as train --init takes them. Returns lines on what was filled and
/// what was not.
std::vector<std::string> importValues(const std::string &model,
                                      const std::vector<std::string> &entries, uint64_t seed,
                                      const std::string &folder);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_INSPECT_H
