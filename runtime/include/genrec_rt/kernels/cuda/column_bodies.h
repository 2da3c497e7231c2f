//===- column_bodies.h - Many columns in one launch --------------*- C++ -*-===//
//
// What the emitted kernel of launchColumns (launch.h) does: a block has some rows of one column,
// for which it calls the body of the column's program.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_COLUMN_BODIES_H
#define GENREC_RT_KERNELS_CUDA_COLUMN_BODIES_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/lanes.h"
#include "genrec_rt/kernels/cuda/pools.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// The domain whose number is argument `number` of the body of a column (columnPointer).
__device__ inline genrec_domain *columnDomain(const genrec_step *step, void *const *pointers,
                                              int64_t number) {
  return &step->domains[reinterpret_cast<intptr_t>(pointers[number])];
}

/// Rows begin to end of a column, by a block.
using ColumnBody = void (*)(const genrec_step *step, void *const *pointers, int64_t begin,
                            int64_t end);

template <ColumnBody... Bodies, int Count, int Pointers>
__device__ inline void runColumns(const genrec_step *step,
                                  const Columns<Count, Pointers> &columns) {
  const auto block = static_cast<int32_t>(blockIdx.x);
  int column = 0;
  for (int behind = Count; behind - column > 1;) {
    const int middle = (column + behind) / 2;
    (columns.firstBlock[middle] <= block ? column : behind) = middle;
  }
  const ColumnShape &shape = columns.shapes[column];
  const int64_t begin = static_cast<int64_t>(shape.rows) * (block - columns.firstBlock[column]);
  void *const *pointers = columns.pointers + columns.firstPointer[column];
  int64_t rows = step->domains[shape.domain].count;
  if (shape.parts >= 0)
    rows = poolUnits(rows, &step->domains[shape.leaves],
                     static_cast<const float *>(pointers[shape.parts]));
  const int64_t end = begin + shape.rows < rows ? begin + shape.rows : rows;
  int32_t program = 0;
  ((program++ == shape.program ? Bodies(step, pointers, begin, end) : void()), ...);
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_COLUMN_BODIES_H
