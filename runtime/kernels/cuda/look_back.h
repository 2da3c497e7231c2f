//===- look_back.h - Sums over the tiles of a kernel --------------*- C++ -*-===//
//
// Prefix sums across blocks in one launch: a block takes a tile, adds up what is its own, then
// looks back at the tiles before it, which have shown their own sums or already those of all up to
// them (Merrill and Garland, "Single-pass Parallel Prefix Scan with Decoupled Look-back", 2016,
// section 4). A tile shows state and sum in one word, so nothing else has to be ordered. Blocks
// take tiles by number, and the next one only when they have shown the sum of the last: so those
// before a tile are always under way, however many blocks there are.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_LOOK_BACK_H
#define GENREC_RT_KERNELS_CUDA_LOOK_BACK_H

#include "genrec_rt/cuda/memory.h"
#include "genrec_rt/kernels/cuda/block_scan.h"

namespace genrec::rt::cuda {

/// The tiles of a launch; blocks take them in a loop:
///
///     for (int64_t tile; (tile = tiles.take()) < tiles.count;) {
///       ... uint32_t before = tiles.sumBefore(tile, own); ...
///     }
///
/// Tiles may have several sums: those of one number lie side by side, as a warp reads them.
struct LookBackTiles {
  /// words(count, sums) of them, zeros before the launch; words(count) are zeros again behind it.
  /// The first counts the tiles that were taken.
  Word *states;
  int64_t count, sums = 1;

  static constexpr int64_t words(int64_t tiles, int64_t sums = 1) { return 1 + tiles * sums; }

  /// The next tile; `count` or more where none is left. Called by the whole block, which meets in
  /// sumBefore before it calls this again.
  __device__ int64_t take() const {
    __shared__ int64_t taken;
    if (threadIdx.x == 0) {
      __threadfence(); // the block looks at no state any more, should this be its last call
      taken = static_cast<int64_t>(atomicAdd(states, Word(1)));
      if (taken == count + gridDim.x - 1)
        __threadfence(); // and clears behind what others looked at
    }
    __syncthreads();
    const int64_t tile = taken;
    // Every block finds once that none is left. Who finds it last is alone.
    if (tile == count + gridDim.x - 1)
      for (int64_t at = threadIdx.x; at <= count; at += blockDim.x)
        states[at] = 0;
    return tile;
  }

  /// The tile after a block's first, of a launch whose states are cleared before the next one: it
  /// asks for none where there are as many blocks as tiles.
  __device__ int64_t takeNext() const { return gridDim.x < count ? take() : count; }

  /// The sum of the tiles before `tile`, whose own is `own`; all sums are below 2^32. Called by the
  /// whole block.
  __device__ uint32_t sumBefore(int64_t tile, uint32_t own) const {
    __shared__ uint32_t beforeTile;
    if (warpOf() == 0) {
      if (laneOf() == 0)
        show(tile, own);
      const uint32_t before = lookBack(tile, own);
      if (laneOf() == 0)
        beforeTile = before;
    }
    __syncthreads(); // the sum of the tiles before is there
    return beforeTile;
  }

  /// Shows a tile's own sum of number `sum`.
  __device__ void show(int64_t tile, uint32_t own, int64_t sum = 0) const {
    storeRelaxed(shownOf(sum) + tile, (tile == 0 ? kAll : kOwn) | own);
  }

  /// The sum of the tiles before `tile`, which has shown its `own` (of lane 0). Called by a whole
  /// warp.
  __device__ uint32_t lookBack(int64_t tile, uint32_t own, int64_t sum = 0) const {
    Word *shown = shownOf(sum);
    uint32_t before = 0;
    bool isWhole = false;
    for (int64_t behind = tile; behind > 0 && !isWhole; behind -= kDepth * kWarp) {
      // A round's loads are under way together, as rounds wait for each other.
      Word state[kDepth];
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        const int64_t at = behind - 1 - d * kWarp - laneOf();
        state[d] = at >= 0 ? loadRelaxed(shown + at) : kAll; // before the first
      }
#pragma unroll
      for (int d = 0; d < kDepth; ++d) {
        if (isWhole)
          break;
        const int64_t at = behind - 1 - d * kWarp - laneOf();
        while (state[d] < kOwn)
          state[d] = loadRelaxed(shown + at);
        const uint32_t whole = __ballot_sync(kAllLanes, state[d] >= kAll);
        const int last = whole ? __ffs(static_cast<int>(whole)) - 1 : kWarp - 1;
        before += laneOf() <= last ? static_cast<uint32_t>(state[d]) : 0; // lanes add up in the end
        isWhole = whole != 0;
      }
    }
    before = __shfl_sync(kAllLanes, inclusiveWarpSum(before), kWarp - 1);
    if (laneOf() == 0 && tile > 0)
      storeRelaxed(shown + tile, kAll | (before + own));
    return before;
  }

private:
  /// What a tile shows: nothing yet, its own sum, or that of all tiles up to it.
  static constexpr Word kOwn = Word(1) << 32, kAll = Word(2) << 32;
  static constexpr int kDepth = 6; ///< words of a lane in a round: 576 tiles take two

  __device__ Word *shownOf(int64_t sum) const { return states + 1 + sum * count; }
};

/// `count` tiles with states of their own, reused from launch to launch of one stream.
inline LookBackTiles makeTiles(int64_t count, DeviceArray<Word> &states, cudaStream_t stream) {
  const int64_t words = LookBackTiles::words(count);
  if (words > states.capacity()) // a launch leaves zeros
    GENREC_CUDA_CHECK(cudaMemsetAsync(states.ensure(words, stream), 0,
                                      static_cast<size_t>(words) * sizeof(Word), stream));
  return {states.data(), count};
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_LOOK_BACK_H
