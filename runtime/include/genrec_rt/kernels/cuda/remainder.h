//===- remainder.h - Remainders by divisors that are data --------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_REMAINDER_H
#define GENREC_RT_KERNELS_CUDA_REMAINDER_H

#include "genrec_rt/kernels/shared/rowbody.h"

#include <cuda_runtime.h>

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// x % divisor as C has it, where the divisor is known when the kernel runs. The quotient is a
/// product with the reciprocal, off by less than 2^12, then a second time by at most one (as in
/// shared/rowbody.h): a fraction of the instructions of a division. The reciprocal of a divisor
/// that is the same for all rows is computed once; that of 1 may round to 2^63.
__device__ inline int64_t remainderBy(int64_t x, int64_t divisor) {
  if (divisor < 2 || divisor > int64_t(1) << 48)
    return x % divisor;
  const double reciprocal = 1 / static_cast<double>(divisor);
  auto less = [&](int64_t value) {
    const auto quotient = static_cast<int64_t>(static_cast<double>(value) * reciprocal);
    return static_cast<int64_t>(static_cast<uint64_t>(value) -
                                static_cast<uint64_t>(quotient) * static_cast<uint64_t>(divisor));
  };
  int64_t rest = less(less(x));
  rest = rest >= divisor ? rest - divisor : rest <= -divisor ? rest + divisor : rest;
  rest = x >= 0 && rest < 0 ? rest + divisor : rest;
  return x < 0 && rest > 0 ? rest - divisor : rest;
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CUDA_REMAINDER_H
