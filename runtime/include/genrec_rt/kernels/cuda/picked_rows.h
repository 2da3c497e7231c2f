//===- picked_rows.h - Rows that a step picks, as emitted stages call it -*- C++ -*-===//
//
// The calls of cpu/picked_rows.h, with counts on the device (row_picks.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_PICKED_ROWS_H
#define GENREC_RT_KERNELS_CUDA_PICKED_ROWS_H

#include "genrec_rt/kernels/cuda/domains.h"
#include "genrec_rt/kernels/cuda/row_picks.h"

namespace genrec::rt::kernels {

inline void drawRowNumbers(genrec_step *step, const genrec_domain *source,
                           const genrec_domain *domain, uint32_t stream, int64_t count,
                           int64_t *out) {
  cuda::drawNumbers(source->device, domain ? domain->device : nullptr,
                    domain ? domain->capacity : 1, {step->device, stream}, count, out,
                    streamOf(step));
}

/// Part p has widths[p] numbers for each row of domains[p], in all where that is null. The bits of
/// picked rows are in scratch of the device.
inline void pickRows(genrec_step *step, const genrec_domain *source, genrec_domain *picked,
                     int64_t parts, const int64_t *const *numbers,
                     const genrec_domain *const *domains, const int64_t *widths, int64_t *const *to,
                     int64_t *rows, uint64_t *identity, void *) {
  cuda::PickedNumbers all[cuda::kMostPickedParts];
  for (int64_t part = 0; part < parts; ++part) {
    const genrec_domain *domain = domains[part];
    all[part] = {numbers[part], to[part], domain ? domain->device : nullptr,
                 domain ? domain->capacity : 0, widths[part]};
  }
  picked->count = -1;
  picked->max_length = picked->capacity;
  picked->offsets = nullptr;
  picked->parent = nullptr;
  picked->identity = identity;
  picked->parent_domain = nullptr;
  void *memory = scratchOf(step, cuda::pickMemoryBytes(source->capacity));
  cuda::pickNumberedRows(source->device, source->capacity, parts, all,
                         {picked->device, rows, identity, memory}, streamOf(step));
}

inline void pickLists(genrec_step *step, const genrec_domain *source, const genrec_domain *above,
                      const int64_t *parents, genrec_domain *domain, int64_t *offsets,
                      int64_t *parent, uint64_t *identity, int64_t *rows) {
  cuda::takeLists(source->device, above->device, parents, rows,
                  newLists(step, domain, above, source->max_length, offsets, parent, identity),
                  streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_PICKED_ROWS_H
