//===- attention_common.h - What both directions of attention share -------===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_COMMON_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_COMMON_H

#include "genrec_rt/kernels/cpu/bf16.h"
#include "genrec_rt/kernels/cpu/pack.h"
#include "genrec_rt/kernels/cpu/random.h"
#include "genrec_rt/kernels/cpu/scratch.h"
#include "genrec_rt/kernels/cpu/time_buckets.h"
#include "genrec_rt/kernels/shared/attention_args.h"
#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/parallel.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

//===----------------------------------------------------------------------===//
// Work units
//===----------------------------------------------------------------------===//

/// One unit of work is one head of one list, or a piece of one where the list is a
/// giant (attention_giants.h). Chunks of units, at most kMaxChunks, depend on the
/// counts only.
struct AttentionUnits {
  static constexpr int64_t kMaxChunks = 64;
  int64_t count, grain;

  AttentionUnits(int64_t parents, int64_t heads)
      : count(parents * heads),
        grain(count <= kMaxChunks ? 1 : (count + kMaxChunks - 1) / kMaxChunks) {
  }
  int64_t chunks() const { return (count + grain - 1) / grain; }
};

/// Tile sizes of a configuration.
template <class C> struct AttentionTiles {
  static constexpr ColumnPlan qkPlan = planColumns(4 * kLanes, C::Qk);
  static constexpr ColumnPlan vPlan = planColumns(4 * kLanes, C::V);
  /// Queries that are scored together. More would lose to the causal
  /// triangle what they win in the inner loop.
  static constexpr int rowsFor(int wideQk, int wideV) {
    int r = tileRows(wideQk) < tileRows(wideV) ? tileRows(wideQk)
                                               : tileRows(wideV);
    return r < 8 ? r : 8;
  }
  static constexpr int Rows = rowsFor(qkPlan.wide, vPlan.wide);
  /// Key vectors that are scored together.
  static constexpr int ScoreVectors =
      kRegisters == 32 ? (Rows > 6 ? 3 : 4) : (Rows > 6 ? 1 : 2);
};

/// Floats of a row of scores: whole vectors, and an odd number of them so that
/// successive rows do not fall on the same sets of the cache.
constexpr int64_t scoreRowFloats(int64_t maxLength) {
  int64_t vectors = (maxLength + kLanes - 1) / kLanes;
  return (vectors | 1) * kLanes;
}

/// Rounds packed factors to bfloat16 where the configuration says so.
template <class C> inline void roundFactors(float *packed, int64_t count) {
  if constexpr (C::Bf16)
    roundBf16(packed, count, packed);
}

//===----------------------------------------------------------------------===//
// Tables that all workers read
//===----------------------------------------------------------------------===//

template <class C> struct SharedTables {
  int64_t maxLength;
  /// positionOf(i)[j] is the bias of query i and key j: the bias table clamped
  /// and laid out by j - i, with room to load whole vectors.
  float *byDistance = nullptr;
  TimeBucketTable *timeTable = nullptr;
  int64_t used;

  SharedTables(void *scratch, int64_t maxLength) : maxLength(maxLength) {
    ScratchCursor cursor(scratch);
    if constexpr (C::PositionBias)
      byDistance = cursor.take<float>(distances(maxLength));
    if constexpr (C::TimeBias)
      timeTable = cursor.take<TimeBucketTable>(1);
    used = cursor.bytes();
  }
  int64_t bytes() const { return used; }

  static int64_t distances(int64_t maxLength) {
    return 2 * maxLength + kLanes;
  }

  /// The bucket of key minus query position `distance`.
  static int64_t bucketOf(int64_t distance, int64_t buckets) {
    int64_t index = distance + (buckets - 1) / 2;
    return index < 0 ? 0 : index >= buckets ? buckets - 1 : index;
  }

  void fill(const AttentionArgs &args) {
    if constexpr (C::PositionBias)
      for (int64_t x = 0; x < distances(maxLength); ++x)
        byDistance[x] = args.positionBias[bucketOf(x - (maxLength - 1),
                                                   args.positionBuckets)];
    if constexpr (C::TimeBias)
      fillTimeBuckets(args.timeBuckets, args.ticksPerSecond, timeTable);
  }

  const float *positionOf(int64_t query) const {
    return byDistance + (maxLength - 1 - query);
  }
};

//===----------------------------------------------------------------------===//
// One list and head
//===----------------------------------------------------------------------===//

/// Keys [low, high) that a query sees.
struct KeyRange {
  int64_t low, high;
};

/// What a query sees with Masked: keys below `prefix` and in [low, high), but not those of the
/// hole [holeBegin, holeEnd).
struct SeenKeys : KeyRange {
  int64_t prefix = 0, holeBegin = 0, holeEnd = 0;

  bool touches(int64_t k) const {
    bool hole = holeBegin < holeEnd && k < holeEnd && k + kLanes > holeBegin;
    return hole || k + kLanes > high || (k < low && k + kLanes > prefix);
  }
};

template <class C> struct AttentionUnit {
  int64_t first;  ///< the list's first row
  int64_t length; ///< and its number of rows
  int64_t head;
  int64_t contextual = 0; ///< Masked: rows of context at the start
  int64_t history;        ///< and of what is not a target
  const float *q, *k, *v;
  KeyRange keys; ///< that are looked at: all, or those of a piece

  AttentionUnit(const AttentionArgs &args, int64_t unit)
      : first(args.offsets[unit / C::Heads]), length(args.offsets[unit / C::Heads + 1] - first),
        head(unit % C::Heads), history(length), q(args.q + first * args.ldQ + head * C::Qk),
        k(args.k + first * args.ldK + head * C::Qk), v(args.v + first * args.ldV + head * C::V),
        keys{0, length} {
    if constexpr (C::Masked) {
      if (args.targets) {
        history = length - args.targets[unit / C::Heads];
        history = history < 0 ? 0 : history < length ? history : length;
      }
      contextual = args.contextual < history ? args.contextual : history;
    }
  }

  SeenKeys seenBy(int64_t query, const AttentionArgs &args) const {
    SeenKeys range{{0, C::Causal ? query + 1 : length}};
    if constexpr (C::HasWindow) {
      if (args.window > 0) {
        if (query - args.window + 1 > 0)
          range.low = query - args.window + 1;
        if (query + args.window < range.high)
          range.high = query + args.window;
      }
    }
    if constexpr (C::Masked) {
      // Such lists are never cut (see GiantLists): the piece is the list.
      range.prefix = contextual;
      if (query >= history) {
        // A target sees no key between the history and itself, and none behind.
        range.high = query + 1;
        range.holeBegin = history;
        range.holeEnd = query;
      } else if (query < contextual) {
        range.low = 0;
        range.high = history;
      } else if (range.high > history) {
        range.high = history;
      }
      return range;
    }
    // Keys of the piece; where the query sees none of them, an empty range there.
    range.low = range.low < keys.low    ? keys.low
                : range.low > keys.high ? keys.high
                                        : range.low;
    range.high = range.high > keys.high ? keys.high : range.high;
    range.high = range.high < range.low ? range.low : range.high;
    return range;
  }

  /// Keys that any of the queries [begin, end) sees, and perhaps some between them.
  KeyRange seenByAny(int64_t begin, int64_t end,
                     const AttentionArgs &args) const {
    if constexpr (C::Masked) {
      KeyRange any{length, 0};
      for (int64_t query = begin; query < end; ++query) {
        SeenKeys seen = seenBy(query, args);
        int64_t low = seen.prefix > 0 ? 0 : seen.low;
        any.low = low < any.low ? low : any.low;
        any.high = seen.high > any.high ? seen.high : any.high;
      }
      return any;
    }
    return {seenBy(begin, args).low, seenBy(end - 1, args).high};
  }
};

/// Raw scores of R queries against the key vectors [vectorBegin, vectorEnd):
/// row r goes to scores + r * ldScores, column = key position. `queries[r]`
/// has Qk floats; keys are transposed in groups (transposeRows).
template <int R, int NV, int Qk>
GENREC_SIMD void scoreVectors(const float *const (&queries)[R],
                              const float *keys, float *scores,
                              int64_t ldScores) {
  VecF acc[R][NV];
  tileClear(acc);
  tileMultiplyRows(acc, queries, keys, Qk * kLanes, kLanes, Qk);
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 16
    for (int v = 0; v < NV; ++v)
      store(scores + r * ldScores + v * kLanes, acc[r][v]);
}

template <int R, int NV, int Qk>
__attribute__((noinline)) void
scoreTile(const float *const (&queries)[R], const float *keysTransposed,
          int64_t vectorBegin, int64_t vectorEnd, float *scores,
          int64_t ldScores) {
  int64_t v = vectorBegin;
  const float *keys = keysTransposed + v * Qk * kLanes;
  for (; v + NV <= vectorEnd; v += NV, keys += NV * Qk * kLanes)
    scoreVectors<R, NV, Qk>(queries, keys, scores + v * kLanes, ldScores);
  if constexpr (NV > 1)
    for (; v + NV - 1 <= vectorEnd; v += NV - 1, keys += (NV - 1) * Qk * kLanes)
      scoreVectors<R, NV - 1, Qk>(queries, keys, scores + v * kLanes, ldScores);
  if constexpr (NV > 2)
    for (; v < vectorEnd; ++v, keys += Qk * kLanes)
      scoreVectors<R, 1, Qk>(queries, keys, scores + v * kLanes, ldScores);
}

/// Multiplies R rows of weights by packed rows (packRows<D>) over the keys
/// [low, high) and stores the first `rows` results, row r times factors[r].
/// Weights are zero between the keys and the ends of their vectors.
template <int R, int D>
struct WeightedRows {
  static constexpr ColumnPlan plan = planColumns(4 * kLanes, D);

  template <int NV>
  static __attribute__((noinline)) void
  panel(const float *weights, int64_t ldWeights, const float *packed,
        KeyRange keys, int rows, const float *factors, float *out,
        int64_t ldOut, int lastLanes) {
    VecF acc[R][NV];
    tileClear(acc);
    tileMultiply(acc, weights + keys.low, ldWeights, 1,
                 packed + keys.low * NV * kLanes, kLanes, NV * kLanes,
                 keys.high - keys.low);
    const LaneMask last = laneMask(lastLanes);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      if (r >= rows)
        break;
      VecF factor = splat(factors[r]);
#pragma GCC unroll 16
      for (int v = 0; v < NV; ++v) {
        float *to = out + r * ldOut + v * kLanes;
        if (v == NV - 1)
          storeMasked(to, acc[r][v] * factor, last);
        else
          store(to, acc[r][v] * factor);
      }
    }
  }

  /// The tail columns, with the keys as lanes.
  static __attribute__((noinline)) void
  tail(const float *weights, int64_t ldWeights, const float *packed,
       int64_t padded, KeyRange keys, int rows, const float *factors,
       float *out, int64_t ldOut) {
    constexpr int T = plan.tail() > 0 ? plan.tail() : 1;
    constexpr int Group = kLanes / T < R ? kLanes / T : R;
    const int64_t low = keys.low / kLanes * kLanes;
    for (int row = 0; row < rows; row += Group) {
      // The last group may reach past R: it starts earlier instead.
      int begin = row + Group <= R ? row : R - Group;
      VecF acc[kLanes] = {};
      for (int64_t k = low; k < keys.high; k += kLanes) {
        VecF right[T];
        for (int t = 0; t < T; ++t)
          right[t] = load(packed + t * padded + k);
#pragma GCC unroll 16
        for (int r = 0; r < Group; ++r) {
          VecF w = load(weights + (begin + r) * ldWeights + k);
#pragma GCC unroll 4
          for (int t = 0; t < T; ++t)
            acc[r * T + t] = fma(w, right[t], acc[r * T + t]);
        }
      }
      float sums[kLanes];
      store(sums, sumEach(acc));
      for (int r = 0; r < Group && begin + r < rows; ++r)
        for (int t = 0; t < T; ++t)
          out[(begin + r) * ldOut + t] = sums[r * T + t] * factors[begin + r];
    }
  }

  static void run(const float *weights, int64_t ldWeights, const float *packed,
                  int64_t packedLength, KeyRange keys, int rows,
                  const float *factors, float *out, int64_t ldOut) {
    for (int p = 0; p < plan.panels; ++p) {
      float *to = out + plan.panelBegin(p) * kLanes;
      int lanes = p == plan.panels - 1 ? plan.lastLanes() : kLanes;
      if (p < plan.wideCount)
        panel<plan.wide>(weights, ldWeights, packed, keys, rows, factors, to,
                         ldOut, lanes);
      else if constexpr (plan.wideCount < plan.panels)
        panel<plan.wide - 1>(weights, ldWeights, packed, keys, rows, factors,
                             to, ldOut, lanes);
      packed += packedLength * plan.panelVectors(p) * kLanes;
    }
    if constexpr (plan.tail() > 0)
      tail(weights, ldWeights, packed, roundUp(packedLength, kLanes), keys, rows,
           factors, out + plan.tailBegin, ldOut);
  }
};

//===----------------------------------------------------------------------===//
// Biases, masks and dropout of one query
//===----------------------------------------------------------------------===//

/// The parts of s(i, j) beside q . k for one query, a vector of keys at a time.
template <class C> struct QueryTerms {
  const AttentionArgs &args;
  SeenKeys seen;
  const float *position = nullptr;  ///< by key
  const int32_t *buckets = nullptr; ///< by key: buckets of the time bias
  const uint32_t *words = nullptr;  ///< by key: random words of dropout
  uint32_t threshold = 0;

  /// Prepares the query for the key vectors [vectorBegin, vectorEnd); `buckets` and
  /// `words` are room for that many keys (words: rounded out to groups of 64).
  GENREC_SIMD QueryTerms(const AttentionArgs &args,
                         const SharedTables<C> &tables,
                         const AttentionUnit<C> &unit, int64_t query,
                         int64_t vectorBegin, int64_t vectorEnd,
                         int32_t *bucketRoom, uint32_t *wordRoom)
      : args(args), seen(unit.seenBy(query, args)) {
    if constexpr (C::PositionBias)
      position = tables.positionOf(query);
    if constexpr (C::TimeBias) {
      const int64_t *times = args.timestamps + unit.first;
      bool next = args.nextEventTime && query + 1 < unit.length;
      int64_t begin = vectorBegin * kLanes, end = vectorEnd * kLanes;
      int64_t known = end < unit.length ? end : unit.length;
      timeBucketsOf(*tables.timeTable, times[next ? query + 1 : query],
                    times + begin, known - begin, bucketRoom + begin);
      for (int64_t k = known; k < end; ++k)
        bucketRoom[k] = 0;
      buckets = bucketRoom;
    }
    if constexpr (C::Dropout) {
      threshold = keepThreshold(args.dropProbability);
      uint64_t row = args.identity[unit.first + query];
      uint32_t base = static_cast<uint32_t>(unit.head) << 14; // 2^20 / 64
      int64_t begin = vectorBegin * kLanes / 64 * 64;
      for (int64_t k = begin; k < vectorEnd * kLanes; k += 64)
        fillBits64(streamKey(args.random), args.random.op, row,
                   base + static_cast<uint32_t>(k / 64), wordRoom + k);
      words = wordRoom;
    }
  }

  /// Whether the mask cuts the vector of keys that starts at k.
  GENREC_SIMD bool cuts(int64_t k) const {
    if constexpr (C::Masked)
      return seen.touches(k);
    return k < seen.low || k + kLanes > seen.high;
  }
  GENREC_SIMD VecI mask(int64_t k) const {
    VecI lane = iota();
    if constexpr (C::Masked) {
      auto below = [&](int64_t bound) { return lane < splatI(static_cast<int32_t>(bound - k)); };
      VecI inside = (below(seen.prefix) | ~below(seen.low)) & below(seen.high);
      return inside & ~(below(seen.holeEnd) & ~below(seen.holeBegin));
    }
    return (lane >= splatI(static_cast<int32_t>(seen.low - k))) &
           (lane < splatI(static_cast<int32_t>(seen.high - k)));
  }
  /// scale * raw + biases.
  GENREC_SIMD VecF score(VecF raw, VecF scale, int64_t k) const {
    VecF s;
    if constexpr (C::PositionBias)
      s = fma(raw, scale, load(position + k));
    else
      s = raw * scale;
    if constexpr (C::TimeBias)
      s = s + gather(args.timeBias, loadI(buckets + k));
    return s;
  }
  /// The vector where dropout keeps, 0 elsewhere (not yet rescaled).
  GENREC_SIMD VecF kept(VecF x, int64_t k) const {
    if constexpr (C::Dropout)
      return (loadU(words + k) >= splatU(threshold)) ? x : VecF{};
    else
      return x;
  }
};

/// 1 / (1 - p), and 0 for p = 1, where nothing is kept.
template <class C> inline float dropoutScale(const AttentionArgs &args) {
  if constexpr (C::Dropout)
    return args.dropProbability < 1
               ? static_cast<float>(1.0 / (1.0 - args.dropProbability))
               : 0.0f;
  else
    return 1.0f;
}

/// What silu scores are divided by, as a factor.
inline float siluFactor(const AttentionArgs &args, int64_t length) {
  return 1.0f / (args.fixedLength > 0 ? args.fixedLength
                                      : static_cast<float>(length));
}

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_COMMON_H
