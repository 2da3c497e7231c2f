//===- lists.h - Lengthened and paired lists as emitted stages make them -*- C++ -*-===//
//
// The calls of cpu/lists.h, with counts on the device (domains.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LISTS_H
#define GENREC_RT_KERNELS_CUDA_LISTS_H

#include "genrec_rt/kernels/cuda/domains.h"

namespace genrec::rt::kernels {

template <bool Front>
void pad(genrec_step *step, const genrec_domain *source, genrec_domain *domain, int64_t least,
         int64_t *offsets, int64_t *parent, uint64_t *identity) {
  cuda::lengthenLists(source->device, least, Front,
                      newLists(step, domain, source->parent_domain,
                               source->max_length > least ? source->max_length : least, offsets,
                               parent, identity),
                      streamOf(step));
}

template <bool Front, class T>
void derivePadded(genrec_step *step, const genrec_domain *source, const genrec_domain *domain,
                  int64_t width, const T *x, int64_t ldX, T *out) {
  cuda::lengthenRows(source->device, domain->device, Front, cuda::rowsIn(x, ldX),
                     cuda::rowsOut(out, domain->capacity, width), streamOf(step));
}

template <bool Front, class T>
void derivePaddedGrad(genrec_step *step, const genrec_domain *source, const genrec_domain *domain,
                      int64_t width, const T *x, int64_t ldX, T *out) {
  cuda::lengthenRowsGradient(source->device, domain->device, Front, cuda::rowsIn(x, ldX),
                             cuda::rowsOut(out, source->capacity, width), streamOf(step));
}

inline void pairDomains(genrec_step *step, const genrec_domain *first, const genrec_domain *second,
                        genrec_domain *domain, int64_t *offsets, int64_t *parent,
                        uint64_t *identity) {
  cuda::pairLists(first->device, second->device,
                  newLists(step, domain, first, second->max_length, offsets, parent, identity),
                  streamOf(step));
}

template <class T>
void pairRows(genrec_step *step, const genrec_domain *second, const genrec_domain *domain,
              int64_t width, const T *x, int64_t ldX, T *out) {
  cuda::pairedRows(second->device, domain->device, cuda::rowsIn(x, ldX),
                   cuda::rowsOut(out, domain->capacity, width), streamOf(step));
}

inline void pairSum(genrec_step *step, const genrec_domain *second, const genrec_domain *domain,
                    int64_t width, const float *x, int64_t ldX, float *out) {
  cuda::addPairs(second->device, domain->device, width, x, ldX, out, second->capacity,
                 streamOf(step));
}

template <bool Last, class T>
void tile(genrec_step *step, const genrec_domain *lists, int64_t count, int64_t width, const T *x,
          int64_t ldX, T *out) {
  cuda::tileRows(lists->device, count, Last, cuda::rowsIn(x, ldX),
                 cuda::rowsOut(out, mostLists(lists), count * width), streamOf(step));
}

template <bool Last, class T>
void tileGrad(genrec_step *step, const genrec_domain *lists, int64_t count, int64_t width,
              const T *x, int64_t ldX, T *out) {
  cuda::tileRowsGradient(lists->device, count, Last, cuda::rowsIn(x, ldX),
                         cuda::rowsOut(out, lists->capacity, width), streamOf(step));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_LISTS_H
