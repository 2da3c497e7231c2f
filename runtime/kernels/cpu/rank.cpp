//===- rank.cpp - Top-k and ranks over a catalogue ------------------------===//

#include "isa.h"
#include "rank_impl.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <tuple>

namespace genrec::rt::kernels {

namespace {

/// Queries per chunk when their lists of excluded items are sorted.
constexpr int64_t kSortGrain = 64;

const RankScan &scan() {
  static const RankScan &chosen =
      machineHasAvx512() ? avx512RankScan() : kRankScan;
  return chosen;
}

int64_t excludedBytes(int64_t count) { return roundUp(count * 8, 64); }

/// The arguments with every query's excluded items in ascending order, copied
/// to the scratch; those that are targets of the query, in ascending order too, are passed over.
RankArgs sortExcluded(genrec_rt_pool *pool, const RankArgs &args, void *scratch,
                      const TargetLists &kept = {}) {
  RankArgs sorted = args;
  if (!args.excludedOffsets)
    return sorted;
  const int64_t *offsets = args.excludedOffsets;
  int64_t *to = static_cast<int64_t *>(scratch) - offsets[0];
  parallelFor(pool, args.queryCount, kSortGrain,
              [&](int64_t begin, int64_t end, int64_t) {
                for (int64_t query = begin; query < end; ++query) {
                  int64_t *first = to + offsets[query];
                  int64_t *last = std::copy(args.excluded + offsets[query],
                                            args.excluded + offsets[query + 1],
                                            first);
                  if (kept.offsets)
                    std::replace_if(
                        first, last,
                        [&](int64_t item) {
                          return std::binary_search(kept.targets + kept.offsets[query],
                                                    kept.targets + kept.offsets[query + 1], item);
                        },
                        int64_t(-1));
                  if (!std::is_sorted(first, last))
                    std::sort(first, last);
                }
              });
  sorted.excluded = to;
  return sorted;
}

void *afterExcluded(const RankArgs &args, void *scratch) {
  int64_t count = args.excludedOffsets
                      ? args.excludedOffsets[args.queryCount] -
                            args.excludedOffsets[0]
                      : 0;
  return static_cast<char *>(scratch) + excludedBytes(count);
}

} // namespace

int64_t rankScratchBytes(int64_t dim, int64_t excludedCount, int64_t k,
                         int32_t workers) {
  return excludedBytes(excludedCount) + workers * scan().bytesPerWorker(dim, k);
}

bool topK(genrec_rt_pool *pool, const RankArgs &args, int64_t k,
          int64_t *indices, float *scores, void *scratch) {
  if (k <= 0)
    return true;
  return scan().topK(pool, sortExcluded(pool, args, scratch), k, indices,
                     scores, afterExcluded(args, scratch));
}

bool rankOf(genrec_rt_pool *pool, const RankArgs &args, const int64_t *targets,
            int64_t *ranks, void *scratch) {
  return scan().rankOf(pool, sortExcluded(pool, args, scratch), nullptr, args.queryCount, targets,
                       ranks, afterExcluded(args, scratch));
}

int64_t rankListsScratchBytes(int64_t dim, int64_t excludedCount, int64_t targetCount,
                              int32_t workers) {
  return 2 * excludedBytes(targetCount) + rankScratchBytes(dim, excludedCount, 0, workers);
}

bool rankLists(genrec_rt_pool *pool, const RankArgs &args, const TargetLists &lists,
               int64_t *ranks, void *scratch) {
  auto *distinct = static_cast<int64_t *>(scratch);
  auto *sorted = distinct + excludedBytes(lists.count) / 8;
  void *rest = static_cast<char *>(scratch) + 2 * excludedBytes(lists.count);
  auto forEachList = [&](auto body) {
    parallelFor(pool, args.queryCount, kSortGrain, [&](int64_t begin, int64_t end, int64_t) {
      for (int64_t query = begin; query < end; ++query)
        body(lists.offsets[query], lists.offsets[query + 1]);
    });
  };
  // Of equal targets of a list only the first counts.
  forEachList([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      sorted[row] = row;
    std::sort(sorted + begin, sorted + end, [&](int64_t a, int64_t b) {
      return std::pair(lists.targets[a], a) < std::pair(lists.targets[b], b);
    });
    for (int64_t position = begin; position < end; ++position) {
      int64_t row = sorted[position];
      bool isNew = position == begin || lists.targets[row] != lists.targets[sorted[position - 1]];
      distinct[row] = isNew ? lists.targets[row] : -1;
    }
    for (int64_t position = begin; position < end; ++position)
      sorted[position] = lists.targets[sorted[position]];
  });
  TargetLists kept{lists.offsets, nullptr, sorted, lists.count};
  RankArgs without = sortExcluded(pool, args, rest, kept);
  if (!scan().rankOf(pool, without, lists.queryOf, lists.count, distinct, ranks,
                     afterExcluded(args, rest)))
    return false;
  // Each of g targets of one score has counted the others: all have the lowest of their g ranks,
  // and other targets have others.
  forEachList([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      sorted[row] = row;
    std::sort(sorted + begin, sorted + end,
              [&](int64_t a, int64_t b) { return std::pair(ranks[a], a) < std::pair(ranks[b], b); });
    for (int64_t first = begin; first < end;) {
      int64_t rank = ranks[sorted[first]], last = first;
      while (last < end && ranks[sorted[last]] == rank)
        ++last;
      for (int64_t position = first; position < last && rank > 0; ++position)
        ranks[sorted[position]] = rank - (last - 1 - position);
      first = last;
    }
  });
  return true;
}

UnrankedRow rankScored(genrec_rt_pool *pool, const ScoredLists &scored, int64_t *ranks,
                       int64_t *order, int64_t *bad) {
  const int64_t *offsets = scored.offsets;
  const float *score = scored.score, *label = scored.label;
  std::atomic<int64_t> firstBad{std::numeric_limits<int64_t>::max()};
  parallelFor(pool, scored.lists, kSortGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t list = begin; list < end; ++list) {
      int64_t *rows = order + offsets[list], count = 0;
      for (int64_t row = offsets[list]; row < offsets[list + 1]; ++row) {
        ranks[row] = 0;
        if (scored.valid && !scored.valid[row])
          continue;
        if (std::isnan(score[row]) || (label[row] != 0 && label[row] != 1)) {
          int64_t seen = firstBad.load(std::memory_order_relaxed);
          while (row < seen && !firstBad.compare_exchange_weak(seen, row))
            ;
          break;
        }
        rows[count++] = row;
      }
      std::sort(rows, rows + count, [&](int64_t a, int64_t b) {
        return std::tuple(-score[a], label[a], a) < std::tuple(-score[b], label[b], b);
      });
      for (int64_t position = 0; position < count; ++position)
        if (label[rows[position]] == 1)
          ranks[rows[position]] = position + 1;
    }
  });
  *bad = firstBad.load(std::memory_order_relaxed);
  if (*bad == std::numeric_limits<int64_t>::max())
    return UnrankedRow::none;
  return std::isnan(score[*bad]) ? UnrankedRow::nanScore : UnrankedRow::label;
}

} // namespace genrec::rt::kernels
