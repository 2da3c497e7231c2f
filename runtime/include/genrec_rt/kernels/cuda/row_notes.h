//===- row_notes.h - Rows that kernels cannot go on with ----------*- C++ -*-===//
//
// The host reads notes when a step has ended and says what the CPU would have said at once. Rows of
// a list lie together, so the row of the root above never falls from row to row: the least of both
// belong together, whoever notes first.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ROW_NOTES_H
#define GENREC_RT_KERNELS_CUDA_ROW_NOTES_H

#include "genrec_rt/abi.h"
#include "genrec_rt/cuda/device.h"

namespace genrec::rt::cuda {

using RowNote = genrec_row_note;

/// Notes `row` of `domain` (null: of none), unless one before it is noted.
__device__ inline void noteRow(RowNote *note, const genrec_domain *domain, int64_t row,
                               int reason = 0) {
  const auto place = static_cast<Word>(row * GENREC_NOTE_REASONS + reason);
  auto *least = reinterpret_cast<Word *>(&note->place);
  if (loadRelaxed(least) <= place)
    return;
  atomicMin(least, place);
  for (; domain && domain->parent && domain->parent_domain; domain = domain->parent_domain)
    row = domain->parent[row];
  atomicMin(reinterpret_cast<Word *>(&note->root), static_cast<Word>(row));
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ROW_NOTES_H
