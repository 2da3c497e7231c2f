//===- key_ranks.h - Ranks of equal keys in a tile ----------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_KEY_RANKS_H
#define GENREC_RT_KERNELS_CUDA_KEY_RANKS_H

#include "genrec_rt/kernels/cuda/block_scan.h"

namespace genrec::rt::cuda {

/// The lanes of the warp that have this one's key, of those in [0, keyCount): by a vote for each
/// bit of a key where that is less than the device's own search, which compares key by key.
__device__ inline uint32_t lanesWith(int key, int keyCount) {
  constexpr int kMostBits = 7;
  const int bits = kWarp - __clz(keyCount - 1);
  if (bits > kMostBits)
    return __match_any_sync(kAllLanes, key);
  uint32_t equal = kAllLanes;
#pragma unroll 1
  for (int bit = 0; bit < bits; ++bit) {
    const bool isSet = key >> bit & 1;
    const uint32_t set = __ballot_sync(kAllLanes, isSet);
    equal &= isSet ? set : ~set;
  }
  return equal;
}
/// Whether no lane before this one is of these, of which this is one.
__device__ inline bool isFirstOf(uint32_t lanes) { return (lanes & ((1u << laneOf()) - 1)) == 0; }

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
      const uint32_t equal = lanesWith(min(key, keyCount), keyCount + 1);
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
