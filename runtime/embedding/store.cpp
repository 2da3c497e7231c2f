//===- store.cpp - The embedding store, by its keys -----------------------===//

#include "genrec_rt/store.h"

#include "genrec_rt/identity.h"
#include "store_bucket.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>

namespace genrec::rt {

namespace {

/// Searches whose buckets are on their way from memory while those before them are answered.
/// Measured: from 16 to 64 none is better.
constexpr int64_t kBlock = 32;
/// Ids per chunk of the parallel-for.
constexpr int64_t kFindGrain = 2048;
/// Ids that one thread finds before it inserts those that are missing.
constexpr int64_t kInsertBlock = 1024;
/// Ids to come of a batch, from which on it is worth knowing how many will be new.
constexpr int64_t kLeastSampled = int64_t(1) << 15;

inline int64_t stepOf(uint64_t hash) { return static_cast<int64_t>(hash >> 32 | 1); }

} // namespace

EmbeddingStore::EmbeddingStore(const StoreConfig &config)
    : TableStore(config), hashSeed(config.hashSeed), lowerHalves(config.dim) {
  assert(config.dim >= 0 && config.states >= 0);
  memberCounts.resize(config.members.size());
  memberRows.resize(config.members.size());
  stride = config.rowFloats();
  strideInverse = 1 / static_cast<double>(stride);
  sightingFloats = config.sightingOffset();
  if (config.rules.admitAfter > 1)
    waitingIds = std::make_unique<EmbeddingStore>(config.ofWaitingIds());
  int64_t rows = std::max(kStoreLeastChunkRows, kStoreChunkBytes / (stride * 4));
  chunkShift = std::bit_width(static_cast<uint64_t>(rows)) - 1;
  chunkMask = (int64_t(1) << chunkShift) - 1;
  allocateKeys(kStoreFirstBuckets);
  allocateAhead();
}

EmbeddingStore::~EmbeddingStore() {
  for (float *chunk : chunks)
    freeAligned(chunk, (chunkMask + 1) * stride * 4);
  for (int64_t *chunk : idChunks)
    freeAligned(chunk, kIdChunk * 8);
  freeAligned(buckets, slots() * kStoreSlotBytes);
}

int64_t EmbeddingStore::keyBytes() const {
  return slots() * kStoreSlotBytes + rowCount * 8 +
         static_cast<int64_t>(ranks.capacity() * sizeof(ranks[0]) + leaving.capacity() * 8) +
         (waitingIds ? waitingIds->keyBytes() : 0);
}

int64_t EmbeddingStore::valueBytes() const {
  return rowCount * stride * 4 + lowerHalves.bytesInUse() +
         (waitingIds ? waitingIds->valueBytes() : 0);
}

void EmbeddingStore::allocateKeys(int64_t count) {
  static_assert(sizeof(Bucket) == kSlots * kStoreSlotBytes);
  bucketMask = count - 1;
  usedSlots = 0;
  buckets = static_cast<Bucket *>(allocateZeroed(slots() * kStoreSlotBytes));
}

inline EmbeddingStore::Bucket &EmbeddingStore::bucketOf(uint64_t hash) const {
  return buckets[static_cast<int64_t>(hash) & bucketMask];
}

inline EmbeddingStore::Bucket &EmbeddingStore::laterBucketOf(uint64_t hash, int64_t steps) const {
  return bucketOf(hash + static_cast<uint64_t>(stepOf(hash) * steps));
}

/// Makes `times` as many buckets, a power of two. Only keys move. Those of an old bucket whose
/// searches begin there begin in `times` new ones, which nobody else's do: all are written in
/// order, without a look at what is there. The others come after them, all over the new table.
void EmbeddingStore::rehash(int64_t times) {
  struct Stray {
    uint64_t hash;
    int64_t id;
    float *row;
  };
  std::vector<Stray> strays;
  Bucket *old = buckets;
  const int64_t oldCount = bucketMask + 1, oldMask = bucketMask;
  allocateKeys(oldCount * times);
  for (int64_t number = 0; number < oldCount; ++number)
    for (int64_t slot = 0; slot < kSlots; ++slot) {
      float *row = old[number].row(slot);
      if (!row)
        continue;
      int64_t id = old[number].ids[slot];
      uint64_t hashed = hash(id);
      if ((static_cast<int64_t>(hashed) & oldMask) != number) {
        strays.push_back({hashed, id, row});
        continue;
      }
      Bucket &bucket = bucketOf(hashed);
      bucket.put(bucket.emptySlot(), id, row);
      ++usedSlots;
    }
  freeAligned(old, oldCount * kSlots * kStoreSlotBytes);
  for (size_t i = 0; i < strays.size(); ++i) {
    if (i + kBlock < strays.size())
      __builtin_prefetch(&bucketOf(strays[i + kBlock].hash), /*rw=*/1);
    place(strays[i].id, strays[i].hash, strays[i].row);
  }
}

/// Where `id` is; a null bucket where it is not. Ends, since each bucket that is passed counts
/// as four used slots.
inline EmbeddingStore::Location EmbeddingStore::locate(int64_t id, uint64_t hash) const {
  int64_t step = stepOf(hash);
  for (int64_t number = static_cast<int64_t>(hash) & bucketMask;;
       number = (number + step) & bucketMask) {
    Bucket &bucket = buckets[number];
    if (int64_t slot = bucket.slotOf(id); slot >= 0)
      return {&bucket, slot};
    if (!bucket.isPassedBy(hash))
      return {};
  }
}

int64_t EmbeddingStore::bucketsRead(int64_t id) const {
  const uint64_t hashed = hash(id);
  for (int64_t steps = 0;; ++steps) {
    const Bucket &bucket = laterBucketOf(hashed, steps);
    if (bucket.slotOf(id) >= 0 || !bucket.isPassedBy(hashed))
      return steps + 1;
  }
}

inline float *EmbeddingStore::lookup(int64_t id, uint64_t hash) const {
  Location location = locate(id, hash);
  return location.bucket ? location.bucket->row(location.slot) : nullptr;
}

void EmbeddingStore::place(int64_t id, uint64_t hash, float *row) {
  int64_t step = stepOf(hash);
  for (int64_t number = static_cast<int64_t>(hash) & bucketMask;;
       number = (number + step) & bucketMask) {
    Bucket &bucket = buckets[number];
    int64_t slot = bucket.emptySlot();
    if (slot < 0) {
      bucket.letPass(hash);
      continue;
    }
    usedSlots += !bucket.isPassed(); // else it counts as used already
    bucket.put(slot, id, row);
    return;
  }
}

float *EmbeddingStore::newRow(int64_t id) {
  int64_t number = rowCount;
  // A chunk is always ahead at the start of a batch; a batch may need several.
  if (number >> chunkShift >= static_cast<int64_t>(chunks.size()) ||
      number >> kIdShift >= static_cast<int64_t>(idChunks.size()))
    allocateAhead();
  ++rowCount;
  if (!memberCounts.empty())
    ++memberCounts[id >> config.keyBits];
  idChunks[number >> kIdShift][number & (kIdChunk - 1)] = id;
  return row(number);
}

float *EmbeddingStore::insert(int64_t id, uint64_t hash) {
  if ((usedSlots + 1) * 4 > slots() * 3)
    rehash(rowCount * 2 > usedSlots ? 2 : 1); // 1: erased slots are what fills it
  float *row = newRow(id);
  place(id, hash, row);
  return row;
}

/// Makes room for the new ids of a batch at once, so that keys move once and not at every
/// doubling. How many there are is told by a sample of 4 sqrt(count) ids, one of each window of
/// the batch: n ids drawn evenly from N are n^2 / 2N times one that was drawn before (the birthday
/// problem). Uneven draws repeat more, and are expected to be fewer.
void EmbeddingStore::growAhead(const int64_t *ids, const uint8_t *valid, int64_t count) {
  constexpr int64_t kFewRepeats = 4; // so few say nothing
  const auto window = static_cast<int64_t>(std::sqrt(static_cast<double>(count))) / 4;
  std::vector<int64_t> missing;
  for (int64_t begin = 0; begin + window <= count; begin += window) {
    auto random = static_cast<int64_t>(splitMix64(static_cast<uint64_t>(begin)) >> 1);
    int64_t i = begin + random % window;
    if ((!valid || valid[i]) && !lookup(ids[i], hash(ids[i])))
      missing.push_back(ids[i]);
  }
  std::sort(missing.begin(), missing.end());
  auto drawn = static_cast<int64_t>(missing.size());
  int64_t different = std::unique(missing.begin(), missing.end()) - missing.begin();
  int64_t expected = different * different / (2 * (drawn - different + kFewRepeats));
  int64_t rows = rowCount + std::min(expected, drawn * window), times = 1;
  while (rows * 4 > slots() * times * 3)
    times *= 2;
  if (times > 1)
    rehash(times);
}

/// Calls `resolve(i, hash)` for every i that `next` gives, in order, with the bucket where its
/// search begins under way for some time. WillInsert: the next two as well, where the first has
/// neither the id nor an empty slot.
template <bool WillInsert, class Next, class Resolve>
void EmbeddingStore::searchEach(const int64_t *ids, int64_t begin, int64_t end, const Next &next,
                                const Resolve &resolve) const {
  // A block is begun, looked at a turn later if WillInsert, and resolved in its last turn.
  constexpr int kTurns = WillInsert ? 3 : 2;
  struct Search {
    uint64_t hash;
    int64_t at;
  } searches[kTurns][kBlock];
  int64_t counts[kTurns] = {}, begun = 0;
  int64_t i = next(begin);
  for (int turn = 0; i < end || begun > 0; turn = (turn + 1) % kTurns) {
    int64_t &count = counts[turn] = 0;
    for (; count < kBlock && i < end; i = next(i + 1), ++count) {
      searches[turn][count] = {hash(ids[i]), i};
      __builtin_prefetch(&bucketOf(searches[turn][count].hash));
    }
    begun += count;
    if constexpr (WillInsert) {
      int looked = (turn + 2) % kTurns;
      for (int64_t n = 0; n < counts[looked]; ++n) {
        const Search &search = searches[looked][n];
        const Bucket &bucket = bucketOf(search.hash);
        if (bucket.emptySlot() < 0 && bucket.slotOf(ids[search.at]) < 0) {
          __builtin_prefetch(&laterBucketOf(search.hash, 1));
          __builtin_prefetch(&laterBucketOf(search.hash, 2));
        }
      }
    }
    int last = (turn + 1) % kTurns;
    for (int64_t n = 0; n < counts[last]; ++n)
      resolve(searches[last][n].at, searches[last][n].hash);
    begun -= counts[last];
    counts[last] = 0;
  }
}

int64_t EmbeddingStore::findRange(const int64_t *ids, const uint8_t *valid, int64_t begin,
                                  int64_t end, float **rows) const {
  // Searches that went on to a second bucket, until that has come from memory too.
  struct Search {
    uint64_t hash;
    int64_t at;
  } later[kBlock];
  int64_t laterCount = 0, missing = 0;
  auto next = [=](int64_t i) {
    while (valid && i < end && !valid[i])
      ++i;
    return i;
  };
  auto resolveLater = [&] {
    for (int64_t n = 0; n < laterCount; ++n) {
      rows[later[n].at] = lookup(ids[later[n].at], later[n].hash);
      missing += rows[later[n].at] == nullptr;
    }
    laterCount = 0;
  };
  searchEach<false>(ids, begin, end, next, [&](int64_t i, uint64_t hash) {
    const Bucket &bucket = bucketOf(hash);
    if (int64_t slot = bucket.slotOf(ids[i]); slot >= 0) {
      rows[i] = bucket.row(slot);
      return;
    }
    if (!bucket.isPassedBy(hash)) {
      rows[i] = nullptr;
      ++missing;
      return;
    }
    __builtin_prefetch(&laterBucketOf(hash, 1));
    later[laterCount++] = {hash, i};
    if (laterCount == kBlock)
      resolveLater();
  });
  resolveLater();
  return missing;
}

int64_t EmbeddingStore::search(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid,
                               int64_t count, float **rows) const {
  std::atomic<int64_t> missing{0};
  parallelFor(pool, count, kFindGrain, [&](int64_t begin, int64_t end, int64_t) {
    int64_t here = findRange(ids, valid, begin, end, rows);
    if (here)
      missing.fetch_add(here, std::memory_order_relaxed);
  });
  return missing.load(std::memory_order_relaxed);
}

void EmbeddingStore::find(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                          int64_t count, float **rows, int64_t *missing) const {
  int64_t absent = search(on.pool, ids, valid, count, rows);
  if (missing)
    *missing += absent;
}

/// Ids [begin, end) in order; those that have a row already are left out where `onlyMissing`.
void EmbeddingStore::insertRange(const int64_t *ids, const uint8_t *valid, int64_t begin,
                                 int64_t end, bool onlyMissing, float **rows) {
  auto next = [=](int64_t i) {
    while (i < end && ((valid && !valid[i]) || (onlyMissing && rows[i])))
      ++i;
    return i;
  };
  // Searches look at what is there now: an id before may have been the same, or made the table
  // grow.
  searchEach<true>(ids, begin, end, next, [&](int64_t i, uint64_t hash) {
    float *found = lookup(ids[i], hash);
    rows[i] = found ? found : insert(ids[i], hash);
  });
}

void EmbeddingStore::findOrInsert(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                                  int64_t count, float **rows) {
  // Many threads find all, then one inserts what is missing. One alone does so by blocks whose
  // buckets stay in its cache; where many ids were new, it finds and inserts at once.
  genrec_rt_pool *pool = on.pool;
  int64_t first = rowCount;
  const bool areFound = genrec_rt_pool_threads(pool) > 1;
  if (areFound && search(pool, ids, valid, count, rows) == 0)
    return;
  bool expectsNew = false, hasGrown = false;
  for (int64_t begin = 0; begin < count; begin += kInsertBlock) {
    int64_t end = std::min(begin + kInsertBlock, count), before = rowCount;
    if (!areFound && !expectsNew && findRange(ids, valid, begin, end, rows) == 0)
      continue;
    insertRange(ids, valid, begin, end, areFound || !expectsNew, rows);
    expectsNew = (rowCount - before) * 4 > end - begin;
    if (expectsNew && !hasGrown && count - end >= kLeastSampled) {
      growAhead(ids + end, valid ? valid + end : nullptr, count - end);
      hasGrown = true;
    }
  }
  if (rowCount == first)
    return;
  initializeRows(pool, first, rowCount);
  allocateAhead();
}

/// The row of an id that had none when the batch was searched; null where it waits.
float *EmbeddingStore::findOrAdmitOne(int64_t id, int64_t step) {
  uint64_t hashed = hash(id);
  float *found = lookup(id, hashed);
  return found ? found : isAdmitted(id, step) ? insert(id, hashed) : nullptr;
}

/// The number of the row of `id`, -1 where there is none.
int64_t EmbeddingStore::numberOf(int64_t id) const {
  float *row = lookup(id, hash(id));
  int64_t number = -1;
  numberRows(&row, row ? 1 : 0, &number);
  return number;
}

/// The last row takes the number. A slot of a bucket that ids went past stays one that counts
/// as used, so that searches end.
void EmbeddingStore::removeRow(int64_t number) {
  int64_t key = id(number), last = rowCount - 1;
  Location gone = locate(key, hash(key));
  gone.bucket->ids[gone.slot] = 0;
  gone.bucket->setRow(gone.slot, nullptr);
  usedSlots -= !gone.bucket->isPassed();
  if (config.keepsLower() && lowerOf(row(number)))
    lowerHalves.give(lowerOf(row(number)));
  if (number != last) {
    int64_t moved = id(last);
    std::copy_n(row(last), stride, row(number));
    idChunks[number >> kIdShift][number & (kIdChunk - 1)] = moved;
    Location location = locate(moved, hash(moved));
    location.bucket->setRow(location.slot, row(number));
  }
  --rowCount;
  if (memberCounts.empty())
    return;
  --memberCounts[key >> config.keyBits];
  listedRows = 0; // to be listed anew
  for (std::vector<int64_t> &rows : memberRows)
    rows.clear();
}

void EmbeddingStore::clear(const StoreStream &on) {
  rowCount = 0;
  usedSlots = 0;
  listedRows = 0;
  lowerHalves.clear();
  if (waitingIds)
    waitingIds->clear(on);
  std::fill(memberCounts.begin(), memberCounts.end(), 0);
  for (std::vector<int64_t> &rows : memberRows)
    rows.clear();
  std::memset(static_cast<void *>(buckets), 0, static_cast<size_t>(slots() * kStoreSlotBytes));
}

} // namespace genrec::rt
