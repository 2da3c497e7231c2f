//===- order.cu - Stable orders of small keys -----------------------------===//

#include "genrec_rt/kernels/cuda/order.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/prefix_sums.h"

#include <algorithm>
#include <bit>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr int kRounds = 8;
constexpr int kPerBlock = kThreads * kRounds;
constexpr int kDigits = 256;

/// What a pass reads: the digit of the item at `at` of the order so far.
struct Pass {
  const uint32_t *keys;
  const uint32_t *from; ///< null: the positions themselves
  int64_t count;
  const uint32_t *used; ///< null: count
  int shift;

  __device__ int64_t present() const {
    return used ? min(count, static_cast<int64_t>(*used)) : count;
  }
  __device__ uint32_t position(int64_t at) const {
    return from ? from[at] : static_cast<uint32_t>(at);
  }
  __device__ uint32_t digit(uint32_t position) const {
    return keys[position] >> shift & (kDigits - 1);
  }
};

/// counts[digit][block]
__global__ void __launch_bounds__(kThreads) countDigits(Pass pass, uint32_t *counts) {
  __shared__ uint32_t mine[kDigits];
  mine[threadIdx.x] = 0;
  __syncthreads();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPerBlock, present = pass.present();
  for (int round = 0; round < kRounds; ++round) {
    const int64_t at = first + round * kThreads + threadIdx.x;
    if (at < present)
      atomicAdd(mine + pass.digit(pass.position(at)), 1u);
  }
  __syncthreads();
  counts[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x] = mine[threadIdx.x];
}

/// A block places its items 256 at a time, in order: behind equal digits of earlier blocks, rounds,
/// warps, lanes.
__global__ void __launch_bounds__(kThreads) place(Pass pass, const uint32_t *before, uint32_t *to) {
  __shared__ uint32_t next[kDigits];
  __shared__ uint32_t ofWarp[kWarps][kDigits];
  next[threadIdx.x] = before[static_cast<int64_t>(threadIdx.x) * gridDim.x + blockIdx.x];
  const int64_t first = static_cast<int64_t>(blockIdx.x) * kPerBlock, present = pass.present();
  for (int round = 0; round < kRounds && first + round * kThreads < present; ++round) {
    for (int warp = 0; warp < kWarps; ++warp)
      ofWarp[warp][threadIdx.x] = 0;
    __syncthreads();
    const int64_t at = first + round * kThreads + threadIdx.x;
    const bool isItem = at < present;
    const uint32_t position = isItem ? pass.position(at) : 0;
    const uint32_t digit = isItem ? pass.digit(position) : kDigits;
    const uint32_t equal = __match_any_sync(kAllLanes, digit);
    const uint32_t rank = static_cast<uint32_t>(__popc(equal & ((1u << laneOf()) - 1)));
    if (isItem && rank == 0)
      ofWarp[warpOf()][digit] = static_cast<uint32_t>(__popc(equal));
    __syncthreads();
    if (isItem) {
      uint32_t target = next[digit] + rank;
      for (int warp = 0; warp < warpOf(); ++warp)
        target += ofWarp[warp][digit];
      to[target] = position;
    }
    __syncthreads();
    uint32_t placed = 0;
    for (int warp = 0; warp < kWarps; ++warp)
      placed += ofWarp[warp][threadIdx.x];
    next[threadIdx.x] += placed;
  }
}

__global__ void __launch_bounds__(kThreads)
    markSegments(const uint32_t *keys, const uint32_t *order, int64_t count,
                 const uint32_t *keyCount, int64_t *offsets) {
  for (int64_t at = threadInGrid(); at <= count; at += threadsInGrid()) {
    if (at == count)
      offsets[*keyCount] = count;
    else if (at == 0 || keys[order[at]] != keys[order[at - 1]])
      offsets[keys[order[at]]] = at;
  }
}

int passesOf(int64_t keyLimit) {
  return (std::bit_width(static_cast<uint64_t>(std::max<int64_t>(keyLimit - 1, 1))) + 7) / 8;
}

} // namespace

/// Scratch: the states of each pass's prefix sums, counts of digits, and the order of every other
/// pass.
int64_t orderScratchBytes(int64_t count, int64_t keyLimit) {
  const int64_t digits = blocksFor(count, kPerBlock) * kDigits;
  const int passes = passesOf(keyLimit);
  return passes * prefixSumWords(digits) * static_cast<int64_t>(sizeof(Word)) +
         (digits + (passes > 1 ? count : 0)) * static_cast<int64_t>(sizeof(uint32_t));
}

void orderStably(const uint32_t *keys, int64_t count, int64_t keyLimit, uint32_t *order,
                 void *scratch, cudaStream_t stream, const uint32_t *used) {
  if (count == 0)
    return;
  const int64_t blocks = blocksFor(count, kPerBlock), digits = blocks * kDigits,
                words = prefixSumWords(digits);
  const int passes = passesOf(keyLimit);
  auto *states = static_cast<Word *>(scratch);
  auto *counts = reinterpret_cast<uint32_t *>(states + passes * words), *spare = counts + digits;
  GENREC_CUDA_CHECK(
      cudaMemsetAsync(states, 0, static_cast<size_t>(passes * words) * sizeof(Word), stream));
  const LaunchShape shape{dim3(static_cast<unsigned>(blocks)), dim3(kThreads)};
  const uint32_t *from = nullptr;
  for (int pass = 0; pass < passes; ++pass) {
    // The last pass writes `order`.
    uint32_t *to = (passes - pass) % 2 ? order : spare;
    const Pass now{keys, from, count, used, pass * 8};
    GENREC_CUDA_LAUNCH(stream, shape, countDigits, now, counts);
    addBefore(counts, digits, states + pass * words, stream);
    GENREC_CUDA_LAUNCH(stream, shape, place, now, counts, to);
    from = to;
  }
}

void findSegments(const uint32_t *keys, const uint32_t *order, int64_t count,
                  const uint32_t *keyCount, int64_t *offsets, cudaStream_t stream) {
  const int64_t blocks = std::min<int64_t>(blocksFor(count + 1, kThreads), 4096);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{dim3(static_cast<unsigned>(blocks)), dim3(kThreads)}),
                     markSegments, keys, order, count, keyCount, offsets);
}

} // namespace genrec::rt::cuda
