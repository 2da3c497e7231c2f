//===- scattered_limits.h - Where scattered sums leave terms -----*- C++ -*-===//
//
// What the compiler and the runtime agree on about sums of device kernels into rows that an index
// picks (SumShape of kernels/cuda/row_mapping.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SCATTERED_LIMITS_H
#define GENREC_RT_SCATTERED_LIMITS_H

#include <stdint.h>

namespace genrec::rt::kernels {

/// The fewest rows of a chunk: writing its sums costs little beside reading its rows.
constexpr int64_t kLeastChunk = 32;

/// Rows of a scattered result up to which each chunk has sums of its own. A chunk reads and writes
/// them once; it has at least as many rows, each of which would write and read a term.
constexpr int64_t kMostPrivateRows = kLeastChunk;

/// Vectors that the terms of a row are multiples of.
constexpr int32_t kMostTermVectors = 4;

} // namespace genrec::rt::kernels

#endif // GENREC_RT_SCATTERED_LIMITS_H
