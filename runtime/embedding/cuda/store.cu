//===- store.cu - The embedding store on a device -------------------------===//

#include "genrec_rt/cuda/store.h"

#include "store_kernels.h"

#include "genrec_rt/kernels/cuda/bf16.h"
#include "genrec_rt/kernels/cuda/launch.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <type_traits>
#include <utility>

namespace genrec::rt::cuda {

namespace {

constexpr int64_t kFirstBuckets = 2;
/// Bytes of a chunk of rows, and the least rows in one.
constexpr int64_t kChunkBytes = 8 << 20;
constexpr int64_t kLeastChunkRows = 64;
/// Chunks that the device's table of them has room for: 512 GiB of rows.
constexpr int64_t kMostStoreChunks = 1 << 16;
constexpr int kMostRowBits = 31;
constexpr int64_t kMostRows = int64_t(1) << kMostRowBits;

} // namespace

EmbeddingStore::EmbeddingStore(const StoreConfig &config, const std::string &name,
                               const StoreOptions &options)
    : TableStore(config), options(options), name(name), digests(name + ".digests"),
      keys(name + ".keys"), chunkTable(name + ".chunks"), placesOnDevice(name + ".chunk_places"),
      counters(name + ".counters"), memberCounts(name + ".member_counts"), draws(name + ".draws"),
      placeOf(name + ".batch_places"), flags(name + ".batch_flags"),
      leaving(name + ".batch_leaving"), ranks(name + ".batch_ranks"), freedNumbers(name + ".freed"),
      firstOf(name + ".first_of"), masks(name + ".batch_masks"),
      waitingRows(name + ".batch_waiting"), leavingIds(name + ".leaving_ids"),
      leavingRows(name + ".leaving_rows"), hostChunks(name + ".host_values"),
      lowerHalves(name, config.dim), lowest(name),
      listing{0, 0, 0, DeviceArray<int64_t>(name + ".listed_ids"),
              DeviceArray<float *>(name + ".listed_rows")},
      transfer(name + ".transfer"), flagRanks(name) {}

// Where it fails, the destructor gives back what it has made: the other constructor is through.
EmbeddingStore::EmbeddingStore(const StoreConfig &config, const std::string &name,
                               cudaStream_t stream, const StoreOptions &options)
    : EmbeddingStore(config, name, options) {
  checkOptions();
  addresses.stride = config.rowFloats();
  addresses.chunks = chunkTable.ensure(kMostStoreChunks, stream);
  counters.ensure(1, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(counters.data(), 0, sizeof(StoreCounters), stream));
  GENREC_CUDA_CHECK(cudaMallocHost(&answer, sizeof(StoreCounters)));
  if (countsMembers()) {
    const size_t bytes = config.members.size() * sizeof(uint32_t);
    memberCounts.ensure(static_cast<int64_t>(config.members.size()), stream);
    GENREC_CUDA_CHECK(cudaMemsetAsync(memberCounts.data(), 0, bytes, stream));
    GENREC_CUDA_CHECK(cudaMallocHost(&memberAnswer, bytes));
  }
  GENREC_CUDA_CHECK(cudaEventCreateWithFlags(&answered, cudaEventDisableTiming));
  if (options.cache.rows) {
    cache.emplace(name, options.cache, stream);
    addresses.chunkShift = kMostRowBits;
    addresses.chunkRows = slots();
  } else {
    allocateKeys(kFirstBuckets, stream);
    const int64_t rows = std::max(kLeastChunkRows, kChunkBytes / (addresses.stride * 4 + 8));
    addresses.chunkShift = std::bit_width(static_cast<uint64_t>(rows)) - 1;
    addresses.chunkRows = int64_t(1) << addresses.chunkShift;
  }
  makeRoomForRows(1, stream);
  if (cache)
    addresses.only = chunks.front();
  uploadDraws(stream);
  if (config.rules.admitAfter > 1)
    waitingIds = std::make_unique<EmbeddingStore>(config.ofWaitingIds(), name + ".waiting", stream);
}

void EmbeddingStore::checkOptions() const {
  if (options.cache.rows && config.rules.any())
    throw Error("cache '" + name + "' has rules about rows, which are a table's");
  if (options.cache.rows < 0 || options.cache.rows > CacheLimit::kMostRows)
    throw Error("cache '" + name + "' of " + std::to_string(options.cache.rows) +
                " rows: a cache has from 1 to " + std::to_string(CacheLimit::kMostRows));
}

EmbeddingStore::~EmbeddingStore() {
  (void)cudaDeviceSynchronize(); // kernels may use rows, and the last answer be on its way
  if (options.values == ValueMemory::device)
    for (float *chunk : chunks)
      freeNamedAfterAll(chunk);
  if (answered)
    (void)cudaEventDestroy(answered);
  (void)cudaFreeHost(answer);
  (void)cudaFreeHost(memberAnswer);
}

//===----------------------------------------------------------------------===//
// What the host knows
//===----------------------------------------------------------------------===//

void EmbeddingStore::copyCounters(cudaStream_t stream) const {
  GENREC_CUDA_CHECK(cudaMemcpyAsync(answer, counters.data(), sizeof(StoreCounters),
                                    cudaMemcpyDeviceToHost, stream));
  if (countsMembers())
    GENREC_CUDA_CHECK(cudaMemcpyAsync(memberAnswer, memberCounts.data(),
                                      config.members.size() * sizeof(uint32_t),
                                      cudaMemcpyDeviceToHost, stream));
}

int64_t EmbeddingStore::answeredRows(size_t member) const {
  return countsMembers() ? memberAnswer[member] : int64_t(answer->rows) - answer->freed;
}

void EmbeddingStore::takeOver(int64_t asked, int64_t askedHot) const {
  isRequested = false;
  usedBound = answer->used + asked;
  lowerBound = answer->lower.used + askedHot;
  rowsBound = answer->rows + asked;
  largestBound = answeredRows(0) + asked;
  for (size_t member = 1; member < config.members.size(); ++member)
    largestBound = std::max(largestBound, answeredRows(member) + asked);
}

StoreCounters EmbeddingStore::readCounters(cudaStream_t stream) const {
  copyCounters(stream);
  waitForStream(stream);
  takeOver(0, 0);
  return *answer;
}

void EmbeddingStore::requestCounters(cudaStream_t stream) {
  if (isRequested)
    return; // the last answer is still on its way
  copyCounters(stream);
  GENREC_CUDA_CHECK(cudaEventRecord(answered, stream));
  isRequested = true;
  askedSinceRequest = hotSinceRequest = 0;
}

void EmbeddingStore::takeAnswer() {
  if (!isRequested)
    return;
  const cudaError_t status = cudaEventQuery(answered);
  if (status == cudaErrorNotReady)
    return;
  GENREC_CUDA_CHECK(status);
  takeOver(askedSinceRequest, hotSinceRequest);
}

int64_t EmbeddingStore::size(const StoreStream &on) const {
  const StoreCounters now = readCounters(streamOf(on));
  return int64_t(now.rows) - now.freed;
}

int64_t EmbeddingStore::refused(cudaStream_t stream) const { return readCounters(stream).refused; }

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void EmbeddingStore::allocateKeys(int64_t buckets, cudaStream_t stream) {
  const int64_t slots = buckets * kBucketSlots;
  table.bucketMask = static_cast<uint32_t>(buckets - 1);
  table.seed = config.hashSeed;
  table.digests = digests.ensure(slots, stream);
  table.keys = keys.ensure(slots, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(table.digests, kEmpty, static_cast<size_t>(slots), stream));
}

bool EmbeddingStore::mayWait() const {
  return !options.step || !std::exchange(options.step->hasWaited, true);
}

/// Into a larger table; into one of the same size where it is erased slots that fill it.
void EmbeddingStore::grow(int64_t live, int64_t erased, cudaStream_t stream) {
  const KeyTable old = table;
  DeviceArray<uint8_t> oldDigests(name + ".digests");
  DeviceArray<KeySlot> oldKeys(name + ".keys");
  oldDigests.swap(digests);
  oldKeys.swap(keys);
  int64_t buckets = int64_t(old.bucketMask) + 1;
  if (erased * 2 < limit())
    buckets *= 2;
  while (buckets * kBucketSlots / 4 * 3 < live)
    buckets *= 2;
  allocateKeys(buckets, stream);
  GENREC_CUDA_CHECK(cudaMemsetAsync(&counters.data()->used, 0, sizeof(uint32_t), stream));
  GENREC_CUDA_CHECK(cudaMemsetAsync(&counters.data()->erased, 0, sizeof(uint32_t), stream));
  GENREC_CUDA_LAUNCH(stream, shapeOf(old.slots(), kTileLanes), moveKeys, old, table,
                     counters.data());
  oldDigests.release(stream);
  oldKeys.release(stream);
}

void EmbeddingStore::makeRoomForRows(int64_t count, cudaStream_t stream) {
  while (static_cast<int64_t>(chunks.size()) * addresses.chunkRows < count) {
    if (static_cast<int64_t>(chunks.size()) == kMostStoreChunks || count > kMostRows)
      throw Error(
          "table '" + name + "' has no room for " + std::to_string(count) + " rows: at most " +
              std::to_string(std::min(kMostRows, kMostStoreChunks * addresses.chunkRows)) + " fit",
          "shard the table over more devices");
    void *chunk = options.values == ValueMemory::host
                      ? hostChunks.take(chunkBytes())
                      : allocateNamed(name + ".values", chunkBytes(), stream);
    chunks.push_back(static_cast<float *>(chunk));
    GENREC_CUDA_CHECK(cudaMemcpyAsync(chunkTable.data() + chunks.size() - 1, &chunks.back(),
                                      sizeof(float *), cudaMemcpyHostToDevice, stream));
    noteChunk(stream);
  }
}

/// Of a store whose rows draw numbers.
void EmbeddingStore::noteChunk(cudaStream_t stream) {
  if (config.element != RowElement::bf16)
    return;
  const ChunkPlace last{chunks.back(), static_cast<int64_t>(chunks.size()) - 1};
  if (chunkPlaces.empty())
    chunkPlaces.push_back({nullptr, 0});
  auto at = std::upper_bound(
      chunkPlaces.begin() + 1, chunkPlaces.end(), last,
      [](const ChunkPlace &a, const ChunkPlace &b) { return std::less<>()(a.begin, b.begin); });
  chunkPlaces.insert(at, last);
  ++chunkPlaces.front().number;
  // A step that runs may search the list. Growing is rare, and captured steps have this address.
  if (chunkPlaces.front().number > 1)
    waitForQueues();
  GENREC_CUDA_CHECK(cudaMemcpyAsync(placesOnDevice.ensure(kMostStoreChunks + 1, stream),
                                    chunkPlaces.data(), chunkPlaces.size() * sizeof(ChunkPlace),
                                    cudaMemcpyHostToDevice, stream));
}

//===----------------------------------------------------------------------===//
// Finding and inserting
//===----------------------------------------------------------------------===//

void EmbeddingStore::find(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                          int64_t count, float **rows, int64_t *missing) const {
  const cudaStream_t stream = streamOf(on);
  if (count > 0)
    withTable([&](const auto &keys) {
      GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), findRows<std::decay_t<decltype(keys)>>, keys,
                         addresses, ids, valid, count, rows, reinterpret_cast<Word *>(missing));
    });
}

void EmbeddingStore::resolveOnce(const int64_t *ids, const uint8_t *valid, int64_t count,
                                 cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), resolveIds, table, ids, valid, count,
                     static_cast<uint32_t>(std::min<int64_t>(limit(), 0xFFFFFFFF)), counters.data(),
                     placeOf.data());
}

/// Gives every id a slot; waits where the host does not know that all fit, if it may.
void EmbeddingStore::resolve(const int64_t *ids, const uint8_t *valid, int64_t count,
                             cudaStream_t stream) {
  int64_t erased = 0;
  const bool isFull = usedBound + count > limit();
  if (isFull && mayWait())
    erased = readCounters(stream).erased;
  // Room for two batches: a table that is nearly full would ask in every step.
  if (options.step && isFull && usedBound + 2 * count > limit()) {
    usedBound -= erased;
    grow(usedBound + 2 * count, erased, stream);
  }
  if (usedBound + count <= limit())
    return resolveOnce(ids, valid, count, stream);
  while (true) {
    GENREC_CUDA_CHECK(cudaMemsetAsync(&counters.data()->unresolved, 0, sizeof(uint32_t), stream));
    resolveOnce(ids, valid, count, stream);
    const StoreCounters now = readCounters(stream);
    if (now.unresolved == 0)
      return;
    // Ids without room may repeat: a fourth of them is taken to be new, what more there is grows
    // once more.
    grow(int64_t(now.used) + now.unresolved / 4, now.erased, stream);
  }
}

void EmbeddingStore::uploadDraws(cudaStream_t stream) {
  std::vector<RowDraws> tables;
  auto add = [&](const RowInitializer &initializer) {
    tables.push_back({initializer.distribution(),
                      kernels::initStream(initializer.seed, initializer.nameHash),
                      initializer.nameHash});
  };
  if (config.members.empty())
    add(config.initializer);
  else
    std::for_each(config.members.begin(), config.members.end(), add);
  const auto count = static_cast<int64_t>(tables.size());
  GENREC_CUDA_CHECK(cudaMemcpyAsync(draws.ensure(count, stream), tables.data(),
                                    tables.size() * sizeof(RowDraws), cudaMemcpyHostToDevice,
                                    stream));
}

/// Numbers and makes the rows of new ids.
void EmbeddingStore::numberFresh(const int64_t *ids, int64_t count, cudaStream_t stream) {
  GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), flagFresh, table, placeOf.data(), count,
                     flags.data());
  flagRanks.run(flags.data(), count, ranks.data(), &counters.data()->fresh, stream);
  if (rowsBound + count > static_cast<int64_t>(chunks.size()) * addresses.chunkRows) {
    int64_t fresh = count, ahead = options.step ? 2 * count : 0;
    if (mayWait())
      fresh = readCounters(stream).fresh;
    rowsBound += fresh;
    // A chunk ahead, so that the next batch need not wait.
    makeRoomForRows(rowsBound + std::max(ahead, addresses.chunkRows), stream);
  } else {
    rowsBound += count;
  }
  makeFlagged(
      ids, count,
      NumbersOfTable{table, placeOf.data(), ranks.data(), freedNumbers.data(), counters.data()},
      stream);
  GENREC_CUDA_LAUNCH(stream, (LaunchShape{1, 1}), countRows, counters.data());
}

/// Makes the rows of the ids with flags.
template <class Numbers>
void EmbeddingStore::makeFlagged(const int64_t *ids, int64_t count, const Numbers &numbers,
                                 cudaStream_t stream) {
  const StoreDraws from{draws.data(), config.keyBits, !config.members.empty()};
  const bool accumulates = config.states > 0 && config.initialAccumulator != 0;
  const NewRows make{config.dim, config.valueFloats(), config.stateOffset(),
                     static_cast<float>(accumulates ? config.initialAccumulator : 0),
                     accumulates ? config.stateWidth() : 0};
  // Enough warps to fill a device; more positions have several in each.
  const auto each = static_cast<int>(std::clamp<int64_t>(blocksFor(count, kMostBlocks), 1, kWarp));
  auto launch = [&](auto kernel) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(blocksFor(count, each), kWarp), kernel, numbers, addresses,
                       ids, count, flags.data(), memberCountsOnDevice(), from, make, each);
  };
  if (config.element == RowElement::bf16)
    launch(makeRows<Bf16, Numbers>);
  else
    launch(makeRows<float, Numbers>);
}

/// Places ids in the cache, hands over what leaves, and only then makes its rows those of others.
void EmbeddingStore::placeInCache(const int64_t *ids, const uint8_t *valid, int64_t count,
                                  const EvictedRows &evicted, cudaStream_t stream) {
  leaving.ensure(capacityBucket(count), stream);
  cache->place(ids, valid, count, /*beginsStep=*/true,
               {placeOf.data(), flags.data(), leaving.data()}, cacheCounts(), stream);
  if (evicted.count) {
    flagRanks.run(leaving.data(), count, ranks.data(), evicted.count, stream);
    if (evicted.ids || evicted.values)
      GENREC_CUDA_LAUNCH(stream, shapeOf(count, kWarp), writeEvicted, addresses, placeOf.data(),
                         count, leaving.data(), ranks.data(), evicted.ids, evicted.values);
  }
  makeFlagged(ids, count, NumbersOfCache{placeOf.data()}, stream);
}

void EmbeddingStore::insertAndEvict(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                                    int64_t count, float **rows, const EvictedRows &evicted) {
  const cudaStream_t stream = streamOf(on);
  if (evicted.count)
    GENREC_CUDA_CHECK(cudaMemsetAsync(evicted.count, 0, sizeof(uint32_t), stream));
  if (count == 0)
    return;
  if (count >= kMostRows)
    throw Error("a batch of " + std::to_string(count) + " ids: at most " +
                std::to_string(kMostRows - 1) + " may be looked up at once in table '" + name +
                "'");
  takeAnswer();
  ++version;
  const int64_t room = capacityBucket(count);
  placeOf.ensure(room, stream);
  flags.ensure(room, stream);
  ranks.ensure(room, stream);
  if (cache) {
    placeInCache(ids, valid, count, evicted, stream);
  } else {
    resolve(ids, valid, count, stream);
    usedBound += count;
    numberFresh(ids, count, stream);
  }
  largestBound += count;
  askedSinceRequest += count;
  withTable([&](const auto &keys) {
    GENREC_CUDA_LAUNCH(stream, shapeOf(count, 1), writeAddresses<std::decay_t<decltype(keys)>>,
                       keys, addresses, placeOf.data(), count, rows);
  });
  requestCounters(stream);
}

//===----------------------------------------------------------------------===//
// Clearing
//===----------------------------------------------------------------------===//

void EmbeddingStore::clear(const StoreStream &on) {
  const cudaStream_t stream = streamOf(on);
  ++version;
  if (cache)
    cache->clear(stream);
  else
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(table.digests, kEmpty, static_cast<size_t>(table.slots()), stream));
  GENREC_CUDA_CHECK(cudaMemsetAsync(counters.data(), 0, sizeof(StoreCounters), stream));
  if (countsMembers())
    GENREC_CUDA_CHECK(
        cudaMemsetAsync(memberCounts.data(), 0, config.members.size() * sizeof(uint32_t), stream));
  if (waitingIds)
    waitingIds->clear(on);
  // An answer that is still on its way is of what was there before: a bound all the same.
  usedBound = rowsBound = largestBound = lowerBound = 0;
}

} // namespace genrec::rt::cuda
