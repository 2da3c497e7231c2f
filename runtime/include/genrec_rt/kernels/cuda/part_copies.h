//===- part_copies.h - Rows copied part by part, rounded or padded -*- C++ -*-===//
//
// What stands between values that a model stores, floats, and products that want something else of
// them: factors of bfloat16, heads as wide as whole steps of an instruction, zeros in the rows that
// a batch does not have.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_PART_COPIES_H
#define GENREC_RT_KERNELS_CUDA_PART_COPIES_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/bf16.h"

#include <span>

namespace genrec::rt::cuda {

/// Rows of `parts` parts (heads), of `fromSize` floats each, to parts of `toSize` elements: what a
/// part has more becomes 0, what it has less is left out. All pointers are the device's.
template <class To> struct PartCopy {
  const genrec_domain *rows = nullptr; ///< null: all rows are there
  int64_t capacity = 0;                ///< of rows
  int64_t parts = 1;
  const float *from = nullptr;
  int64_t ldFrom = 0, fromSize = 0;
  To *to = nullptr;
  int64_t ldTo = 0, toSize = 0;
  /// Rows behind the last one, up to the capacity, become 0; otherwise they stay as they are.
  bool clearsRest = false;
  int64_t firstRow = 0; ///< of `from`, where the copied rows begin; `capacity` counts from there
};

/// Copies of one launch at most.
constexpr int64_t kMostPartCopies = 4;

/// Makes all copies, kMostPartCopies at most, in one launch. Rounds factors (factors.h).
void copyParts(std::span<const PartCopy<Bf16>> copies, cudaStream_t stream);
void copyParts(std::span<const PartCopy<float>> copies, cudaStream_t stream);

template <class To> void copyParts(const PartCopy<To> &copy, cudaStream_t stream) {
  copyParts(std::span<const PartCopy<To>>(&copy, 1), stream);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_PART_COPIES_H
