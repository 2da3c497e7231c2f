//===- gemm.cpp - Matrix products whose sizes are known at run time -------===//

#include "gemm_impl.h"
#include "isa.h"

namespace genrec::rt::kernels {

static const DynamicGemm &gemm() {
  static const DynamicGemm &chosen =
      machineHasAvx512() ? avx512Gemm() : kDynamicGemm;
  return chosen;
}

int64_t matmulDynamicScratchBytes(int64_t k, int64_t n) {
  return gemm().productScratchBytes(k, n);
}

void matmulDynamic(genrec_rt_pool *pool, bool transposeW, int64_t m, int64_t k,
                   int64_t n, const float *x, int64_t ldx, const float *w,
                   int64_t ldw, float *y, int64_t ldy, bool accumulate,
                   void *scratch) {
  gemm().product(pool, transposeW, m, k, n, x, ldx, w, ldw, y, ldy, accumulate,
                 scratch);
}

int64_t matmulRowsDynamicScratchBytes(int64_t k, int64_t n) {
  return gemm().contractionScratchBytes(k, n);
}

void matmulRowsDynamic(genrec_rt_pool *pool, int64_t m, int64_t k, int64_t n,
                       const float *x, int64_t ldx, const float *dy,
                       int64_t lddy, float *dw, int64_t lddw, bool accumulate,
                       void *scratch) {
  gemm().contraction(pool, m, k, n, x, ldx, dy, lddy, dw, lddw, accumulate,
                     scratch);
}

} // namespace genrec::rt::kernels
