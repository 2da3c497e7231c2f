//===- distinct.h - Matrix products per distinct row on a device --*- C++ -*-===//
//
// cpu/distinct.h and cpu/distinct_gradient.h on a device: how many rows the batch has, and how many
// distinct ones a lookup found, is known there alone.
//
// An element of a product is one chain of multiply-adds in ascending order, products are added in
// the order of the lookups, gradients in the order of the rows, and the gradient of the weight is
// cut as on the CPU: the CPU's bits, but where it computes an element as a dot product of vectors
// (the last columns of a width that fills no vectors, gradients of narrow rows). Such an element of
// k terms is within k * 2^-24 of the sum of the terms' magnitudes of it, as any order is. The same
// bits in every run.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_DISTINCT_H
#define GENREC_RT_KERNELS_CUDA_DISTINCT_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <cuda_runtime.h>
#include <span>

namespace genrec::rt::cuda {

/// What genrec_rt_distinct_rows leaves on a device: the distinct rows of lookup p have the numbers
/// from starts[p] to starts[p + 1], and row r of the batch found number numbers[p * count + r].
struct DistinctLookups {
  int64_t parts = 0;
  const genrec_domain *rows = nullptr; ///< of the batch, with `count`; in device memory
  int64_t capacity = 0;                ///< of rows of the batch
  int64_t *starts = nullptr;           ///< parts + 2: the last begins where there are no rows
  uint32_t *numbers = nullptr;         ///< parts * capacity

  /// `domain` is of the host's step, `memory` is the device's.
  DistinctLookups(int64_t parts, const genrec_domain *domain, void *memory)
      : parts(parts), rows(domain->device), capacity(domain->capacity),
        starts(static_cast<int64_t *>(memory)),
        numbers(reinterpret_cast<uint32_t *>(starts + parts + 2)) {}
};

/// Lookups of rows of one width, and the values of their distinct rows, [., d].
struct DistinctGroup {
  int64_t lookups = 0, d = 0;
  const float *values = nullptr; ///< the device's
  int64_t ldValues = 0;
};

/// The lookups of all groups.
int64_t countLookups(std::span<const DistinctGroup> groups);

/// Products of the distinct rows' values with the rows of the weight [., n] that belong to their
/// lookups: d rows from columns[p] on. The lookups are in groups, one after the other. `groups` and
/// `columns` are the host's, all else the device's.
struct DistinctProduct {
  DistinctLookups lookups; ///< of all groups
  std::span<const DistinctGroup> groups;
  int64_t n = 0;
  const float *weight = nullptr;
  const int64_t *columns = nullptr; ///< of each lookup
  /// Values, weight and sums of gradients per distinct row are rounded to bfloat16 (factors.h).
  bool bf16 = false;
};

/// y[row] = the sum of the products that the lookups found for it.
void multiplyDistinct(const DistinctProduct &product, float *y, int64_t ldY, void *scratch,
                      cudaStream_t stream);
int64_t distinctProductScratchBytes(const DistinctProduct &product);

/// From the gradient of y: those of each group's distinct rows, [., d], and those of the weight's
/// rows for lookup 0, then for lookup 1, …, [the sum of their d, n].
struct DistinctGradient {
  const float *gradient = nullptr;
  int64_t ldGradient = 0;
  float *const *dvalues = nullptr; ///< of each group; the array is the host's
  float *dweight = nullptr;
};
void multiplyDistinctGradient(const DistinctProduct &product, const DistinctGradient &gradient,
                              void *scratch, cudaStream_t stream);
int64_t distinctGradientScratchBytes(const DistinctProduct &product);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_DISTINCT_H
