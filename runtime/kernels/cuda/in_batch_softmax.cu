//===- in_batch_softmax.cu - Softmax over the items of other rows ---------===//

#include "genrec_rt/kernels/cuda/in_batch_softmax.h"

#include "genrec_rt/kernels/cuda/lane_reduction.h"
#include "genrec_rt/kernels/cuda/launch.h"
#include "genrec_rt/kernels/cuda/product_tile.h"
#include "genrec_rt/kernels/shared/math.h"

namespace genrec::rt::cuda {

namespace {

__device__ bool countsInBatch(const InBatch &a, int64_t row) {
  return row < a.rows->count && (!a.valid || a.valid[row]);
}

/// Whether both rows count, and `other` is one that `row` is compared with or itself.
__device__ bool isCompared(const InBatch &a, int64_t row, int64_t other) {
  return countsInBatch(a, row) && countsInBatch(a, other) &&
         (row == other || a.id[row] != a.id[other]);
}

__device__ float inBatchLogit(const InBatch &a, float score, int64_t item) {
  return score * a.perTemperature - (a.logQ ? a.logQ[item] : 0.0f);
}

/// The vectors of a tile from row `first` on, as a side of a product: zeros where rows do not
/// count.
struct InBatchSide {
  const InBatch &a;
  const float *vectors;
  int64_t ld, first;

  __device__ float operator()(int place, int64_t column) const {
    const int64_t row = first + place;
    return countsInBatch(a, row) ? vectors[row * ld + column] : 0.0f;
  }
};

/// Of a row: its own logit, the greatest logit of its others so far and the sum of exp(logit -
/// greatest). The kProductLanes lanes of a row have the same.
struct InBatchSum {
  float own = 0, greatest = -__builtin_inff(), total = 0;

  /// Adds this lane's logits, of which -inf are masked.
  __device__ void add(const float (&logits)[kProductEach]) {
    float most = logits[0];
#pragma unroll
    for (int j = 1; j < kProductEach; ++j)
      most = fmaxf(most, logits[j]);
    const float before = greatest;
    greatest = fmaxf(before, mostOfLanes<kProductLanes>(most));
    float sum = 0;
#pragma unroll
    for (int j = 0; j < kProductEach; ++j)
      if (logits[j] != -__builtin_inff())
        sum += kernels::detail::expNegative(logits[j] - greatest);
    sum = sumOfLanes<kProductLanes>(sum);
    total = (total == 0 ? 0.0f : total * kernels::detail::expNegative(before - greatest)) + sum;
  }

  /// By one lane: what the CPU makes of the same.
  __device__ void store(float *loss, float *kept) const {
    const float most = fmaxf(greatest, own);
    const float ofOthers =
        total == 0 ? 0.0f : total * kernels::detail::expNegative(greatest - most);
    const float sum = ofOthers + kernels::detail::expNegative(own - most);
    *loss = own == most ? kernels::log1p(ofOthers) : (most - own) + kernels::log(sum);
    kept[0] = most + kernels::log(sum);
    kept[1] = ofOthers / sum;
  }
};

__global__ void __launch_bounds__(kProductThreads, 2)
    inBatchLosses(InBatch a, int64_t tiles, float *loss, float *kept) {
  const int64_t rows = a.rows->count;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const int64_t first = tile * kProductTile;
    InBatchSum sums[kProductEach];
    for (int64_t firstOther = 0; firstOther < rows; firstOther += kProductTile) {
      ProductTile scores;
      scores.add<false, false>(0, a.size, InBatchSide{a, a.query, a.ldQuery, first},
                               InBatchSide{a, a.item, a.ldItem, firstOther});
#pragma unroll
      for (int i = 0; i < kProductEach; ++i) {
        const int64_t row = first + ProductTile::row() + i;
        float logits[kProductEach];
#pragma unroll
        for (int j = 0; j < kProductEach; ++j) {
          const int64_t other = firstOther + ProductTile::column() + j;
          const bool counts = isCompared(a, row, other);
          const float logit = counts ? inBatchLogit(a, scores.sums[i][j], other) : 0.0f;
          if (row == other)
            sums[i].own = logit;
          logits[j] = counts && row != other ? logit : -__builtin_inff();
        }
        sums[i].add(logits);
      }
    }
#pragma unroll
    for (int i = 0; i < kProductEach; ++i) {
      const int64_t row = first + ProductTile::row() + i;
      sums[i].own = sumOfLanes<kProductLanes>(sums[i].own); // one of the lanes has it
      if (laneOf() % kProductLanes != 0 || row >= a.capacity)
        continue;
      if (countsInBatch(a, row))
        sums[i].store(loss + row, kept + row * 2);
      else
        loss[row] = kept[row * 2] = kept[row * 2 + 1] = 0;
    }
  }
}

/// The gradient of the loss by the logit of `query` and `item`, times 1 / temperature.
__device__ float inBatchCoefficient(const InBatch &a, const float *kept, const float *dLoss,
                                    float score, int64_t query, int64_t item) {
  if (!isCompared(a, query, item))
    return 0;
  const float scale = dLoss[query] * a.perTemperature;
  if (query == item)
    return -kept[query * 2 + 1] * scale;
  return kernels::detail::expNegative(inBatchLogit(a, score, item) - kept[query * 2]) * scale;
}

/// A block has kProductTile rows and columns of the gradient of queries or of items.
template <bool OfItems>
__global__ void __launch_bounds__(kProductThreads, 2)
    inBatchGradients(InBatch a, int64_t units, int64_t columnTiles, const float *kept,
                     const float *dLoss, float *gradient) {
  // The odd stride keeps the rows of a warp on different banks.
  __shared__ float coefficients[kProductTile][kProductTile + 1];
  const int64_t rows = a.rows->count;
  const float *own = OfItems ? a.item : a.query, *others = OfItems ? a.query : a.item;
  const int64_t ldOwn = OfItems ? a.ldItem : a.ldQuery, ldOthers = OfItems ? a.ldQuery : a.ldItem;
  for (int64_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
    const int64_t first = unit / columnTiles * kProductTile,
                  firstColumn = unit % columnTiles * kProductTile;
    ProductTile sums;
    for (int64_t firstOther = 0; firstOther < rows; firstOther += kProductTile) {
      const InBatchSide right{a, others, ldOthers, firstOther};
      ProductTile scores;
      scores.add<false, false>(0, a.size, InBatchSide{a, own, ldOwn, first}, right);
#pragma unroll
      for (int i = 0; i < kProductEach; ++i)
#pragma unroll
        for (int j = 0; j < kProductEach; ++j) {
          const int64_t row = first + ProductTile::row() + i,
                        other = firstOther + ProductTile::column() + j;
          coefficients[ProductTile::row() + i][ProductTile::column() + j] = inBatchCoefficient(
              a, kept, dLoss, scores.sums[i][j], OfItems ? other : row, OfItems ? row : other);
        }
      __syncthreads(); // others read the coefficients
      const int64_t count = min(rows - firstOther, static_cast<int64_t>(kProductTile));
      sums.add<false, true>(
          0, count, [&](int place, int64_t other) { return coefficients[place][other]; },
          [&](int place, int64_t other) {
            const int64_t column = firstColumn + place;
            return column < a.size ? right(static_cast<int>(other), column) : 0.0f;
          });
    }
#pragma unroll
    for (int i = 0; i < kProductEach; ++i)
#pragma unroll
      for (int j = 0; j < kProductEach; ++j) {
        const int64_t row = first + ProductTile::row() + i,
                      column = firstColumn + ProductTile::column() + j;
        if (row < a.capacity && column < a.size)
          gradient[row * a.size + column] = sums.sums[i][j];
      }
  }
}

LaunchShape inBatchShape(int64_t units) {
  return {dim3(static_cast<unsigned>(units < kMostBlocks ? units : kMostBlocks)),
          dim3(kProductThreads)};
}

} // namespace

void inBatchForward(const InBatch &a, float *loss, float *kept, cudaStream_t stream) {
  const int64_t tiles = blocksFor(a.capacity, kProductTile);
  if (tiles > 0)
    GENREC_CUDA_LAUNCH(stream, inBatchShape(tiles), inBatchLosses, a, tiles, loss, kept);
}

void inBatchBackward(const InBatch &a, const float *kept, const float *dLoss, float *dQuery,
                     float *dItem, cudaStream_t stream) {
  const int64_t columnTiles = blocksFor(a.size, kProductTile),
                units = blocksFor(a.capacity, kProductTile) * columnTiles;
  if (units == 0)
    return;
  GENREC_CUDA_LAUNCH(stream, inBatchShape(units), inBatchGradients<false>, a, units, columnTiles,
                     kept, dLoss, dQuery);
  GENREC_CUDA_LAUNCH(stream, inBatchShape(units), inBatchGradients<true>, a, units, columnTiles,
                     kept, dLoss, dItem);
}

} // namespace genrec::rt::cuda
