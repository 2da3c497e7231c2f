//===- prefix_sums.cu - Prefix sums of an array ---------------------------===//

#include "genrec_rt/kernels/cuda/prefix_sums.h"

#include "genrec_rt/kernels/cuda/block_scan.h"
#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 256, kEach = 8;
constexpr int64_t kTile = kThreads * kEach;

/// What a tile shows: nothing yet, its own sum, or that of all tiles up to it.
constexpr Word kOwn = Word(1) << 32, kAll = Word(2) << 32;

/// The sum of the tiles before `tile`, whose own is `own`. Called by a warp.
__device__ uint32_t lookBack(Word *states, int64_t tile, uint32_t own) {
  if (laneOf() == 0)
    storeRelaxed(states + tile, (tile == 0 ? kAll : kOwn) | own);
  uint32_t before = 0;
  for (int64_t behind = tile; behind > 0; behind -= kWarp) {
    const int64_t at = behind - 1 - laneOf();
    Word state = kAll; // before the first
    while (at >= 0 && (state = loadRelaxed(states + at)) < kOwn) {
    }
    const uint32_t whole = __ballot_sync(kAllLanes, state >= kAll);
    const int last = whole ? __ffs(static_cast<int>(whole)) - 1 : kWarp - 1;
    const uint32_t taken = laneOf() <= last ? static_cast<uint32_t>(state) : 0;
    before += __shfl_sync(kAllLanes, inclusiveWarpSum(taken), kWarp - 1);
    if (whole)
      break;
  }
  if (laneOf() == 0 && tile > 0)
    storeRelaxed(states + tile, kAll | (before + own));
  return before;
}

/// states[0] counts the tiles that were taken; states[1 + tile] is what a tile shows.
__global__ void __launch_bounds__(kThreads)
    addTilesBefore(uint32_t *numbers, int64_t count, Word *states) {
  __shared__ int64_t tileOfBlock;
  __shared__ uint32_t beforeTile;
  if (threadIdx.x == 0)
    tileOfBlock = static_cast<int64_t>(atomicAdd(states, Word(1)));
  __syncthreads();
  const int64_t tile = tileOfBlock, first = tile * kTile + threadIdx.x * kEach;
  uint32_t own[kEach], sum = 0, total;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    own[i] = first + i < count ? numbers[first + i] : 0;
    sum += own[i];
  }
  uint32_t running = exclusiveBlockSum<kThreads>(sum, total);
  if (warpOf() == 0) {
    const uint32_t before = lookBack(states + 1, tile, total);
    if (laneOf() == 0)
      beforeTile = before;
  }
  __syncthreads(); // the sum of the tiles before is there
  running += beforeTile;
#pragma unroll
  for (int i = 0; i < kEach; ++i) {
    if (first + i < count)
      numbers[first + i] = running;
    running += own[i];
  }
}

} // namespace

int64_t prefixSumWords(int64_t count) { return 1 + blocksFor(count, kTile); }

void addBefore(uint32_t *numbers, int64_t count, Word *states, cudaStream_t stream) {
  if (count > 0)
    GENREC_CUDA_LAUNCH(
        stream, (LaunchShape{dim3(static_cast<unsigned>(blocksFor(count, kTile))), dim3(kThreads)}),
        addTilesBefore, numbers, count, states);
}

} // namespace genrec::rt::cuda
