//===- store.cpp - The embedding store ------------------------------------===//

#include "genrec_rt/store.h"

#include "genrec_rt/identity.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cassert>
#include <cstring>
#include <functional>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace genrec::rt {

namespace {

/// Searches under way at a time: the digests of the newest and the slots of the older half
/// are on their way from memory. Measured: from 16 to 64 none is better.
constexpr int64_t kAhead = 32;
/// Ids per chunk of the parallel-for.
constexpr int64_t kFindGrain = 2048;
constexpr int64_t kInitializeGrain = 256;
/// The digest of an erased slot in a group that has no empty one.
constexpr uint8_t kErased = 1;

/// Bit s is set where byte s of the group equals `value`.
inline uint32_t matching(const uint8_t *group, uint8_t value) {
#if defined(__SSE2__)
  __m128i bytes = _mm_load_si128(reinterpret_cast<const __m128i *>(group));
  __m128i equal = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(static_cast<char>(value)));
  return static_cast<uint32_t>(_mm_movemask_epi8(equal));
#else
  uint32_t mask = 0;
  for (int slot = 0; slot < 16; ++slot)
    mask |= static_cast<uint32_t>(group[slot] == value) << slot;
  return mask;
#endif
}

/// Digest, group and step come from different bits of the hash. A digest is
/// never 0, which marks an empty slot.
inline uint8_t digestOf(uint64_t hash) { return static_cast<uint8_t>(hash >> 57) | 0x80; }
inline bool isTaken(uint8_t digest) { return digest & 0x80; }
inline int64_t stepOf(uint64_t hash) { return static_cast<int64_t>(hash >> 32 | 1); }

} // namespace

// A bijection of 64-bit words: two ids never have the same hash.
uint64_t EmbeddingStore::hash(int64_t id) { return splitMix64(static_cast<uint64_t>(id)); }

EmbeddingStore::EmbeddingStore(const StoreConfig &config) : config(config) {
  assert(config.dim >= 0 && config.states >= 0);
  memberCounts.resize(config.members.size());
  memberRows.resize(config.members.size());
  stride = config.rowFloats();
  sightingOffset = storeSightingOffset(config.dim, config.usedFloats() - config.dim);
  if (config.rules.admitAfter > 1) {
    StoreConfig ids;
    ids.rules = config.rules;
    ids.rules.admitAfter = 1;
    waitingIds = std::make_unique<EmbeddingStore>(ids);
  }
  int64_t rows = std::max(kStoreLeastChunkRows, kStoreChunkBytes / (stride * 4));
  chunkShift = std::bit_width(static_cast<uint64_t>(rows)) - 1;
  chunkMask = (int64_t(1) << chunkShift) - 1;
  allocateKeys(kStoreFirstGroups);
  allocateAhead();
}

EmbeddingStore::~EmbeddingStore() {
  for (float *chunk : chunks)
    freeAligned(chunk, (chunkMask + 1) * stride * 4);
  for (int64_t *chunk : idChunks)
    freeAligned(chunk, kIdChunk * 8);
  freeAligned(digests, slots());
  freeAligned(slotsOf, slots() * static_cast<int64_t>(sizeof(Slot)));
}

int64_t EmbeddingStore::keyBytes() const {
  return slots() * static_cast<int64_t>(1 + sizeof(Slot)) +
         static_cast<int64_t>(idChunks.size()) * kIdChunk * 8 +
         static_cast<int64_t>(ranks.capacity() * sizeof(ranks[0]) + leaving.capacity() * 8) +
         (waitingIds ? waitingIds->keyBytes() : 0);
}

int64_t EmbeddingStore::valueBytes() const {
  return rowCount * stride * 4 + (waitingIds ? waitingIds->valueBytes() : 0);
}

void EmbeddingStore::allocateKeys(int64_t groups) {
  groupMask = groups - 1;
  usedSlots = 0;
  digests = static_cast<uint8_t *>(allocateAligned(slots()));
  std::memset(digests, 0, static_cast<size_t>(slots()));
  slotsOf = static_cast<Slot *>(allocateAligned(slots() * static_cast<int64_t>(sizeof(Slot))));
}

/// Doubles the number of groups, unless erased slots are what fills them. Only keys move,
/// in the order of the old table: those of one old group go to two places that move on
/// with it, instead of all over the new table.
void EmbeddingStore::grow() {
  uint8_t *oldDigests = digests;
  Slot *oldSlots = slotsOf;
  int64_t oldCount = slots();
  bool isFullOfRows = rowCount * 2 > usedSlots;
  allocateKeys((groupMask + 1) * (isFullOfRows ? 2 : 1));
  for (int64_t slot = 0; slot < oldCount; ++slot)
    if (isTaken(oldDigests[slot]))
      place(oldSlots[slot].id, hash(oldSlots[slot].id), oldSlots[slot].row);
  freeAligned(oldDigests, oldCount);
  freeAligned(oldSlots, oldCount * static_cast<int64_t>(sizeof(Slot)));
}

/// The slot of `id`, -1 where there is none.
inline int64_t EmbeddingStore::locate(int64_t id, uint64_t hash) const {
  uint8_t digest = digestOf(hash);
  int64_t step = stepOf(hash);
  for (int64_t group = static_cast<int64_t>(hash) & groupMask;;
       group = (group + step) & groupMask) {
    const uint8_t *bytes = digests + group * kGroup;
    for (uint32_t mask = matching(bytes, digest); mask; mask &= mask - 1) {
      int64_t slot = group * kGroup + std::countr_zero(mask);
      if (slotsOf[slot].id == id)
        return slot;
    }
    if (matching(bytes, 0))
      return -1;
  }
}

inline float *EmbeddingStore::lookup(int64_t id, uint64_t hash) const {
  int64_t slot = locate(id, hash);
  return slot < 0 ? nullptr : slotsOf[slot].row;
}

void EmbeddingStore::place(int64_t id, uint64_t hash, float *row) {
  int64_t step = stepOf(hash);
  for (int64_t group = static_cast<int64_t>(hash) & groupMask;;
       group = (group + step) & groupMask) {
    uint32_t empty = matching(digests + group * kGroup, 0);
    if (!empty)
      continue;
    int64_t slot = group * kGroup + std::countr_zero(empty);
    ++usedSlots;
    digests[slot] = digestOf(hash);
    slotsOf[slot] = {id, row};
    return;
  }
}

/// A chunk of rows: of huge pages, since rows are reached at random, but for the first,
/// which is all that a small table has.
float *EmbeddingStore::allocateRows() const {
  int64_t bytes = (chunkMask + 1) * stride * 4;
  void *chunk = allocateAligned(bytes);
  if (!chunks.empty())
    adviseHugePages(chunk, bytes);
  return static_cast<float *>(chunk);
}

void EmbeddingStore::allocateAhead() {
  while (static_cast<int64_t>(chunks.size()) << chunkShift < rowCount + chunkMask + 1)
    chunks.push_back(allocateRows());
  while (static_cast<int64_t>(idChunks.size()) << kIdShift < rowCount + kIdChunk)
    idChunks.push_back(static_cast<int64_t *>(allocateAligned(kIdChunk * 8)));
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
    grow();
  float *row = newRow(id);
  place(id, hash, row);
  return row;
}

/// Calls `resolve(i, hash, slot)` for every i that `next` gives, in order, with the lines
/// that its search needs under way for some time; WillInsert: those that an id without a
/// row gets too. `slot` is the first whose digest fits, -1 where there was none, as of a
/// while ago.
template <bool WillInsert, class Next, class Resolve>
void EmbeddingStore::searchEach(const int64_t *ids, int64_t begin, int64_t end, const Next &next,
                                const Resolve &resolve) const {
  struct Search {
    uint64_t hash;
    int64_t at, slot;
  } ring[kAhead];
  int64_t begun = 0;
  for (int64_t i = next(begin); i < end; i = next(i + 1), ++begun) {
    Search &search = ring[begun % kAhead];
    if (begun >= kAhead)
      resolve(search.at, search.hash, search.slot);
    search = {hash(ids[i]), i, -1};
    __builtin_prefetch(digests + (static_cast<int64_t>(search.hash) & groupMask) * kGroup);
    if (begun < kAhead / 2)
      continue;
    Search &older = ring[(begun - kAhead / 2) % kAhead];
    int64_t first = (static_cast<int64_t>(older.hash) & groupMask) * kGroup;
    if (uint32_t mask = matching(digests + first, digestOf(older.hash))) {
      older.slot = first + std::countr_zero(mask);
      __builtin_prefetch(slotsOf + older.slot);
    } else if (WillInsert) {
      uint32_t empty = matching(digests + first, 0);
      __builtin_prefetch(slotsOf + first + (empty ? std::countr_zero(empty) : 0), /*rw=*/1);
    }
  }
  for (int64_t n = std::max<int64_t>(0, begun - kAhead); n < begun; ++n) {
    const Search &search = ring[n % kAhead];
    resolve(search.at, search.hash, search.slot);
  }
}

int64_t EmbeddingStore::findRange(const int64_t *ids, const uint8_t *valid, int64_t begin,
                                  int64_t end, float **rows) const {
  int64_t missing = 0;
  auto next = [=](int64_t i) {
    while (valid && i < end && !valid[i])
      ++i;
    return i;
  };
  searchEach<false>(ids, begin, end, next, [&](int64_t i, uint64_t hash, int64_t slot) {
    bool isThere = slot >= 0 && slotsOf[slot].id == ids[i];
    rows[i] = isThere ? slotsOf[slot].row : lookup(ids[i], hash);
    missing += rows[i] == nullptr;
  });
  return missing;
}

int64_t EmbeddingStore::find(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid,
                             int64_t count, float **rows) const {
  std::atomic<int64_t> missing{0};
  parallelFor(pool, count, kFindGrain, [&](int64_t begin, int64_t end, int64_t) {
    int64_t here = findRange(ids, valid, begin, end, rows);
    if (here)
      missing.fetch_add(here, std::memory_order_relaxed);
  });
  return missing.load(std::memory_order_relaxed);
}

void EmbeddingStore::initializeRows(genrec_rt_pool *pool, int64_t from, int64_t to) {
  parallelFor(pool, to - from, kInitializeGrain, [&](int64_t begin, int64_t end, int64_t) {
    for (int64_t number = from + begin; number < from + end; ++number) {
      float *values = row(number);
      int64_t key = id(number);
      config.initializerOf(key).fill(config.idOf(key), config.dim, values);
      std::fill(values + config.dim, values + stride, 0.0f);
      if (config.states > 0 && config.initialAccumulator != 0)
        std::fill(values + config.dim, values + config.dim + config.stateWidth(),
                  static_cast<float>(config.initialAccumulator));
    }
  });
}

void EmbeddingStore::findOrInsert(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid,
                                  int64_t count, float **rows) {
  // Many threads find, then one inserts what is missing; one alone does both at once.
  bool isAlone = genrec_rt_pool_threads(pool) == 1;
  if (!isAlone && find(pool, ids, valid, count, rows) == 0)
    return;
  int64_t first = rowCount;
  auto next = [=](int64_t i) {
    while (i < count && ((valid && !valid[i]) || (!isAlone && rows[i])))
      ++i;
    return i;
  };
  // Searches look at what is there now: an id before may have been the same, or made the table
  // grow.
  searchEach<true>(ids, 0, count, next, [&](int64_t i, uint64_t hash, int64_t) {
    float *found = lookup(ids[i], hash);
    rows[i] = found ? found : insert(ids[i], hash);
  });
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
  const float *row = lookup(id, hash(id));
  int64_t chunkFloats = (chunkMask + 1) * stride;
  for (size_t chunk = 0; row && chunk < chunks.size(); ++chunk)
    if (std::greater_equal<>()(row, chunks[chunk]) &&
        std::less<>()(row, chunks[chunk] + chunkFloats))
      return (static_cast<int64_t>(chunk) << chunkShift) + (row - chunks[chunk]) / stride;
  return -1;
}

/// The last row takes the number. A search ends at a group with an empty slot, so a slot
/// of a full group stays one that searches pass.
void EmbeddingStore::removeRow(int64_t number) {
  int64_t key = id(number), slot = locate(key, hash(key)), last = rowCount - 1;
  bool endsSearches = matching(digests + slot / kGroup * kGroup, 0);
  digests[slot] = endsSearches ? 0 : kErased;
  usedSlots -= endsSearches;
  if (number != last) {
    int64_t moved = id(last);
    std::copy_n(row(last), stride, row(number));
    idChunks[number >> kIdShift][number & (kIdChunk - 1)] = moved;
    slotsOf[locate(moved, hash(moved))].row = row(number);
  }
  --rowCount;
  if (memberCounts.empty())
    return;
  --memberCounts[key >> config.keyBits];
  listedRows = 0; // to be listed anew
  for (std::vector<int64_t> &rows : memberRows)
    rows.clear();
}

int64_t EmbeddingStore::memberRow(int64_t member, int64_t place) const {
  if (config.members.empty())
    return place;
  for (; listedRows < rowCount; ++listedRows)
    memberRows[id(listedRows) >> config.keyBits].push_back(listedRows);
  return memberRows[member][place];
}

void EmbeddingStore::clear() {
  rowCount = 0;
  usedSlots = 0;
  listedRows = 0;
  if (waitingIds)
    waitingIds->clear();
  std::fill(memberCounts.begin(), memberCounts.end(), 0);
  for (std::vector<int64_t> &rows : memberRows)
    rows.clear();
  std::memset(digests, 0, static_cast<size_t>(slots()));
}

} // namespace genrec::rt
