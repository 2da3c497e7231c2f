//===- plain.h - Attention without tensor cores -------------------*- C++ -*-===//
//
// The reference on the device, and what runs for float values: tiles of 32 rows and 32 columns
// (plain_tiles.h; wide heads have tiles of 16), products in float with the functions that the CPU
// uses (kernels/shared/math.h). Backward goes over the pairs twice, once per tile of queries for dQ
// and the biases, once per tile of keys for dK and dV, so every sum but those of the biases has one
// owner, and adds in the order of the other rows. With values of bfloat16 what is multiplied with
// them is rounded, too: forward before it is divided, backward as it is.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_H

#include "genrec_rt/device_limits.h"
#include "genrec_rt/kernels/cuda/attention/backward_space.h"
#include "genrec_rt/kernels/cuda/attention/plain_tiles.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"

namespace genrec::rt::cuda {

namespace plain {

struct Empty {
  __device__ void fill(int64_t, int, int) {}
};

/// Shared memory of a kernel.
template <class C, bool Backward> struct Shared {
  template <int Size> using Rows = TileRows<Size, kPlainTile<C>>;
  Rows<C::Qk> q, k;
  Rows<C::V> v;
  Square<C> weights;
  [[no_unique_address]] std::conditional_t<Backward, Rows<C::V>, Empty> dOut;
  [[no_unique_address]] std::conditional_t<Backward, Square<C>, Empty> gradients;
  [[no_unique_address]] std::conditional_t<C::TimeBias, TimeBuckets, Empty> times;

  /// The next tile of keys and their values, once all threads are done with the last one.
  __device__ void loadKeys(const AttentionArgs<typename C::Element> &args, int64_t first, int head,
                           RowRange keys) {
    __syncthreads();
    k.load(args.k, args.ldK, first, head, keys);
    v.load(args.v, args.ldV, first, head, keys);
    __syncthreads();
  }
};

/// The terms of pairs beside q . k.
template <class C> struct PairTerms {
  using E = typename C::Element;
  using Times = std::conditional_t<C::TimeBias, TimeBuckets, Empty>;
  const AttentionArgs<E> &args;
  const ListMask<C> &mask;
  int64_t first;
  int head;
  const Times &times;
  float secondsPerTick;
  uint32_t threshold = 0;
  kernels::RandomStream random = {};

  __device__ PairTerms(const AttentionArgs<E> &args, const ListMask<C> &mask, int64_t first,
                       int head, Times &times)
      : args(args), mask(mask), first(first), head(head), times(times),
        secondsPerTick(1.0f / static_cast<float>(args.ticksPerSecond)) {
    if constexpr (C::TimeBias)
      times.fill(args.ticksPerSecond, static_cast<int>(threadIdx.x), kPlainThreads);
    if constexpr (C::Dropout) {
      threshold = kernels::keepThreshold(args.dropProbability);
      random = args.draws();
    }
  }
  __device__ int position(int query, int key) const { return positionBucket(args, key - query); }
  __device__ int time(int query, int key) const {
    const int64_t ticks =
        ticksBefore(queryTime(args, first, mask.length, query), args.timestamps[first + key]);
    return times.bucket(ticks, static_cast<int>(args.timeBuckets), secondsPerTick);
  }
  __device__ float score(float dot, int query, int key) const {
    float s = dot * args.scale;
    if constexpr (C::PositionBias)
      s += args.positionBias[position(query, key)];
    if constexpr (C::TimeBias)
      s += args.timeBias[time(query, key)];
    return s;
  }
  __device__ bool keeps(int query, int key) const {
    if constexpr (!C::Dropout)
      return true;
    const uint64_t element =
        static_cast<uint64_t>(head) * kDropoutElementsPerHead + static_cast<uint64_t>(key);
    return kernels::keeps(kernels::philoxWord(random, args.identity[first + query], element),
                          threshold);
  }
};

/// One pair's weight and the gradient of its score.
struct PairGradient {
  float weight, dScore;
};

/// `dot` is q . k, `dWeight` dOut . v.
template <class C>
__device__ PairGradient pairGradient(const PairTerms<C> &terms, const BackwardSpace &space,
                                     float dot, float dWeight, int query, int key) {
  const AttentionArgs<typename C::Element> &args = terms.args;
  if (!terms.mask.sees(query, key))
    return {0, 0};
  const float s = terms.score(dot, query, key);
  const float kept = terms.keeps(query, key) ? keptFactor<C>(args) : 0.0f;
  dWeight *= kept;
  if constexpr (C::Softmax) {
    const float weight =
        kernels::exp(s - args.logSumExp[(terms.first + query) * args.heads + terms.head]);
    const float product = space.rowProduct[terms.head * args.rows + terms.first + query];
    return {weight * kept, weight * (dWeight - product)};
  } else {
    const float factor = weightFactor<C>(args, terms.mask.length);
    return {kernels::silu(s) * factor * kept, dWeight * factor * kernels::siluGrad(s)};
  }
}

/// Calls each(row, column, dot, dWeight) for the pairs of a thread, all of whose products are
/// there.
template <class C, class Each>
__device__ __forceinline__ void forPairs(const Place &place, const Products<C> &dots,
                                         const Products<C> &dWeights, const Each &each) {
#pragma unroll
  for (int i = 0; i < kRows<C>; ++i)
#pragma unroll
    for (int j = 0; j < kColumns<C>; ++j)
      each(place.row + i * kRowThreads, place.lane + j * kLanes, dots.values[i][j],
           dWeights.values[i][j]);
}

/// Weights of a tile of keys in softmax: what a thread has seen of its rows.
template <class C> struct SoftmaxRows {
  float most[kRows<C>], total[kRows<C>]; ///< the latter of this thread's keys

  __device__ SoftmaxRows() {
#pragma unroll
    for (int i = 0; i < kRows<C>; ++i)
      most[i] = -INFINITY, total[i] = 0;
  }
  /// Scores, -INFINITY of what is not seen, become weights; returns what those before, and their
  /// sums, are multiplied by.
  __device__ float add(int i, float (&scores)[kColumns<C>]) {
    float tileMost = -INFINITY, factor = 1;
#pragma unroll
    for (int j = 0; j < kColumns<C>; ++j)
      tileMost = fmaxf(tileMost, scores[j]);
    tileMost = mostOfLanes<kLanes>(tileMost);
    if (tileMost > most[i]) {
      factor = kernels::exp(most[i] - tileMost);
      most[i] = tileMost;
    }
    total[i] *= factor;
#pragma unroll
    for (int j = 0; j < kColumns<C>; ++j) {
      // Where nothing is seen yet, the difference would be NaN.
      scores[j] = scores[j] == -INFINITY ? 0.0f : kernels::exp(scores[j] - most[i]);
      total[i] += scores[j];
    }
    return factor;
  }
  __device__ float sum(int i) const { return sumOfLanes<kLanes>(total[i]); }
};

/// Adds the gradients of a tile of pairs to those of positions: a thread takes a part of a
/// diagonal, whose pairs have one distance. `away` is key minus query of the tile's first pair.
template <class C>
__device__ void addPositionGradients(const PairTerms<C> &terms, Square<C> &gradients, int away,
                                     const BiasQuantum &quantum, Word *sums) {
  constexpr int kDiagonals = 2 * kPlainTile<C> - 1, kParts = kPlainThreads / kDiagonals;
  constexpr int kRowsOfPart = kPlainTile<C> / kParts;
  static_assert(kParts * kRowsOfPart == kPlainTile<C>);
  const int part = static_cast<int>(threadIdx.x) / kDiagonals;
  const int diagonal = static_cast<int>(threadIdx.x) % kDiagonals - (kPlainTile<C> - 1);
  if (part >= kParts)
    return;
  Word sum = 0;
  for (int row = part * kRowsOfPart; row < (part + 1) * kRowsOfPart; ++row)
    if (const int column = row + diagonal; column >= 0 && column < kPlainTile<C>)
      sum += quantum.multiple(gradients.at(row, column));
  if (sum != 0)
    atomicAdd(sums + terms.position(0, away + diagonal), sum);
}

} // namespace plain

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

template <class C>
__global__ void __launch_bounds__(kPlainThreads)
    attentionForwardPlain(AttentionArgs<typename C::Element> args, int tilesPerList) {
  using Shared = plain::Shared<C, false>;
  GENREC_DYNAMIC_SHARED(Shared, shared);
  constexpr int kTile = kPlainTile<C>, kRows = plain::kRows<C>, kColumns = plain::kColumns<C>;
  const AttentionUnit<C, kTile> unit(args, blockIdx.x, tilesPerList, C::Causal);
  if (!unit.hasRows())
    return;
  const plain::Place place;
  const plain::PairTerms<C> terms(args, unit.mask, unit.first, unit.head, shared->times);
  shared->q.load(args.q, args.ldQ, unit.first, unit.head, unit.range());

  plain::OutputRows<C, C::V> out;
  plain::SoftmaxRows<C> softmax;
  const SeenTiles<C, Over::keys, kTile> tiles(unit.mask, unit.range());
  for (int begin = tiles.first(); tiles.has(begin); begin = tiles.after(begin)) {
    shared->loadKeys(args, unit.first, unit.head, tiles.range(begin));
    const plain::Products<C> dots(shared->q, shared->k, place);
    float factors[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const int row = place.row + i * plain::kRowThreads, query = unit.begin + row;
      float weights[kColumns];
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int key = begin + place.lane + j * plain::kLanes;
        weights[j] =
            unit.mask.sees(query, key) ? terms.score(dots.values[i][j], query, key) : -INFINITY;
      }
      if constexpr (C::Softmax)
        factors[i] = softmax.add(i, weights);
#pragma unroll
      for (int j = 0; j < kColumns; ++j) {
        const int column = place.lane + j * plain::kLanes, key = begin + column;
        const bool keep = unit.mask.sees(query, key) && terms.keeps(query, key);
        const float weight = C::Softmax ? weights[j] : kernels::silu(weights[j]);
        shared->weights.at(row, column) = keep ? weight : 0.0f;
      }
    }
    __syncthreads();
    if constexpr (C::Softmax)
      out.multiply(factors);
    out.add(shared->weights, shared->v, place);
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int query = unit.begin + place.row + i * plain::kRowThreads;
    float factor = weightFactor<C>(args, unit.mask.length) * keptFactor<C>(args), total = 1;
    if constexpr (C::Softmax)
      factor /= total = softmax.sum(i);
    if (query >= unit.mask.length)
      continue;
    const int64_t at = unit.first + query;
    out.store(outRows<C>(args).at(at, unit.head * C::V), i, place.lane, factor);
    if (C::Softmax && place.lane == 0)
      args.logSumExp[at * args.heads + unit.head] = softmax.most[i] + kernels::log(total);
  }
}

/// dQ of a tile of queries; bias gradients.
template <class C>
__global__ void __launch_bounds__(kPlainThreads)
    attentionQueriesPlain(AttentionArgs<typename C::Element> args,
                          AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                          int tilesPerList, int pairBits) {
  using Shared = plain::Shared<C, true>;
  static_assert(C::Qk + C::V > kMostHeadColumns || sizeof(Shared) <= 227 << 10);
  GENREC_DYNAMIC_SHARED(Shared, shared);
  constexpr int kTile = kPlainTile<C>, kRows = plain::kRows<C>;
  const AttentionUnit<C, kTile> unit(args, blockIdx.x, tilesPerList, C::Causal);
  if (!unit.hasRows())
    return;
  const plain::Place place;
  const plain::PairTerms<C> terms(args, unit.mask, unit.first, unit.head, shared->times);
  shared->q.load(args.q, args.ldQ, unit.first, unit.head, unit.range());
  shared->dOut.load(gradients.dOut, gradients.ldDOut, unit.first, unit.head, unit.range());
  const BiasQuantum quantum(space.greatest, pairBits);

  plain::OutputRows<C, C::Qk> dQ;
  const SeenTiles<C, Over::keys, kTile> tiles(unit.mask, unit.range());
  for (int begin = tiles.first(); tiles.has(begin); begin = tiles.after(begin)) {
    shared->loadKeys(args, unit.first, unit.head, tiles.range(begin));
    const plain::Products<C> dots(shared->q, shared->k, place);
    const plain::Products<C> dWeights(shared->dOut, shared->v, place);
    plain::forPairs(place, dots, dWeights, [&](int row, int column, float dot, float dWeight) {
      const int query = unit.begin + row, key = begin + column;
      const float dScore = plain::pairGradient<C>(terms, space, dot, dWeight, query, key).dScore;
      shared->gradients.at(row, column) = dScore;
      if constexpr (C::TimeBias)
        if (dScore != 0)
          quantum.add(space.timeSums, terms.time(query, key), dScore);
    });
    __syncthreads();
    if constexpr (C::PositionBias)
      plain::addPositionGradients(terms, shared->gradients, begin - unit.begin, quantum,
                                  space.positionSums);
    dQ.add(shared->gradients, shared->k, place);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i)
    if (const int query = unit.begin + place.row + i * plain::kRowThreads; query < unit.mask.length)
      dQ.store(queryRows<C>(gradients).at(unit.first + query, unit.head * C::Qk), i, place.lane,
               args.scale);
}

/// dK and dV of a tile of keys, which are its rows.
template <class C>
__global__ void __launch_bounds__(kPlainThreads)
    attentionKeysPlain(AttentionArgs<typename C::Element> args,
                       AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                       int tilesPerList) {
  using Shared = plain::Shared<C, true>;
  GENREC_DYNAMIC_SHARED(Shared, shared);
  constexpr int kTile = kPlainTile<C>, kRows = plain::kRows<C>;
  const AttentionUnit<C, kTile> unit(args, blockIdx.x, tilesPerList, false);
  if (!unit.hasRows())
    return;
  const plain::Place place;
  const plain::PairTerms<C> terms(args, unit.mask, unit.first, unit.head, shared->times);
  shared->k.load(args.k, args.ldK, unit.first, unit.head, unit.range());
  shared->v.load(args.v, args.ldV, unit.first, unit.head, unit.range());

  plain::OutputRows<C, C::Qk> dK;
  plain::OutputRows<C, C::V> dV;
  const SeenTiles<C, Over::queries, kTile> tiles(unit.mask, unit.range());
  for (int begin = tiles.first(); tiles.has(begin); begin = tiles.after(begin)) {
    __syncthreads();
    shared->q.load(args.q, args.ldQ, unit.first, unit.head, tiles.range(begin));
    shared->dOut.load(gradients.dOut, gradients.ldDOut, unit.first, unit.head, tiles.range(begin));
    __syncthreads();
    const plain::Products<C> dots(shared->k, shared->q, place);
    const plain::Products<C> dWeights(shared->v, shared->dOut, place);
    plain::forPairs(place, dots, dWeights, [&](int row, int column, float dot, float dWeight) {
      const plain::PairGradient pair =
          plain::pairGradient<C>(terms, space, dot, dWeight, begin + column, unit.begin + row);
      shared->weights.at(row, column) = pair.weight;
      shared->gradients.at(row, column) = pair.dScore;
    });
    __syncthreads();
    dV.add(shared->weights, shared->dOut, place);
    dK.add(shared->gradients, shared->q, place);
  }
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int key = unit.begin + place.row + i * plain::kRowThreads;
    if (key >= unit.mask.length)
      continue;
    const int64_t row = unit.first + key;
    dK.store(keyRows<C>(gradients).at(row, unit.head * C::Qk), i, place.lane, args.scale);
    dV.store(valueRows<C>(gradients).at(row, unit.head * C::V), i, place.lane, 1.0f);
  }
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_H
