//===- shared_tensors.h - A file of tensors that ranks write -----*- C++ -*-===//
//
// All ranks write one file at once, each the bytes that it has, at the places where they belong.
// The file, and the checksums of it, are those that one rank alone would write: no reader sees how
// many there were.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_SHARED_TENSORS_H
#define GENREC_RT_CHECKPOINT_SHARED_TENSORS_H

#include "genrec_rt/comm.h"
#include "genrec_rt/safetensors.h"

#include <functional>
#include <string>
#include <vector>

namespace genrec::rt {

/// A tensor whose bytes lie on several ranks. All know the shares; each reads its own.
struct SharedTensor {
  std::string name, dtype; ///< "F32", "BF16" or "I64"
  std::vector<int64_t> shape;
  /// Rank r has the bytes [bounds[r], bounds[r + 1]) of the tensor.
  std::vector<int64_t> bounds;
  /// Bytes [begin, end) of the tensor, which are of this rank's share.
  std::function<void(int64_t begin, int64_t end, char *to)> read;

  int64_t bytes() const { return bounds.back(); }
};

/// The bounds of a tensor that all ranks have: shares of whole blocks.
std::vector<int64_t> divideBlocks(int64_t bytes, int32_t ranks);

/// Adds tensors that this process has whole.
void addTensors(SafetensorsWriter &writer, const std::vector<SharedTensor> &tensors);

/// Collective: writes `path` aside, then renames it. Rank 0 gets the checksums; `notFinite` is
/// known there, whoever saw it. What fails on one rank is an Error on all, and no file is left.
/// `comm` may be null.
TensorDigest writeTogether(Communicator *comm, const std::string &path,
                           const SafetensorsWriter &header,
                           const std::vector<SharedTensor> &tensors, bool finiteOnly);

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_SHARED_TENSORS_H
