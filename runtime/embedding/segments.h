//===- segments.h - Distinct touched rows and their gradients ----*- C++ -*-===//
//
// What an update does once per distinct row: find the rows that some gradient
// touches, in the order of first appearance, and add up the gradients of each in
// the order (part, row). Results do not depend on the number of threads.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_EMBEDDING_SEGMENTS_H
#define GENREC_RT_EMBEDDING_SEGMENTS_H

#include "genrec_rt/parallel.h"

#include <cstdint>

namespace genrec::rt {

/// `parts` lists of row handles with a gradient row of `dim` floats each.
struct GradientParts {
  int32_t parts = 0;
  const int64_t *counts = nullptr;
  float *const *const *handles = nullptr; ///< null when only summing
  const float *const *gradients = nullptr;
  int64_t dim = 0;
  /// By part: floats from one gradient row to the next, or null where all are `dim`.
  const int64_t *strides = nullptr;
  /// By part: the gradient row of every list entry (its parent), or null where entry
  /// i has gradient row i. Only `buildSegments` reads it.
  const int64_t *const *parents = nullptr;
  /// Whether rows whose gradient is zero count too: then `buildSegments` reads no gradient.
  bool all = false;
  /// By part: the key that each entry was found by. Where both are there, `buildSegments` writes
  /// the key of each distinct row to `rowKeys`.
  const int64_t *const *keys = nullptr;
  int64_t *rowKeys = nullptr;

  int64_t gradientRow(int32_t part, int64_t entry) const {
    return parents && parents[part] ? parents[part][entry] : entry;
  }
  const float *gradient(int32_t part, int64_t row) const {
    return gradients[part] + row * (strides ? strides[part] : dim);
  }
};

/// Most contributions of one call: an index of 32 bits, 0 being "none".
constexpr int64_t kMostContributions = 0xFFFFFFFEll;

/// Most parts of one call.
constexpr int32_t kMostParts = 4096;

/// Bytes of scratch for `capacity` contributions in all.
int64_t segmentBytes(int64_t capacity);

/// Fills `rows` with the distinct touched rows and returns their number.
/// `untouchable` is a row that never counts (the row of zeros).
int64_t buildSegments(genrec_rt_pool *pool, const GradientParts &parts, const float *untouchable,
                      float **rows, void *segments);

/// sums[s] = the sum of the gradients of distinct row s, dim floats each.
void sumSegments(genrec_rt_pool *pool, const GradientParts &parts, int64_t count,
                 const void *segments, float *sums);

} // namespace genrec::rt

#endif // GENREC_RT_EMBEDDING_SEGMENTS_H
