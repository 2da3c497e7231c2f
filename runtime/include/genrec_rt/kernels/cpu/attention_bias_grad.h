//===- attention_bias_grad.h - Gradients of attention's biases ---*- C++ -*-===//
//
// Both bias tables gain a term from every (query, key) pair of every list, so
// the sums are made per chunk of lists, and the chunks' sums are added in order.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_ATTENTION_BIAS_GRAD_H
#define GENREC_RT_KERNELS_CPU_ATTENTION_BIAS_GRAD_H

#include "genrec_rt/kernels/cpu/attention_common.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace detail {

/// One worker's sums over a chunk.
template <class C> struct BiasGradients {
  /// Queries take these copies in turn: those of neighbouring queries overlap
  /// except for one float, and a load that straddles two recent stores stalls.
  static constexpr int kCopies = 4;
  int64_t maxLength = 0, distances = 0, timeBuckets = 0;
  float *byDistance = nullptr; ///< [kCopies, distances], as SharedTables::byDistance
  float *byBucket = nullptr;   ///< [timeBuckets, kLanes]: one sum per lane

  BiasGradients() = default;
  BiasGradients(ScratchCursor &cursor, int64_t maxLength, int64_t buckets)
      : maxLength(maxLength),
        distances(roundUp(SharedTables<C>::distances(maxLength), kLanes)),
        timeBuckets(buckets) {
    if constexpr (C::PositionBias)
      byDistance = cursor.take<float>(kCopies * distances);
    if constexpr (C::TimeBias)
      byBucket = cursor.take<float>(buckets * kLanes);
  }

  void clear() const {
    if constexpr (C::PositionBias)
      __builtin_memset(byDistance, 0, static_cast<size_t>(kCopies * distances) * 4);
    if constexpr (C::TimeBias)
      __builtin_memset(byBucket, 0, static_cast<size_t>(timeBuckets * kLanes) * 4);
  }

  /// Adds the score gradients of one query and the vector of keys at k.
  GENREC_SIMD void add(int64_t query, int64_t k, VecF dScore,
                       const int32_t *buckets) const {
    if constexpr (C::PositionBias) {
      float *to = byDistance + (query % kCopies) * distances +
                  (maxLength - 1 - query) + k;
      store(to, load(to) + dScore);
    }
    if constexpr (C::TimeBias)
      addToBuckets(buckets + k, dScore);
  }

private:
  /// Lanes keep sums of their own, so that a run of keys in one bucket (times
  /// are mostly sorted) is one masked addition.
  GENREC_SIMD void addToBuckets(const int32_t *buckets, VecF dScore) const {
    VecI bucket = loadI(buckets);
    uint32_t left = maskBits(splatI(-1));
    while (left) {
      int32_t one = buckets[__builtin_ctz(left)];
      VecI same = bucket == splatI(one);
      float *to = byBucket + static_cast<int64_t>(one) * kLanes;
      store(to, load(to) + select(same, dScore, VecF{}));
      left &= ~maskBits(same);
    }
  }
};

/// Sums per chunk: [chunks, positionBuckets] and [chunks, timeBuckets].
template <class C>
constexpr int64_t biasPartialBytes(int64_t positionBuckets,
                                   int64_t timeBuckets) {
  int64_t chunks = AttentionUnits::kMaxChunks;
  return (C::PositionBias ? roundUp(chunks * positionBuckets * 4, 64) : 0) +
         (C::TimeBias ? roundUp(chunks * timeBuckets * 4, 64) : 0);
}

template <class C> struct BiasPartials {
  const AttentionArgs &args;
  float *position = nullptr, *time = nullptr;

  BiasPartials(void *scratch, const AttentionArgs &args) : args(args) {
    ScratchCursor cursor(scratch);
    int64_t chunks = AttentionUnits::kMaxChunks;
    if constexpr (C::PositionBias)
      position = cursor.take<float>(chunks * args.positionBuckets);
    if constexpr (C::TimeBias)
      time = cursor.take<float>(chunks * args.timeBuckets);
  }

  /// Those of a chunk, or of a further part of it, which are added.
  void write(int64_t chunk, const BiasGradients<C> &sums, bool first = true) const {
    if constexpr (C::PositionBias) {
      const int64_t buckets = args.positionBuckets;
      float *to = position + chunk * buckets;
      if (first)
        __builtin_memset(to, 0, static_cast<size_t>(buckets) * 4);
      for (int64_t x = 0; x < 2 * sums.maxLength - 1; ++x) {
        float total = 0;
        for (int copy = 0; copy < BiasGradients<C>::kCopies; ++copy)
          total += sums.byDistance[copy * sums.distances + x];
        to[SharedTables<C>::bucketOf(x - (sums.maxLength - 1), buckets)] += total;
      }
    }
    if constexpr (C::TimeBias)
      for (int64_t b = 0; b < args.timeBuckets; ++b) {
        float *to = time + chunk * args.timeBuckets + b;
        *to = (first ? 0.0f : *to) + sum(load(sums.byBucket + b * kLanes));
      }
  }

  static void clear(const AttentionArgs &args,
                    const AttentionGradients &gradients) {
    if constexpr (C::PositionBias)
      __builtin_memset(gradients.dPositionBias, 0,
                       static_cast<size_t>(args.positionBuckets) * 4);
    if constexpr (C::TimeBias)
      __builtin_memset(gradients.dTimeBias, 0,
                       static_cast<size_t>(args.timeBuckets) * 4);
  }

  /// Adds the sums of the first `chunks` chunks to the gradients.
  void addUp(int64_t chunks, const AttentionGradients &gradients) const {
    if constexpr (C::PositionBias)
      addChunks(position, chunks, args.positionBuckets, gradients.dPositionBias);
    if constexpr (C::TimeBias)
      addChunks(time, chunks, args.timeBuckets, gradients.dTimeBias);
  }

private:
  static void addChunks(const float *parts, int64_t chunks, int64_t count,
                        float *out) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      for (int64_t i = 0; i < count; ++i)
        out[i] += parts[chunk * count + i];
  }
};

} // namespace detail
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_ATTENTION_BIAS_GRAD_H
