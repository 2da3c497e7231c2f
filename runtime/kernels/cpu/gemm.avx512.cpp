//===- gemm.avx512.cpp - Dynamic products for AVX-512 ---------------------===//

#include "gemm_impl.h"

namespace genrec::rt::kernels {

const DynamicGemm &avx512Gemm() { return kDynamicGemm; }

} // namespace genrec::rt::kernels
