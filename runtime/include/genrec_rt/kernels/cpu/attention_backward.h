//===- attention_backward.h - Attention, backward ----------------*- C++ -*-===//
//
// A block of queries at a time: their scores are computed again, the weights
// and the gradients of the scores are kept for the whole block, dq is finished,
// and dk and dv of all keys that the block sees gain the block's part.
//
// A giant (attention_giants.h) is done twice: its queries in pieces for dq and the
// biases, its keys in pieces for dk and dv. So no two pieces write one place, at
// the price of the scores once more.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_BACKWARD_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_BACKWARD_H

#include "genrec_rt/kernels/cpu/attention_bias_grad.h"
#include "genrec_rt/kernels/cpu/attention_common.h"
#include "genrec_rt/kernels/cpu/attention_giants.h"
#include "genrec_rt/kernels/cpu/attention_key_sums.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// Queries per block: a multiple of every tile height.
inline constexpr int kQueryBlock = 48;
static_assert(kGiantPiece % kQueryBlock == 0 && kGiantPiece % kLanes == 0);

/// Whether keys are seen by queries of blocks that do not begin at or before them, so that
/// their gradients start as zeros and every block adds.
template <class C> inline constexpr bool kStartsAsZeros = C::HasWindow || C::Masked;

/// One worker's scratch.
template <class C> struct BackwardBuffers {
  static constexpr int64_t ldQ = roundUp(C::Qk, kLanes);
  static constexpr int64_t ldV = roundUp(C::V, kLanes);
  int64_t ldScores;
  float *keys;           ///< transposeRows<Qk> of the keys
  float *values;         ///< transposeRows<V> of the values
  float *keyRows;        ///< packRows<Qk> of the keys
  float *queries;        ///< the block's queries times `scale`, [kQueryBlock, ldQ]
  float *dOut;           ///< the block's output gradients, scaled, [kQueryBlock, ldV]
  float *weights;        ///< of the block, [kQueryBlock, ldScores]
  float *gradients;      ///< of the block's scores, the same
  float *dKeyTails;      ///< tail columns of dk, [tail, ldScores]
  float *dValueTails;    ///< and of dv
  float *rowProducts;    ///< softmax: dOut . out per query of the block
  int32_t *buckets;      ///< of one query
  uint32_t *words;       ///< of one query
  BiasGradients<C> bias; ///< of the current chunk
  int64_t used;

  BackwardBuffers(void *scratch, int64_t maxLength, int64_t timeBuckets)
      : ldScores(scoreRowFloats(maxLength)) {
    using Tiles = AttentionTiles<C>;
    ScratchCursor cursor(scratch);
    int64_t padded = roundUp(maxLength, kLanes);
    keys = cursor.take<float>(padded * C::Qk);
    values = cursor.take<float>(padded * C::V);
    keyRows = cursor.take<float>(packedRowsFloats<C::Qk>(maxLength));
    queries = cursor.take<float>(kQueryBlock * ldQ);
    dOut = cursor.take<float>(kQueryBlock * ldV);
    weights = cursor.take<float>(kQueryBlock * ldScores + kLanes);
    gradients = cursor.take<float>(kQueryBlock * ldScores + kLanes);
    dKeyTails = cursor.take<float>(Tiles::qkPlan.tail() * ldScores);
    dValueTails = cursor.take<float>(Tiles::vPlan.tail() * ldScores);
    rowProducts = cursor.take<float>(kQueryBlock);
    buckets = C::TimeBias ? cursor.take<int32_t>(padded) : nullptr;
    words = C::Dropout ? cursor.take<uint32_t>(roundUp(padded, 64)) : nullptr;
    bias = BiasGradients<C>(cursor, maxLength, timeBuckets);
    used = cursor.bytes();
  }
  int64_t bytes() const { return used; }
};

//===----------------------------------------------------------------------===//
// Scores of one query
//===----------------------------------------------------------------------===//

/// What is finished: all, what belongs to queries (dq, biases) or to keys (dk, dv).
enum class BackwardPart { all, queries, keys };

/// Turns a row of scores q . k * scale and a row of dOut . v into the weights
/// and the gradients of the scores, and adds the latter to the biases' own.
template <class C, BackwardPart Part>
__attribute__((noinline)) void
scoreGradients(const QueryTerms<C> &terms, const BiasGradients<C> &bias,
               int64_t query, int64_t vectorBegin, int64_t vectorEnd,
               float logSumExp, float rowProduct, float *scores, float *dots) {
  const VecF one = splat(1.0f);
  for (int64_t k = vectorBegin * kLanes; k < vectorEnd * kLanes; k += kLanes) {
    VecF s = terms.score(load(scores + k), one, k);
    VecF dWeight = terms.kept(load(dots + k), k);
    VecF weight, dScore;
    if constexpr (C::Score == ScoreKind::silu) {
      SigmoidPair<VecF> sigmoids = sigmoidPair(s);
      weight = s * sigmoids.plus;
      dScore = dWeight * (sigmoids.plus * fma(s, sigmoids.minus, one));
    } else {
      weight = expNegative(s - splat(logSumExp));
      dScore = weight * (dWeight - splat(rowProduct));
    }
    if (terms.cuts(k)) {
      VecI mask = terms.mask(k);
      weight = select(mask, weight, VecF{});
      dScore = select(mask, dScore, VecF{});
    }
    store(scores + k, factor<C::Bf16>(terms.kept(weight, k)));
    store(dots + k, factor<C::Bf16>(dScore));
    if constexpr (Part != BackwardPart::keys)
      bias.add(query, k, dScore, terms.buckets);
  }
}

//===----------------------------------------------------------------------===//
// Contractions over the queries of a block
//===----------------------------------------------------------------------===//

/// The block's queries and what their keys gain from them.
template <class C> struct QueryBlock {
  const AttentionArgs &args;
  const AttentionUnit<C> &unit;
  const BackwardBuffers<C> &buffers;
  int64_t begin, end; ///< queries
  KeyRange keys;      ///< that the block sees

  /// Queries of the block that see any of the keys [low, high), relative to it.
  KeyRange queriesOf(int64_t low, int64_t high) const {
    int64_t from = begin, to = end;
    // Context sees later keys; masked scores are zeros, so that all queries may be taken.
    if constexpr (C::Masked)
      return {0, to - from};
    if constexpr (C::Causal)
      from = low > from ? low : from;
    if constexpr (C::HasWindow) {
      if (args.window > 0) {
        if (!C::Causal && low - args.window + 1 > from)
          from = low - args.window + 1;
        if (high - 1 + args.window < to)
          to = high - 1 + args.window;
      }
    }
    return {from - begin, to - begin};
  }

  template <int D, int NV>
  void addPanel(const float *matrix, const float *right, int64_t ldRight,
                float *out, int64_t ldOut, int lastLanes) const {
    constexpr int R = tileRows(NV);
    static_assert(kQueryBlock % R == 0);
    for (int64_t key = keys.low; key < keys.high; key += R) {
      int64_t left = keys.high - key;
      KeyRange queries = queriesOf(key, key + (left < R ? left : R));
      // Without a window every key is first seen by the block that holds it
      // (causal) or by the first one; with one, the outputs start as zeros.
      bool first = !kStartsAsZeros<C> && (begin == 0 || (C::Causal && key >= begin));
      KeySums<D>::template tile<NV>(
          matrix + queries.low * buffers.ldScores + key, buffers.ldScores,
          right + queries.low * ldRight, ldRight, queries.high - queries.low,
          left < R ? static_cast<int>(left) : R, first, out + key * ldOut, ldOut,
          lastLanes);
    }
  }

  /// tails[t][key] += sum over queries of matrix[query][key] * right[query][t].
  template <int T>
  __attribute__((noinline)) void addTail(const float *matrix,
                                         const float *right, int64_t ldRight,
                                         float *tails) const {
    constexpr int NV = kMaxTileVectors;
    const int64_t ld = buffers.ldScores;
    int64_t key = keys.low / kLanes * kLanes;
    for (; key + NV * kLanes <= keys.high; key += NV * kLanes)
      tailVectors<T, NV>(matrix, right, ldRight, tails, key, ld);
    for (; key < keys.high; key += kLanes)
      tailVectors<T, 1>(matrix, right, ldRight, tails, key, ld);
  }

  template <int T, int NV>
  GENREC_SIMD void tailVectors(const float *matrix, const float *right,
                               int64_t ldRight, float *tails, int64_t key,
                               int64_t ld) const {
    KeyRange queries = queriesOf(key, key + NV * kLanes);
    VecF acc[T][NV];
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        acc[t][v] = load(tails + t * ld + key + v * kLanes);
    tileMultiply(acc, right + queries.low * ldRight, 1, ldRight,
                 matrix + queries.low * ld + key, kLanes, ld,
                 queries.high - queries.low);
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < NV; ++v)
        store(tails + t * ld + key + v * kLanes, acc[t][v]);
  }

  /// Adds the block's part to D columns of all keys it sees.
  template <int D>
  void addToKeys(const float *matrix, const float *right, int64_t ldRight,
                 float *out, int64_t ldOut, float *tails) const {
    constexpr ColumnPlan plan = KeySums<D>::plan;
    for (int p = 0; p < plan.panels; ++p) {
      int64_t column = plan.panelBegin(p) * kLanes;
      int lanes = p == plan.panels - 1 ? plan.lastLanes() : kLanes;
      if (p < plan.wideCount)
        addPanel<D, plan.wide>(matrix, right + column, ldRight, out + column,
                               ldOut, lanes);
      else if constexpr (plan.wideCount < plan.panels)
        addPanel<D, plan.wide - 1>(matrix, right + column, ldRight,
                                   out + column, ldOut, lanes);
    }
    if constexpr (plan.tail() > 0)
      addTail<plan.tail()>(matrix, right + plan.tailBegin, ldRight, tails);
  }
};

//===----------------------------------------------------------------------===//
// One list and head
//===----------------------------------------------------------------------===//

/// Copies rows, rounded with Bf16, times a number into rows padded with zeros.
template <int D, bool Bf16>
inline void scaleRows(const float *from, int64_t ld, int64_t rows, float scale, float *to) {
  constexpr int vectors = vectorsFor(D);
  const LaneMask last = laneMask(D - (vectors - 1) * kLanes);
  const VecF f = splat(scale);
  for (int64_t i = 0; i < rows; ++i, from += ld)
    for (int v = 0; v < vectors; ++v, to += kLanes)
      store(to, f * factor<Bf16>(v == vectors - 1 ? loadMasked(from + v * kLanes, last)
                                                  : load(from + v * kLanes)));
}

/// dOut . out per row: what softmax takes off every dWeight.
template <int D>
inline void rowDots(const float *a, int64_t ldA, const float *b, int64_t ldB,
                    int64_t rows, float *out) {
  constexpr int vectors = vectorsFor(D);
  const LaneMask last = laneMask(D - (vectors - 1) * kLanes);
  for (int64_t i = 0; i < rows; ++i) {
    VecF total = {};
    for (int v = 0; v < vectors - 1; ++v)
      total = fma(load(a + i * ldA + v * kLanes), load(b + i * ldB + v * kLanes),
                  total);
    constexpr int tail = (vectors - 1) * kLanes;
    total = fma(loadMasked(a + i * ldA + tail, last),
                loadMasked(b + i * ldB + tail, last), total);
    out[i] = sum(total);
  }
}

/// Weights and score gradients of R queries at `query` of a block that begins
/// at `blockBegin`, and their dq.
template <class C, BackwardPart Part>
inline void backwardQueries(const AttentionArgs &args,
                            const AttentionGradients &gradients,
                            const SharedTables<C> &tables,
                            const AttentionUnit<C> &unit,
                            const BackwardBuffers<C> &buffers,
                            const QueryBlock<C> &block, int64_t query,
                            int rows) {
  using Tiles = AttentionTiles<C>;
  constexpr int R = Tiles::Rows;
  const int64_t ld = buffers.ldScores, local = query - block.begin;
  const KeyRange keys = unit.seenByAny(query, query + rows, args);
  const int64_t vectorBegin = keys.low / kLanes;
  const int64_t vectorEnd = (keys.high + kLanes - 1) / kLanes;
  float *weights = buffers.weights + local * ld;
  float *dScores = buffers.gradients + local * ld;
  const float *queryRows[R], *dOutRows[R];
  for (int r = 0; r < R; ++r) {
    int64_t row = local + (r < rows ? r : 0);
    queryRows[r] = buffers.queries + row * BackwardBuffers<C>::ldQ;
    dOutRows[r] = buffers.dOut + row * BackwardBuffers<C>::ldV;
  }
  scoreTile<R, Tiles::ScoreVectors, C::Qk>(queryRows, buffers.keys, vectorBegin,
                                           vectorEnd, weights, ld);
  scoreTile<R, Tiles::ScoreVectors, C::V>(dOutRows, buffers.values, vectorBegin,
                                          vectorEnd, dScores, ld);
  // The block's contractions read all keys that the block sees.
  const int64_t blockBegin = block.keys.low / kLanes * kLanes;
  const int64_t blockEnd = roundUp(block.keys.high, kLanes);
  float factors[R];
  for (int r = 0; r < rows; ++r, weights += ld, dScores += ld) {
    for (int64_t k = blockBegin; k < blockEnd; k += kLanes) {
      if (k == vectorBegin * kLanes)
        k = vectorEnd * kLanes;
      if (k >= blockEnd)
        break;
      store(weights + k, VecF{});
      store(dScores + k, VecF{});
    }
    QueryTerms<C> terms(args, tables, unit, query + r, vectorBegin, vectorEnd,
                        buffers.buckets, buffers.words);
    float logSumExp = 0, rowProduct = 0;
    if constexpr (C::Score == ScoreKind::softmax) {
      logSumExp =
          args.logSumExp[(unit.first + query + r) * C::Heads + unit.head];
      rowProduct = buffers.rowProducts[local + r];
    }
    scoreGradients<C, Part>(terms, buffers.bias, query + r, vectorBegin, vectorEnd,
                            logSumExp, rowProduct, weights, dScores);
    factors[r] = args.scale;
  }
  if constexpr (Part == BackwardPart::keys)
    return;
  float *dQ = gradients.dQ + (unit.first + query) * gradients.ldDQ +
              unit.head * C::Qk;
  WeightedRows<R, C::Qk>::run(buffers.gradients + local * ld, ld,
                              buffers.keyRows, unit.length, keys, rows, factors,
                              dQ, gradients.ldDQ);
}

/// Writes tail columns, computed with the keys as lanes, where they belong.
inline void writeTails(const float *tails, int64_t ldTails, int count,
                       int64_t keys, float *out, int64_t ldOut) {
  for (int64_t key = 0; key < keys; ++key)
    for (int t = 0; t < count; ++t)
      out[key * ldOut + t] = tails[t * ldTails + key];
}

template <int D>
inline void clearKeys(float *out, int64_t ldOut, int64_t keys) {
  for (int64_t key = 0; key < keys; ++key)
    __builtin_memset(out + key * ldOut, 0, D * sizeof(float));
}

/// Packs the keys and values of a unit, and clears what they get.
template <class C, BackwardPart Part>
inline void beginKeys(const AttentionArgs &args, const AttentionGradients &gradients,
                      const AttentionUnit<C> &unit, const BackwardBuffers<C> &buffers, float *dK,
                      float *dV) {
  using Tiles = AttentionTiles<C>;
  const int64_t n = unit.length, ld = buffers.ldScores;
  const int64_t firstKey = unit.keys.low, keys = unit.keys.high - firstKey;
  transposeRows<C::Qk>(unit.k + firstKey * args.ldK, args.ldK, keys,
                       buffers.keys + firstKey * C::Qk);
  transposeRows<C::V>(unit.v + firstKey * args.ldV, args.ldV, keys,
                      buffers.values + firstKey * C::V);
  roundFactors<C>(buffers.keys + firstKey * C::Qk, roundUp(keys, kLanes) * C::Qk);
  roundFactors<C>(buffers.values + firstKey * C::V, roundUp(keys, kLanes) * C::V);
  if constexpr (Part != BackwardPart::keys) {
    packRows<C::Qk>(unit.k, args.ldK, n, buffers.keyRows);
    roundFactors<C>(buffers.keyRows, packedRowsFloats<C::Qk>(n));
  }
  if constexpr (Part != BackwardPart::queries) {
    __builtin_memset(buffers.dKeyTails, 0, Tiles::qkPlan.tail() * ld * 4);
    __builtin_memset(buffers.dValueTails, 0, Tiles::vPlan.tail() * ld * 4);
    if constexpr (kStartsAsZeros<C>) {
      clearKeys<C::Qk>(dK + firstKey * gradients.ldDK, gradients.ldDK, keys);
      clearKeys<C::V>(dV + firstKey * gradients.ldDV, gradients.ldDV, keys);
    }
  }
}

/// `queries` of a unit against its `unit.keys`, which begin at a whole vector and
/// block.
template <class C, BackwardPart Part>
inline void backwardUnit(const AttentionArgs &args,
                         const AttentionGradients &gradients,
                         const SharedTables<C> &tables,
                         const AttentionUnit<C> &unit,
                         const BackwardBuffers<C> &buffers, KeyRange queries) {
  using Tiles = AttentionTiles<C>;
  using Buffers = BackwardBuffers<C>;
  constexpr int R = Tiles::Rows;
  const int64_t n = unit.length, ld = buffers.ldScores;
  const int64_t firstKey = unit.keys.low, keys = unit.keys.high - firstKey;
  float *dK = gradients.dK + unit.first * gradients.ldDK + unit.head * C::Qk;
  float *dV = gradients.dV + unit.first * gradients.ldDV + unit.head * C::V;
  beginKeys<C, Part>(args, gradients, unit, buffers, dK, dV);
  // Every constant factor of the weights rides on dOut.
  float scale = dropoutScale<C>(args);
  if constexpr (C::Score == ScoreKind::silu)
    scale *= siluFactor(args, n);
  for (int64_t begin = queries.low; begin < queries.high;
       begin += kQueryBlock) {
    int64_t end =
        queries.high - begin < kQueryBlock ? queries.high : begin + kQueryBlock;
    QueryBlock<C> block{args, unit,  buffers,
                        begin, end, unit.seenByAny(begin, end, args)};
    if (block.keys.low == block.keys.high)
      continue;
    const float *dOut = gradients.dOut +
                        (unit.first + begin) * gradients.ldDOut +
                        unit.head * C::V;
    scaleRows<C::Qk, C::Bf16>(unit.q + begin * args.ldQ, args.ldQ, end - begin, args.scale,
                              buffers.queries);
    scaleRows<C::V, C::Bf16>(dOut, gradients.ldDOut, end - begin, scale, buffers.dOut);
    if constexpr (C::Score == ScoreKind::softmax)
      rowDots<C::V>(dOut, gradients.ldDOut,
                    args.out + (unit.first + begin) * args.ldOut +
                        unit.head * C::V,
                    args.ldOut, end - begin, buffers.rowProducts);
    for (int64_t query = begin; query < end; query += R)
      backwardQueries<C, Part>(args, gradients, tables, unit, buffers, block,
                               query,
                               end - query < R ? static_cast<int>(end - query) : R);
    if constexpr (Part == BackwardPart::queries)
      continue;
    block.template addToKeys<C::V>(buffers.weights, buffers.dOut, Buffers::ldV,
                                   dV, gradients.ldDV, buffers.dValueTails);
    block.template addToKeys<C::Qk>(buffers.gradients, buffers.queries,
                                    Buffers::ldQ, dK, gradients.ldDK,
                                    buffers.dKeyTails);
  }
  if constexpr (Part == BackwardPart::queries)
    return;
  writeTails(buffers.dKeyTails + firstKey, ld, Tiles::qkPlan.tail(), keys,
             dK + firstKey * gradients.ldDK + Tiles::qkPlan.tailBegin,
             gradients.ldDK);
  writeTails(buffers.dValueTails + firstKey, ld, Tiles::vPlan.tail(), keys,
             dV + firstKey * gradients.ldDV + Tiles::vPlan.tailBegin,
             gradients.ldDV);
}

template <class C> inline int64_t backwardBytes(const AttentionArgs &args) {
  return BackwardBuffers<C>(nullptr, args.maxLength, args.timeBuckets).bytes();
}

/// Buffers in the scratch of one worker, their bias gradients 0.
template <class C>
inline BackwardBuffers<C> takeBuffers(const AttentionArgs &args, char *mine) {
  BackwardBuffers<C> buffers(mine, args.maxLength, args.timeBuckets);
  buffers.bias.clear();
  return buffers;
}

/// Units [begin, end), but those of giants, of a chunk whose first part they are or not.
template <class C>
inline void backwardUnits(const AttentionArgs &args, const GiantLists &giants,
                          const AttentionGradients &gradients,
                          const SharedTables<C> &tables,
                          const BiasPartials<C> &partials, char *mine,
                          int64_t begin, int64_t end, int64_t chunk,
                          bool first = true) {
  BackwardBuffers<C> buffers = takeBuffers<C>(args, mine);
  for (int64_t index = begin; index < end; ++index) {
    AttentionUnit<C> unit(args, index);
    if (unit.length > 0 && !giants.contains(index / C::Heads))
      backwardUnit<C, BackwardPart::all>(args, gradients, tables, unit, buffers,
                                         {0, unit.length});
  }
  partials.write(chunk, buffers.bias, first);
}

/// Pieces [begin, end) of a giant, by head, then by queries or by keys.
template <class C, BackwardPart Part>
inline void backwardPieces(const AttentionArgs &args, int64_t list,
                           const AttentionGradients &gradients,
                           const SharedTables<C> &tables,
                           const BiasPartials<C> &partials, char *scratch,
                           int64_t begin, int64_t end, int64_t chunk) {
  BackwardBuffers<C> buffers = takeBuffers<C>(
      args, scratch + genrec_rt_worker_index() * backwardBytes<C>(args));
  for (int64_t index = begin; index < end; ++index) {
    GiantPiece piece(args, list, index);
    AttentionUnit<C> unit(args, list * C::Heads + piece.head);
    KeyRange queries = piece.rows;
    if constexpr (Part == BackwardPart::keys) {
      unit.keys = piece.rows;
      queries = {C::Causal ? piece.rows.low : 0, unit.length};
    }
    backwardUnit<C, Part>(args, gradients, tables, unit, buffers, queries);
  }
  if constexpr (Part == BackwardPart::queries)
    partials.write(chunk, buffers.bias);
}

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_BACKWARD_H
