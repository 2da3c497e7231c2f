//===- tile_terms.h - Biases, masks and dropout of a tile of scores in fragments -===//
//
// A warp holds 16 rows of a tile of scores (tensor/mma.h says which lane has
// which). Rows stay, columns stream by: forward has queries as rows and keys as
// columns, backward keys as rows and queries as columns. What the columns of a tile
// bring with them is in shared memory, written by one warp.
//
// Time bias without a logarithm per pair: along the columns of a tile a row passes
// through few buckets, mostly one, and where it passes from one to the next is a
// comparison of times. So a tile costs a step per bucket that its widest row passes
// through: none or one far from the diagonal. On it there are some tens: where there
// are more than a few, every pair's bucket is looked up instead (time_buckets.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_TERMS_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_TERMS_H

#include "genrec_rt/kernels/cuda/attention/backward_space.h"
#include "genrec_rt/kernels/cuda/tensor/mma.h"

namespace genrec::rt::cuda {

/// What scores in fragments are multiplied by. silu takes the tanh of half of its argument
/// (weights.h): halved with the scale, which loses no bit, that costs nothing.
template <class C> constexpr float kScoreFactor = C::Softmax ? 1.0f : 0.5f;

/// What holds for a whole block.
template <class C> struct BlockTerms {
  using E = typename C::Element;
  const AttentionArgs<E> &args;
  ListMask<C> mask;
  int64_t first; ///< the list's first row
  int head;
  const TimeTable &times; ///< in shared memory, its biases times kScoreFactor

  __device__ BlockTerms(const AttentionArgs<E> &args, const ListMask<C> &mask, int64_t first,
                        int head, const TimeTable &times)
      : args(args), mask(mask), first(first), head(head), times(times) {}

  /// Called by all threads of a block, followed by a barrier.
  static __device__ void fillTimes(TimeTable &times, const AttentionArgs<E> &args, int thread,
                                   int threads) {
    times.fill(args.ticksPerSecond, args.timeBias, bucketCount(args), kScoreFactor<C>, thread,
               threads);
  }
  static __device__ int bucketCount(const AttentionArgs<E> &args) {
    return args.timeBuckets < kMostTimeBuckets ? static_cast<int>(args.timeBuckets)
                                               : kMostTimeBuckets;
  }
  __device__ int64_t queryTimeOf(int query) const {
    return queryTime(args, first, mask.length, query);
  }
  __device__ int64_t keyTimeOf(int key) const { return args.timestamps[first + key]; }
};

__device__ inline uint32_t lowWord(int64_t x) { return static_cast<uint32_t>(x); }

/// What the columns of a tile bring: [Rows, Columns] is the tile of the block.
template <class C, bool RowsAreQueries, int Rows, int Columns> struct TileTerms {
  static constexpr bool kBackwardSoftmax = C::Softmax && !RowsAreQueries;
  /// Position biases by distance: of row r and column c at (RowsAreQueries ? c - r : r - c) +
  /// kOrigin. Times kScoreFactor.
  static constexpr int kOrigin = RowsAreQueries ? Rows - 1 : Columns - 1;
  static constexpr int kBand = Rows + Columns - 1;
  /// Whether far tiles have a loop of their own. In backward only where registers have room for it.
  static constexpr bool kMayBeFlat =
      C::PositionBias && (RowsAreQueries || (Columns <= 64 && C::Qk <= 128 && C::V <= 128));
  /// Whether a tile has one position bias: `away` is key minus query of its first row and column,
  /// or the other way round.
  static __device__ bool hasOneBias(const AttentionArgs<typename C::Element> &args, int away) {
    return positionBucket(args, away - kOrigin) == positionBucket(args, away - kOrigin + kBand - 1);
  }
  /// The biases of two neighbouring distances.
  __device__ __forceinline__ float2 biases(int x) const {
    if constexpr (kBands == 1)
      return {band[0][x], band[0][x + 1]};
    else
      return *reinterpret_cast<const float2 *>(&band[x & 1][x + (x & 1)]);
  }
  alignas(16) int64_t times[C::TimeBias ? Columns : 2];
  static constexpr int kColumns = Columns;
  /// How many ticks nearer to the rows a column is than the furthest one. In long tiles, where that
  /// does not fit, its rank among the columns, the furthest first.
  alignas(16) int nearer[C::TimeBias ? Columns : 4];
  int64_t ranked[C::TimeBias ? Columns : 1]; ///< long tiles: times by rank
  int64_t leastTime, mostTime;
  int span; ///< ticks between these, where they are below 2^31 - 1; else kLong
  static constexpr int kLong = -1;
  __device__ bool isShort() const { return span != kLong; }
  /// Twice, that of distance x at x and at x + 1, so that any two neighbours are aligned in one;
  /// once where backward has no room.
  static constexpr int kBands = RowsAreQueries || Columns <= 64 ? 2 : 1;
  static constexpr int kBandRow = (kBand + 2) / 2 * 2;
  alignas(16) float band[kBands][C::PositionBias ? kBandRow : 2];
  bool isFlat; ///< all of the band are band[0][0]: far from the diagonal, where distances share a
               ///< bucket
  alignas(16) float logSumExp[kBackwardSoftmax ? Columns : 4]; ///< times log2(e)
  alignas(16) float rowProduct[kBackwardSoftmax ? Columns : 4];
  alignas(16) float inverseQuantum[RowsAreQueries ? 4 : Columns]; ///< of rows of dQ

  /// Called by all lanes of one warp. `space` and `list` are for backward.
  __device__ void fill(const BlockTerms<C> &terms, const BackwardSpace &space, int list,
                       int rowBegin, int columnBegin) {
    const AttentionArgs<typename C::Element> &args = terms.args;
    const int lane = laneOf(), length = terms.mask.length;
    if constexpr (C::PositionBias) {
      const int away = RowsAreQueries ? columnBegin - rowBegin : rowBegin - columnBegin;
      const bool flat = kMayBeFlat && hasOneBias(args, away);
      if (lane == 0)
        isFlat = flat;
#pragma unroll 4
      for (int x = lane; x < (flat ? kWarp : kBand); x += kWarp) {
        const float bias =
            kScoreFactor<C> * args.positionBias[positionBucket(args, x - kOrigin + away)];
        for (int copy = 0; copy < kBands; ++copy)
          band[copy][x + copy] = bias;
      }
    }
    if constexpr (C::TimeBias) {
      int64_t least = INT64_MAX, most = INT64_MIN;
#pragma unroll 2
      for (int c = lane; c < Columns; c += kWarp) {
        // Behind the end stands the last time, so that it does not widen the range.
        const int column = columnBegin + c < length ? columnBegin + c : length - 1;
        const int64_t time = RowsAreQueries ? terms.keyTimeOf(column) : terms.queryTimeOf(column);
        times[c] = time;
        least = time < least ? time : least;
        most = time > most ? time : most;
      }
      for (int lanes = kWarp / 2; lanes > 0; lanes /= 2) {
        const int64_t otherLeast = __shfl_xor_sync(kAllLanes, least, lanes);
        const int64_t otherMost = __shfl_xor_sync(kAllLanes, most, lanes);
        least = otherLeast < least ? otherLeast : least;
        most = otherMost > most ? otherMost : most;
      }
      const bool fits = ticksBefore(most, least) < INT32_MAX;
      if (lane == 0) {
        leastTime = least;
        mostTime = most;
        span = fits ? static_cast<int>(lowWord(most) - lowWord(least)) : kLong;
      }
      if (fits) {
#pragma unroll 2
        for (int c = lane; c < Columns; c += kWarp)
          nearer[c] = static_cast<int>(RowsAreQueries ? lowWord(times[c]) - lowWord(least)
                                                      : lowWord(most) - lowWord(times[c]));
      } else {
        rankTimes();
      }
    }
    if constexpr (!RowsAreQueries)
      fillRows(terms, space, list, columnBegin);
  }

private:
  /// What rows of dOut bring along.
  __device__ __forceinline__ void fillRows(const BlockTerms<C> &terms, const BackwardSpace &space,
                                           int list, int columnBegin) {
    const AttentionArgs<typename C::Element> &args = terms.args;
    const int length = terms.mask.length;
    const ListBounds<C> bounds(args, space, list, terms.head);
#pragma unroll 2
    for (int c = laneOf(); c < Columns; c += kWarp) {
      const bool inside = columnBegin + c < length;
      const int64_t row = terms.first + columnBegin + c, at = terms.head * args.rows + row;
      const float product = C::Softmax && inside ? space.rowProduct[at] : 0.0f;
      // Blocks of other keys may make it NaN meanwhile.
      const float norm = inside ? loadRelaxed(space.rowNorm + at) : 0.0f;
      inverseQuantum[c] = inside ? inverseOfPower(bounds.quantum(norm, product)) : 0.0f;
      if constexpr (!kBackwardSoftmax)
        continue;
      constexpr float kLog2e = 1.44269504f;
      logSumExp[c] = inside ? args.logSumExp[row * args.heads + terms.head] * kLog2e : 0.0f;
      rowProduct[c] = product;
    }
  }

  /// Called by all lanes of one warp, of which each has written some times.
  __device__ void rankTimes() {
    __syncwarp(); // all have
    bool ascends = true;
#pragma unroll 1
    for (int c = laneOf(); c < Columns - 1; c += kWarp)
      ascends = ascends && times[c] <= times[c + 1];
    ascends = __all_sync(kAllLanes, ascends);
#pragma unroll 1
    for (int c = laneOf(); c < Columns; c += kWarp) {
      const int64_t time = times[c];
      int rank = RowsAreQueries ? c : Columns - 1 - c;
      if (!ascends) {
        rank = 0;
#pragma unroll 1
        for (int o = 0; o < Columns; ++o)
          rank +=
              (RowsAreQueries ? times[o] < time : times[o] > time) || (times[o] == time && o < c);
      }
      nearer[c] = rank;
      ranked[rank] = time;
    }
  }
};

/// The buckets that a row passes through along a tile.
struct RowBuckets {
  int low, high;
};

/// The buckets of a lane's two rows along a tile, and how the warp finds those of pairs. In few
/// registers, as they are kept while products run.
struct TimesAlong {
  /// More steps than this take longer than a look-up per pair.
  static constexpr int kMostSteps = 3, kByPair = -1;
  static_assert(kMostTimeBuckets <= 256);
  uint32_t packed = 0; ///< low and high of both rows, 8 bits each
  int steps = 0; ///< from the furthest bucket to the nearest, of the row with the most; or kByPair

  __device__ void set(int h, const RowBuckets &row) {
    packed |= static_cast<uint32_t>(row.low | row.high << 8) << 16 * h;
  }
  __device__ RowBuckets buckets(int h) const {
    const uint32_t row = packed >> 16 * h;
    return {static_cast<int>(row & 0xFF), static_cast<int>(row >> 8 & 0xFF)};
  }
  __device__ bool byPair() const { return steps == kByPair; }
};

/// The two rows of this lane, and what concerns them.
template <class C, bool RowsAreQueries> struct LaneRows {
  int position[2]; ///< in the list
  int64_t time[2];

  __device__ LaneRows(const BlockTerms<C> &terms, int warpBegin) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      position[h] = warpBegin + fragmentRow() + 8 * h;
      const int inside = position[h] < terms.mask.length ? position[h] : terms.mask.length - 1;
      time[h] = 0;
      if constexpr (C::TimeBias)
        time[h] = RowsAreQueries ? terms.queryTimeOf(inside) : terms.keyTimeOf(inside);
    }
  }

  /// Ticks between a row and the furthest column of a tile, and the nearest.
  template <class Tile> __device__ int64_t furthest(const Tile &tile, int h) const {
    return RowsAreQueries ? ticksBefore(time[h], tile.leastTime)
                          : ticksBefore(tile.mostTime, time[h]);
  }
  template <class Tile> __device__ int64_t nearest(const Tile &tile, int h) const {
    return RowsAreQueries ? ticksBefore(time[h], tile.mostTime)
                          : ticksBefore(tile.leastTime, time[h]);
  }
  /// The buckets of a row whose distances are short.
  static __device__ RowBuckets shortBuckets(const BlockTerms<C> &terms, int furthest, int span) {
    const int nearest = furthest - span;
    return {terms.times.bucketOfShort(nearest > 1 ? nearest : 1),
            terms.times.bucketOfShort(furthest)};
  }
  /// Called by all lanes of a warp.
  template <class Tile>
  __device__ __forceinline__ TimesAlong timesAlong(const BlockTerms<C> &terms,
                                                   const Tile &tile) const {
    TimesAlong along;
    if constexpr (C::TimeBias) {
      const int64_t most[2] = {furthest(tile, 0), furthest(tile, 1)};
      // Where 32 bits hold all distances of the warp, these are looked up.
      const bool fits =
          __all_sync(kAllLanes, tile.isShort() && most[0] < INT32_MAX && most[1] < INT32_MAX);
      int steps = 0;
      for (int h = 0; h < 2; ++h) {
        const RowBuckets row =
            fits ? shortBuckets(terms, static_cast<int>(most[h]), tile.span)
                 : RowBuckets{terms.times.bucket(nearest(tile, h)), terms.times.bucket(most[h])};
        along.set(h, row);
        steps = row.high - row.low > steps ? row.high - row.low : steps;
      }
      along.steps = __reduce_max_sync(kAllLanes, steps);
      if (fits && along.steps > TimesAlong::kMostSteps)
        along.steps = TimesAlong::kByPair;
    }
    return along;
  }

  /// Whether a column is in a bucket or a later one, given that bucket's cut.
  static __device__ bool reaches(int nearer, int cut) { return nearer <= cut; }
  static constexpr int kReachedByAll = INT32_MAX;
  /// The cut of a bucket that begins at `firstTick`: that of the last column that reaches it.
  /// Buckets are looked at between two that occur, so there is one.
  template <class Tile> __device__ int cutOf(const Tile &tile, int h, int64_t firstTick) const {
    if (tile.isShort()) {
      const uint32_t furthest = RowsAreQueries ? lowWord(time[h]) - lowWord(tile.leastTime)
                                               : lowWord(tile.mostTime) - lowWord(time[h]);
      return static_cast<int>(furthest - lowWord(firstTick));
    }
    const uint64_t at = static_cast<uint64_t>(time[h]), first = static_cast<uint64_t>(firstTick);
    const auto place = static_cast<int64_t>(RowsAreQueries ? at - first : at + first);
    int reached = 0; // of the columns in the order of their ranks
    for (int part = Tile::kColumns; part > 0; part /= 2) {
      const int more = reached + part;
      if (more <= Tile::kColumns &&
          (RowsAreQueries ? tile.ranked[more - 1] <= place : tile.ranked[more - 1] >= place))
        reached = more;
    }
    return reached - 1;
  }
};

/// Calls body(n, i, h, column) for every element of a fragment: d[n][i] is of this
/// lane's row h and the column `column` of the tile.
template <int N, class Body> __device__ __forceinline__ void forFragment(Body body) {
  const int column = fragmentColumn();
#pragma unroll
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      body(n, i, i / 2, 8 * n + column + i % 2);
}

/// The cells of a tile's pairs (TimeTable::cellOfBucket).
template <class C, bool RowsAreQueries, class Tile> struct PairCells {
  const TimeTable &times;
  const int *nearer;
  int furthest[2];

  __device__ PairCells(const BlockTerms<C> &terms, const LaneRows<C, RowsAreQueries> &rows,
                       const Tile &tile)
      : times(terms.times), nearer(tile.nearer + fragmentColumn()),
        furthest{static_cast<int>(rows.furthest(tile, 0)),
                 static_cast<int>(rows.furthest(tile, 1))} {}
  /// Of element d[n][i] of a fragment.
  __device__ __forceinline__ int at(int n, int i) const {
    const int ticks = furthest[i / 2] - nearer[8 * n + i % 2];
    return times.cellOfBucket(ticks > 1 ? ticks : 1);
  }
};

/// Adds the steps between the furthest bucket, whose bias all elements have, and theirs: those that
/// do not reach a bucket take the step to the one before.
template <int N, class C, bool RowsAreQueries, class Tile>
__device__ __forceinline__ void addTimeSteps(Fragment<N> &scores, const BlockTerms<C> &terms,
                                             const LaneRows<C, RowsAreQueries> &rows,
                                             const Tile &tile, const TimesAlong &along) {
  const int *nearer = tile.nearer + fragmentColumn();
#pragma unroll 1
  for (int step = 0; step < along.steps; ++step) {
    int cut[2] = {rows.kReachedByAll, rows.kReachedByAll};
    float change[2] = {0, 0};
    for (int h = 0; h < 2; ++h) {
      const RowBuckets row = along.buckets(h);
      const int b = row.high - step;
      if (b > row.low) {
        cut[h] = rows.cutOf(tile, h, terms.times.begins.firstTick[b]);
        change[h] = terms.times.bias[b - 1] - terms.times.bias[b];
      }
    }
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        if (!rows.reaches(nearer[8 * n + i % 2], cut[i / 2]))
          scores.d[n][i] += change[i / 2];
  }
}

/// scores = (scores * scale + biases) * kScoreFactor. `rowInTile` is the warp's first row in the
/// tile.
template <int N, class C, bool RowsAreQueries, class Tile>
__device__ __forceinline__ void addBiases(Fragment<N> &scores, const BlockTerms<C> &terms,
                                          const LaneRows<C, RowsAreQueries> &rows, const Tile &tile,
                                          const TimesAlong &along, int rowInTile) {
  const AttentionArgs<typename C::Element> &args = terms.args;
  const float scale = kScoreFactor<C> * args.scale;
  float rowBias[2] = {0, 0};
  if constexpr (C::TimeBias)
    for (int h = 0; h < 2; ++h)
      rowBias[h] = along.byPair() ? 0.0f : terms.times.bias[along.buckets(h).high];
  // Adding a zero is no operation to the compiler: it may be that of -0.
  auto plus = [&](float bias, int h) { return C::TimeBias ? bias + rowBias[h] : bias; };
  bool hasBand = C::PositionBias;
  if constexpr (Tile::kMayBeFlat)
    if (tile.isFlat) {
      hasBand = false;
      for (int h = 0; h < 2; ++h)
        rowBias[h] = plus(tile.band[0][0], h);
    }
  if (!hasBand) {
#pragma unroll
    for (int n = 0; n < N / 8; ++n)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        scores.d[n][i] = __fmaf_rn(scores.d[n][i], scale, rowBias[i / 2]);
  } else {
    // Elements of row h and column group n have the distance of row 0 and group n - h.
    const int at = Tile::kOrigin + (RowsAreQueries ? fragmentColumn() - fragmentRow() - rowInTile
                                                   : fragmentRow() + rowInTile - fragmentColumn());
#pragma unroll
    for (int m = -1; m < N / 8; ++m) {
      const float2 two = tile.biases(RowsAreQueries ? at + 8 * m : at - 8 * m - 1);
#pragma unroll
      for (int x = 0; x < 2; ++x) {
        const float bias = (x == 0) == RowsAreQueries ? two.x : two.y;
        if (m >= 0)
          scores.d[m < 0 ? 0 : m][x] = __fmaf_rn(scores.d[m < 0 ? 0 : m][x], scale, plus(bias, 0));
        if (m + 1 < N / 8)
          scores.d[m + 1 < N / 8 ? m + 1 : 0][2 + x] =
              __fmaf_rn(scores.d[m + 1 < N / 8 ? m + 1 : 0][2 + x], scale, plus(bias, 1));
      }
    }
  }
  if constexpr (C::TimeBias) {
    if (along.byPair()) {
      const PairCells<C, RowsAreQueries, Tile> cells(terms, rows, tile);
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          scores.d[n][i] += terms.times.biasAt[cells.at(n, i)];
    } else if (along.steps > 0) {
      addTimeSteps(scores, terms, rows, tile, along);
    }
  }
}

/// Sets the elements that the mask hides to `hidden`. `warpBegin` is the warp's first row.
template <int N, class C, bool RowsAreQueries>
__device__ __forceinline__ void hideUnseen(Fragment<N> &scores, const BlockTerms<C> &terms,
                                           const LaneRows<C, RowsAreQueries> &rows, int warpBegin,
                                           int columnBegin, float hidden) {
  const RowRange warpRows{warpBegin, warpBegin + 16}, columns{columnBegin, columnBegin + N};
  if (RowsAreQueries ? terms.mask.allSeen(warpRows, columns)
                     : terms.mask.allSeen(columns, warpRows))
    return;
  forFragment<N>([&](int n, int i, int h, int column) {
    const int other = columnBegin + column;
    const bool sees = RowsAreQueries ? terms.mask.sees(rows.position[h], other)
                                     : terms.mask.sees(other, rows.position[h]);
    if (!sees)
      scores.d[n][i] = hidden;
  });
}

/// Whether dropout keeps the elements of a fragment: bit 4n + i is of d[n][i].
template <int N, class C, bool RowsAreQueries>
__device__ inline void keptElements(uint32_t (&kept)[(N + 63) / 64], const BlockTerms<C> &terms,
                                    const LaneRows<C, RowsAreQueries> &rows, int columnBegin) {
  static_assert(C::Dropout);
  const uint32_t threshold = kernels::keepThreshold(terms.args.dropProbability);
  const uint64_t key = kernels::streamKey(terms.args.draws());
  const uint32_t headBlock = static_cast<uint32_t>(terms.head) * (kDropoutElementsPerHead / 4);
  auto words = [&](int query, int keyRow) {
    const int inside = query < terms.mask.length ? query : terms.mask.length - 1;
    const uint64_t row = terms.args.identity[terms.first + inside];
    const uint32_t block = headBlock + static_cast<uint32_t>(keyRow / 64 * 16 + keyRow % 16);
    return kernels::philox4x32({{block, terms.args.random.op, static_cast<uint32_t>(row),
                                 static_cast<uint32_t>(row >> 32)}},
                               static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32));
  };
  for (int w = 0; w < (N + 63) / 64; ++w)
    kept[w] = 0;
  // Sixteen keys share a counter's column; its four words are keys 16 apart.
#pragma unroll 1
  for (int n = 0; n < N / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int h = i / 2, column = columnBegin + 8 * n + fragmentColumn() + i % 2;
      const int query = RowsAreQueries ? rows.position[h] : column,
                keyRow = RowsAreQueries ? column : rows.position[h];
      const kernels::PhiloxBlock drawn = words(query, keyRow);
      const uint32_t word = drawn.word[keyRow / 16 % 4];
      kept[n / 8] |= static_cast<uint32_t>(kernels::keeps(word, threshold)) << (4 * n + i) % 32;
    }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_TILE_TERMS_H
