//===- score_bounds.h - Scores whose last bits nobody needs -----*- C++ -*-===//
//
// cuBLASLt adds up a score in another order than scoreOf, whose bits results are defined by. Both
// are within k * 2^-24 of the sum of the k terms' magnitudes of the exact score, and that sum is at
// most |query| |item|. So a comparison that a score of the library decides by more than twice that
// is decided. The few others are made with scoreOf: ranks and the best items do not depend on who
// computes scores.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CUDA_SCORE_BOUNDS_H
#define GENREC_RT_KERNELS_CUDA_SCORE_BOUNDS_H

#include "ranked_scores.h"

#include "genrec_rt/kernels/cuda/library_products.h"
#include "genrec_rt/kernels/cuda/scratch.h"

namespace genrec::rt::cuda {

/// Narrower scores cost less in our tiles, which count them without writing them to memory: not
/// measured on a device.
constexpr int64_t kLeastRankedDim = 64;

/// How far a score of the library may be from scoreOf.
struct ScoreBounds {
  float *queryNorms = nullptr, *itemNorms = nullptr;
  float scale = 0;

  ScoreBounds() = default;
  ScoreBounds(const RankedItems &r, ScratchCursor &cursor)
      : queryNorms(cursor.take<float>(r.queryCapacity)),
        itemNorms(cursor.take<float>(r.itemCapacity)),
        // Three times instead of twice, for the norms are rounded, too.
        scale(3 * static_cast<float>(r.dim) * 0x1p-24f) {}

  __device__ float of(int64_t query, int64_t item) const {
    // What products below the least normal number lose.
    constexpr float kLeast = 0x1p-100f;
    return scale * queryNorms[query] * itemNorms[item] + kLeast;
  }

  /// Whether `score` is surely less than `least`, or surely more.
  __device__ bool isLess(float score, float least, float bound) const {
    return isSure(score, bound) && score + bound < least;
  }
  __device__ bool isMore(float score, float least, float bound) const {
    return isSure(score, bound) && score - bound > least;
  }
  /// Whether no order of additions comes near an infinity or NaN.
  __device__ static bool isSure(float score, float bound) {
    return fabsf(score) < 1e38f && bound < 1e30f;
  }
};

/// Fills the norms.
void computeNorms(const RankedItems &ranked, const ScoreBounds &bounds, cudaStream_t stream);

/// Scores of some queries and items that lie together, rows of `ld` floats.
struct ScoreChunk {
  float *scores;
  int64_t ld, firstQuery, queries, firstItem, items;
};

/// How large chunks are, for `chunkBytes` of scores and what belongs to each.
ScoreChunk mostOfChunk(const RankedItems &ranked, int64_t bytesPerScore);

/// The product of a chunk, by the library where it takes it, and the scratch of any of them.
int64_t productScratchBytes(const RankedItems &ranked, const ScoreChunk &most);
SizedProduct productOf(const RankedItems &ranked, const ScoreChunk &chunk);

/// Calls visit(chunk) for all queries and items, those of a chunk at most as many as its own.
template <class Visit>
void forChunks(const RankedItems &r, const ScoreChunk &most, const Visit &visit) {
  ScoreChunk chunk = most;
  for (chunk.firstQuery = 0; chunk.firstQuery < r.queryCapacity; chunk.firstQuery += most.queries)
    for (chunk.firstItem = 0; chunk.firstItem < r.itemCapacity; chunk.firstItem += most.items) {
      chunk.queries = std::min(most.queries, r.queryCapacity - chunk.firstQuery);
      chunk.items = std::min(most.items, r.itemCapacity - chunk.firstItem);
      visit(chunk);
    }
}

/// Whether the library computes the scores that ranks and the best items are told by.
bool libraryRanks(const RankedItems &ranked);

} // namespace genrec::rt::cuda

#endif // GENREC_RT_KERNELS_CUDA_SCORE_BOUNDS_H
