//===- row_rules.cpp - Rows that come and leave by rule -------------------===//

#include "genrec_rt/row_rules.h"

#include "genrec_rt/store.h"

#include <algorithm>
#include <atomic>

namespace genrec::rt {

/// Entries per chunk of the parallel-for.
static constexpr int64_t kSeeGrain = 2048;

void EmbeddingStore::findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                                 int64_t count, int64_t step, float **rows, int64_t *waits) {
  int64_t missing = search(on.pool, ids, valid, count, rows), first = rowCount;
  for (int64_t i = 0; i < count && missing > 0; ++i) {
    if ((valid && !valid[i]) || rows[i])
      continue;
    --missing;
    rows[i] = findOrAdmitOne(ids[i], step);
    if (waits)
      *waits += rows[i] == nullptr;
  }
  if (rowCount > first) {
    initializeRows(on.pool, first, rowCount);
    allocateAhead();
  }
  see(on.pool, count, step, rows, valid);
}

/// Whether an id without a row gets one in `step`, which sees it.
bool EmbeddingStore::isAdmitted(int64_t id, int64_t step) {
  if (!waitingIds)
    return true;
  float *row;
  waitingIds->findOrAdmit({}, &id, nullptr, 1, step, &row, nullptr);
  if (waitingIds->sightingOf(row).steps < config.rules.admitAfter)
    return false;
  waitingIds->erase({}, &id, 1);
  return true;
}

/// Notes `step` in the rows, in each once: of several entries of a row, whichever comes
/// first counts, and makes the row hot where it is the step to do so.
void EmbeddingStore::see(genrec_rt_pool *pool, int64_t count, int64_t step, float *const *rows,
                         const uint8_t *valid) {
  parallelFor(pool, count, kSeeGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t i = begin; i < end; ++i) {
      if ((valid && !valid[i]) || !rows[i])
        continue;
      Sighting &sighting = sightingOf(rows[i]);
      std::atomic_ref<int64_t> lastStep(sighting.lastStep);
      if (lastStep.load(std::memory_order_relaxed) == step ||
          lastStep.exchange(step, std::memory_order_relaxed) == step)
        continue;
      const int64_t steps =
          std::atomic_ref<int64_t>(sighting.steps).fetch_add(1, std::memory_order_relaxed) + 1;
      if (config.keepsLower() && config.rules.isHot(steps) && !lowerOf(rows[i]))
        lowerOf(rows[i]) = lowerHalves.take();
    }
  });
}

void EmbeddingStore::evict(const StoreStream &on, int64_t step, int64_t expired) {
  const RowRules &rules = config.rules;
  // Not again before the table is larger than ever, and in no later step that is the first to look.
  if (rules.hasTtl())
    leaving.reserve(static_cast<size_t>(rowCount));
  if (const int64_t latest = rules.latestLeaving(step, expired); latest >= 0) {
    for (int64_t number = 0; number < rowCount; ++number)
      if (sightingOf(row(number)).lastStep <= latest)
        leaving.push_back(number);
    removeLeaving();
  }
  for (int64_t member = 0; member < std::max<int64_t>(1, memberCounts.size()); ++member)
    if (int64_t excess = rules.excess(sizeOf(member)))
      listLowest(member, excess);
  std::sort(leaving.begin(), leaving.end());
  removeLeaving();
  if (waitingIds)
    waitingIds->evict(on, step, expired);
}

/// Adds the numbers of the `count` lowest rows of a member (in a store of one table, of all)
/// to `leaving`.
void EmbeddingStore::listLowest(int64_t member, int64_t count) {
  ranks.clear();
  ranks.reserve(static_cast<size_t>(sizeOf(member)));
  for (int64_t number = 0; number < rowCount; ++number)
    if (memberCounts.empty() || id(number) >> config.keyBits == member)
      ranks.push_back({sightingOf(row(number)).rank(config.rules.eviction, id(number)), number});
  std::nth_element(ranks.begin(), ranks.begin() + (count - 1), ranks.end());
  for (int64_t i = 0; i < count; ++i)
    leaving.push_back(ranks[i].second);
}

/// Removes the rows of the ascending numbers in `leaving`, from the last: what fills a
/// gap stays.
void EmbeddingStore::removeLeaving() {
  for (auto number = leaving.rbegin(); number != leaving.rend(); ++number)
    removeRow(*number);
  leaving.clear();
}

void EmbeddingStore::erase(const StoreStream &on, const int64_t *ids, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (int64_t number = numberOf(ids[i]); number >= 0)
      removeRow(number);
    if (waitingIds)
      waitingIds->erase(on, ids + i, 1);
  }
}

} // namespace genrec::rt
