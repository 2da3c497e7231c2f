//===- rank_impl.h - Scans over a catalogue ---------------------*- C++ -*-===//
//
// Included by rank.cpp and rank.avx512.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_KERNELS_CPU_RANK_IMPL_H
#define GENREC_RT_KERNELS_CPU_RANK_IMPL_H

#include "rank_scan.h"

#include "genrec_rt/kernels/cpu/scratch.h"
#include "genrec_rt/kernels/cpu/tile.h"

namespace genrec::rt::kernels {
inline namespace GENREC_RT_ISA {
namespace {

using namespace detail;

constexpr int kVectors = 2;
/// Queries that are scored together, one per lane.
constexpr int kQueries = kVectors * kLanes;
constexpr int kTileItems = tileRows(kVectors);
/// Items whose scores are held at a time: the tile of scores stays in the
/// first-level cache.
constexpr int64_t kBlockItems = 12 * kTileItems;

/// One worker's scratch.
struct RankBuffers {
  float *queries;  ///< [dim, kQueries]
  float *targets;  ///< [dim, kQueries]
  float *scores;   ///< [kBlockItems, kQueries]
  float *heapScores;
  int64_t *heapIndices; ///< [kQueries, k]
  int64_t used;

  RankBuffers(void *scratch, int64_t dim, int64_t k) {
    ScratchCursor cursor(scratch);
    queries = cursor.take<float>(dim * kQueries);
    targets = cursor.take<float>(dim * kQueries);
    scores = cursor.take<float>(kBlockItems * kQueries);
    heapScores = cursor.take<float>(kQueries * k);
    heapIndices = cursor.take<int64_t>(kQueries * k);
    used = cursor.bytes();
  }
};

int64_t bytesPerWorker(int64_t dim, int64_t k) {
  return RankBuffers(nullptr, dim, k).used;
}

/// The queries of one chunk and their place in the lists of excluded items.
struct QueryTile {
  const RankArgs &args;
  const RankBuffers &buffers;
  int64_t first;
  int count;
  const int64_t *excluded[kQueries], *excludedEnd[kQueries];
  VecI notNumbers[kVectors] = {};

  /// Lane i holds query begin + i, or, with `queryOf`, the query of row begin + i.
  QueryTile(const RankArgs &args, const RankBuffers &buffers, int64_t begin,
            int64_t end, const int64_t *queryOf = nullptr)
      : args(args), buffers(buffers), first(begin),
        count(static_cast<int>(end - begin)) {
    for (int lane = 0; lane < kQueries; ++lane) {
      int64_t number = lane >= count ? 0 : queryOf ? queryOf[first + lane] : first + lane;
      const float *query = args.queries + number * args.ldQueries;
      for (int64_t c = 0; c < args.dim; ++c)
        buffers.queries[c * kQueries + lane] = lane < count ? query[c] : 0.0f;
      excluded[lane] = excludedEnd[lane] = nullptr;
      if (lane < count && args.excludedOffsets) {
        excluded[lane] = args.excluded + args.excludedOffsets[number];
        excludedEnd[lane] = args.excluded + args.excludedOffsets[number + 1];
      }
    }
  }

  /// Lanes of vector v that hold a query.
  uint32_t lanes(int v) const {
    int n = count - v * kLanes;
    return n >= kLanes ? (1u << kLanes) - 1 : n <= 0 ? 0 : (1u << n) - 1;
  }

  bool sawNaN() const {
    for (int v = 0; v < kVectors; ++v)
      if (maskBits(notNumbers[v]) & lanes(v))
        return true;
    return false;
  }

  /// Scores of the items [begin, end), a row of lanes per item.
  void score(int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; item += kTileItems) {
      const float *rows[kTileItems];
      for (int r = 0; r < kTileItems; ++r)
        rows[r] = args.items + (item + r < end ? item + r : item) * args.ldItems;
      VecF acc[kTileItems][kVectors];
      tileClear(acc);
      tileMultiplyRows(acc, rows, buffers.queries, kLanes, kQueries, args.dim);
      float *to = buffers.scores + (item - begin) * kQueries;
#pragma GCC unroll 16
      for (int r = 0; r < kTileItems; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          notNumbers[v] |= acc[r][v] != acc[r][v];
          store(to + r * kQueries + v * kLanes, acc[r][v]);
        }
    }
  }

  /// Makes excluded items among [begin, end) incomparable, except targets.
  void exclude(int64_t begin, int64_t end, const int64_t *targets) {
    for (int lane = 0; lane < count; ++lane) {
      const int64_t *&at = excluded[lane];
      int64_t target = targets ? targets[first + lane] : -1;
      for (; at < excludedEnd[lane] && *at < end; ++at)
        if (*at >= begin && *at != target)
          buffers.scores[(*at - begin) * kQueries + lane] = __builtin_nanf("");
    }
  }
};

//===----------------------------------------------------------------------===//
// Top k
//===----------------------------------------------------------------------===//

/// The k best candidates of one query: a heap with the worst on top.
struct Candidates {
  float *scores;
  int64_t *indices;
  int64_t size = 0;

  bool worse(int64_t a, int64_t b) const {
    return scores[a] < scores[b] ||
           (scores[a] == scores[b] && indices[a] > indices[b]);
  }
  void swap(int64_t a, int64_t b) {
    float score = scores[a];
    int64_t index = indices[a];
    scores[a] = scores[b], indices[a] = indices[b];
    scores[b] = score, indices[b] = index;
  }
  void siftUp(int64_t at) {
    while (at > 0 && worse(at, (at - 1) / 2)) {
      swap(at, (at - 1) / 2);
      at = (at - 1) / 2;
    }
  }
  void siftDown(int64_t n) {
    for (int64_t at = 0;;) {
      int64_t worst = 2 * at + 1;
      if (worst >= n)
        return;
      if (worst + 1 < n && worse(worst + 1, worst))
        ++worst;
      if (!worse(worst, at))
        return;
      swap(at, worst);
      at = worst;
    }
  }

  /// Takes a candidate that beats the worst of k, and returns the score that
  /// the next one has to beat.
  float add(float score, int64_t index, int64_t k) {
    int64_t at = size < k ? size++ : 0;
    scores[at] = score, indices[at] = index;
    if (at > 0 || size < k)
      siftUp(at);
    else
      siftDown(size);
    return size < k ? -__builtin_inff() : scores[0];
  }

  /// Best first.
  void sort() {
    for (int64_t n = size - 1; n > 0; --n) {
      swap(0, n);
      siftDown(n);
    }
  }
};

void scanForTop(QueryTile &tile, int64_t k, Candidates (&best)[kQueries],
                float (&toBeat)[kQueries], int64_t begin, int64_t end) {
  for (int64_t item = begin; item < end; ++item) {
    const float *scores = tile.buffers.scores + (item - begin) * kQueries;
    for (int v = 0; v < kVectors; ++v) {
      uint32_t better = maskBits(load(scores + v * kLanes) >
                                 load(toBeat + v * kLanes)) &
                        tile.lanes(v);
      for (; better; better &= better - 1) {
        int lane = v * kLanes + __builtin_ctz(better);
        toBeat[lane] = best[lane].add(scores[lane], item, k);
      }
    }
  }
}

bool scanTopK(genrec_rt_pool *pool, const RankArgs &args, int64_t k,
              int64_t *indices, float *scores, void *scratch) {
  const int64_t perWorker = bytesPerWorker(args.dim, k);
  int32_t failed = 0;
  parallelFor(pool, args.queryCount, kQueries, [&](int64_t begin, int64_t end,
                                                   int64_t) {
    char *memory = static_cast<char *>(scratch);
    RankBuffers buffers(memory + genrec_rt_worker_index() * perWorker, args.dim, k);
    QueryTile tile(args, buffers, begin, end);
    Candidates best[kQueries];
    float toBeat[kQueries];
    for (int lane = 0; lane < kQueries; ++lane) {
      best[lane] = {buffers.heapScores + lane * k, buffers.heapIndices + lane * k};
      toBeat[lane] = -__builtin_inff();
    }
    for (int64_t item = 0; item < args.itemCount; item += kBlockItems) {
      int64_t itemEnd = args.itemCount - item < kBlockItems ? args.itemCount
                                                            : item + kBlockItems;
      tile.score(item, itemEnd);
      tile.exclude(item, itemEnd, nullptr);
      scanForTop(tile, k, best, toBeat, item, itemEnd);
    }
    for (int lane = 0; lane < tile.count; ++lane) {
      best[lane].sort();
      for (int64_t i = 0; i < k; ++i) {
        bool found = i < best[lane].size;
        indices[(begin + lane) * k + i] = found ? best[lane].indices[i] : -1;
        scores[(begin + lane) * k + i] =
            found ? best[lane].scores[i] : -__builtin_inff();
      }
    }
    if (tile.sawNaN())
      __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
  });
  return failed == 0;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

/// Scores of the targets, by the same additions as in QueryTile::score.
void scoreTargets(const QueryTile &tile, const int64_t *targets,
                  VecF (&scores)[kVectors]) {
  const RankArgs &args = tile.args;
  float *rows = tile.buffers.targets;
  for (int lane = 0; lane < kQueries; ++lane) {
    int64_t target = lane < tile.count ? targets[tile.first + lane] : -1;
    bool exists = target >= 0 && target < args.itemCount;
    for (int64_t c = 0; c < args.dim; ++c)
      rows[c * kQueries + lane] =
          exists ? args.items[target * args.ldItems + c] : 0.0f;
  }
  for (int v = 0; v < kVectors; ++v) {
    scores[v] = VecF{};
    for (int64_t c = 0; c < args.dim; ++c)
      scores[v] = fma(load(rows + c * kQueries + v * kLanes),
                      load(tile.buffers.queries + c * kQueries + v * kLanes),
                      scores[v]);
  }
}

bool scanRanks(genrec_rt_pool *pool, const RankArgs &args, const int64_t *queryOf,
               int64_t count, const int64_t *targets, int64_t *ranks, void *scratch) {
  const int64_t perWorker = bytesPerWorker(args.dim, 0);
  int32_t failed = 0;
  parallelFor(pool, count, kQueries, [&](int64_t begin, int64_t end, int64_t) {
    char *memory = static_cast<char *>(scratch);
    RankBuffers buffers(memory + genrec_rt_worker_index() * perWorker, args.dim, 0);
    QueryTile tile(args, buffers, begin, end, queryOf);
    VecF target[kVectors];
    scoreTargets(tile, targets, target);
    for (int lane = 0; lane < tile.count; ++lane)
      ranks[begin + lane] = 0;
    for (int64_t item = 0; item < args.itemCount; item += kBlockItems) {
      int64_t itemEnd = args.itemCount - item < kBlockItems ? args.itemCount
                                                            : item + kBlockItems;
      tile.score(item, itemEnd);
      tile.exclude(item, itemEnd, targets);
      VecI counts[kVectors] = {};
      for (int64_t i = 0; i < itemEnd - item; ++i)
        for (int v = 0; v < kVectors; ++v)
          counts[v] -= load(buffers.scores + i * kQueries + v * kLanes) >= target[v];
      int32_t lanes[kQueries];
      __builtin_memcpy(lanes, counts, sizeof lanes);
      for (int lane = 0; lane < tile.count; ++lane)
        ranks[begin + lane] += lanes[lane];
    }
    // The target has counted itself, which is the one that ranks start from.
    for (int lane = 0; lane < tile.count; ++lane)
      if (targets[begin + lane] < 0 || targets[begin + lane] >= args.itemCount)
        ranks[begin + lane] = 0;
    if (tile.sawNaN())
      __atomic_store_n(&failed, 1, __ATOMIC_RELAXED);
  });
  return failed == 0;
}

constexpr RankScan kRankScan = {scanTopK, scanRanks, bytesPerWorker};

} // namespace
} // namespace GENREC_RT_ISA
} // namespace genrec::rt::kernels

#endif // GENREC_RT_KERNELS_CPU_RANK_IMPL_H
