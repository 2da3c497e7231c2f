//===- cross_attention.h - Rows attend to those of another list -*- C++ -*-===//
//
// Queries meet the keys of a list: that of their own parent, where both lists have one
// parent, or their own, where the keys are children of the queries. Per head:
//
//   a_ij = exp(scale * q_i . k_j) / sum over j of exp(scale * q_i . k_j)
//   out_i = sum over j of a_ij v_j
//
// 0 without keys. Heads lie side by side in a row. Backward computes the weights again:
// that costs one product of three and keeps nothing. A list and its queries belong to one
// worker, so that the sums over queries need no other order than that of the rows.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_CROSS_ATTENTION_H
#define GENREC_RT_KERNELS_CPU_CROSS_ATTENTION_H

#include "genrec_rt/abi.h"
#include "genrec_rt/kernels/cpu/bf16.h"
#include "genrec_rt/kernels/cpu/pack.h"
#include "genrec_rt/kernels/shared/math.h"
#include "genrec_rt/parallel.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {

/// Leading dimensions are in floats.
struct CrossAttentionArgs {
  const genrec_domain *queries = nullptr;
  const genrec_domain *keys = nullptr; ///< children of `queries`, or of the queries' parent
  const float *q = nullptr;            ///< [queries, Heads * Qk]
  int64_t ldQ = 0;
  const float *k = nullptr; ///< [keys, Heads * Qk]
  int64_t ldK = 0;
  const float *v = nullptr; ///< [keys, Heads * V]
  int64_t ldV = 0;
  float scale = 1;
};

namespace detail {

/// `Size` floats in registers.
template <int Size> struct CrossRow {
  static constexpr int kWhole = Size / kLanes, kTail = Size % kLanes;
  VecF vectors[kWhole + (kTail > 0)];

  GENREC_SIMD static CrossRow zero() {
    CrossRow row;
    for (VecF &vector : row.vectors)
      vector = VecF{};
    return row;
  }
  /// With Bf16 rounded to bfloat16.
  template <bool Bf16 = false> GENREC_SIMD static CrossRow read(const float *from) {
    CrossRow row;
#pragma GCC unroll 16
    for (int i = 0; i < kWhole; ++i)
      row.vectors[i] = factor<Bf16>(load(from + i * kLanes));
    if constexpr (kTail > 0)
      row.vectors[kWhole] = factor<Bf16>(loadMasked(from + kWhole * kLanes, laneMask(kTail)));
    return row;
  }
  GENREC_SIMD void write(float *to) const {
#pragma GCC unroll 16
    for (int i = 0; i < kWhole; ++i)
      store(to + i * kLanes, vectors[i]);
    if constexpr (kTail > 0)
      storeMasked(to + kWhole * kLanes, vectors[kWhole], laneMask(kTail));
  }
  /// += scale * other
  GENREC_SIMD void add(float scale, const CrossRow &other) {
    const VecF f = splat(scale);
#pragma GCC unroll 16
    for (int i = 0; i < kWhole + (kTail > 0); ++i)
      vectors[i] = fma(f, other.vectors[i], vectors[i]);
  }
  GENREC_SIMD float dot(const CrossRow &other) const {
    VecF products = vectors[0] * other.vectors[0];
#pragma GCC unroll 16
    for (int i = 1; i < kWhole + (kTail > 0); ++i)
      products = fma(vectors[i], other.vectors[i], products);
    return sum(products);
  }
};

/// The rows of one list of keys, and of the queries that meet them.
struct CrossList {
  int64_t queryBegin, queryEnd, keyBegin, length;

  CrossList(const CrossAttentionArgs &args, int64_t list) {
    const bool isBelow = args.keys->parent_domain == args.queries;
    queryBegin = isBelow ? list : args.queries->offsets[list];
    queryEnd = isBelow ? list + 1 : args.queries->offsets[list + 1];
    keyBegin = args.keys->offsets[list];
    length = args.keys->offsets[list + 1] - keyBegin;
  }
};

inline int64_t crossScratchFloats(const genrec_domain *keys) {
  return (keys->max_length + kLanes - 1) / kLanes * kLanes;
}

/// Turns the `length` scores of a query, in a buffer of whole vectors, into weights.
GENREC_SIMD void crossWeights(float *scores, int64_t length) {
  const int64_t whole = (length + kLanes - 1) / kLanes * kLanes;
  for (int64_t j = length; j < whole; ++j)
    scores[j] = -__builtin_inff();
  VecF most = load(scores);
  for (int64_t j = kLanes; j < whole; j += kLanes)
    most = max(most, load(scores + j));
  const VecF greatest = splat(maxLane(most));
  VecF total = {};
  for (int64_t j = 0; j < whole; j += kLanes) {
    VecF e = expNegative(load(scores + j) - greatest);
    if (j + kLanes > length)
      e = select(tailMask(static_cast<int>(length - j)), e, VecF{});
    total = total + e;
    store(scores + j, e);
  }
  const VecF divisor = splat(sum(total));
  for (int64_t j = 0; j < whole; j += kLanes)
    store(scores + j, load(scores + j) / divisor);
}

template <int Qk, bool Bf16>
GENREC_SIMD void crossScores(const CrossAttentionArgs &args, const CrossRow<Qk> &query,
                             const float *keys, int64_t length, float *scores) {
  for (int64_t j = 0; j < length; ++j)
    scores[j] = args.scale * query.dot(CrossRow<Qk>::template read<Bf16>(keys + j * args.ldK));
  crossWeights(scores, length);
}

/// Calls body(list, `buffers` rows of scores of the worker's own) for every list of keys.
template <class Body>
inline void forEachCrossList(genrec_rt_pool *pool, const CrossAttentionArgs &args, void *scratch,
                             int buffers, const Body &body) {
  const int64_t lists = args.keys->parent_domain->count;
  const int64_t floats = crossScratchFloats(args.keys) * buffers;
  constexpr int64_t kChunks = 64;
  const int64_t grain = lists <= kChunks ? 1 : (lists + kChunks - 1) / kChunks;
  parallelFor(pool, lists, grain, [&](int64_t begin, int64_t end, int64_t) {
    float *own = static_cast<float *>(scratch) + genrec_rt_worker_index() * floats;
    for (int64_t list = begin; list < end; ++list)
      body(CrossList(args, list), own);
  });
}

} // namespace detail

/// Bytes of scratch of both directions.
inline int64_t crossAttentionScratchBytes(const genrec_domain *keys, int32_t workers) {
  return 2 * workers * detail::crossScratchFloats(keys) * static_cast<int64_t>(sizeof(float));
}

/// out [queries, Heads * V], rows one behind another. With Bf16 q, k, v and the weights are rounded
/// to bfloat16, and backward the gradients of out and of the scores.
template <int Heads, int Qk, int V, bool Bf16 = false>
inline void crossAttentionForward(genrec_rt_pool *pool, const CrossAttentionArgs &args, float *out,
                                  void *scratch) {
  using Values = detail::CrossRow<V>;
  detail::forEachCrossList(
      pool, args, scratch, 1, [&](const detail::CrossList &list, float *scores) {
        for (int head = 0; head < Heads; ++head) {
          const float *keys = args.k + list.keyBegin * args.ldK + head * Qk;
          const float *values = args.v + list.keyBegin * args.ldV + head * V;
          for (int64_t row = list.queryBegin; row < list.queryEnd; ++row) {
            Values attended = Values::zero();
            if (list.length > 0) {
              auto query =
                  detail::CrossRow<Qk>::template read<Bf16>(args.q + row * args.ldQ + head * Qk);
              detail::crossScores<Qk, Bf16>(args, query, keys, list.length, scores);
            }
            for (int64_t j = 0; j < list.length; ++j)
              attended.add(factor<Bf16>(scores[j]),
                           Values::template read<Bf16>(values + j * args.ldV));
            attended.write(out + row * Heads * V + head * V);
          }
        }
      });
}

/// dQ [queries, Heads * Qk], dK [keys, Heads * Qk], dV [keys, Heads * V], rows one behind
/// another, of the gradient `dOut` of out.
template <int Heads, int Qk, int V, bool Bf16 = false>
inline void crossAttentionBackward(genrec_rt_pool *pool, const CrossAttentionArgs &args,
                                   const float *dOut, int64_t ldDOut, float *dQ, float *dK,
                                   float *dV, void *scratch) {
  using Key = detail::CrossRow<Qk>;
  using Values = detail::CrossRow<V>;
  const int64_t floats = detail::crossScratchFloats(args.keys);
  detail::forEachCrossList(
      pool, args, scratch, 2, [&](const detail::CrossList &list, float *weights) {
        float *dots = weights + floats;
        for (int head = 0; head < Heads; ++head) {
          const float *keys = args.k + list.keyBegin * args.ldK + head * Qk;
          const float *values = args.v + list.keyBegin * args.ldV + head * V;
          float *dKeys = dK + list.keyBegin * Heads * Qk + head * Qk;
          float *dValues = dV + list.keyBegin * Heads * V + head * V;
          for (int64_t j = 0; j < list.length; ++j) {
            Key::zero().write(dKeys + j * Heads * Qk);
            Values::zero().write(dValues + j * Heads * V);
          }
          for (int64_t row = list.queryBegin; row < list.queryEnd; ++row) {
            Key dQuery = Key::zero();
            if (list.length > 0) {
              const Key query = Key::template read<Bf16>(args.q + row * args.ldQ + head * Qk);
              const Values gradient = Values::template read<Bf16>(dOut + row * ldDOut + head * V);
              detail::crossScores<Qk, Bf16>(args, query, keys, list.length, weights);
              float mean = 0;
              for (int64_t j = 0; j < list.length; ++j) {
                dots[j] = gradient.dot(Values::template read<Bf16>(values + j * args.ldV));
                mean += weights[j] * dots[j];
              }
              for (int64_t j = 0; j < list.length; ++j) {
                const float dScore = factor<Bf16>(weights[j] * (dots[j] - mean)) * args.scale;
                dQuery.add(dScore, Key::template read<Bf16>(keys + j * args.ldK));
                Key dKey = Key::read(dKeys + j * Heads * Qk);
                dKey.add(dScore, query);
                dKey.write(dKeys + j * Heads * Qk);
                Values dValue = Values::read(dValues + j * Heads * V);
                dValue.add(factor<Bf16>(weights[j]), gradient);
                dValue.write(dValues + j * Heads * V);
              }
            }
            dQuery.write(dQ + row * Heads * Qk + head * Qk);
          }
        }
      });
}

} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_CROSS_ATTENTION_H
