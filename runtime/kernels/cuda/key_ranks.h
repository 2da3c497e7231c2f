//===- key_ranks.h - Ranks of equal keys in a tile ----------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_KEY_RANKS_H
#define GENREC_RT_KERNELS_CUDA_KEY_RANKS_H

#include "genrec_rt/kernels/cuda/block_scan.h"

namespace genrec::rt::cuda {

/// Ranks items of a block's tile among those with the same key, in the order of the tile: its warps
/// have parts in order, a warp's rounds follow one another, and lanes have neighbours. Warps count
/// for themselves; the block meets, adds up, and meets once more.
template <int Threads, int Each, int MostKeys> struct KeyRanks {
  static constexpr int kWarps = Threads / kWarp;
  static constexpr int kNone = MostKeys; ///< the key of what is no item
  static_assert(Threads * Each <= UINT16_MAX, "counts of a tile are 16 bits wide");

  uint16_t ofWarp[kWarps][MostKeys];

  /// ranks = among the equal keys of this warp, of which there are `keyCount` kinds.
  template <class KeyOf>
  __device__ void rank(int keyCount, const KeyOf &keyOf, uint32_t (&ranks)[Each]) {
    uint16_t *own = ofWarp[warpOf()];
    for (int key = laneOf(); key < keyCount; key += kWarp)
      own[key] = 0;
    __syncwarp(); // counts are cleared
#pragma unroll
    for (int round = 0; round < Each; ++round) {
      const int key = keyOf(round);
      const uint32_t equal = __match_any_sync(kAllLanes, key);
      const uint32_t seen = key != kNone ? own[key] : 0;
      ranks[round] = seen + static_cast<uint32_t>(__popc(equal & ((1u << laneOf()) - 1)));
      __syncwarp(); // all have read what this round adds to
      if (key != kNone && ranks[round] == seen)
        own[key] = static_cast<uint16_t>(seen + static_cast<uint32_t>(__popc(equal)));
      __syncwarp(); // the next round reads it
    }
  }

  /// Called by one thread for each key, between two meetings of the block: how many the tile has.
  __device__ uint32_t addWarps(int key) {
    uint32_t sum = 0;
    for (int warp = 0; warp < kWarps; ++warp) {
      const uint32_t here = ofWarp[warp][key];
      ofWarp[warp][key] = static_cast<uint16_t>(sum);
      sum += here;
    }
    return sum;
  }

  /// The same by a warp, which has the sum in all lanes.
  __device__ uint32_t addWarpsTogether(int key) {
    static_assert(kWarps <= kWarp);
    const uint32_t here = laneOf() < kWarps ? ofWarp[laneOf()][key] : 0;
    const uint32_t upTo = inclusiveWarpSum(here);
    if (laneOf() < kWarps)
      ofWarp[laneOf()][key] = static_cast<uint16_t>(upTo - here);
    return __shfl_sync(kAllLanes, upTo, kWarp - 1);
  }

  /// How many of a key are in the warps before; behind the second meeting.
  __device__ uint32_t before(int key) const { return ofWarp[warpOf()][key]; }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_KEY_RANKS_H
