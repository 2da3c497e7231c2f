//===- lanes.h - The threads of a row ----------------------------*- C++ -*-===//
//
// A row has L threads, its lanes, as the mapping of its kernel says (row_mapping.h): one, some of a
// warp, a warp, or a block. Elements are on lanes in packs of V neighbours: pack p belongs to lane
// p % L, so that element i is its lane's number i / (L V) V + i % V (its slot). A value that
// lanes keep is an array of slots, in registers. The functions of rowbody.h, random.h,
// gathered_rows.h and segments.h are called by all lanes of a row with equal arguments, but for
// such arrays; what they write into shared arrays may be read by every lane when they return.
//
// For code that nvcc compiles, and for the host where GENREC_WARP_ROWS is defined
// (tests, over the stand-in for <cuda_runtime.h>).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LANES_H
#define GENREC_RT_KERNELS_CUDA_LANES_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/row_mapping.h"
#include "genrec_rt/kernels/shared/simd.h"

#include <type_traits>

#if !defined(GENREC_WARP_ROWS)
#error "lanes.h is for code that runs on a device"
#endif

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

constexpr int64_t kWarpLanes = cuda::kWarp;

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

/// This thread's lane.
template <int64_t L> __device__ inline int64_t lane() {
  return static_cast<int64_t>(threadIdx.x % static_cast<unsigned>(L));
}
template <int64_t L> __device__ inline bool isFirstLane() { return lane<L>() == 0; }

/// Rows that a block has at a time, and which of them is that of these lanes.
template <int64_t L> __device__ inline int64_t blockStep() {
  return static_cast<int64_t>(blockDim.x) / L;
}
template <int64_t L> __device__ inline int64_t rowOfBlock() {
  return static_cast<int64_t>(threadIdx.x) / L;
}
/// The first row of these lanes, and how many rows on their next one is.
template <int64_t L> __device__ inline int64_t firstRow() {
  return static_cast<int64_t>(blockIdx.x) * blockStep<L>() + rowOfBlock<L>();
}
template <int64_t L> __device__ inline int64_t rowStep() {
  return static_cast<int64_t>(gridDim.x) * blockStep<L>();
}

/// The rows of chunk `chunk`, where a chunk has `floats` sums; none beyond the last chunk.
__device__ inline int64_t chunkBegin(int64_t chunk, int64_t rows, int64_t floats) {
  const int64_t begin = chunk * cutRows(rows, floats).grain;
  return begin < rows ? begin : rows;
}
__device__ inline int64_t chunkEnd(int64_t chunk, int64_t rows, int64_t floats) {
  return chunkBegin(chunk + 1, rows, floats);
}

//===----------------------------------------------------------------------===//
// Chunks whose rows are spread: a team of threads, a warp or a block, has a chunk, and works on as
// many of its rows at a time as it has lanes for. What these add lies in shared memory until all
// are done; then each sum has a thread, which takes the rows in order (addRows of rowbody.h).
//===----------------------------------------------------------------------===//

template <int64_t L> __device__ inline int64_t teamSize() { return teamThreads(L, blockDim.x); }
template <int64_t L> __device__ inline int64_t threadOfTeam() {
  return static_cast<int64_t>(threadIdx.x) % teamSize<L>();
}
template <int64_t L> __device__ inline int64_t chunkOfTeam() {
  const int64_t teams = static_cast<int64_t>(blockDim.x) / teamSize<L>();
  return static_cast<int64_t>(blockIdx.x) * teams + threadIdx.x / teamSize<L>();
}
/// Rows at a time, and which of these this thread's is.
template <int64_t L> __device__ inline int64_t teamRows() { return teamSize<L>() / L; }
template <int64_t L> __device__ inline int64_t rowOfTeam() { return threadOfTeam<L>() / L; }
/// Waits for all threads of the team.
template <int64_t L> __device__ inline void meetTeam() {
  if constexpr (L == 1)
    __syncwarp();
  else
    __syncthreads();
}

/// Argument `number` of the body of a column (column_bodies.h).
template <class T> __device__ inline T *columnPointer(void *const *pointers, int64_t number) {
  return static_cast<T *>(pointers[number]);
}

//===----------------------------------------------------------------------===//
// Lanes among each other
//===----------------------------------------------------------------------===//

/// The lanes of this row as a mask of its warp.
template <int64_t L> __device__ inline uint32_t laneMask() {
  static_assert(L <= kWarpLanes);
  if constexpr (L == kWarpLanes)
    return 0xFFFFFFFFu;
  else
    return ((1u << L) - 1) << (threadIdx.x % kWarpLanes / static_cast<unsigned>(L) * L);
}

/// Waits for all lanes; what each wrote before can then be read by all.
template <int64_t L> __device__ inline void meet() {
  if constexpr (L > kWarpLanes)
    __syncthreads();
  else if constexpr (L > 1)
    __syncwarp(laneMask<L>());
}

/// Waits where `X` is memory that other lanes will read, not an array that each lane keeps.
template <int64_t L, class X> __device__ inline void meetAfterWriting() {
  if constexpr (!std::is_array_v<std::remove_reference_t<X>>)
    meet<L>();
}

/// The value of lane `from` of the row's L lanes, within a warp.
template <int64_t L, class T> __device__ inline T valueOf(T value, int64_t from) {
  return __shfl_sync(laneMask<L>(), value, static_cast<int>(from), static_cast<int>(L));
}

/// The lanes of a row that lie in one warp.
template <int64_t L> constexpr int64_t kLanesOfWarp = L < kWarpLanes ? L : kWarpLanes;

/// Shared memory of this row, `Bytes` of it, from byte `Offset` on.
template <class T, int64_t L, int64_t Bytes, int64_t Offset> __device__ inline T *sharedArray() {
  GENREC_DYNAMIC_SHARED(unsigned char, memory);
  return reinterpret_cast<T *>(memory + threadIdx.x / static_cast<unsigned>(L) * Bytes + Offset);
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Packs that a lane has of N elements, and its slots.
template <int64_t N, int64_t L, int64_t V> constexpr int64_t kPacks = (N + L * V - 1) / (L * V);
template <int64_t N, int64_t L, int64_t V>
constexpr int64_t kSlots = L == 1 ? N : kPacks<N, L, V> * V;

/// The first element of this lane's pack `pack`.
template <int64_t L, int64_t V> __device__ inline int64_t firstOfPack(int64_t pack) {
  return (lane<L>() + L * pack) * V;
}

/// Calls `each(slot, element)` for this lane's elements of N.
template <int64_t N, int64_t L, int64_t V, class Each>
__device__ inline void forElements(const Each &each) {
  constexpr int64_t kPack = V < N ? V : N;
#pragma unroll
  for (int64_t pack = 0; pack < kPacks<N, L, V>; ++pack) {
    const int64_t first = firstOfPack<L, V>(pack);
    if (first < N)
#pragma unroll
      for (int64_t j = 0; j < kPack; ++j)
        each(pack * kPack + j, first + j);
  }
}

namespace detail {

/// What is moved at once: up to 16 bytes.
template <int64_t Bytes> struct Word;
template <> struct Word<1> {
  using Type = unsigned char;
};
template <> struct Word<2> {
  using Type = unsigned short;
};
template <> struct Word<4> {
  using Type = unsigned;
};
template <> struct Word<8> {
  using Type = uint2;
};
template <> struct Word<16> {
  using Type = uint4;
};

/// The type in which `Count` elements of T, aligned to so many of them, are moved.
template <class T, int64_t Count>
using PackWord = typename Word<(sizeof(T) * Count < 16 ? sizeof(T) * Count : 16)>::Type;

} // namespace detail

/// Element of a value that lanes keep (by slot) or that lies in memory (by element).
template <class X>
__device__ inline auto &elementOf(X &x, [[maybe_unused]] int64_t slot,
                                  [[maybe_unused]] int64_t element) {
  if constexpr (std::is_array_v<X>)
    return x[slot];
  else
    return x[element];
}

/// A pack of N elements, which lie at a multiple of `Aligned` of them, from and to memory.
template <int64_t Aligned, class T, size_t N>
__device__ inline void loadPack(const T *from, T (&to)[N]) {
  using Word = detail::PackWord<T, Aligned>;
  constexpr int64_t kEach = sizeof(Word) / sizeof(T);
#pragma unroll
  for (int64_t i = 0; i < static_cast<int64_t>(N); i += kEach) {
    const auto word = cuda::loadWhole<Word>(from + i);
    __builtin_memcpy(to + i, &word, sizeof(Word));
  }
}
template <int64_t Aligned, class T, size_t N>
__device__ inline void storePack(T *to, const T (&from)[N]) {
  using Word = detail::PackWord<T, Aligned>;
  constexpr int64_t kEach = sizeof(Word) / sizeof(T);
#pragma unroll
  for (int64_t i = 0; i < static_cast<int64_t>(N); i += kEach) {
    Word word;
    __builtin_memcpy(&word, from + i, sizeof(Word));
    cuda::storeWhole(to + i, word);
  }
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

namespace kernels = genrec::rt::kernels; // as generated code calls it

#endif // GENREC_RT_KERNELS_CUDA_LANES_H
