//===- cuda_runtime.h - Stand-in for the toolkit's, for tests ----*- C++ -*-===//
//
// As much of CUDA's host interface (cuda_runtime_api.h) and device intrinsics as the runtime uses,
// over simt.h. What would fail on a device fails here.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TEST_CUDA_SIMT_CUDA_RUNTIME_H
#define GENREC_TEST_CUDA_SIMT_CUDA_RUNTIME_H

#define GENREC_SIMT 1

#include "cuda_runtime_api.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define __constant__ const
#define __align__(n) alignas(n)
#define __shared__ __attribute__((section("simt_shared"), used)) static

// What the linker says of that section: of this object's own, so hidden. Null where it has none.
extern "C" {
[[gnu::weak, gnu::visibility("hidden")]] extern char __start_simt_shared[], __stop_simt_shared[];
}
namespace simt {
[[gnu::visibility("hidden")]] inline const SharedSection sharedSection(__start_simt_shared,
                                                                       __stop_simt_shared);
} // namespace simt

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

#define SIMT_VECTOR(type, name, a2, a4)                                                            \
  struct alignas(a2) name##2 { type x, y; };                                                       \
  struct alignas(a4) name##4 { type x, y, z, w; };                                                 \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }                                 \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
SIMT_VECTOR(float, float, 8, 16)
SIMT_VECTOR(int, int, 8, 16)
SIMT_VECTOR(unsigned, uint, 8, 16)
SIMT_VECTOR(unsigned char, uchar, 2, 4)
SIMT_VECTOR(unsigned short, ushort, 4, 8)
SIMT_VECTOR(long long, longlong, 16, 16)
SIMT_VECTOR(unsigned long long, ulonglong, 16, 16)
#undef SIMT_VECTOR

extern simt::Extent threadIdx, blockIdx, blockDim, gridDim;
constexpr int warpSize = 32;

#include "simt_device.h"
#include "simt_host.h"

#endif // GENREC_TEST_CUDA_SIMT_CUDA_RUNTIME_H
