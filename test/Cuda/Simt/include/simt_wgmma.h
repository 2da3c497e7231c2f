//===- simt_wgmma.h - wgmma on the host, for tests ------------------*- C++ -*-===//
//
// What genrec_rt/kernels/cuda/tensor/wgmma_instructions.h has as instructions, over simt.h.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_WGMMA_H
#define GENREC_TEST_CUDA_SIMT_WGMMA_H

#include "simt_bulk.h"

namespace simt::detail {

template <bool LeftColumns, bool RightColumns>
void wgmma64(float (*d)[4], uint64_t left, uint64_t right, int add) {
  startProduct(d, 64, left, LeftColumns, right, RightColumns, add != 0);
}
template <bool LeftColumns, bool RightColumns>
void wgmma128(float (*d)[4], uint64_t left, uint64_t right, int add) {
  startProduct(d, 128, left, LeftColumns, right, RightColumns, add != 0);
}
template <bool RightColumns>
void wgmma64(float (*d)[4], const uint32_t (&a)[4], uint64_t right, int add) {
  startProduct(d, 64, a, right, RightColumns, add != 0);
}
template <bool RightColumns>
void wgmma128(float (*d)[4], const uint32_t (&a)[4], uint64_t right, int add) {
  startProduct(d, 128, a, right, RightColumns, add != 0);
}

} // namespace simt::detail

#endif // GENREC_TEST_CUDA_SIMT_WGMMA_H
