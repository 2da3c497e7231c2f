//===- marked.h - Ranks of what is marked in a tile ---------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CUDA_MARKED_H
#define GENREC_RT_KERNELS_CUDA_MARKED_H

#include "genrec_rt/kernels/cuda/block_scan.h"

namespace genrec::rt::cuda {

/// The items of a tile of a block of Threads, of which a thread has Each, one in a round: those of
/// a round are neighbours on the lanes of a warp. A bit says whether an item is marked.
template <int Threads, int Each> class MarkedTile {
public:
  static_assert(Each <= kWarp);
  static constexpr int kItems = Threads * Each;

  /// The item that this thread has in `round`.
  __device__ static int place(int round) { return (warpOf() * Each + round) * kWarp + laneOf(); }

  MarkedTile() = default;
  /// With the marks of a round that its lane has: of the lanes, a bit each.
  __device__ explicit MarkedTile(uint32_t word) : word(word) {}

  /// Called once for every round by whole warps.
  __device__ void mark(int round, bool isMarked) {
    const uint32_t lanes = __ballot_sync(kAllLanes, isMarked);
    if (laneOf() == round)
      word = lanes;
  }
  /// How many are marked. Called by the whole block behind the last round.
  __device__ uint32_t count() {
    uint32_t total;
    before = exclusiveBlockSum<Threads>(laneOf() < Each ? static_cast<uint32_t>(__popc(word)) : 0,
                                        total);
    return total;
  }
  /// How many are marked of the items before this thread's in `round`; behind count(), by whole
  /// warps.
  __device__ uint32_t rank(int round) const {
    const uint32_t lanes = __shfl_sync(kAllLanes, word, round);
    return __shfl_sync(kAllLanes, before, round) +
           static_cast<uint32_t>(__popc(lanes & ((1u << laneOf()) - 1)));
  }

  /// Whether this thread's item in `round` is marked, likewise.
  __device__ bool isMarked(int round) const {
    return __shfl_sync(kAllLanes, word, round) >> laneOf() & 1;
  }

  /// Shared memory in which every thread finds the rank of every item.
  struct Shared {
    uint32_t words[kItems / kWarp], before[kItems / kWarp];

    __device__ uint32_t rank(int item) const {
      return before[item / kWarp] +
             static_cast<uint32_t>(__popc(words[item / kWarp] & ((1u << item % kWarp) - 1)));
    }
  };
  /// Fills it, for who meets behind.
  __device__ void show(Shared &to) const {
    if (laneOf() < Each) {
      to.words[warpOf() * Each + laneOf()] = word;
      to.before[warpOf() * Each + laneOf()] = before;
    }
  }

private:
  uint32_t word = 0;   ///< of lane `round`: the marks of that round
  uint32_t before = 0; ///< of the same lane: marks in front of the round
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_MARKED_H
