//===- rank.cpp - Top-k and ranks over a catalogue ------------------------===//

#include "isa.h"
#include "rank_impl.h"

#include <algorithm>

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
/// to the scratch.
RankArgs sortExcluded(genrec_rt_pool *pool, const RankArgs &args,
                      void *scratch) {
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
  return scan().rankOf(pool, sortExcluded(pool, args, scratch), targets, ranks,
                       afterExcluded(args, scratch));
}

} // namespace genrec::rt::kernels
