//===- row_mapping.h - How rows are distributed to threads -------*- C++ -*-===//
//
// What the emission of a row kernel and its launch agree on. Plain numbers, for host and device.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROW_MAPPING_H
#define GENREC_RT_KERNELS_CUDA_ROW_MAPPING_H

#include "genrec_rt/kernels/shared/rowmath.h"
#include "genrec_rt/row_chunks.h"
#include "genrec_rt/scattered_limits.h"

#include <stdint.h>

namespace genrec::rt::kernels {

/// The mapping of a row kernel: emitted beside the kernel `name` as `name_mapping`.
struct RowMapping {
  int32_t lanes;       ///< threads per row: 1, 4, 8, 16, 32, or a whole block of more
  int32_t sharedBytes; ///< dynamic shared memory per row, a multiple of 16; 0: none
  /// Of a kernel with sums over all rows: whether rows of a chunk are worked on at the same time
  /// (Chunks in lanes.h), by up to 32 lanes each.
  bool isSpread = false;
};

/// Threads that work on a chunk of rows where those are spread: a warp, or a block.
GENREC_HOST_DEVICE constexpr int64_t teamThreads(int64_t lanes, int64_t blockThreads) {
  return lanes == 1 ? 32 : blockThreads;
}
/// Threads of a block where its shared memory has room: as many as all rows of a least chunk take,
/// up to 256, or 128.
GENREC_HOST_DEVICE constexpr int64_t fullBlockThreads(int64_t lanes, bool isSpread) {
  if (lanes > 128)
    return lanes;
  return isSpread && lanes >= 8 ? 256 : 128;
}

/// Whether lanes, on which elements lie in packs of `pack`, reduce a row through shared memory: as
/// many floats of it as the row has elements.
GENREC_HOST_DEVICE constexpr bool reducesByMemory(int64_t lanes, int64_t pack) {
  return lanes > 32 || (lanes == 32 && pack > 1);
}

//===----------------------------------------------------------------------===//
// Sums into rows that an index picks (scattered)
//===----------------------------------------------------------------------===//

/// How a kernel adds up a result: emitted beside the kernel `name`, for each of them, as
/// `name_sums`. A chunk has sums of its own (terms == 0) of a result over all rows, and of a
/// scattered one with up to kMostPrivateRows rows. Into a larger one no row adds anything: it
/// leaves what it would add, its terms (scattered_terms.h), which are then ordered by the row that
/// they are for and added in the order of the rows that left them (scattered_sums.h). So memory is
/// that of the rows, not of chunks times the result, and all rows run at once.
struct SumShape {
  int32_t terms;                        ///< of a row
  int32_t vectors;                      ///< of a row
  int32_t width;                        ///< floats of a vector
  int32_t stride;                       ///< floats from one row of the result to the next
  int32_t domain;                       ///< index of the domain whose rows leave terms
  bool isScaled;                        ///< a term has a coefficient
  int32_t firstTerms[kMostTermVectors]; ///< by vector: the first of its terms within a row
  bool isRounded = false;               ///< vectors are of bfloat16, a whole multiple of 8
};

/// Where the terms of `rows` rows lie from `memory` on, which is aligned to 64 bytes: a key per
/// term, the row of the result that it is for or kNoRow; then, row by row, the coefficients of its
/// terms, if they have any, and its vectors.
struct ScatteredTerms {
  static constexpr uint32_t kNoRow = 0xFFFFFFFFu;
  uint32_t *keys;
  float *values;
};

/// Floats before the vectors of a row: its coefficients, in whole packs.
GENREC_HOST_DEVICE int64_t coefficientFloats(int64_t terms, bool isScaled) {
  return isScaled ? (terms + 3) / 4 * 4 : 0;
}
/// Words of a row: coefficients and vectors.
GENREC_HOST_DEVICE int64_t valueFloats(int64_t terms, int64_t vectors, int64_t width, bool isScaled,
                                       bool isRounded = false) {
  return coefficientFloats(terms, isScaled) + vectors * (isRounded ? width / 2 : width);
}

GENREC_HOST_DEVICE ScatteredTerms scatteredTerms(float *memory, int64_t rows, int64_t terms) {
  return {reinterpret_cast<uint32_t *>(memory), memory + (rows * terms + 15) / 16 * 16};
}
/// Words of memory that they take, in whole cache lines.
GENREC_HOST_DEVICE int64_t scatteredWords(int64_t rows, int64_t terms, int64_t vectors,
                                          int64_t width, bool isScaled, bool isRounded = false) {
  const int64_t values = rows * valueFloats(terms, vectors, width, isScaled, isRounded);
  return (rows * terms + 15) / 16 * 16 + (values + 15) / 16 * 16;
}

/// A column of a kernel that computes many (launchColumns), updates many parameters, or has many
/// lists: emitted beside the kernel `name` as `name_columns`.
struct ColumnShape {
  int16_t program;  ///< number of its body among the kernel's
  int16_t rows;     ///< that a block takes: kColumnRows (device_limits.h) over the lanes of a row
  int32_t pointers; ///< that the body takes: its inputs, then its results, if it has any
  int32_t domain;   ///< index of its rows' domain
  /// Of a body that splits lists (pools.h), whose rows are lists: index of the leaves' domain, and
  /// the number of the pointer to the memory of parts. -1 of others.
  int16_t leaves = -1;
  int16_t parts = -1;
};

/// The columns of a launch, as the kernel gets them.
template <int Count, int Pointers> struct Columns {
  static constexpr int kCount = Count, kPointers = Pointers;
  ColumnShape shapes[Count];
  int32_t firstPointer[Count];
  int32_t firstBlock[Count + 1];
  void *pointers[Pointers];
};

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_ROW_MAPPING_H
