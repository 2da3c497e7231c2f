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
// Time: sums of the buckets that the warp's rows pass through (tile_terms.h), added to
// a histogram of the warp bucket by bucket; where there are many, pair by pair, by
// atomics on integers.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_BIAS_GRADIENT_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_BIAS_GRADIENT_H

#include "genrec_rt/kernels/cuda/attention/tile_terms.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"

namespace genrec::rt::cuda {

/// Sums of diagonals of a fragment: lane L holds those of column - row =
/// 8 * (first + e) + remainder for entries e in [0, kLeft).
template <int N> struct Diagonals {
  static constexpr int kAll = N / 8 + 2; ///< groups of 8 diagonals, the first is -2
  static constexpr int kHalf = (kAll + 1) / 2, kQuarter = (kHalf + 1) / 2,
                       kLeft = (kQuarter + 1) / 2;
  float sum[kLeft][2]; ///< [entry][x]; of an even or odd remainder
  int first;           ///< the group of entry 0
  int count;           ///< entries of this lane; what is behind them is 0

  /// column - row of an entry.
  __device__ int distance(int entry, int x) const {
    return 8 * (first + entry) + ((fragmentColumn() + x - fragmentRow()) & 7);
  }
  /// Whether an entry is this lane's: every diagonal is that of one lane.
  __device__ bool exists(int entry) const { return entry < count; }

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
    const int ofLast = upper ? kLeft : 0, ofQuarter = ofLast + ((g & 2) ? kQuarter : 0),
              ofAll = ofQuarter + ((g & 4) ? kHalf : 0);
    first = ofAll - 2;
    count = least(least(kLeft, kQuarter - ofLast), least(kHalf - ofQuarter, kAll - ofAll));
  }

private:
  static __device__ int laneAt(int g, int q) { return 4 * g + (q & 3); }
  static __device__ int least(int a, int b) { return a < b ? a : b; }

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

/// A warp's histogram over the time buckets, in shared memory. `ByPair`: there is room for sums of
/// integers as well.
template <bool ByPair> struct WarpHistogram {
  static constexpr bool kByPair = ByPair;
  float sum[kMostTimeBuckets];
  int ofTile[ByPair ? kMostTimeBuckets : 1]; ///< of addTimeGradientsByPair, 0 between tiles

  __device__ void clear() {
    for (int b = laneOf(); b < kMostTimeBuckets; b += kWarp) {
      sum[b] = 0;
      if constexpr (ByPair)
        ofTile[b] = 0;
    }
    __syncwarp();
  }
  /// Adds the values of all lanes.
  __device__ void add(int bucket, float value) {
    const float total = sumOfLanes(value);
    if (laneOf() == 0)
      sum[bucket] += total;
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

/// What a thread adds to a bucket over many tiles, before it adds that to the sums of all blocks.
/// Blocks work at the same distance from the diagonal at the same time, so that an atomic per tile
/// and warp would meet with others of its bucket.
struct HeldBias {
  int bucket;
  float sum;

  __device__ void clear() { bucket = -1, sum = 0; }
  __device__ void add(int to, float value, float factor, const BiasQuantum &quantum, Word *sums) {
    if (bucket != to) {
      flush(factor, quantum, sums);
      bucket = to, sum = 0;
    }
    sum += value;
  }
  __device__ void flush(float factor, const BiasQuantum &quantum, Word *sums) const {
    if (sum != 0)
      quantum.add(sums, bucket, sum * factor);
  }
};

/// The position sums of a block whose `Warps` warps have 16 keys each, in shared memory. These
/// write the diagonals of a tile; one more warp adds them up over the warps and, as tiles of
/// queries come in ascending order, over the tiles that a diagonal runs through. That warp has the
/// time of a tile for one, so it works on two diagonals at a time, without conditions: a row has
/// those of warps that share none, and zeros where no warp has any; a slot that no diagonal has is
/// 0.
template <int Warps, int N, int Buffers> struct PositionSums {
  static constexpr int kBand = 16 * Warps + N - 1;               ///< diagonals of a tile
  static constexpr int kRow = kBand + 1, kApart = (16 + N) / 16; ///< warps with none in common
  static constexpr int kRows = Warps < kApart ? Warps : kApart;
  static constexpr int kSlots = 256; ///< a power of two
  static constexpr int kAtOnce = 2 * kWarp;
  static_assert(kRow <= kSlots && kRow % kAtOnce == 0 && N % kAtOnce == 0);
  alignas(16) float ofTile[Buffers][kRows][kRow]; ///< diagonal 0 is the first of the last key
  alignas(16) float ofDiagonal[kSlots];           ///< by query minus key, modulo kSlots
  HeldBias far[Warps];                            ///< of a warp's tiles with one bias

  /// Called by all threads of a block, followed by a barrier.
  __device__ void clear(int thread, int threads) {
    float *values = &ofTile[0][0][0];
    for (int i = thread; i < Buffers * kRows * kRow; i += threads)
      values[i] = 0;
    for (int slot = thread; slot < kSlots; slot += threads)
      ofDiagonal[slot] = 0;
    if (thread < Warps)
      far[thread].clear();
  }
  /// Writes a warp's diagonals of a tile, for DiagonalSums.
  __device__ __forceinline__ void write(int buffer, int warp, const Fragment<N> &gradients) {
    float *to = ofTile[buffer][warp % kRows] + 16 * (Warps - 1 - warp) + 15;
    const Diagonals<N> diagonals(gradients);
#pragma unroll
    for (int e = 0; e < Diagonals<N>::kLeft; ++e)
#pragma unroll
      for (int x = 0; x < 2; ++x)
        if (diagonals.exists(e))
          to[diagonals.distance(e, x)] = diagonals.sum[e][x];
  }
};

/// Adds up the diagonals of tiles of one list and head; a warp's.
template <class Sums, int Warps, int N, class Args> struct DiagonalSums {
  Sums &shared;
  const Args &args;
  float factor;
  const BiasQuantum &quantum;
  Word *sums;
  int last = 0; ///< query minus key of the first column and row of the last tile, an even number

  /// Adds a tile. What has run through all of its tiles then is added to the sums of all blocks.
  __device__ __forceinline__ void add(int buffer, int away) {
    if (away != last + N)
      flush();
    last = away;
#pragma unroll
    for (int begin = 0; begin < Sums::kRow; begin += Sums::kAtOnce) {
      const int diagonal = begin + 2 * laneOf();
      auto &held =
          *reinterpret_cast<float2 *>(shared.ofDiagonal + ((away + diagonal) & (Sums::kSlots - 1)));
      float2 sum = {0, 0};
#pragma unroll
      for (int row = 0; row < Sums::kRows; ++row) {
        const auto two = *reinterpret_cast<const float2 *>(&shared.ofTile[buffer][row][diagonal]);
        sum.x += two.x, sum.y += two.y;
      }
      sum.x += held.x, sum.y += held.y;
      const bool leaves = begin < N;
      held = leaves ? float2{0, 0} : sum;
      if (leaves)
        addPair(diagonal, sum);
    }
  }
  /// Adds what is held.
  __device__ __forceinline__ void flush() {
#pragma unroll 1
    for (int slot = 2 * laneOf(); slot < Sums::kSlots; slot += Sums::kAtOnce) {
      auto &held = *reinterpret_cast<float2 *>(shared.ofDiagonal + slot);
      addPair((slot - last) & (Sums::kSlots - 1), held);
      held = {0, 0};
    }
  }

private:
  /// Adds two neighbouring diagonals of the last tile to the sums of all blocks.
  __device__ __forceinline__ void addPair(int diagonal, const float2 &sum) const {
    const int away = last - (16 * Warps - 1) + diagonal; // query minus key
    const int buckets[2] = {positionBucket(args, -away), positionBucket(args, -away - 1)};
    if (sum.x != 0)
      quantum.add(sums, buckets[0], sum.x * factor);
    if (sum.y != 0)
      quantum.add(sums, buckets[1], sum.y * factor);
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
    const float total = sumOfLanes(totals.sum[0] + totals.sum[1]);
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

/// Of the gradients of a warp's rows of a tile in fixed point: a power of two, at most 2^-18 of the
/// greatest, for which sums of 2^11 gradients fit into an integer.
struct TileQuantum {
  static constexpr int kBits = 19; ///< of the greatest
  float scale, quantum;

  /// Called by all lanes of a warp; `greatest` is that of a lane.
  __device__ explicit TileQuantum(float greatest) {
    constexpr uint32_t kLeast = kBits + 1; // exponents as they are stored
    const uint32_t bits = __reduce_max_sync(kAllLanes, __float_as_uint(greatest)) >> 23;
    const uint32_t exponent = bits < kLeast ? kLeast : bits; // the greatest is below 2^(this - 126)
    scale = __uint_as_float((2 * 127 - 1 + kBits - exponent) << 23);
    quantum = __uint_as_float((exponent + 1 - kBits) << 23);
  }
  /// Behind the sum with 1.5 * 2^23 an integer stands in the low bits.
  __device__ int of(float value) const {
    constexpr float kShift = 0x1.8p23f;
    return static_cast<int>(__float_as_uint(__fmaf_rn(value, scale, kShift)) - 0x4B400000u);
  }
};

/// Adds a fragment of score gradients to the warp's histogram, pair by pair: integers, whose sums
/// do not depend on the order. A lane adds those of neighbouring columns that share a bucket first.
template <int N, class C, class Tile, class Histogram>
__device__ __forceinline__ void
addTimeGradientsByPair(const Fragment<N> &gradients, const RowTotals &totals,
                       const BlockTerms<C> &terms, const LaneRows<C, false> &rows, const Tile &tile,
                       int low, int high, float factor, Histogram &histogram) {
  static_assert(16 * N <= 1 << (30 - TileQuantum::kBits));
  float greatest = 0;
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      greatest = fmaxf(greatest, fabsf(gradients.d[n][i]));
  // No integer says what is not finite; the sums of rows do.
  if (!__all_sync(kAllLanes, fabsf(totals.sum[0]) + fabsf(totals.sum[1]) < INFINITY)) {
    histogram.add(low, totals.sum[0] + totals.sum[1]);
    return;
  }
  const TileQuantum quantum(greatest);
  const PairCells<C, false, Tile> cells(terms, rows, tile);
#pragma unroll
  for (int h = 0; h < 2; ++h) {
    int bucket = terms.times.bucketAt[cells.at(0, 2 * h)], sum = 0;
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 2 * h; i < 2 * h + 2; ++i) {
        const int to = terms.times.bucketAt[cells.at(n, i)];
        if (to != bucket) {
          atomicAdd(&histogram.ofTile[bucket], sum);
          bucket = to, sum = 0;
        }
        sum += quantum.of(gradients.d[n][i]);
      }
    atomicAdd(&histogram.ofTile[bucket], sum);
  }
  __syncwarp(); // all have added
  for (int b = low + laneOf(); b <= high; b += kWarp) {
    histogram.sum[b] += static_cast<float>(histogram.ofTile[b]) * quantum.quantum * factor;
    histogram.ofTile[b] = 0;
  }
  __syncwarp(); // others add to what this lane has added to
}

/// Adds a fragment of score gradients to the warp's histogram, bucket after bucket from the
/// furthest to one before the nearest; returns what these got.
template <int N, class C, class Tile, class Histogram>
__device__ __forceinline__ float
addTimeGradientSteps(const Fragment<N> &gradients, const BlockTerms<C> &terms,
                     const LaneRows<C, false> &rows, const Tile &tile, const TimesAlong &along,
                     int low, int high, float factor, Histogram &histogram) {
  const int *nearer = tile.nearer + fragmentColumn();
  float reached = 0; // sum over the columns of buckets that were passed
#pragma unroll 1
  for (int b = high; b > low; --b) {
    int cut[2] = {rows.kReachedByAll, rows.kReachedByAll};
    float sum[2] = {0, 0};
    for (int h = 0; h < 2; ++h)
      if (b > along.buckets(h).low && b <= along.buckets(h).high)
        cut[h] = rows.cutOf(tile, h, terms.times.begins.firstTick[b]);
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (rows.reaches(nearer[8 * n + i % 2], cut[i / 2]))
          sum[i / 2] += gradients.d[n][i];
    const float now =
        (b <= along.buckets(0).high ? sum[0] : 0.0f) + (b <= along.buckets(1).high ? sum[1] : 0.0f);
    histogram.add(b, (now - reached) * factor);
    reached = now;
  }
  return reached;
}

/// Adds a fragment of score gradients (keys as rows) to the warp's histogram. The lowest bucket is
/// reached by all columns of all rows, so what the tile passes through one bucket only (mostly, far
/// from the diagonal) compares no times.
template <int N, class C, class Tile, class Histogram>
__device__ __forceinline__ void
addTimeGradients(const Fragment<N> &gradients, const RowTotals &totals, const BlockTerms<C> &terms,
                 const LaneRows<C, false> &rows, const Tile &tile, const TimesAlong &along,
                 float factor, Histogram &histogram) {
  const RowBuckets buckets[2] = {along.buckets(0), along.buckets(1)};
  const int high = __reduce_max_sync(
      kAllLanes, buckets[0].high > buckets[1].high ? buckets[0].high : buckets[1].high);
  const int low = __reduce_min_sync(kAllLanes, buckets[0].low < buckets[1].low ? buckets[0].low
                                                                               : buckets[1].low);
  if constexpr (Histogram::kByPair)
    if (along.byPair()) {
      addTimeGradientsByPair(gradients, totals, terms, rows, tile, low, high, factor, histogram);
      return;
    }
  const float reached =
      addTimeGradientSteps(gradients, terms, rows, tile, along, low, high, factor, histogram);
  histogram.add(low, (totals.sum[0] + totals.sum[1] - reached) * factor);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_BIAS_GRADIENT_H
