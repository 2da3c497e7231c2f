//===- row_rules.cu - Rows that come and leave by rule, on a device -------===//

#include "genrec_rt/cuda/store.h"

#include "store_shape.h"

#include "genrec_rt/cuda/device.h"
#include "genrec_rt/footprint.h"

namespace genrec::rt::cuda {

namespace {

__device__ Word *sightingOf(float *row, int64_t offset) {
  return reinterpret_cast<Word *>(row + offset);
}

/// Notes `step` in the rows, in each once.
__global__ void __launch_bounds__(kStoreThreads)
    seeRows(float *const *rows, const uint8_t *valid, int64_t count, int64_t offset, Word step) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    if ((valid && !valid[i]) || !rows[i])
      continue;
    Word *sighting = sightingOf(rows[i], offset);
    if (loadRelaxed(sighting) != step && atomicExch(sighting, step) != step)
      atomicAdd(sighting + 1, Word(1));
  }
}

/// absent[i]: a valid entry without a row.
__global__ void __launch_bounds__(kStoreThreads)
    maskAbsent(float *const *rows, const uint8_t *valid, int64_t count, uint8_t *absent) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid())
    absent[i] = (!valid || valid[i]) && !rows[i];
}

/// admitted[i]: an absent id that has been seen in enough steps.
__global__ void __launch_bounds__(kStoreThreads)
    maskAdmitted(float *const *waitingRows, const uint8_t *absent, int64_t count, int64_t offset,
                 Word admitAfter, uint8_t *admitted, Word *waits) {
  for (int64_t i = threadInGrid(); i < count; i += threadsInGrid()) {
    const bool isAdmitted = absent[i] && sightingOf(waitingRows[i], offset)[1] >= admitAfter;
    admitted[i] = isAdmitted;
    if (waits && absent[i] && !isAdmitted)
      atomicAdd(waits, Word(1));
  }
}

/// expired[number]: a row in use that was last seen in step `latest` or before.
__global__ void __launch_bounds__(kStoreThreads)
    flagExpired(RowAddresses addresses, int64_t offset, const uint8_t *inUse, int64_t numbers,
                int64_t latest, uint8_t *expired) {
  for (int64_t number = threadInGrid(); number < numbers; number += threadsInGrid())
    expired[number] = inUse[number] &&
                      static_cast<int64_t>(*sightingOf(addresses.row(static_cast<uint32_t>(number)),
                                                       offset)) <= latest;
}

__global__ void __launch_bounds__(kStoreThreads)
    listIds(RowAddresses addresses, const uint8_t *flagged, int64_t numbers, int64_t *ids) {
  for (int64_t number = threadInGrid(); number < numbers; number += threadsInGrid())
    if (flagged[number])
      ids[number] = *addresses.id(static_cast<uint32_t>(number));
}

} // namespace

void EmbeddingStore::see(const uint8_t *valid, int64_t count, int64_t step, float *const *rows,
                         cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), seeRows, rows, valid, count, sightingOffset(),
                     static_cast<Word>(step));
  if (config.keepsLower())
    makeHot(valid, count, rows, stream);
}

void EmbeddingStore::findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                                 int64_t count, int64_t step, float **rows, int64_t *waits) {
  const cudaStream_t stream = streamOf(on);
  if (count == 0)
    return;
  if (waitingIds) {
    const int64_t room = capacityBucket(count);
    uint8_t *absent = masks.ensure(2 * room, stream), *admitted = absent + room;
    waitingRows.ensure(room, stream);
    find(on, ids, valid, count, rows, nullptr);
    GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), maskAbsent, rows, valid, count, absent);
    waitingIds->findOrAdmit(on, ids, absent, count, step, waitingRows.data(), nullptr);
    GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), maskAdmitted, waitingRows.data(), absent, count,
                       waitingIds->sightingOffset(), static_cast<Word>(config.rules.admitAfter),
                       admitted, reinterpret_cast<Word *>(waits));
    findOrInsert(on, ids, admitted, count, rows);
    waitingIds->eraseValid(ids, admitted, count, stream);
  } else {
    findOrInsert(on, ids, valid, count, rows);
  }
  see(valid, count, step, rows, stream);
}

void EmbeddingStore::eraseFlagged(const uint8_t *flagged, int64_t numbers, cudaStream_t stream) {
  leavingIds.ensure(capacityBucket(numbers), stream);
  GENREC_CUDA_LAUNCH(stream, shapeOf(numbers, 1), listIds, addresses, flagged, numbers,
                     leavingIds.data());
  eraseValid(leavingIds.data(), flagged, numbers, stream);
}

void EmbeddingStore::evict(const StoreStream &on, int64_t step, int64_t expired) {
  const cudaStream_t stream = streamOf(on);
  const RowRules &rules = config.rules;
  const int64_t latest = rules.latestLeaving(step, expired);
  const bool checksTime = latest >= 0;
  if (checksTime || (rules.bound > 0 && largestBound > rules.bound)) {
    const int64_t numbers = readCounters(stream).rows, room = capacityBucket(numbers);
    uint8_t *inUse = masks.ensure(2 * room, stream), *flagged = inUse + room;
    if (checksTime && numbers > 0) {
      flagInUse(kAllMembers, numbers, inUse, stream);
      GENREC_CUDA_LAUNCH(stream, shapeOf(numbers, 1), flagExpired, addresses, sightingOffset(),
                         inUse, numbers, latest, flagged);
      eraseFlagged(flagged, numbers, stream);
      readCounters(stream);
    }
    for (size_t member = 0; member < std::max<size_t>(1, config.members.size()); ++member) {
      const int64_t excess = rules.excess(answeredRows(member));
      if (excess == 0)
        continue;
      flagInUse(config.members.empty() ? kAllMembers : static_cast<int64_t>(member), numbers, inUse,
                stream);
      lowest.flag(addresses, sightingOffset(), rules.eviction, inUse, numbers, excess, step,
                  flagged, stream);
      eraseFlagged(flagged, numbers, stream);
    }
  }
  if (waitingIds)
    waitingIds->evict(on, step, expired);
}

} // namespace genrec::rt::cuda
