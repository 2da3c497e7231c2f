//===- bias_gradient.h - Bias gradients of a tile of score gradients -*- C++ -*-===//
//
// A warp adds up its 16 keys x N queries by itself, in a fixed order.
//
// Position: the sum along each diagonal. Column group n of row g + 8 lies on the
// diagonals of column group n - 1 of row g, so a lane adds those first. What is
// left is, per group of 8 columns, a square of lanes in which diagonals run across
// lanes: three exchanges, each halving what a lane holds, leave every lane the
// sums of its own diagonals.
//
// Time: per row, sums of the buckets that the row passes through (tile_terms.h),
// added to a histogram of the warp bucket by bucket.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_BIAS_GRADIENT_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_BIAS_GRADIENT_H

#include "genrec_rt/kernels/cuda/attention/tile_terms.h"

namespace genrec::rt::cuda {

/// Sums of diagonals of a fragment: lane L holds those of column - row =
/// 8 * (first + e) + remainder for entries e in [0, kLeft).
template <int N> struct Diagonals {
  static constexpr int kAll = N / 8 + 2; ///< groups of 8 diagonals, the first is -2
  static constexpr int kHalf = (kAll + 1) / 2, kQuarter = (kHalf + 1) / 2,
                       kLeft = (kQuarter + 1) / 2;
  float sum[kLeft][2]; ///< [entry][x]; of an even or odd remainder
  int first;           ///< the group of entry 0

  /// column - row of an entry.
  __device__ int distance(int entry, int x) const {
    return 8 * (first + entry) + ((fragmentColumn() + x - fragmentRow()) & 7);
  }
  /// Whether an entry is of a group that exists (others are 0).
  __device__ bool exists(int entry) const { return first + entry < N / 8; }

  __device__ explicit Diagonals(const Fragment<N> &fragment) {
    const int g = fragmentRow(), q = fragmentColumn() / 2;
    // along[m + 1]: the two rows of this lane together; column - row = 8m + 2q + x - g.
    float along[N / 8 + 1][2];
#pragma unroll
    for (int m = -1; m < N / 8; ++m)
#pragma unroll
      for (int x = 0; x < 2; ++x)
        along[m + 1][x] = (m >= 0 ? fragment.d[m < 0 ? 0 : m][x] : 0.0f) +
                          (m + 1 < N / 8 ? fragment.d[m + 1 < N / 8 ? m + 1 : 0][2 + x] : 0.0f);
    // By group and remainder: where 2q + x < g the remainder wraps, into the group before.
    float all[2 * kHalf][2];
#pragma unroll
    for (int i = 0; i < 2 * kHalf; ++i)
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const float wraps = i < N / 8 + 1 ? along[i < N / 8 + 1 ? i : 0][x] : 0.0f;
        const float stays =
            i >= 1 && i - 1 < N / 8 + 1 ? along[i >= 1 && i - 1 < N / 8 + 1 ? i - 1 : 0][x] : 0.0f;
        all[i][x] = 2 * q + x < g ? wraps : stays;
      }
    float half[2 * kQuarter][2] = {}, quarter[2 * kLeft][2] = {};
    exchange<kHalf>(all, half, (g & 4) != 0, laneAt(g ^ 4, q ^ 2));
    const int q2 = (g & 2) ? q - 1 : q + 1;
    exchange<kQuarter>(half, quarter, (g & 2) != 0, laneAt(g ^ 2, q2));
    // The last one swaps even and odd: the remainder of row g + 1 is one less.
    const bool upper = (g & 1) != 0;
    const int before = laneAt(g ^ 1, upper ? q - 1 : q), behind = laneAt(g ^ 1, upper ? q : q + 1);
#pragma unroll
    for (int e = 0; e < kLeft; ++e) {
      const float even = upper ? quarter[e][0] : quarter[kLeft + e][0];
      const float odd = upper ? quarter[e][1] : quarter[kLeft + e][1];
      sum[e][0] =
          (upper ? quarter[kLeft + e][0] : quarter[e][0]) + __shfl_sync(kAllLanes, odd, before);
      sum[e][1] =
          (upper ? quarter[kLeft + e][1] : quarter[e][1]) + __shfl_sync(kAllLanes, even, behind);
    }
    // Halves were rounded up: entries behind the end of one are 0, the next one's lane has them.
    first = -2 + ((g & 4) ? kHalf : 0) + ((g & 2) ? kQuarter : 0) + (upper ? kLeft : 0);
  }

private:
  static __device__ int laneAt(int g, int q) { return 4 * g + (q & 3); }

  template <int Count, int From, int To>
  static __device__ void exchange(const float (&from)[From][2], float (&to)[To][2], bool upper,
                                  int partner) {
#pragma unroll
    for (int i = 0; i < Count; ++i)
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const float sent = upper ? from[i][x] : from[Count + i][x];
        to[i][x] =
            (upper ? from[Count + i][x] : from[i][x]) + __shfl_sync(kAllLanes, sent, partner);
      }
  }
};

/// A warp's histogram over the time buckets, in shared memory.
struct WarpHistogram {
  float sum[kMostTimeBuckets];

  __device__ void clear() {
    for (int b = laneOf(); b < kMostTimeBuckets; b += kWarp)
      sum[b] = 0;
    __syncwarp();
  }
  /// Adds the values of all lanes that are `active`, bucket after bucket.
  __device__ void add(bool active, int bucket, float value) {
    uint32_t left = __ballot_sync(kAllLanes, active);
    while (left) {
      const int leader = __ffs(static_cast<int>(left)) - 1,
                chosen = __shfl_sync(kAllLanes, bucket, leader);
      const bool mine = active && bucket == chosen;
      const float total = warpSum(mine ? value : 0.0f);
      if (laneOf() == leader)
        sum[chosen] += total;
      __syncwarp();
      left &= ~__ballot_sync(kAllLanes, mine);
    }
  }
};

/// The sums of a lane's two rows of a fragment over its columns.
struct RowTotals {
  float sum[2] = {0, 0};

  template <int N> __device__ explicit RowTotals(const Fragment<N> &fragment) {
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sum[i / 2] += fragment.d[n][i];
  }
};

/// Adds a fragment of score gradients (keys as rows) to the position sums. `warpBegin` is the list
/// position of the warp's first key.
template <int N, class C>
__device__ __forceinline__ void
addPositionGradients(const Fragment<N> &gradients, const RowTotals &totals,
                     const BlockTerms<C> &terms, int warpBegin, int columnBegin, float factor,
                     const BiasQuantum &quantum, Word *sums) {
  const AttentionArgs<typename C::Element> &args = terms.args;
  // Far from the diagonal all distances fall into the first bucket, or the last.
  const int least = positionBucket(args, warpBegin - (columnBegin + N - 1));
  if (least == positionBucket(args, warpBegin + 15 - columnBegin)) {
    const float total = warpSum(totals.sum[0] + totals.sum[1]);
    if (laneOf() == 0)
      quantum.add(sums, least, total * factor);
    return;
  }
  const Diagonals<N> diagonals(gradients);
#pragma unroll
  for (int e = 0; e < Diagonals<N>::kLeft; ++e)
#pragma unroll
    for (int x = 0; x < 2; ++x)
      if (diagonals.exists(e)) {
        // column - row is query minus key; the bias goes by key minus query.
        const int away = warpBegin - columnBegin - diagonals.distance(e, x);
        const float value = diagonals.sum[e][x] * factor;
        if (value != 0)
          quantum.add(sums, positionBucket(args, away), value);
      }
}

/// Adds a fragment of score gradients (keys as rows) to the warp's histogram. A row's lowest bucket
/// is reached by all columns, so what the tile passes through one bucket only (mostly, far from the
/// diagonal) compares no times.
template <int N, class C, class Tile>
__device__ __forceinline__ void
addTimeGradients(const Fragment<N> &gradients, const RowTotals &totals, const BlockTerms<C> &terms,
                 const LaneRows<C, false> &rows, const Tile &tile, float factor,
                 WarpHistogram &histogram) {
  RowBuckets buckets[2];
  for (int h = 0; h < 2; ++h)
    buckets[h] = rows.bucketsAlong(terms, tile, h);
  const int steps = bucketSteps(buckets);
  const int64_t *times = tile.times + fragmentColumn();
  float reached[2] = {0, 0}; // sums over the columns of buckets that were passed
  auto addStep = [&](int step, const float (&sum)[2]) {
    for (int h = 0; h < 2; ++h) {
      float value = sum[h] - reached[h];
      reached[h] = sum[h];
      value += __shfl_xor_sync(kAllLanes, value, 1);
      value += __shfl_xor_sync(kAllLanes, value, 2);
      const int b = buckets[h].high - step;
      histogram.add(b >= buckets[h].low && fragmentColumn() == 0, b, value * factor);
    }
  };
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    int64_t cut[2];
    float sum[2] = {0, 0};
    for (int h = 0; h < 2; ++h) {
      const int b = buckets[h].high - step;
      cut[h] = b > buckets[h].low ? rows.cutOf(terms, h, b) : rows.kReachedByAll;
    }
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (rows.reaches(times[8 * n + i % 2], cut[i / 2]))
          sum[i / 2] += gradients.d[n][i];
    addStep(step, sum);
  }
  addStep(steps, totals.sum);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_BIAS_GRADIENT_H
