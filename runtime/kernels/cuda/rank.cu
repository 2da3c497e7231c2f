//===- rank.cu - Ranks of targets among all items, and within lists -------===//

#include "genrec_rt/kernels/cuda/rank.h"

#include "genrec_rt/kernels/cuda/lane_reduction.h"
#include "genrec_rt/kernels/cuda/product_tile.h"
#include "genrec_rt/kernels/cuda/row_notes.h"
#include "genrec_rt/kernels/cuda/scratch.h"
#include "item_sets.h"
#include "score_bounds.h"

namespace genrec::rt::cuda {

namespace {

/// Rows that have a target each: the queries, or rows below them.
struct Targets {
  const genrec_domain *rows;
  int64_t capacity;
  const int64_t *items;
  bool areListed;

  __device__ int64_t queryOf(int64_t row) const { return areListed ? rows->parent[row] : row; }
};

__device__ bool isItem(const RankedItems &r, int64_t item) {
  return item >= 0 && item < r.items->count;
}

/// Puts the targets of each list into its set, with the first row of each.
__global__ void __launch_bounds__(kProductThreads)
    collectTargets(RankedItems r, Targets targets, ItemSets sets, Word *firstRows) {
  for (int64_t row = threadInGrid(); row < targets.rows->count; row += threadsInGrid()) {
    const int64_t item = targets.items[row];
    if (isItem(r, item))
      atomicMin(firstRows + (sets.insert(targets.queryOf(row), item).slot - sets.slots),
                static_cast<Word>(row));
  }
}

/// Scores of the targets. NaN, which nothing is at least, where there is none, or with `sets` where
/// the list has had it before.
__global__ void __launch_bounds__(kProductThreads)
    scoreTargets(RankedItems r, Targets targets, ItemSets sets, const Word *firstRows,
                 float *scores) {
  for (int64_t row = threadInGrid(); row < targets.rows->count; row += threadsInGrid()) {
    const int64_t item = targets.items[row], query = targets.queryOf(row);
    bool counts = isItem(r, item);
    if (counts && firstRows)
      counts = firstRows[sets.find(query, item) - sets.slots] == static_cast<Word>(row);
    scores[row] = counts ? scoreOf(r, query, item) : __builtin_nanf("");
  }
}

/// ranks[row] += the items that score at least what the target does, itself among them.
__global__ void __launch_bounds__(kProductThreads, 2)
    countItems(RankedItems r, Targets targets, unsigned itemBlocks, const float *targetScores,
               Word *ranks) {
  const int64_t rows = targets.rows->count, items = r.items->count;
  const int64_t firstRow = static_cast<int64_t>(blockIdx.x / itemBlocks) * kProductTile;
  if (firstRow >= rows)
    return;
  const auto left = [&](int place, int64_t c) {
    const int64_t row = firstRow + place;
    return row < rows ? r.query[targets.queryOf(row) * r.ldQuery + c] : 0.0f;
  };
  float toBeat[kProductEach];
  uint32_t counts[kProductEach] = {};
#pragma unroll
  for (int i = 0; i < kProductEach; ++i) {
    const int64_t row = firstRow + ProductTile::row() + i;
    toBeat[i] = row < rows ? targetScores[row] : __builtin_nanf("");
  }
  for (int64_t first = static_cast<int64_t>(blockIdx.x % itemBlocks) * kProductTile; first < items;
       first += static_cast<int64_t>(itemBlocks) * kProductTile) {
    ProductTile tile;
    const auto right = [&](int place, int64_t c) {
      return first + place < items ? r.item[(first + place) * r.ldItem + c] : 0.0f;
    };
    tile.add<false, false>(0, r.dim, left, right);
#pragma unroll
    for (int i = 0; i < kProductEach; ++i)
#pragma unroll
      for (int j = 0; j < kProductEach; ++j) {
        const float score = tile.sums[i][j];
        const bool exists =
            firstRow + ProductTile::row() + i < rows && first + ProductTile::column() + j < items;
        counts[i] += exists && score >= toBeat[i];
        if (exists && score != score)
          noteRow(r.nanNote, nullptr, 0);
      }
  }
#pragma unroll
  for (int i = 0; i < kProductEach; ++i) {
    counts[i] = sumOfLanes<kProductLanes>(counts[i]);
    const int64_t row = firstRow + ProductTile::row() + i;
    if (laneOf() % kProductLanes == 0 && row < rows && counts[i] > 0)
      atomicAdd(ranks + row, static_cast<Word>(counts[i]));
  }
}

/// ranks[row] += those of a chunk of the library's scores. A block per row.
__global__ void __launch_bounds__(kProductThreads)
    countScores(RankedItems r, Targets targets, const float *targetScores, ScoreBounds bounds,
                ScoreChunk chunk, Word *ranks) {
  for (int64_t row = blockIdx.x; row < targets.rows->count; row += gridDim.x) {
    const int64_t query = targets.queryOf(row), place = query - chunk.firstQuery;
    if (place < 0 || place >= chunk.queries)
      continue;
    const float *scores = chunk.scores + place * chunk.ld, toBeat = targetScores[row];
    uint32_t count = 0;
    for (int64_t i = threadIdx.x; i < chunk.items; i += kProductThreads) {
      const int64_t item = chunk.firstItem + i;
      const float score = scores[i], bound = bounds.of(query, item);
      // Nothing is at least a NaN.
      const bool isMore = bounds.isMore(score, toBeat, bound);
      if (isMore || bounds.isLess(score, toBeat, bound) ||
          (toBeat != toBeat && bounds.isSure(score, bound))) {
        count += isMore;
        continue;
      }
      const float exact = scoreOf(r, query, item);
      count += exact >= toBeat;
      if (exact != exact)
        noteRow(r.nanNote, nullptr, 0);
    }
    count = __reduce_add_sync(kAllLanes, count);
    if (laneOf() == 0 && count > 0)
      atomicAdd(ranks + row, static_cast<Word>(count));
  }
}

/// Takes off the excluded items of each query that were counted, each once.
__global__ void __launch_bounds__(kProductThreads)
    uncountExcluded(RankedItems r, Targets targets, ItemSets targetSets, ItemSets seen,
                    const float *targetScores, Word *ranks) {
  for (int64_t i = threadInGrid(); i < r.excluding->count; i += threadsInGrid()) {
    const int64_t query = r.excluding->parent[i], item = r.excluded[i];
    if (!isItem(r, item) || (targets.areListed ? targetSets.find(query, item) != nullptr
                                               : targets.items[query] == item))
      continue;
    if (!seen.insert(query, item).isNew)
      continue;
    const float score = scoreOf(r, query, item);
    const int64_t begin = targets.areListed ? targets.rows->offsets[query] : query,
                  end = targets.areListed ? targets.rows->offsets[query + 1] : query + 1;
    for (int64_t row = begin; row < end; ++row)
      if (score >= targetScores[row])
        atomicAdd(ranks + row, ~Word(0)); // less one
  }
}

/// Of g targets of one score each has counted the others: the first of the list gets the lowest of
/// their g ranks.
__global__ void __launch_bounds__(kProductThreads)
    separateEqual(Targets targets, const Word *counted, int64_t *ranks) {
  for (int64_t row = threadInGrid(); row < targets.capacity; row += threadsInGrid()) {
    int64_t rank = 0;
    if (row < targets.rows->count) {
      const Word own = counted[row];
      const int64_t end = targets.rows->offsets[targets.queryOf(row) + 1];
      rank = static_cast<int64_t>(own);
      for (int64_t later = row + 1; later < end && own > 0; ++later)
        rank -= counted[later] == own;
    }
    ranks[row] = rank;
  }
}

struct RankScratch {
  Word *seen, *targetSlots, *firstRows, *counted;
  float *targetScores;
  bool isByLibrary;
  ScoreChunk chunk; ///< with the library's scores
  void *product;
  ScoreBounds bounds;
  int64_t bytes;

  /// For targets of `rows`, which are listed or not.
  RankScratch(const RankedItems &r, int64_t rows, bool areListed, void *memory)
      : isByLibrary(libraryRanks(r)) {
    ScratchCursor cursor(memory);
    seen = cursor.take<Word>(r.excluding ? 2 * r.excludedCapacity : 0);
    targetSlots = cursor.take<Word>(areListed ? 2 * rows : 0);
    firstRows = cursor.take<Word>(areListed ? 2 * rows : 0);
    counted = cursor.take<Word>(areListed ? rows : 0);
    targetScores = cursor.take<float>(rows);
    if (isByLibrary) {
      chunk = mostOfChunk(r, sizeof(float));
      chunk.scores = cursor.take<float>(chunk.queries * chunk.ld);
      bounds = ScoreBounds(r, cursor);
      product = cursor.take<char>(productScratchBytes(r, chunk));
    }
    bytes = cursor.bytes();
  }
};

void fillWords(Word *words, int64_t count, int byte, cudaStream_t stream) {
  if (count > 0)
    GENREC_CUDA_CHECK(cudaMemsetAsync(words, byte, static_cast<size_t>(count) * 8, stream));
}

void countByTiles(const RankedItems &r, const Targets &targets, const RankScratch &scratch,
                  Word *ranks, cudaStream_t stream) {
  // Enough blocks for any device; each takes many tiles of items.
  constexpr int64_t kBlocks = std::min<int64_t>(1024, kMostBlocks);
  const int64_t rowTiles = blocksFor(targets.capacity, kProductTile);
  const auto itemBlocks = static_cast<unsigned>(std::clamp<int64_t>(
      blocksFor(r.itemCapacity, kProductTile), 1, std::max<int64_t>(kBlocks / rowTiles, 1)));
  const dim3 grid(itemBlocks * static_cast<unsigned>(rowTiles)); // y has room for 65,535 only
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{grid, dim3(kProductThreads)}), countItems, r, targets,
                     itemBlocks, scratch.targetScores, ranks);
}

void countByLibrary(const RankedItems &r, const Targets &targets, const RankScratch &scratch,
                    Word *ranks, cudaStream_t stream) {
  computeNorms(r, scratch.bounds, stream);
  const auto blocks = static_cast<unsigned>(std::min<int64_t>(targets.capacity, kMostBlocks));
  forChunks(r, scratch.chunk, [&](const ScoreChunk &chunk) {
    multiplyFastest(productOf(r, chunk), scratch.product, stream);
    GENREC_CUDA_LAUNCH(stream, (LaunchShape{dim3(blocks), dim3(kProductThreads)}), countScores, r,
                       targets, scratch.targetScores, scratch.bounds, chunk, ranks);
  });
}

/// Counts into `ranks`.
void countRanks(const RankedItems &r, const Targets &targets, const RankScratch &scratch,
                Word *ranks, cudaStream_t stream) {
  const LaunchShape shape = shapeOfThreads(targets.capacity, kProductThreads);
  const ItemSets targetSets{targets.rows, scratch.targetSlots};
  fillWords(ranks, targets.capacity, 0, stream);
  if (targets.areListed) {
    fillWords(scratch.targetSlots, 2 * targets.capacity, 0xFF, stream);
    fillWords(scratch.firstRows, 2 * targets.capacity, 0xFF, stream);
    GENREC_CUDA_LAUNCH(stream, shape, collectTargets, r, targets, targetSets, scratch.firstRows);
  }
  GENREC_CUDA_LAUNCH(stream, shape, scoreTargets, r, targets, targetSets,
                     targets.areListed ? scratch.firstRows : nullptr, scratch.targetScores);
  (scratch.isByLibrary ? countByLibrary : countByTiles)(r, targets, scratch, ranks, stream);
  if (!r.excluding || r.excludedCapacity == 0)
    return;
  fillWords(scratch.seen, 2 * r.excludedCapacity, 0xFF, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(r.excludedCapacity, kProductThreads), uncountExcluded,
                     r, targets, targetSets, (ItemSets{r.excluding, scratch.seen}),
                     scratch.targetScores, ranks);
}

//===----------------------------------------------------------------------===//
// Lists with scores
//===----------------------------------------------------------------------===//

/// A warp per row.
__global__ void __launch_bounds__(kProductThreads)
    rankInList(const genrec_domain *domain, int64_t capacity, const float *score,
               const float *label, const uint8_t *valid, int64_t *ranks, RowNote *unranked) {
  const int64_t rows = domain->count, warps = threadsInGrid() / kWarp;
  for (int64_t row = threadInGrid() / kWarp; row < capacity; row += warps) {
    const bool counts = row < rows && (!valid || valid[row]);
    const float own = counts ? score[row] : 0, ownLabel = counts ? label[row] : 0;
    if (counts && laneOf() == 0 && (own != own || (ownLabel != 0 && ownLabel != 1)))
      noteRow(unranked, domain, row, own != own ? kNaNScore : kNoLabel);
    int better = 0;
    if (counts && ownLabel == 1) {
      const int64_t list = domain->parent[row];
      const int64_t begin = domain->offsets[list], end = domain->offsets[list + 1];
      for (int64_t other = begin + laneOf(); other < end; other += kWarp) {
        if (other == row || (valid && !valid[other]))
          continue;
        // Of equal scores those without the label come first, then the first row.
        const float theirs = score[other], theirLabel = label[other];
        better +=
            theirs > own || (theirs == own && (theirLabel < 1 || (theirLabel == 1 && other < row)));
      }
    }
    better = __reduce_add_sync(kAllLanes, better);
    if (laneOf() == 0)
      ranks[row] = counts && ownLabel == 1 ? better + 1 : 0;
  }
}

} // namespace

int64_t rankTargetsScratchBytes(const RankedItems &ranked) {
  return RankScratch(ranked, ranked.queryCapacity, false, nullptr).bytes;
}

void rankTargets(const RankedItems &ranked, const int64_t *targets, int64_t *ranks, void *scratch,
                 cudaStream_t stream) {
  if (ranked.queryCapacity == 0)
    return;
  countRanks(ranked, {ranked.queries, ranked.queryCapacity, targets, false},
             RankScratch(ranked, ranked.queryCapacity, false, scratch),
             reinterpret_cast<Word *>(ranks), stream);
}

int64_t rankListsScratchBytes(const RankedItems &ranked, int64_t listedCapacity) {
  return RankScratch(ranked, listedCapacity, true, nullptr).bytes;
}

void rankLists(const RankedItems &ranked, const genrec_domain *listed, int64_t listedCapacity,
               const int64_t *targets, int64_t *ranks, void *scratch, cudaStream_t stream) {
  if (listedCapacity == 0)
    return;
  const Targets rows{listed, listedCapacity, targets, true};
  const RankScratch parts(ranked, listedCapacity, true, scratch);
  countRanks(ranked, rows, parts, parts.counted, stream);
  GENREC_CUDA_LAUNCH(stream, shapeOfThreads(listedCapacity, kProductThreads), separateEqual, rows,
                     parts.counted, ranks);
}

void rankScoredLists(const genrec_domain *domain, int64_t capacity, const float *score,
                     const float *label, const uint8_t *valid, int64_t *ranks,
                     genrec_row_note *unranked, cudaStream_t stream) {
  static_assert(kProductThreads % kWarp == 0);
  if (capacity > 0)
    GENREC_CUDA_LAUNCH(stream, shapeOfThreads(capacity * kWarp, kProductThreads), rankInList,
                       domain, capacity, score, label, valid, ranks, unranked);
}

} // namespace genrec::rt::cuda
