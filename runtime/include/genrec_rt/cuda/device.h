//===- device.h - What kernels need beside CUDA's intrinsics -----*- C++ -*-===//
//
// Device code that tests also compile for the host (GENREC_SIMT, see
// test/Cuda/Simt): what is written as assembly or with nvcc's atomic builtins on the
// device has its other form here, so that kernels hold neither. (<cuda/atomic> takes nvcc
// two seconds per file.)
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_DEVICE_H
#define GENREC_RT_CUDA_DEVICE_H

#include "genrec_rt/cuda/sizes.h"

#include <cstdint>
#include <cuda_runtime.h>
#include <type_traits>

/// Dynamic shared memory of the block, aligned to 16 bytes, as `type *name`.
#if defined(GENREC_SIMT)
#define GENREC_DYNAMIC_SHARED(type, name) type *name = static_cast<type *>(::simt::dynamicShared())
#else
#define GENREC_DYNAMIC_SHARED(type, name)                                                          \
  extern __shared__ __align__(16) unsigned char genrecDynamicShared[];                             \
  type *name = reinterpret_cast<type *>(genrecDynamicShared)
#endif

namespace genrec::rt::cuda {

constexpr int kWarp = 32;
constexpr uint32_t kAllLanes = 0xFFFFFFFFu;

/// 64-bit words as CUDA's atomic functions take them.
using Word = unsigned long long;

__device__ inline int laneOf() { return static_cast<int>(threadIdx.x % kWarp); }
__device__ inline int warpOf() { return static_cast<int>(threadIdx.x / kWarp); }
/// This thread's number in the grid and the number of threads, of one-dimensional launches.
__device__ inline int64_t threadInGrid() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t threadsInGrid() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// N floats that lie together, aligned to all of them.
template <int N> struct alignas(4 * N) Floats {
  float x[N];
};

/// Loads or stores a value of several words at once, at an address aligned for it. The emulated
/// build checks the alignment of what a reference is bound to, not that of a struct that is copied,
/// and tells of places that call these.
#if defined(GENREC_SIMT)
namespace detail {
/// 16 bytes that the host's compiler does not cut into two.
typedef uint32_t Whole16 __attribute__((vector_size(16), may_alias));
template <class T> using Whole = std::conditional_t<sizeof(T) == 16, Whole16, T>;
} // namespace detail
template <class T> [[gnu::always_inline]] inline T loadWhole(const void *from) {
  const detail::Whole<T> &checked = *static_cast<const detail::Whole<T> *>(from);
  const detail::Whole<T> whole = checked;
  T value;
  __builtin_memcpy(&value, &whole, sizeof value);
  return value;
}
template <class T> [[gnu::always_inline]] inline void storeWhole(void *to, T value) {
  detail::Whole<T> whole, &checked = *static_cast<detail::Whole<T> *>(to);
  __builtin_memcpy(&whole, &value, sizeof value);
  checked = whole;
}
#else
template <class T> __device__ __forceinline__ T loadWhole(const void *from) {
  return *static_cast<const T *>(from);
}
template <class T> __device__ __forceinline__ void storeWhole(void *to, T value) {
  *static_cast<T *>(to) = value;
}
#endif

//===----------------------------------------------------------------------===//
// Accesses ordered among the threads of the device
//===----------------------------------------------------------------------===//

template <class T> __device__ T loadRelaxed(const T *at) {
#if defined(GENREC_SIMT)
  return simt::atomicLoad(at, simt::Order::relaxed);
#else
  T value;
  __nv_atomic_load(const_cast<T *>(at), &value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
  return value;
#endif
}

template <class T> __device__ T loadAcquire(const T *at) {
#if defined(GENREC_SIMT)
  return simt::atomicLoad(at, simt::Order::acquire);
#else
  T value;
  __nv_atomic_load(const_cast<T *>(at), &value, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  return value;
#endif
}

template <class T> __device__ void storeRelaxed(T *at, std::type_identity_t<T> value) {
#if defined(GENREC_SIMT)
  simt::atomicStore(at, value, simt::Order::relaxed);
#else
  __nv_atomic_store(at, &value, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
#endif
}

template <class T> __device__ void storeRelease(T *at, std::type_identity_t<T> value) {
#if defined(GENREC_SIMT)
  simt::atomicStore(at, value, simt::Order::release);
#else
  __nv_atomic_store(at, &value, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
#endif
}

/// Four words, each as loadRelaxed has it.
__device__ inline uint4 loadRelaxed4(const uint4 *at) {
#if defined(GENREC_SIMT)
  const unsigned *words = &at->x;
  return {loadRelaxed(words), loadRelaxed(words + 1), loadRelaxed(words + 2),
          loadRelaxed(words + 3)};
#else
  uint4 value;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(at)
               : "memory");
  return value;
#endif
}

//===----------------------------------------------------------------------===//
// Launches that follow one another
//===----------------------------------------------------------------------===//

/// Called by every thread of a kernel that is launched with LaunchShape::beginsEarly: awaits the
/// launch before it, whose results are then there, and lets the next one begin once all blocks have
/// called this. So before it a kernel may read what the launch before the last has left, and must
/// not write what that one touches. Elsewhere it lets the next one begin. Calling it again does
/// nothing.
__device__ inline void awaitLaunchBefore() {
#if defined(GENREC_SIMT)
  simt::awaitLaunchBefore();
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

//===----------------------------------------------------------------------===//
// Named barriers: `threads`, a multiple of 32, of the block meet at barrier `id`
// (1 to 15; 0 is __syncthreads). Who arrives does not wait.
//===----------------------------------------------------------------------===//

#if defined(GENREC_SIMT)
inline void namedBarrierSync(int id, int threads, simt::Place place = simt::Place::current()) {
  simt::namedBarrier(id, threads, true, place);
}
inline void namedBarrierArrive(int id, int threads, simt::Place place = simt::Place::current()) {
  simt::namedBarrier(id, threads, false, place);
}
#else
__device__ inline void namedBarrierSync(int id, int threads) {
  asm volatile("barrier.cta.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void namedBarrierArrive(int id, int threads) {
  asm volatile("barrier.cta.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
#endif

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_DEVICE_H
