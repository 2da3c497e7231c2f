//===- dynamic_gemm.h - One build of the dynamic products -------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_DYNAMIC_GEMM_H
#define GENREC_RT_KERNELS_CPU_DYNAMIC_GEMM_H

#include "genrec_rt/parallel.h"

namespace genrec::rt::kernels {

/// The functions of gemm.h whose sizes are known at run time.
struct DynamicGemm {
  void (*product)(genrec_rt_pool *pool, bool transposeW, int64_t m, int64_t k,
                  int64_t n, const float *x, int64_t ldx, const float *w,
                  int64_t ldw, float *y, int64_t ldy, bool accumulate,
                  void *scratch);
  int64_t (*productScratchBytes)(int64_t k, int64_t n);
  void (*contraction)(genrec_rt_pool *pool, int64_t m, int64_t k, int64_t n,
                      const float *x, int64_t ldx, const float *dy,
                      int64_t lddy, float *dw, int64_t lddw, bool accumulate,
                      void *scratch);
  int64_t (*contractionScratchBytes)(int64_t k, int64_t n);
};

const DynamicGemm &avx512Gemm();

} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_DYNAMIC_GEMM_H
