//===- domains.h - Domains as emitted stages make them ------------*- C++ -*-===//
//
// The calls of cpu/domains.h: they take the step, and read counts on the device (step.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_DOMAINS_H
#define GENREC_RT_KERNELS_CUDA_DOMAINS_H

#include "genrec_rt/kernels/cuda/list_domains.h"
#include "genrec_rt/kernels/cuda/step.h"

namespace genrec::rt::kernels {

/// A domain of `count` rows that the host knows, all of one list.
inline void describeRows(genrec_domain *domain, int64_t count) {
  domain->count = domain->max_length = count;
  domain->offsets = nullptr;
  domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
}

/// offsets[i] = where part i of a stacked domain has its room, and the domain itself.
void describeStack(genrec_domain *domain, int64_t *offsets, int64_t count,
                   const genrec_domain *const *parts, cudaStream_t stream);

/// A root of `count` rows.
inline void fixedRows(genrec_step *step, genrec_domain *domain, int64_t count) {
  // The runtime describes it as it was in the step before.
  if (domain->count == count)
    return;
  describeRows(domain, count);
  cuda::makeFixedRows(domain->device, count, streamOf(step));
}

/// The rows of all parts end to end. Each part has room for its capacity, which the host knows, so
/// the domain has rows of no part between them: what is written there is no key (fillKeys), and
/// readers of a part stop at its count.
inline void stackDomains(genrec_step *step, genrec_domain *domain, int64_t *offsets, int64_t count,
                         const genrec_domain *const *parts) {
  int64_t rows = 0;
  for (int64_t part = 0; part < count; ++part)
    rows += parts[part]->capacity;
  describeRows(domain, rows);
  domain->offsets = offsets;
  describeStack(domain, offsets, count, parts, streamOf(step));
}

/// Which rows of a column are there: all, where `valid` is null.
void validRows(genrec_step *step, const genrec_domain *domain, const uint8_t *valid, bool *out);

/// A shared tensor into a part of another.
template <class T>
inline void copyElements(genrec_step *step, T *to, const T *from, int64_t count) {
  GENREC_CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(count) * sizeof(T),
                                    cudaMemcpyDeviceToDevice, streamOf(step)));
}

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_DOMAINS_H
