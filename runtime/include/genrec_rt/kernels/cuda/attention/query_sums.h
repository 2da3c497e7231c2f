//===- query_sums.h - dQ of what all blocks have added to -----------*- C++ -*-===//
//
// A tile of queries gets its sums of dQ from every tile of keys that it sees, each time from the
// same warp of a block the same part: 16 rows by 64 columns of each of its squares (QuerySquare).
// Behind a tile of keys a warp raises a count for each of these parts, and where it finds that it
// is the last to do so, it turns the sums into dQ, while they are in the L2 cache. How many come is
// known from the mask. So warps neither wait for each other nor for other blocks.
//
// The order of accesses, from a warp that adds to the one that is last: lane 0 waits until its
// reductions are done, __syncwarp, a fence of the lane that raises the count, the count; the count,
// a fence of the lane that sees the last one, __syncwarp, the sums.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_QUERY_SUMS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_QUERY_SUMS_H

#include "genrec_rt/kernels/cuda/attention/hopper_backward_tiles.h"
#include "genrec_rt/kernels/cuda/attention/prepare.h"

namespace genrec::rt::cuda {

/// A square of 64 queries by 64 columns of dQ of a tile; the warpgroups take turns at them.
template <class Shape> struct QuerySquare {
  static constexpr int kGroups = Shape::kColumns / 64, kSquares = kGroups * Shape::KeyTile::kPanels;
  int number, warp; ///< `warp`: among consumers

  __device__ QuerySquare(int turn, int warp) : number(turn + warp / 4), warp(warp) {}
  /// A warpgroup for which none is left computes what it does not send, so that there is no branch
  /// around products.
  __device__ bool exists() const { return kSquares % kConsumers == 0 || number < kSquares; }
  __device__ int group() const { return number % kGroups; }
  __device__ int panel() const { return exists() ? number / kGroups : 0; }
  /// This warp's first row in the tile.
  __device__ int row() const { return 64 * group() + warp % 4 * 16; }
};

/// threadIdx.x, of which no compiler knows before. What follows from it is the same for all tiles
/// of keys, and would be kept in registers meanwhile, of which there are none.
__device__ __forceinline__ int threadHere() {
#if defined(GENREC_SIMT)
  return static_cast<int>(threadIdx.x);
#else
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
#endif
}

/// What a warp does behind a tile of keys about the tiles of queries that see it.
template <class C, class Shape> struct QuerySums {
  /// Counts that are raised at once: of so many tiles per lane. On the host by few lanes, so that
  /// tests see longer lists.
#if defined(GENREC_SIMT)
  static constexpr int kLanes = 2;
#else
  static constexpr int kLanes = kWarp;
#endif
  static constexpr int kAtOnce = 2, kBatch = kAtOnce * kLanes * Shape::kColumns; ///< queries
  /// Tiles of keys that had been added to a lane's tiles before; -1: none of this warp's.
  struct Counts {
    int before[kAtOnce];
  };
  const AttentionArgs<Bf16> &args;
  const BackwardSpace &space;
  const AttentionGradients<Bf16> &gradients;
  const typename Shape::Unit &unit;
  const typename Shape::Tiles &tiles; ///< that see its keys
  int thread = threadHere(), lane = thread % kWarp,
      warp = sameInWarp(thread / kWarp) - 4; ///< among consumers

  /// Waits until what this warp has added is there; before counts are raised.
  __device__ __forceinline__ void await() const {
    waitForBulk();
    __syncwarp(); // lane 0 has waited
    __threadfence();
  }

  /// Raises the counts of a batch of tiles from `column` on.
  __device__ __forceinline__ Counts raise(int column) const {
    Counts counts;
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int begin = beginOf(column, i);
      counts.before[i] = lane < kLanes && tiles.sees(begin) ? atomicAdd(countAt(begin), 1) : -1;
    }
    return counts;
  }

  /// Turns those tiles' sums into dQ that nobody adds to any more.
  __device__ __forceinline__ void convert(const Counts &counts, int column) const {
#pragma unroll
    for (int i = 0; i < kAtOnce; ++i) {
      const int begin = beginOf(column, i);
      const bool isLast =
          counts.before[i] >= 0 &&
          counts.before[i] + 1 == unit.mask.template tilesSeen<Shape::kRows>(tiles.range(begin));
      uint32_t last = __ballot_sync(kAllLanes, isLast);
      if (last == 0)
        continue;
      __threadfence();
      __syncwarp(); // the lanes that have seen the last count
      for (; last != 0; last &= last - 1)
        convertTile(column + (i * kLanes + __ffs(static_cast<int>(last)) - 1) * Shape::kColumns);
    }
  }

  /// Turns the sums of this warp's part of a tile into dQ.
  __device__ __forceinline__ void convertTile(int column) const {
#pragma unroll
    for (int turn = 0; turn < QuerySquare<Shape>::kSquares; turn += kConsumers) {
      const QuerySquare<Shape> square(turn, warp);
      const int inside = unit.mask.length - column - square.row();
      if (square.exists() && inside > 0)
        convertRows(unit.first + column + square.row(), inside, square.panel());
    }
  }

  /// Numbers of tiles of queries: a list's first row and its own number say how many are before.
  static int64_t tilesOf(const AttentionArgs<Bf16> &args) {
    return args.rows / Shape::kColumns + args.parents;
  }

private:
  /// The tile of this lane.
  __device__ int beginOf(int column, int i) const {
    return column + (i * kLanes + lane) * Shape::kColumns;
  }

  __device__ int *countAt(int begin) const {
    const int64_t tile = (unit.first + begin) / Shape::kColumns + unit.list;
    return space.tilesAdded + (unit.head * kConsumerWarps + warp) * space.queryTiles + tile;
  }

  /// The 16 rows from `first` on, of which `inside` exist. A lane has every fourth row's octet at
  /// its place, so that the lanes of a load read whole rows.
  __device__ __forceinline__ void convertRows(int64_t first, int inside, int panel) const {
    constexpr int kOctets = kPanelColumns / kOctet, kRowsAtOnce = kWarp / kOctets, kEach = 4;
    static_assert(kEach * kRowsAtOnce == 16);
    const int row = lane / kOctets, place = lane % kOctets;
    const int64_t head = static_cast<int64_t>(unit.head) * args.rows;
    int4 sums[kEach][2];
    float norm[kEach], product[kEach];
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int at = row + i * kRowsAtOnce < inside ? row + i * kRowsAtOnce : 0;
      const int *from =
          space.querySums +
          querySumAt<C>(args, unit.head, first + at, panel * kPanelColumns) / 64 * 64 +
          place * kOctet;
      sums[i][0] = loadWhole<int4>(from), sums[i][1] = loadWhole<int4>(from + 4);
      norm[i] = loadRelaxed(space.rowNorm + head + first + at);
      product[i] = C::Softmax ? space.rowProduct[head + first + at] : 0.0f;
    }
    const ListBounds<C> bounds(args, space, static_cast<int>(unit.list), unit.head);
    auto *dQ = resultOf<C>(gradients.dQ, gradients.floatDQ);
    const HeadRows<C::Qk, std::remove_pointer_t<decltype(dQ)>, true> results(dQ, gradients.ldDQ);
#pragma unroll
    for (int i = 0; i < kEach; ++i) {
      const int64_t at = first + row + i * kRowsAtOnce;
      const int octet = panel * kOctets + (place ^ static_cast<int>(at & 7));
      if (row + i * kRowsAtOnce < inside && octet * kOctet < C::Qk)
        storeQueryOctet(results, at, unit.head, octet, sums[i],
                        bounds.quantum(norm[i], product[i]));
    }
  }
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_QUERY_SUMS_H
