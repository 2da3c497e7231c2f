//===- attention_forward.h - Attention, forward ------------------*- C++ -*-===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_FORWARD_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_FORWARD_H

#include "genrec_rt/kernels/cpu/attention_common.h"
#include "genrec_rt/kernels/cpu/attention_giants.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// One worker's scratch.
template <class C> struct ForwardBuffers {
  int64_t ldScores;
  float *keys;   ///< transposeRows<Qk> of the list's keys
  float *values; ///< packRows<V> of its values
  float *scores; ///< [Rows, ldScores]
  float *queries; ///< with Bf16: a tile of queries, rounded, [Rows, Qk]
  int32_t *buckets;
  uint32_t *words;
  int64_t used;

  ForwardBuffers(void *scratch, int64_t maxLength)
      : ldScores(scoreRowFloats(maxLength)) {
    ScratchCursor cursor(scratch);
    int64_t padded = roundUp(maxLength, kLanes);
    keys = cursor.take<float>(padded * C::Qk);
    values = cursor.take<float>(packedRowsFloats<C::V>(maxLength));
    scores = cursor.take<float>(AttentionTiles<C>::Rows * ldScores);
    queries = C::Bf16 ? cursor.take<float>(AttentionTiles<C>::Rows * C::Qk) : nullptr;
    buckets = C::TimeBias ? cursor.take<int32_t>(padded) : nullptr;
    words = C::Dropout ? cursor.take<uint32_t>(roundUp(padded, 64)) : nullptr;
    used = cursor.bytes();
  }
  int64_t bytes() const { return used; }
};

/// Turns a row of raw scores over the key vectors [vectorBegin, vectorEnd)
/// into weights, up to the factor that is returned.
template <class C>
__attribute__((noinline)) float
siluWeights(const AttentionArgs &args, const QueryTerms<C> &terms,
            int64_t vectorBegin, int64_t vectorEnd, int64_t length,
            float *row) {
  const VecF scale = splat(args.scale);
  for (int64_t k = vectorBegin * kLanes; k < vectorEnd * kLanes; k += kLanes) {
    VecF a = silu(terms.score(load(row + k), scale, k));
    if (terms.cuts(k))
      a = select(terms.mask(k), a, VecF{});
    store(row + k, factor<C::Bf16>(terms.kept(a, k)));
  }
  return siluFactor(args, length) * dropoutScale<C>(args);
}

template <class C>
__attribute__((noinline)) float
softmaxWeights(const AttentionArgs &args, const QueryTerms<C> &terms,
               int64_t vectorBegin, int64_t vectorEnd, float *row,
               float *logSumExp) {
  const VecF scale = splat(args.scale);
  const VecF never = splat(-__builtin_inff());
  const int64_t begin = vectorBegin * kLanes, end = vectorEnd * kLanes;
  VecF most = never;
  for (int64_t k = begin; k < end; k += kLanes) {
    VecF s = terms.score(load(row + k), scale, k);
    if (terms.cuts(k))
      s = select(terms.mask(k), s, never);
    store(row + k, s);
    most = max(most, s);
  }
  const float greatest = maxLane(most);
  const VecF shift = splat(greatest);
  VecF total = {};
  for (int64_t k = begin; k < end; k += kLanes) {
    VecF e = expNegative(load(row + k) - shift);
    if (terms.cuts(k))
      e = select(terms.mask(k), e, VecF{});
    total = total + e;
    store(row + k, factor<C::Bf16>(terms.kept(e, k)));
  }
  const float denominator = sum(total);
  *logSumExp = greatest + log(denominator);
  return dropoutScale<C>(args) / denominator;
}

/// Queries [query, query + rows) of a list and head.
template <class C>
inline void forwardQueries(const AttentionArgs &args,
                           const SharedTables<C> &tables,
                           const AttentionUnit<C> &unit,
                           const ForwardBuffers<C> &buffers, int64_t query,
                           int rows) {
  using Tiles = AttentionTiles<C>;
  constexpr int R = Tiles::Rows;
  const KeyRange keys = unit.seenByAny(query, query + rows, args);
  const int64_t vectorBegin = keys.low / kLanes;
  const int64_t vectorEnd = (keys.high + kLanes - 1) / kLanes;
  const float *queries[R];
  for (int r = 0; r < R; ++r)
    queries[r] = unit.q + (query + (r < rows ? r : 0)) * args.ldQ;
  if constexpr (C::Bf16)
    for (int r = 0; r < R; ++r) {
      float *rounded = buffers.queries + r * C::Qk;
      roundBf16(queries[r], C::Qk, rounded);
      queries[r] = rounded;
    }
  scoreTile<R, Tiles::ScoreVectors, C::Qk>(queries, buffers.keys, vectorBegin,
                                           vectorEnd, buffers.scores,
                                           buffers.ldScores);
  float factors[R];
  for (int r = 0; r < rows; ++r) {
    float *row = buffers.scores + r * buffers.ldScores;
    QueryTerms<C> terms(args, tables, unit, query + r, vectorBegin, vectorEnd,
                        buffers.buckets, buffers.words);
    if constexpr (C::Score == ScoreKind::silu)
      factors[r] = siluWeights<C>(args, terms, vectorBegin, vectorEnd,
                                  unit.length, row);
    else
      factors[r] = softmaxWeights<C>(
          args, terms, vectorBegin, vectorEnd, row,
          args.logSumExp + (unit.first + query + r) * C::Heads + unit.head);
  }
  float *out = args.out + (unit.first + query) * args.ldOut + unit.head * C::V;
  WeightedRows<R, C::V>::run(buffers.scores, buffers.ldScores, buffers.values,
                             unit.length, keys, rows, factors, out, args.ldOut);
}

/// The queries [begin, end) of a unit.
template <class C>
inline void forwardUnit(const AttentionArgs &args,
                        const SharedTables<C> &tables,
                        const AttentionUnit<C> &unit,
                        const ForwardBuffers<C> &buffers, int64_t begin,
                        int64_t end) {
  constexpr int R = AttentionTiles<C>::Rows;
  transposeRows<C::Qk>(unit.k, args.ldK, unit.length, buffers.keys);
  packRows<C::V>(unit.v, args.ldV, unit.length, buffers.values);
  roundFactors<C>(buffers.keys, roundUp(unit.length, kLanes) * C::Qk);
  roundFactors<C>(buffers.values, packedRowsFloats<C::V>(unit.length));
  for (int64_t query = begin; query < end; query += R)
    forwardQueries<C>(args, tables, unit, buffers, query,
                      end - query < R ? static_cast<int>(end - query) : R);
}

template <class C> inline int64_t forwardBytes(const AttentionArgs &args) {
  return ForwardBuffers<C>(nullptr, args.maxLength).bytes();
}

/// Units [begin, end), but those of giants, in the scratch of one worker.
template <class C>
inline void forwardUnits(const AttentionArgs &args, const GiantLists &giants,
                         const SharedTables<C> &tables, char *mine,
                         int64_t begin, int64_t end) {
  ForwardBuffers<C> buffers(mine, args.maxLength);
  for (int64_t index = begin; index < end; ++index) {
    AttentionUnit<C> unit(args, index);
    if (!giants.contains(index / C::Heads))
      forwardUnit<C>(args, tables, unit, buffers, 0, unit.length);
  }
}

/// Pieces [begin, end) of a giant, by head, then by queries.
template <class C>
inline void forwardPieces(const AttentionArgs &args, int64_t list,
                          const SharedTables<C> &tables, char *scratch,
                          int64_t begin, int64_t end) {
  ForwardBuffers<C> buffers(scratch + genrec_rt_worker_index() * forwardBytes<C>(args),
                            args.maxLength);
  for (int64_t index = begin; index < end; ++index) {
    GiantPiece piece(args, list, index);
    AttentionUnit<C> unit(args, list * C::Heads + piece.head);
    forwardUnit<C>(args, tables, unit, buffers, piece.rows.low, piece.rows.high);
  }
}

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_FORWARD_H
