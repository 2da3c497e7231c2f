//===- domain_view.h - Domains as kernels read them ---------------*- C++ -*-===//
//
// A genrec_domain in device memory: its arrays and its parent lie there too, and its
// count is known there alone. Launches are sized by capacities, which the host knows.
// A list of a domain is the range of its rows below one parent row; a root has no
// offsets, and each of its rows is a list of its own.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_DOMAIN_VIEW_H
#define GENREC_RT_KERNELS_CUDA_DOMAIN_VIEW_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <cuda_runtime.h>

namespace genrec::rt::cuda {

__device__ inline int64_t listCount(const genrec_domain *domain) {
  return domain->offsets ? domain->parent_domain->count : domain->count;
}
__device__ inline int64_t listBegin(const genrec_domain *domain, int64_t list) {
  return domain->offsets ? domain->offsets[list] : list;
}
__device__ inline int64_t listEnd(const genrec_domain *domain, int64_t list) {
  return domain->offsets ? domain->offsets[list + 1] : list + 1;
}
__device__ inline int64_t listLength(const genrec_domain *domain, int64_t list) {
  return listEnd(domain, list) - listBegin(domain, list);
}
/// The list that a row is in.
__device__ inline int64_t listOfRow(const genrec_domain *domain, int64_t row) {
  return domain->offsets ? domain->parent[row] : row;
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_DOMAIN_VIEW_H
