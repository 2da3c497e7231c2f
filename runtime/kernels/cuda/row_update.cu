//===- row_update.cu - Reducing gradients and updating rows ---------------===//

#include "genrec_rt/cuda/row_update.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/cuda/launch.h"
#include "genrec_rt/error.h"

#include <algorithm>
#include <cmath>

namespace genrec::rt::cuda {

namespace {

constexpr int kThreads = 128, kWarps = kThreads / kWarp;
/// Columns that a lane keeps at once.
constexpr int kEach = 4;
constexpr int64_t kChunk = kWarp * kEach;
constexpr int64_t kMostRowColumns = 512;

LaunchShape shapeOf(int64_t items, int64_t perBlock) {
  constexpr int64_t kMostBlocks = 16384;
  return {
      dim3(static_cast<unsigned>(std::clamp<int64_t>(blocksFor(items, perBlock), 1, kMostBlocks))),
      dim3(kThreads)};
}

__device__ int64_t warpInGrid() { return static_cast<int64_t>(blockIdx.x) * kWarps + warpOf(); }
__device__ int64_t warpsInGrid() { return static_cast<int64_t>(gridDim.x) * kWarps; }

//===----------------------------------------------------------------------===//
// Sums in order
//===----------------------------------------------------------------------===//

/// A lane's columns from `base` on of the sum of the gradients of occurrences
/// order[begin … end), one after another.
__device__ void sumOccurrences(const RowGradients &gradients, const uint32_t *order, int64_t begin,
                               int64_t end, int64_t base, int64_t dim, float (&total)[kEach]) {
  for (int64_t at = begin; at < end; ++at) {
    const int64_t occurrence = order[at];
    const int64_t parent = gradients.parents ? gradients.parents[occurrence] : occurrence;
    float share = 1;
    if (gradients.listOffsets)
      share =
          1 / static_cast<float>(gradients.listOffsets[parent + 1] - gradients.listOffsets[parent]);
    const float *gradient = gradients.gradients + parent * gradients.ld;
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (base + c * kWarp < dim)
        total[c] += gradient[base + c * kWarp] * share;
  }
}

/// The same of the sums of pieces begin … end - 1.
__device__ void sumPieces(const float *sums, int64_t begin, int64_t end, int64_t base, int64_t dim,
                          float (&total)[kEach]) {
  for (int64_t piece = begin; piece < end; ++piece)
#pragma unroll
    for (int c = 0; c < kEach; ++c)
      if (base + c * kWarp < dim)
        total[c] += sums[piece * dim + base + c * kWarp];
}

//===----------------------------------------------------------------------===//
// Giants
//===----------------------------------------------------------------------===//

/// What a tree level sums: occurrences or pieces of the level below, kMostSummed at most.
struct Piece {
  int64_t begin, end;
};

/// How the occurrences of giants were cut into pieces.
struct Pieces {
  Piece *list;
  float *sums;       ///< [piece][dim]
  uint32_t *firstOf; ///< by row: where its pieces of the highest level so far begin
  uint32_t *counts;  ///< by level: pieces of that level and of those below
};

__device__ int64_t pieceCount(int64_t items) { return (items + kMostSummed - 1) / kMostSummed; }

/// Items of a segment of `size` occurrences that are left after `levels` levels.
__device__ int64_t itemsAfter(int64_t size, int levels) {
  for (int level = 0; level < levels && size > kMostSummed; ++level)
    size = pieceCount(size);
  return size;
}

/// Cuts what is more than kMostSummed items before `level` (from 1). Where pieces are put depends
/// on what runs when, what they hold does not.
__global__ void __launch_bounds__(kThreads)
    cutPieces(int64_t count, const uint32_t *used, const int64_t *segments, int level,
              Pieces pieces) {
  const int64_t present = used ? min(count, static_cast<int64_t>(*used)) : count;
  for (int64_t base = warpInGrid() * kWarp; base < present; base += warpsInGrid() * kWarp) {
    const int64_t u = base + laneOf();
    const int64_t size = u < present ? segments[u + 1] - segments[u] : 0;
    const int64_t items = itemsAfter(size, level - 1);
    int64_t from = 0;
    uint32_t to = 0;
    if (items > kMostSummed) {
      from = level == 1 ? segments[u] : pieces.firstOf[u];
      to = atomicAdd(pieces.counts + level, static_cast<uint32_t>(pieceCount(items)));
      pieces.firstOf[u] = to;
    }
    uint32_t giants = __ballot_sync(kAllLanes, items > kMostSummed);
    for (; giants; giants &= giants - 1) {
      const int lane = __ffs(static_cast<int>(giants)) - 1;
      const int64_t all = __shfl_sync(kAllLanes, items, lane);
      const int64_t begin = __shfl_sync(kAllLanes, from, lane);
      const uint32_t first = __shfl_sync(kAllLanes, to, lane);
      for (int64_t piece = laneOf(); piece < pieceCount(all); piece += kWarp)
        pieces.list[first + piece] = {begin + piece * kMostSummed,
                                      begin + min(all, (piece + 1) * kMostSummed)};
    }
  }
}

/// A warp per piece of `level`.
__global__ void __launch_bounds__(kThreads)
    sumLevel(int level, int64_t dim, const uint32_t *order, RowGradients gradients, Pieces pieces) {
  const int64_t end = pieces.counts[level];
  for (int64_t p = pieces.counts[level - 1] + warpInGrid(); p < end; p += warpsInGrid()) {
    const Piece piece = pieces.list[p];
    for (int64_t base = laneOf(); base < dim; base += kChunk) {
      float total[kEach] = {};
      if (level == 1)
        sumOccurrences(gradients, order, piece.begin, piece.end, base, dim, total);
      else
        sumPieces(pieces.sums, piece.begin, piece.end, base, dim, total);
#pragma unroll
      for (int c = 0; c < kEach; ++c)
        if (base + c * kWarp < dim)
          pieces.sums[p * dim + base + c * kWarp] = total[c];
    }
  }
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// What the host works out once per step.
struct StepFactors {
  float rate, weightDecay, beta1, beta2, epsilon;
  float stepSize;       ///< rate / (1 - beta1^step)
  float rootCorrection; ///< sqrt(1 - beta2^step)
};

StepFactors factorsOf(const RowOptimizer &o) {
  const double step = static_cast<double>(o.step);
  const double first = 1 - std::pow(static_cast<double>(o.beta1), step);
  const double second = 1 - std::pow(static_cast<double>(o.beta2), step);
  return {o.rate,
          o.weightDecay,
          o.beta1,
          o.beta2,
          o.epsilon,
          static_cast<float>(o.rate / first),
          static_cast<float>(std::sqrt(second))};
}

/// One step for one weight; states are `states[0]` and `states[stride]`.
template <OptimizerKind Kind>
__device__ float stepped(float weight, float gradient, float *states, int64_t stride,
                         const StepFactors &f) {
  if (Kind == OptimizerKind::adamw)
    weight -= f.rate * f.weightDecay * weight;
  else
    gradient += f.weightDecay * weight;
  if (Kind == OptimizerKind::sgd)
    return weight - f.rate * gradient;
  if (Kind == OptimizerKind::adagrad) {
    states[0] += gradient * gradient;
    return weight - f.rate * gradient / (__fsqrt_rn(states[0]) + f.epsilon);
  }
  const float first = f.beta1 * states[0] + (1 - f.beta1) * gradient;
  const float second = f.beta2 * states[stride] + (1 - f.beta2) * gradient * gradient;
  states[0] = first;
  states[stride] = second;
  return weight - f.stepSize * first / (__fsqrt_rn(second) / f.rootCorrection + f.epsilon);
}

/// The rows of a step and the gradients of each.
template <class T> struct Step {
  T *const *rows;
  int64_t count;
  const uint32_t *used;
  int64_t dim;
  const uint32_t *order;
  const int64_t *segments;
  RowGradients gradients;
  int levels;
  Pieces pieces;

  __device__ int64_t present() const {
    return used ? min(count, static_cast<int64_t>(*used)) : count;
  }
  __device__ float *states(T *row) const {
    const int64_t valueBytes = (dim * static_cast<int64_t>(sizeof(T)) + 3) / 4 * 4;
    return reinterpret_cast<float *>(reinterpret_cast<char *>(row) + valueBytes);
  }
  /// A lane's columns from `base` on of the sum of row u's gradients.
  __device__ void sum(int64_t u, int64_t base, float (&total)[kEach]) const {
    const int64_t begin = segments[u], size = segments[u + 1] - begin;
    if (size <= kMostSummed) {
      sumOccurrences(gradients, order, begin, begin + size, base, dim, total);
    } else {
      const int64_t first = pieces.firstOf[u];
      sumPieces(pieces.sums, first, first + itemsAfter(size, levels), base, dim, total);
    }
  }
};

template <class T, OptimizerKind Kind>
__global__ void __launch_bounds__(kThreads) update(Step<T> step, StepFactors factors) {
  const int64_t present = step.present();
  for (int64_t u = warpInGrid(); u < present; u += warpsInGrid()) {
    T *row = step.rows[u];
    if (!row)
      continue;
    float *states = step.states(row);
    for (int64_t base = laneOf(); base < step.dim; base += kChunk) {
      float total[kEach] = {};
      step.sum(u, base, total);
#pragma unroll
      for (int c = 0; c < kEach; ++c) {
        const int64_t column = base + c * kWarp;
        if (column < step.dim)
          row[column] = fromFloat<T>(
              stepped<Kind>(toFloat(row[column]), total[c], states + column, step.dim, factors));
      }
    }
  }
}

/// Row-wise Adagrad: all of a row's gradients are there before its first weight changes.
template <class T>
__global__ void __launch_bounds__(kThreads) updateRowwise(Step<T> step, StepFactors factors) {
  constexpr int kChunks = kMostRowColumns / kChunk;
  const int64_t present = step.present();
  for (int64_t u = warpInGrid(); u < present; u += warpsInGrid()) {
    T *row = step.rows[u];
    if (!row)
      continue;
    float total[kChunks][kEach] = {};
    float squares = 0;
    auto forColumns = [&](auto body) {
#pragma unroll
      for (int chunk = 0; chunk < kChunks; ++chunk)
#pragma unroll
        for (int c = 0; c < kEach; ++c) {
          const int64_t column = laneOf() + chunk * kChunk + c * kWarp;
          if (column < step.dim)
            body(row[column], total[chunk][c]);
        }
    };
#pragma unroll
    for (int chunk = 0; chunk < kChunks; ++chunk)
      step.sum(u, laneOf() + chunk * kChunk, total[chunk]);
    forColumns([&](T &weight, float &gradient) {
      gradient += factors.weightDecay * toFloat(weight);
      squares += gradient * gradient;
    });
    for (int lanes = kWarp / 2; lanes > 0; lanes /= 2)
      squares += __shfl_xor_sync(kAllLanes, squares, lanes);
    float *accumulator = step.states(row);
    const float accumulated = *accumulator + squares / static_cast<float>(step.dim);
    const float rate = factors.rate / (__fsqrt_rn(accumulated) + factors.epsilon);
    forColumns([&](T &weight, float gradient) {
      weight = fromFloat<T>(toFloat(weight) - rate * gradient);
    });
    __syncwarp(); // every lane has read it
    if (laneOf() == 0)
      *accumulator = accumulated;
  }
}

} // namespace

template <class T>
void RowUpdate::run(T *const *rows, int64_t count, const uint32_t *used, int64_t dim,
                    const uint32_t *order, const int64_t *segments, int64_t occurrences,
                    const RowGradients &gradients, const RowOptimizer &optimizer,
                    cudaStream_t stream) {
  if (dim > kMostRowColumns)
    throw Error("rows of " + std::to_string(dim) + " elements: an update on a device takes up to " +
                std::to_string(kMostRowColumns));
  if (count == 0)
    return;
  int levels = 0;
  for (int64_t items = occurrences; items > kMostSummed; items = blocksFor(items, kMostSummed))
    ++levels;
  Pieces pieces = {};
  if (levels > 0) {
    // A giant of n occurrences has fewer than 2 n / kMostSummed pieces, and a level above the next
    // has a hundredth of that.
    const int64_t most = 3 * blocksFor(occurrences, kMostSummed);
    static_assert(sizeof(Piece) == 2 * sizeof(int64_t));
    pieces = {reinterpret_cast<Piece *>(bounds.ensure(2 * most, stream)),
              sums.ensure(most * dim, stream), firstOf.ensure(count, stream),
              counts.ensure(kMostLevels + 1, stream)};
    GENREC_CUDA_CHECK(cudaMemsetAsync(pieces.counts, 0, sizeof(uint32_t), stream));
    for (int level = 1; level <= levels; ++level) {
      GENREC_CUDA_CHECK(cudaMemcpyAsync(pieces.counts + level, pieces.counts + level - 1,
                                        sizeof(uint32_t), cudaMemcpyDeviceToDevice, stream));
      GENREC_CUDA_LAUNCH(stream, shapeOf(count, kThreads), cutPieces, count, used, segments, level,
                         pieces);
      GENREC_CUDA_LAUNCH(stream, shapeOf(most, kWarps), sumLevel, level, dim, order, gradients,
                         pieces);
    }
  }
  const Step<T> step{rows, count, used, dim, order, segments, gradients, levels, pieces};
  auto launch = [&](auto kernel) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(count, kWarps), kernel, step, factorsOf(optimizer));
  };
  switch (optimizer.kind) {
  case OptimizerKind::sgd:
    return launch(update<T, OptimizerKind::sgd>);
  case OptimizerKind::adagrad:
    return launch(update<T, OptimizerKind::adagrad>);
  case OptimizerKind::adam:
    return launch(update<T, OptimizerKind::adam>);
  case OptimizerKind::adamw:
    return launch(update<T, OptimizerKind::adamw>);
  case OptimizerKind::rowwiseAdagrad:
    return launch(updateRowwise<T>);
  }
}

template void RowUpdate::run<float>(float *const *, int64_t, const uint32_t *, int64_t,
                                    const uint32_t *, const int64_t *, int64_t,
                                    const RowGradients &, const RowOptimizer &, cudaStream_t);
template void RowUpdate::run<Bf16>(Bf16 *const *, int64_t, const uint32_t *, int64_t,
                                   const uint32_t *, const int64_t *, int64_t, const RowGradients &,
                                   const RowOptimizer &, cudaStream_t);

} // namespace genrec::rt::cuda
