//===- cross_attention.h - Rows attend to those of another list, on the device -===//
//
// kernels/cpu/cross_attention.h says what is computed. A warp has a query of one head, or
// backward a key, and goes over the rows that meet it 32 at a time: a lane has the
// product with one of them, then the columns of the sum. Weights are rescaled as greater scores
// come (online softmax: Milakov and Gimelshein, 2018, section 3), so nothing per
// pair is in memory; backward keeps three floats per query and head. Without tensor cores.
//
// A sum over n rows is in their order, a rescaling each 32: within (n + Qk + V + 8) * 2^-23
// of the sum of the terms' magnitudes, and the same bits in every run. With Bf16 q, k, v, dOut, the
// weights and the gradients of scores are rounded to bfloat16 where they are multiplied, forward's
// weights before they are rescaled: 2^-8 of a weight between this and the CPU.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_CROSS_ATTENTION_H
#define GENREC_RT_KERNELS_CUDA_CROSS_ATTENTION_H

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/device_limits.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/factors.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"
#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::cuda {

/// A call; domains and arrays lie in device memory, leading dimensions are in floats.
struct CrossAttention {
  const genrec_domain *queries = nullptr;
  int64_t queryCapacity = 0;
  const genrec_domain *keys = nullptr; ///< children of `queries`, or of the queries' parent
  int64_t keyCapacity = 0;
  const float *q = nullptr; ///< [queries, Heads * Qk]
  int64_t ldQ = 0;
  const float *k = nullptr; ///< [keys, Heads * Qk]
  int64_t ldK = 0;
  const float *v = nullptr; ///< [keys, Heads * V]
  int64_t ldV = 0;
  float scale = 1;
};

/// Gradients, rows one behind another; rows past the last one of their domain are zeros.
struct CrossAttentionGradients {
  const float *dOut = nullptr; ///< [queries, Heads * V]
  int64_t ldDOut = 0;
  float *dQ = nullptr, *dK = nullptr, *dV = nullptr;
};

namespace cross {

/// The keys that a query meets.
__device__ inline int64_t listOfQuery(const CrossAttention &a, int64_t query) {
  return a.keys->parent_domain == a.queries ? query : listOfRow(a.queries, query);
}

/// What a warp has in shared memory: 32 rows by 32 columns. The odd stride keeps columns on
/// different banks.
struct RowTile {
  float values[kWarp][kWarp + 1];
};

/// What a block may have in shared memory without asking for more; what the blocks of a
/// multiprocessor have together, and what the system takes of each.
constexpr int64_t kStaticSharedBytes = 48 << 10, kSharedBytes = 228 << 10, kSystemBytes = 1 << 10;
static_assert(sizeof(RowTile) + kMostCrossHeadColumns * sizeof(float) <= kStaticSharedBytes);

/// A block whose warps each keep `Columns` floats beside their tile: four warps, or as many as have
/// room. Registers are for eight such blocks of a multiprocessor, or for as many as its shared
/// memory has room for, four at least.
template <int Columns> struct Block {
  static constexpr int64_t kWarpBytes = sizeof(RowTile) + Columns * sizeof(float);
  static constexpr int kMostWarps = 4;
  static constexpr bool kHasRoom = kMostWarps * kWarpBytes <= kStaticSharedBytes;
  static constexpr int kWarps = kHasRoom ? kMostWarps : kStaticSharedBytes / kWarpBytes;
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kFit = kSharedBytes / (kWarps * kWarpBytes + kSystemBytes);
  static constexpr int kResident = !kHasRoom ? 4 : kFit < 8 ? kFit : 8;
};

/// The product of `vector`, in shared memory, with this lane's one of `count` rows; 0 for lanes
/// without one.
template <int Size, bool Bf16>
__device__ float dotRows(RowTile &tile, const float *vector, const float *rows, int64_t ld,
                         int count) {
  float sum = 0;
  for (int base = 0; base < Size; base += kWarp) {
    const int column = base + laneOf();
#pragma unroll 8
    for (int row = 0; row < kWarp; ++row)
      tile.values[row][laneOf()] =
          row < count && column < Size ? factor<Bf16>(rows[row * ld + column]) : 0.0f;
    __syncwarp();
    for (int c = 0; c < kWarp && base + c < Size; ++c)
      sum = fmaf(tile.values[laneOf()][c], vector[base + c], sum);
    __syncwarp(); // the next columns are written there
  }
  return sum;
}

/// The columns of a sum of rows that a lane has: every 32nd.
template <int Size, bool Bf16> struct Columns {
  static constexpr int kEach = (Size + kWarp - 1) / kWarp;
  float sums[kEach] = {};

  __device__ void scale(float by) {
    for (int c = 0; c < kEach; ++c)
      sums[c] *= by;
  }
  /// += the `count` rows, each times the `weight` of its lane.
  __device__ void add(float weight, const float *rows, int64_t ld, int count) {
    for (int row = 0; row < count; ++row) {
      const float each = __shfl_sync(kAllLanes, weight, row);
      for (int c = 0; c < kEach; ++c)
        if (laneOf() + c * kWarp < Size)
          sums[c] = fmaf(each, factor<Bf16>(rows[row * ld + laneOf() + c * kWarp]), sums[c]);
    }
  }
  __device__ void store(float *to, float times) const {
    for (int c = 0; c < kEach; ++c)
      if (laneOf() + c * kWarp < Size)
        to[laneOf() + c * kWarp] = sums[c] * times;
  }
};

/// What dotRows reads. It waits for all lanes before it reads and after: the next vector may be
/// written there.
template <int Size, bool Bf16> __device__ void loadVector(float *to, const float *from) {
  for (int e = laneOf(); e < Size; e += kWarp)
    to[e] = factor<Bf16>(from[e]);
}

/// The greatest score of a query so far and the sum of exp(score - greatest).
struct Softmax {
  float greatest = -__builtin_inff(), total = 0;

  /// This lane's exp(score - greatest), 0 unless `counts`; `rescale` is what sums so far are to be
  /// multiplied by.
  __device__ float add(float score, bool counts, float &rescale) {
    const float before = greatest;
    greatest = fmaxf(before, mostOfLanes(counts ? score : -__builtin_inff()));
    rescale = total == 0 ? 0.0f : kernels::detail::expNegative(before - greatest);
    const float weight = counts ? kernels::detail::expNegative(score - greatest) : 0.0f;
    total = total * rescale + sumOfLanes(weight);
    return weight;
  }
};

/// Of a query and head, for backward.
struct QueryStats {
  float greatest, total, mean;
};

/// Calls body(row, head, exists) for every row below `capacity` and head, a warp for each.
template <int Heads, class Body>
__device__ void forEachRowAndHead(const genrec_domain *domain, int64_t capacity, const Body &body) {
  const int64_t warps = threadsInGrid() / kWarp;
  for (int64_t item = threadInGrid() / kWarp; item < capacity * Heads; item += warps)
    body(item / Heads, static_cast<int>(item % Heads), item / Heads < domain->count);
}

/// Calls body(first row, rows) for the rows [begin, end), up to 32 at a time.
template <class Body> __device__ void forTiles(int64_t begin, int64_t end, const Body &body) {
  for (int64_t first = begin; first < end; first += kWarp)
    body(first, static_cast<int>(min(end - first, static_cast<int64_t>(kWarp))));
}

template <int Heads, int Qk, int V, bool Bf16>
__global__ void __launch_bounds__(Block<Qk>::kThreads, Block<Qk>::kResident)
    forward(CrossAttention a, float *out) {
  __shared__ RowTile tiles[Block<Qk>::kWarps];
  __shared__ float queries[Block<Qk>::kWarps][Qk];
  RowTile &tile = tiles[warpOf()];
  float *query = queries[warpOf()];
  forEachRowAndHead<Heads>(a.queries, a.queryCapacity, [&](int64_t row, int head, bool exists) {
    Columns<V, Bf16> attended;
    Softmax softmax;
    if (exists) {
      const int64_t list = listOfQuery(a, row);
      loadVector<Qk, Bf16>(query, a.q + row * a.ldQ + head * Qk);
      forTiles(a.keys->offsets[list], a.keys->offsets[list + 1], [&](int64_t key, int count) {
        const float dot =
            dotRows<Qk, Bf16>(tile, query, a.k + key * a.ldK + head * Qk, a.ldK, count);
        float rescale;
        const float weight = softmax.add(a.scale * dot, laneOf() < count, rescale);
        attended.scale(rescale);
        attended.add(factor<Bf16>(weight), a.v + key * a.ldV + head * V, a.ldV, count);
      });
    }
    attended.store(out + (row * Heads + head) * V, softmax.total > 0 ? 1 / softmax.total : 0.0f);
  });
}

template <int Heads, int Qk, int V, bool Bf16>
__global__ void __launch_bounds__(Block<Qk + V>::kThreads, Block<Qk + V>::kResident)
    backwardQueries(CrossAttention a, CrossAttentionGradients g, QueryStats *stats) {
  constexpr int kWarps = Block<Qk + V>::kWarps;
  __shared__ RowTile tiles[kWarps];
  __shared__ float queries[kWarps][Qk], gradients[kWarps][V];
  RowTile &tile = tiles[warpOf()];
  float *query = queries[warpOf()], *gradient = gradients[warpOf()];
  forEachRowAndHead<Heads>(a.queries, a.queryCapacity, [&](int64_t row, int head, bool exists) {
    Columns<Qk, Bf16> dQuery;
    if (exists) {
      const int64_t list = listOfQuery(a, row), begin = a.keys->offsets[list],
                    end = a.keys->offsets[list + 1];
      loadVector<Qk, Bf16>(query, a.q + row * a.ldQ + head * Qk);
      loadVector<V, Bf16>(gradient, g.dOut + row * g.ldDOut + head * V);
      auto dots = [&](int64_t key, int count, float &score) {
        score =
            a.scale * dotRows<Qk, Bf16>(tile, query, a.k + key * a.ldK + head * Qk, a.ldK, count);
        return dotRows<V, Bf16>(tile, gradient, a.v + key * a.ldV + head * V, a.ldV, count);
      };
      Softmax softmax;
      float mean = 0;
      forTiles(begin, end, [&](int64_t key, int count) {
        float score, rescale;
        const float dot = dots(key, count, score);
        const float weight = softmax.add(score, laneOf() < count, rescale);
        mean = mean * rescale + sumOfLanes(weight * dot);
      });
      mean = softmax.total > 0 ? mean / softmax.total : 0.0f;
      forTiles(begin, end, [&](int64_t key, int count) {
        float score;
        const float dot = dots(key, count, score);
        const float weight =
            laneOf() < count
                ? kernels::detail::expNegative(score - softmax.greatest) / softmax.total
                : 0.0f;
        dQuery.add(factor<Bf16>(weight * (dot - mean)) * a.scale, a.k + key * a.ldK + head * Qk,
                   a.ldK, count);
      });
      if (laneOf() == 0)
        stats[row * Heads + head] = {softmax.greatest, softmax.total, mean};
    }
    dQuery.store(g.dQ + (row * Heads + head) * Qk, 1);
  });
}

template <int Heads, int Qk, int V, bool Bf16>
__global__ void __launch_bounds__(Block<Qk + V>::kThreads, Block<Qk + V>::kResident)
    backwardKeys(CrossAttention a, CrossAttentionGradients g, const QueryStats *stats) {
  constexpr int kWarps = Block<Qk + V>::kWarps;
  __shared__ RowTile tiles[kWarps];
  __shared__ float keys[kWarps][Qk], values[kWarps][V];
  RowTile &tile = tiles[warpOf()];
  float *key = keys[warpOf()], *value = values[warpOf()];
  forEachRowAndHead<Heads>(a.keys, a.keyCapacity, [&](int64_t row, int head, bool exists) {
    Columns<Qk, Bf16> dKey;
    Columns<V, Bf16> dValue;
    if (exists) {
      const int64_t list = a.keys->parent[row];
      const bool isBelow = a.keys->parent_domain == a.queries;
      loadVector<Qk, Bf16>(key, a.k + row * a.ldK + head * Qk);
      loadVector<V, Bf16>(value, a.v + row * a.ldV + head * V);
      forTiles(isBelow ? list : listBegin(a.queries, list),
               isBelow ? list + 1 : listEnd(a.queries, list), [&](int64_t query, int count) {
                 const float *rows = a.q + query * a.ldQ + head * Qk;
                 const float *gradients = g.dOut + query * g.ldDOut + head * V;
                 const float score = a.scale * dotRows<Qk, Bf16>(tile, key, rows, a.ldQ, count);
                 const float dot = dotRows<V, Bf16>(tile, value, gradients, g.ldDOut, count);
                 float weight = 0, dScore = 0;
                 if (laneOf() < count) {
                   const QueryStats own = stats[(query + laneOf()) * Heads + head];
                   weight = kernels::detail::expNegative(score - own.greatest) / own.total;
                   dScore = factor<Bf16>(weight * (dot - own.mean)) * a.scale;
                 }
                 dKey.add(dScore, rows, a.ldQ, count);
                 dValue.add(factor<Bf16>(weight), gradients, g.ldDOut, count);
               });
    }
    dKey.store(g.dK + (row * Heads + head) * Qk, 1);
    dValue.store(g.dV + (row * Heads + head) * V, 1);
  });
}

template <int Heads, int Columns> LaunchShape shapeOf(int64_t capacity) {
  return shapeOfThreads(capacity * Heads * kWarp, Block<Columns>::kThreads);
}

} // namespace cross

/// out [queries, Heads * V], rows one behind another; rows past the last query are zeros.
template <int Heads, int Qk, int V, bool Bf16 = false>
void crossAttentionForward(const CrossAttention &a, float *out, cudaStream_t stream) {
  if (a.queryCapacity > 0)
    GENREC_CUDA_LAUNCH(stream, (cross::shapeOf<Heads, Qk>(a.queryCapacity)),
                       (cross::forward<Heads, Qk, V, Bf16>), a, out);
}

/// Bytes of scratch of crossAttentionBackward.
template <int Heads> int64_t crossAttentionBackwardBytes(const CrossAttention &a) {
  return a.queryCapacity * Heads * static_cast<int64_t>(sizeof(cross::QueryStats));
}

template <int Heads, int Qk, int V, bool Bf16 = false>
void crossAttentionBackward(const CrossAttention &a, const CrossAttentionGradients &g,
                            void *scratch, cudaStream_t stream) {
  auto *stats = static_cast<cross::QueryStats *>(scratch);
  if (a.queryCapacity > 0)
    GENREC_CUDA_LAUNCH(stream, (cross::shapeOf<Heads, Qk + V>(a.queryCapacity)),
                       (cross::backwardQueries<Heads, Qk, V, Bf16>), a, g, stats);
  if (a.keyCapacity > 0)
    GENREC_CUDA_LAUNCH(stream, (cross::shapeOf<Heads, Qk + V>(a.keyCapacity)),
                       (cross::backwardKeys<Heads, Qk, V, Bf16>), a, g, stats);
}

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_CROSS_ATTENTION_H
