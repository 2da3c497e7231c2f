//===- score_bounds.cu - Scores whose last bits nobody needs --------------===//

#include "score_bounds.h"

#include "library_plans.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/kernels/cuda/domain_view.h"
#include "genrec_rt/kernels/cuda/lane_reduction.h"

namespace genrec::rt::cuda {

namespace {

/// norms[row] = the length of a vector of `dim` floats, and no less where their squares are too
/// small for a float: these lose half of the least one. A warp per row.
__global__ void __launch_bounds__(kThreads)
    measureRows(const genrec_domain *domain, int64_t capacity, const float *rows, int64_t ld,
                int64_t dim, float *norms) {
  const float lost = static_cast<float>(dim) * 0x1p-149f;
  const int64_t count = domain ? domain->count : capacity, warps = threadsInGrid() / kWarp;
  for (int64_t row = threadInGrid() / kWarp; row < count; row += warps) {
    float sum = 0;
    for (int64_t c = laneOf(); c < dim; c += kWarp)
      sum = fmaf(rows[row * ld + c], rows[row * ld + c], sum);
    sum = sumOfLanes(sum);
    if (laneOf() == 0)
      norms[row] = sqrtf(sum + lost);
  }
}

} // namespace

void computeNorms(const RankedItems &r, const ScoreBounds &bounds, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(r.queryCapacity * kWarp, kThreads), measureRows,
                     r.queries, r.queryCapacity, r.query, r.ldQuery, r.dim, bounds.queryNorms);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(r.itemCapacity * kWarp, kThreads), measureRows, nullptr,
                     r.itemCapacity, r.item, r.ldItem, r.dim, bounds.itemNorms);
}

SizedProduct productOf(const RankedItems &r, const ScoreChunk &chunk) {
  SizedProduct p;
  p.m = {chunk.queries, r.queries, chunk.firstQuery};
  p.k = {r.dim};
  p.n = {chunk.items, r.areItemsKnown ? nullptr : r.items, chunk.firstItem};
  p.left = r.query + chunk.firstQuery * r.ldQuery, p.ldLeft = r.ldQuery;
  p.right = r.item + chunk.firstItem * r.ldItem, p.ldRight = r.ldItem, p.rightTransposed = true;
  p.result = chunk.scores, p.ldResult = chunk.ld;
  p.inOrder = true;
  return p;
}

ScoreChunk mostOfChunk(const RankedItems &r, int64_t bytesPerScore) {
  constexpr int64_t kMostQueries = deviceSize(2048, 64);
  constexpr int64_t kLeastItems = 1024, kWhole = 64; // for aligned rows
  ScoreChunk chunk{};
  chunk.queries = std::min(r.queryCapacity, kMostQueries);
  const int64_t fit = r.chunkBytes / (bytesPerScore * std::max<int64_t>(chunk.queries, 1));
  chunk.items =
      std::min(std::max(fit, kLeastItems) / kWhole * kWhole, std::max<int64_t>(r.itemCapacity, 1));
  chunk.ld = blocksFor(chunk.items, 4) * 4;
  return chunk;
}

int64_t productScratchBytes(const RankedItems &r, const ScoreChunk &most) {
  int64_t bytes = 0;
  forChunks(r, most, [&](const ScoreChunk &chunk) {
    bytes = std::max(bytes, fastestScratchBytes(productOf(r, chunk)));
  });
  return bytes;
}

bool libraryRanks(const RankedItems &r) {
  return r.areItemsKnown && r.dim >= kLeastRankedDim && r.queryCapacity > 0 &&
         r.itemCapacity >= kLeastLibrarySize && LibraryPlans::get();
}

} // namespace genrec::rt::cuda
