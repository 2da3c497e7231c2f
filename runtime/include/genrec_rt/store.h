//===- store.h - The embedding store of the host -----------------*- C++ -*-===//
//
// TableStore (table_store.h) in the memory of the host: a hash table from 64-bit ids to rows of
// floats, keys and values apart.
//
// Keys: open addressing over buckets of 4 slots, a cache line each, whose ids are compared
// at once; a power of two of buckets, an odd key-dependent step from bucket to bucket (so
// every one is visited). A full bucket knows, by classes of hashes, which ids went past it,
// so that a search reads one line, whether the id is there or not, but for the few that go on.
// At load 0.75 the number of buckets doubles, and more at once for a large batch of new ids;
// keys move, values do not. Where an id goes depends on a seed that no two processes share
// (identity.h), so that nobody can make data whose ids all go to one bucket.
//
// Values: chunks of rows [value dim][state dim]…, each row aligned to 64 bytes,
// allocated a chunk ahead.
//
// Lower halves of hot rows: chunks of blocks, one per row, which rows that leave give back.
//
// With rules a row ends with its sighting. Only `evict` and `erase` move rows: numbers stay
// without gaps, the last rows take the places of those that leave.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_STORE_H
#define GENREC_RT_STORE_H

#include "genrec_rt/buffer.h"
#include "genrec_rt/table_store.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace genrec::rt {

/// Blocks of the lower halves of one row each, aligned to 64 bytes.
class LowerHalves {
public:
  explicit LowerHalves(int64_t dim) : bytes(storeLowerBytes(dim)) {}
  ~LowerHalves();
  LowerHalves(const LowerHalves &) = delete;
  LowerHalves &operator=(const LowerHalves &) = delete;

  /// A block of zeros. Safe beside other calls of this one.
  uint16_t *take();
  void give(uint16_t *block);
  /// All blocks come back.
  void clear();
  int64_t inUse() const { return taken; }
  int64_t bytesInUse() const { return taken * bytes; }

private:
  static constexpr int64_t kChunkBytes = int64_t(1) << 20;
  int64_t blocksPerChunk() const { return std::max<int64_t>(1, kChunkBytes / bytes); }

  const int64_t bytes;
  int64_t taken = 0, used = 0; ///< blocks; of all chunks those that were ever taken
  std::vector<char *> chunks;
  std::vector<uint16_t *> given;
  std::mutex mutex;
};

class EmbeddingStore final : public TableStore {
public:
  explicit EmbeddingStore(const StoreConfig &config);
  ~EmbeddingStore() override;

  const ArgumentMemory &arguments() const override { return hostMemory(); }
  MemoryKind rowMemory() const override { return MemoryKind::host; }

  void find(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
            float **rows, int64_t *missing = nullptr) const override;
  void findOrInsert(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                    float **rows) override;
  void findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                   int64_t step, float **rows, int64_t *waits) override;
  void evict(const StoreStream &on, int64_t step, int64_t expired) override;
  void erase(const StoreStream &on, const int64_t *ids, int64_t count) override;
  void clear(const StoreStream &on) override;

  int64_t size() const { return rowCount; }
  int64_t size(const StoreStream &on) const override { return rowCount; }
  int64_t memberSize(const StoreStream &on, int64_t member) const override {
    return sizeOf(member);
  }
  void exportRows(const StoreStream &on, int64_t member, int64_t first, int64_t count, int64_t *ids,
                  float **rows) const override;
  void identify(const StoreStream &on, float *const *rows, int64_t count, const int64_t *counted,
                uint64_t *identities) const override;
  void readRows(const StoreStream &on, float *const *rows, int64_t count, int64_t offset,
                int64_t width, float *to) const override;
  void writeRows(const StoreStream &on, float *const *rows, int64_t count, int64_t offset,
                 int64_t width, const float *from) override;

  void readHalves(const StoreStream &on, float *const *rows, int64_t count,
                  float *to) const override;
  void writeHalves(const StoreStream &on, float *const *rows, int64_t count,
                   const float *from) override;
  void settleHot(const StoreStream &on, float *const *rows, int64_t count) override;
  int64_t hotRows(const StoreStream &) const override { return lowerHalves.inUse(); }

  TableStore *waiting() const override { return waitingIds.get(); }
  int64_t rowStride() const override { return stride; }
  int64_t sightingOffset() const override { return sightingFloats; }
  int64_t keyBytes() const override;
  int64_t valueBytes() const override;

  /// Rows are numbered from 0 in the order of insertion, but that a row that leaves gives its
  /// number to the last one. Value, then states of row `number`; its address changes with its
  /// number only.
  float *row(int64_t number) const {
    return chunks[number >> chunkShift] + (number & chunkMask) * stride;
  }
  int64_t id(int64_t number) const { return idChunks[number >> kIdShift][number & (kIdChunk - 1)]; }
  /// Slots of the key table; a power of two.
  int64_t slots() const { return (bucketMask + 1) * kSlots; }
  /// How many buckets a search for `id` reads, for tests of collisions.
  int64_t bucketsRead(int64_t id) const;

private:
  static constexpr int64_t kSlots = kStoreBucketSlots;
  static constexpr int64_t kIdShift = std::bit_width(uint64_t(kStoreIdChunk)) - 1;
  static constexpr int64_t kIdChunk = kStoreIdChunk;

  struct Bucket;
  /// A slot of a bucket.
  struct Location {
    Bucket *bucket = nullptr;
    int64_t slot = 0;
  };

  // A bijection of 64-bit words: two ids never have the same hash.
  uint64_t hash(int64_t id) const { return splitMix64(static_cast<uint64_t>(id) ^ hashSeed); }
  Bucket &bucketOf(uint64_t hash) const;
  Bucket &laterBucketOf(uint64_t hash, int64_t steps) const;
  Location locate(int64_t id, uint64_t hash) const;
  float *lookup(int64_t id, uint64_t hash) const;
  float *insert(int64_t id, uint64_t hash);
  void place(int64_t id, uint64_t hash, float *row);
  void allocateKeys(int64_t count);
  void rehash(int64_t times);
  int64_t search(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid, int64_t count,
                 float **rows) const;
  void growAhead(const int64_t *ids, const uint8_t *valid, int64_t count);
  float *newRow(int64_t id);
  void allocateAhead();
  void initializeValues(int64_t key, float *values) const;
  void initializeRows(genrec_rt_pool *pool, int64_t from, int64_t to);
  template <bool WillInsert, class Next, class Resolve>
  void searchEach(const int64_t *ids, int64_t begin, int64_t end, const Next &next,
                  const Resolve &resolve) const;
  void insertRange(const int64_t *ids, const uint8_t *valid, int64_t begin, int64_t end,
                   bool onlyMissing, float **rows);
  int64_t findRange(const int64_t *ids, const uint8_t *valid, int64_t begin, int64_t end,
                    float **rows) const;
  /// With rules: when training saw the id of a row.
  Sighting &sightingOf(float *row) const {
    return *reinterpret_cast<Sighting *>(row + sightingFloats);
  }
  /// Of a table that keeps them: the lower halves of a row, null where it is not hot.
  uint16_t *&lowerOf(float *row) const {
    return *reinterpret_cast<uint16_t **>(row + storeLowerOffset(config.dim));
  }
  int64_t sizeOf(int64_t member) const {
    return config.members.empty() ? rowCount : memberCounts[member];
  }
  /// The number among all rows of the row at `position` among those of a member.
  int64_t memberRow(int64_t member, int64_t position) const;
  bool isAdmitted(int64_t id, int64_t step);
  void see(genrec_rt_pool *pool, int64_t count, int64_t step, float *const *rows,
           const uint8_t *valid);
  float *findOrAdmitOne(int64_t id, int64_t step);
  int64_t numberOf(int64_t id) const;
  void numberRows(float *const *rows, int64_t count, int64_t *numbers) const;
  void removeRow(int64_t number);
  void listLowest(int64_t member, int64_t count);
  void removeLeaving();

  int64_t stride = 0;
  double strideInverse = 0;
  int64_t chunkShift = 0, chunkMask = 0;
  int64_t rowCount = 0;
  int64_t usedSlots = 0; ///< of rows, and of erased ones in buckets that ids went past
  int64_t bucketMask = 0;
  uint64_t hashSeed = 0;
  Bucket *buckets = nullptr;
  std::vector<float *> chunks;
  std::vector<std::pair<const float *, int64_t>> chunksByAddress; ///< and their numbers, sorted
  std::vector<int64_t *> idChunks;
  std::vector<int64_t> memberCounts;
  /// Row numbers by member, brought up to `listedRows` when somebody asks.
  mutable std::vector<std::vector<int64_t>> memberRows;
  mutable int64_t listedRows = 0;
  // With rules.
  int64_t sightingFloats = 0;
  std::unique_ptr<EmbeddingStore> waitingIds;
  LowerHalves lowerHalves;
  std::vector<std::pair<Sighting::Rank, int64_t>> ranks; ///< scratch: rank and number
  std::vector<int64_t> leaving;                          ///< scratch: numbers
};

} // namespace genrec::rt

#endif // GENREC_RT_STORE_H
