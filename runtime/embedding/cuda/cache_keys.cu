//===- cache_keys.cu - Places ids in a cache ------------------------------===//

#include "genrec_rt/cuda/cache_keys.h"

#include "cache_kernels.h"

#include "genrec_rt/footprint.h"
#include "genrec_rt/kernels/cuda/launch.h"

namespace genrec::rt::cuda {

namespace {

LaunchShape keyShape(int64_t items, int64_t threadsEach) {
  return shapeOfThreads(items * threadsEach, kCacheThreads);
}

} // namespace

CacheKeys::CacheKeys(const std::string &name, const CacheLimit &limit, cudaStream_t stream)
    : digests(name + ".digests"), keys(name + ".keys"), marks(name + ".marks"),
      scores(name + ".scores"), counts(name + ".counts"), missing(name + ".batch_missing"),
      ranks(name + ".missing_ranks"), positions(name + ".missing_positions"),
      buckets(name + ".missing_buckets"), order(name + ".missing_order"),
      missingCount(name + ".missing_count"), flagRanks(name), byBucket(name) {
  cache.shape = CacheShape(limit.rows);
  const int64_t slots = cache.slots();
  cache.digests = digests.ensure(slots, stream);
  cache.keys = keys.ensure(slots, stream);
  cache.marks = cache.scores = marks.ensure(slots, stream);
  if (limit.score == CacheScore::frequency) {
    cache.scores = scores.ensure(slots, stream);
    cache.counts = counts.ensure(slots, stream);
  }
  missingCount.ensure(1, stream);
  clear(stream);
}

int64_t CacheKeys::bytes() const {
  return digests.capacity() + keys.capacity() * static_cast<int64_t>(sizeof(int64_t)) +
         marks.capacity() + scores.capacity() +
         counts.capacity() * static_cast<int64_t>(sizeof(Word));
}

void CacheKeys::clear(cudaStream_t stream) {
  const auto slots = static_cast<size_t>(cache.slots());
  GENREC_CUDA_CHECK(cudaMemsetAsync(cache.digests, kEmpty, slots, stream));
  GENREC_CUDA_CHECK(cudaMemsetAsync(cache.marks, 0, slots, stream));
  if (cache.counts) {
    GENREC_CUDA_CHECK(cudaMemsetAsync(cache.scores, 0, slots, stream));
    GENREC_CUDA_CHECK(cudaMemsetAsync(cache.counts, 0, slots * sizeof(Word), stream));
  }
  cache.call = 0;
}

/// Takes the next mark; where bytes have no more, those in the table make room.
void CacheKeys::startCall(cudaStream_t stream) {
  if (cache.call < kLastCall) {
    ++cache.call;
    return;
  }
  if (cache.counts) { // marks only say which rows the current call has touched
    GENREC_CUDA_CHECK(cudaMemsetAsync(cache.marks, 0, static_cast<size_t>(cache.slots()), stream));
    cache.call = 1;
    return;
  }
  GENREC_CUDA_LAUNCH(stream, keyShape(cache.shape.buckets(), kWarp), renumberMarks, cache);
  cache.call = kFirstCallAnew;
}

void CacheKeys::place(const int64_t *ids, const uint8_t *valid, int64_t count, bool beginsStep,
                      const Placement &placement, const CacheCounts &called, cudaStream_t stream) {
  if (beginsStep)
    startCall(stream);
  const int64_t room = capacityBucket(count);
  missing.ensure(room, stream);
  ranks.ensure(room, stream);
  positions.ensure(room, stream);
  buckets.ensure(room, stream);
  order.ensure(room, stream);
  GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), touchIds, cache, ids, valid, count,
                     placement.slotOf, missing.data());
  flagRanks.run(missing.data(), count, ranks.data(), missingCount.data(), stream);
  GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), listMissing, cache.shape, ids, count,
                     missing.data(), ranks.data(), positions.data(), buckets.data());
  byBucket.run(buckets.data(), count, cache.shape.buckets(), order.data(), stream,
               missingCount.data());
  for (uint8_t *flags : {placement.placed, placement.leaving})
    GENREC_CUDA_CHECK(cudaMemsetAsync(flags, 0, static_cast<size_t>(count), stream));
  GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), placeMissing, cache,
                     (MissingIds{ids, positions.data(), buckets.data(), order.data(), 0}),
                     missingCount.data(), placement, called);
  if (cache.counts) {
    GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), countOccurrences, cache, placement.slotOf,
                       count);
    GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), writeScores, cache, placement.slotOf, count);
  }
}

void CacheKeys::erase(const int64_t *ids, int64_t count, int64_t *slotOf, const CacheCounts &called,
                      cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), findSlots, cache, ids, count, slotOf);
  GENREC_CUDA_LAUNCH(stream, keyShape(count, 1), dropSlots, cache, slotOf, count, called.rows);
}

} // namespace genrec::rt::cuda
