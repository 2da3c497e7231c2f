//===- plain.h - Attention without tensor cores -------------------*- C++ -*-===//
//
// The reference on the device, and what runs for float values: tiles of 16
// queries and 16 keys, a thread for every pair of a tile, products in float with
// the functions that the CPU uses (kernels/shared/math.h). Backward goes over the pairs
// twice, once per query tile for dQ and the biases, once per key tile for dK and dV, so
// every sum but those of the biases has one owner. With values of bfloat16 what is multiplied with
// them is rounded, too: forward before it is divided, backward as it is.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_H
#define GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_H

#include "genrec_rt/kernels/cuda/attention/prepare.h"
#include "genrec_rt/kernels/cuda/factors.h"

namespace genrec::rt::cuda {

constexpr int kPlainTile = 16;
constexpr int kPlainThreads = kPlainTile * kPlainTile;

namespace plain {

/// Rows of a tile in shared memory; the odd stride keeps columns on different banks.
template <int Size> struct TileRows {
  static constexpr int kStride = Size | 1;
  float values[kPlainTile * kStride];

  /// Rows behind the end of the list become zeros.
  template <class E>
  __device__ void load(const E *from, int64_t ld, int64_t first, int head, RowRange rows) {
    for (int at = static_cast<int>(threadIdx.x); at < kPlainTile * Size; at += kPlainThreads) {
      const int row = at / Size, column = at % Size;
      const bool inside = rows.begin + row < rows.end;
      values[row * kStride + column] =
          inside ? toFloat(from[(first + rows.begin + row) * ld + head * Size + column]) : 0.0f;
    }
  }
  __device__ const float *row(int index) const { return values + index * kStride; }
};

template <int Size> __device__ float dot(const float *a, const float *b) {
  float sum = 0;
  for (int e = 0; e < Size; ++e)
    sum = __fmaf_rn(a[e], b[e], sum);
  return sum;
}

/// A weight or a gradient of a score as a factor of v, dOut, q or k.
template <class C> __device__ float factorOf(float weight) {
  return factor<sizeof(typename C::Element) == 2>(weight);
}

/// A tile of weights or gradients of scores, [query][key].
struct Square {
  float values[kPlainTile][kPlainTile + 1];
};

/// The columns of one output row that a thread adds up: every 16th.
template <int Size> struct OutputRow {
  static constexpr int kCount = (Size + kPlainTile - 1) / kPlainTile;
  float sums[kCount] = {};

  /// sums = sums * factor + the row of the square (or its column) times `rows`.
  template <bool Transposed>
  __device__ void add(const Square &square, const TileRows<Size> &rows, int row, int lane,
                      float factor = 1) {
    for (int c = 0; c < kCount; ++c)
      sums[c] *= factor;
    for (int x = 0; x < kPlainTile; ++x) {
      const float weight = Transposed ? square.values[x][row] : square.values[row][x];
      for (int c = 0; c < kCount; ++c)
        if (lane + c * kPlainTile < Size)
          sums[c] = __fmaf_rn(weight, rows.row(x)[lane + c * kPlainTile], sums[c]);
    }
  }
  template <class E> __device__ void store(E *to, int lane, float factor) const {
    for (int c = 0; c < kCount; ++c)
      if (lane + c * kPlainTile < Size)
        to[lane + c * kPlainTile] = fromFloat<E>(sums[c] * factor);
  }
};

/// Shared memory of every kernel here.
template <class C> struct Shared {
  TileRows<C::Qk> q, k;
  TileRows<C::V> v, dOut;
  Square weights, gradients;
  TimeBuckets times;

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
  const AttentionArgs<E> &args;
  const ListMask<C> &mask;
  int64_t first;
  int head;
  const TimeBuckets &times;
  float secondsPerTick;
  uint32_t threshold = 0;
  kernels::RandomStream random = {};

  __device__ PairTerms(const AttentionArgs<E> &args, const ListMask<C> &mask, int64_t first,
                       int head, TimeBuckets &times)
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

template <class C>
__device__ PairGradient pairGradient(const PairTerms<C> &terms, const BackwardSpace &space,
                                     const Shared<C> &shared, int row, int column, int query,
                                     int key) {
  const AttentionArgs<typename C::Element> &args = terms.args;
  if (!terms.mask.sees(query, key))
    return {0, 0};
  const float s = terms.score(dot<C::Qk>(shared.q.row(row), shared.k.row(column)), query, key);
  const bool keep = terms.keeps(query, key);
  const float kept = keep ? keptFactor<C>(args) : 0.0f;
  const float dWeight = kept * dot<C::V>(shared.dOut.row(row), shared.v.row(column));
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

} // namespace plain

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

template <class C>
__global__ void __launch_bounds__(kPlainThreads)
    attentionForwardPlain(AttentionArgs<typename C::Element> args, int tilesPerList) {
  GENREC_DYNAMIC_SHARED(plain::Shared<C>, shared);
  const AttentionUnit<C, kPlainTile> unit(args, blockIdx.x, tilesPerList, C::Causal);
  if (!unit.hasRows())
    return;
  const int row = static_cast<int>(threadIdx.x) / kPlainTile,
            lane = static_cast<int>(threadIdx.x) % kPlainTile;
  const int query = unit.begin + row;
  const plain::PairTerms<C> terms(args, unit.mask, unit.first, unit.head, shared->times);
  shared->q.load(args.q, args.ldQ, unit.first, unit.head, unit.range());

  plain::OutputRow<C::V> out;
  float most = -INFINITY, total = 0; // softmax, of this thread's keys the latter
  const SeenTiles<C, Over::keys, kPlainTile> tiles(unit.mask, unit.range());
  for (int begin = tiles.first(); tiles.has(begin); begin = tiles.after(begin)) {
    shared->loadKeys(args, unit.first, unit.head, tiles.range(begin));
    const int key = begin + lane;
    const bool sees = unit.mask.sees(query, key);
    const bool keep = sees && terms.keeps(query, key);
    float s = -INFINITY, factor = 1;
    if (sees)
      s = terms.score(plain::dot<C::Qk>(shared->q.row(row), shared->k.row(lane)), query, key);
    if constexpr (C::Softmax) {
      float tileMost = s;
      for (int lanes = kPlainTile / 2; lanes > 0; lanes /= 2)
        tileMost = fmaxf(tileMost, __shfl_xor_sync(kAllLanes, tileMost, lanes));
      if (tileMost > most) {
        factor = kernels::exp(most - tileMost);
        most = tileMost;
      }
      const float weight = sees ? kernels::exp(s - most) : 0.0f;
      total = total * factor + weight;
      shared->weights.values[row][lane] = keep ? plain::factorOf<C>(weight) : 0.0f;
    } else {
      shared->weights.values[row][lane] = keep ? plain::factorOf<C>(kernels::silu(s)) : 0.0f;
    }
    __syncthreads();
    out.template add<false>(shared->weights, shared->v, row, lane, factor);
  }

  float factor = weightFactor<C>(args, unit.mask.length) * keptFactor<C>(args);
  if constexpr (C::Softmax) {
    for (int lanes = kPlainTile / 2; lanes > 0; lanes /= 2)
      total += __shfl_xor_sync(kAllLanes, total, lanes);
    factor /= total;
  }
  if (query >= unit.mask.length)
    return;
  const int64_t at = unit.first + query;
  out.store(resultOf<C>(args.out, args.floatOut) + at * args.ldOut + unit.head * C::V, lane,
            factor);
  if (C::Softmax && lane == 0)
    args.logSumExp[at * args.heads + unit.head] = most + kernels::log(total);
}

/// dQ of a tile of queries; bias gradients.
template <class C>
__global__ void __launch_bounds__(kPlainThreads)
    attentionQueriesPlain(AttentionArgs<typename C::Element> args,
                          AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                          int tilesPerList, int pairBits) {
  GENREC_DYNAMIC_SHARED(plain::Shared<C>, shared);
  const AttentionUnit<C, kPlainTile> unit(args, blockIdx.x, tilesPerList, C::Causal);
  if (!unit.hasRows())
    return;
  const int row = static_cast<int>(threadIdx.x) / kPlainTile,
            lane = static_cast<int>(threadIdx.x) % kPlainTile;
  const int query = unit.begin + row;
  const plain::PairTerms<C> terms(args, unit.mask, unit.first, unit.head, shared->times);
  shared->q.load(args.q, args.ldQ, unit.first, unit.head, unit.range());
  shared->dOut.load(gradients.dOut, gradients.ldDOut, unit.first, unit.head, unit.range());
  const BiasQuantum quantum(space.greatest, pairBits);

  plain::OutputRow<C::Qk> dQ;
  const SeenTiles<C, Over::keys, kPlainTile> tiles(unit.mask, unit.range());
  for (int begin = tiles.first(); tiles.has(begin); begin = tiles.after(begin)) {
    shared->loadKeys(args, unit.first, unit.head, tiles.range(begin));
    const int key = begin + lane;
    const float dScore =
        plain::pairGradient<C>(terms, space, *shared, row, lane, query, key).dScore;
    shared->gradients.values[row][lane] = plain::factorOf<C>(dScore);
    if (dScore != 0) {
      if constexpr (C::PositionBias)
        quantum.add(space.positionSums, terms.position(query, key), dScore);
      if constexpr (C::TimeBias)
        quantum.add(space.timeSums, terms.time(query, key), dScore);
    }
    __syncthreads();
    dQ.template add<false>(shared->gradients, shared->k, row, lane);
  }
  if (query < unit.mask.length)
    dQ.store(resultOf<C>(gradients.dQ, gradients.floatDQ) + (unit.first + query) * gradients.ldDQ +
                 unit.head * C::Qk,
             lane, args.scale);
}

/// dK and dV of a tile of keys.
template <class C>
__global__ void __launch_bounds__(kPlainThreads)
    attentionKeysPlain(AttentionArgs<typename C::Element> args,
                       AttentionGradients<typename C::Element> gradients, BackwardSpace space,
                       int tilesPerList) {
  GENREC_DYNAMIC_SHARED(plain::Shared<C>, shared);
  const AttentionUnit<C, kPlainTile> unit(args, blockIdx.x, tilesPerList, false);
  if (!unit.hasRows())
    return;
  const int row = static_cast<int>(threadIdx.x) / kPlainTile,
            lane = static_cast<int>(threadIdx.x) % kPlainTile;
  const plain::PairTerms<C> terms(args, unit.mask, unit.first, unit.head, shared->times);
  shared->k.load(args.k, args.ldK, unit.first, unit.head, unit.range());
  shared->v.load(args.v, args.ldV, unit.first, unit.head, unit.range());

  plain::OutputRow<C::Qk> dK;
  plain::OutputRow<C::V> dV;
  const SeenTiles<C, Over::queries, kPlainTile> tiles(unit.mask, unit.range());
  for (int begin = tiles.first(); tiles.has(begin); begin = tiles.after(begin)) {
    __syncthreads();
    shared->q.load(args.q, args.ldQ, unit.first, unit.head, tiles.range(begin));
    shared->dOut.load(gradients.dOut, gradients.ldDOut, unit.first, unit.head, tiles.range(begin));
    __syncthreads();
    const plain::PairGradient pair =
        plain::pairGradient<C>(terms, space, *shared, row, lane, begin + row, unit.begin + lane);
    shared->weights.values[row][lane] = plain::factorOf<C>(pair.weight);
    shared->gradients.values[row][lane] = plain::factorOf<C>(pair.dScore);
    __syncthreads();
    dV.template add<true>(shared->weights, shared->dOut, row, lane);
    dK.template add<true>(shared->gradients, shared->q, row, lane);
  }
  const int key = unit.begin + row;
  if (key >= unit.mask.length)
    return;
  dK.store(resultOf<C>(gradients.dK, gradients.floatDK) + (unit.first + key) * gradients.ldDK +
               unit.head * C::Qk,
           lane, args.scale);
  dV.store(resultOf<C>(gradients.dV, gradients.floatDV) + (unit.first + key) * gradients.ldDV +
               unit.head * C::V,
           lane, 1.0f);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_ATTENTION_PLAIN_H
