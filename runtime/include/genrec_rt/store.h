//===- store.h - The embedding store -----------------------------*- C++ -*-===//
//
// A hash table from 64-bit ids to rows of floats, keys and values apart.
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
// A store without rules (row_rules.h) is unbounded: it keeps every row. With rules a
// row ends with its sighting, training finds by `findOrAdmit`, and ends each step
// with `evict`. Only `evict` and `erase` move rows: numbers stay without gaps, the
// last rows take the places of those that leave.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_STORE_H
#define GENREC_RT_STORE_H

#include "genrec_rt/buffer.h"
#include "genrec_rt/footprint.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/parallel.h"
#include "genrec_rt/row_rules.h"

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace genrec::rt {

/// What initial values are drawn from, as kernels/init.h has it.
struct InitialDistribution {
  int32_t kind = 0; ///< kernels::Distribution
  float mean = 0, scale = 0;
};

/// Writes the `dim` initial values of the row of `id`.
struct RowInitializer {
  int32_t kind = 0; ///< genrec_init_kind
  double scale = 0;
  uint64_t seed = 0;
  uint64_t nameHash = 0; ///< nameHash of the table's name
  double fanIn = 1;      ///< xavier kinds only
  double fanOut = 1;

  void fill(uint64_t id, int64_t columns, float *out) const;
  InitialDistribution distribution() const;
};

struct StoreConfig {
  int64_t dim = 0;               ///< 0: ids without values
  int32_t states = 0;            ///< arrays of dim floats behind the value
  bool rowStates = false;        ///< states are one float per row instead
  double initialAccumulator = 0; ///< what state 0 starts with; others with 0
  RowInitializer initializer;
  /// Tables that share the store: the initializers of members by the key's number,
  /// key >> keyBits; empty for a store of one table, whose keys are ids.
  std::vector<RowInitializer> members;
  int64_t keyBits = 63;
  RowRules rules;
  /// Where ids go; nothing that leaves the store depends on it. Tests of collisions set it.
  uint64_t hashSeed = processHashSeed();

  int64_t stateWidth() const { return rowStates ? 1 : dim; }
  /// Floats of a row's value and states.
  int64_t usedFloats() const { return dim + states * stateWidth(); }
  /// Floats from one row to the next.
  int64_t rowFloats() const { return storeRowFloats(dim, states * stateWidth(), rules.any()); }
  const RowInitializer &initializerOf(int64_t key) const {
    return members.empty() ? initializer : members[key >> keyBits];
  }
  uint64_t idOf(int64_t key) const {
    return static_cast<uint64_t>(members.empty() ? key : key & ((int64_t(1) << keyBits) - 1));
  }
};

class EmbeddingStore {
public:
  explicit EmbeddingStore(const StoreConfig &config);
  ~EmbeddingStore();
  EmbeddingStore(const EmbeddingStore &) = delete;
  EmbeddingStore &operator=(const EmbeddingStore &) = delete;

  /// rows[i] = the row of ids[i], null where the store has none; entries with
  /// valid[i] == 0 are left untouched. `valid` may be null. Returns how many
  /// were not found. Safe beside other finds.
  int64_t find(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid, int64_t count,
               float **rows) const;

  /// The same, inserting what is missing: new rows are numbered in the order of
  /// first appearance in `ids`, whatever the number of threads, and hold their
  /// initial values.
  void findOrInsert(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid, int64_t count,
                    float **rows);

  /// The same for a store with rules, in training: `step` sees the ids, and gives rows to
  /// those that are admitted; the others' rows[i] are null. Returns how many entries have
  /// such ids.
  int64_t findOrAdmit(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid, int64_t count,
                      int64_t step, float **rows);

  /// The end of a step of training: the rows that the rules send away leave. Voids
  /// addresses of rows.
  void evict(int64_t step);

  /// Forgets ids, with their states and counts; those it does not have, and repeated ones,
  /// count once or not at all. Voids addresses of rows.
  void erase(const int64_t *ids, int64_t count);

  /// The number of rows; they are numbered from 0 in the order of insertion, but that a row
  /// that leaves gives its number to the last one.
  int64_t size() const { return rowCount; }
  /// Row `number`: value, then states. Its address changes with its number only.
  float *row(int64_t number) const {
    return chunks[number >> chunkShift] + (number & chunkMask) * stride;
  }
  int64_t id(int64_t number) const { return idChunks[number >> kIdShift][number & (kIdChunk - 1)]; }
  /// The rows of one of the tables that share the store, in the order of insertion: how
  /// many, and the number among all rows of the one at `place`. 0 in a store of one table.
  int64_t memberSize(int64_t member) const {
    return config.members.empty() ? rowCount : memberCounts[member];
  }
  int64_t memberRow(int64_t member, int64_t place) const;
  /// With rules: when training saw the id of row `number`.
  Sighting &sighting(int64_t number) const { return sightingOf(row(number)); }
  /// The ids that are not admitted yet, a store of dimension 0; null without `admitAfter`.
  EmbeddingStore *waiting() const { return waitingIds.get(); }
  /// Floats from one row to the next, a multiple of 16.
  int64_t rowStride() const { return stride; }
  const StoreConfig &configuration() const { return config; }
  /// Slots of the key table; a power of two.
  int64_t slots() const { return (bucketMask + 1) * kSlots; }
  /// Bytes of keys and of values in use.
  int64_t keyBytes() const;
  int64_t valueBytes() const;

  /// Forgets all rows and keeps the memory.
  void clear();

  /// How many buckets a search for `id` reads, for tests of collisions.
  int64_t bucketsRead(int64_t id) const;

private:
  static constexpr int64_t kSlots = kStoreBucketSlots;
  static constexpr int64_t kIdShift = std::bit_width(uint64_t(kStoreIdChunk)) - 1;
  static constexpr int64_t kIdChunk = kStoreIdChunk;

  struct Bucket;
  /// A slot of a bucket.
  struct Place {
    Bucket *bucket = nullptr;
    int64_t slot = 0;
  };

  // A bijection of 64-bit words: two ids never have the same hash.
  uint64_t hash(int64_t id) const { return splitMix64(static_cast<uint64_t>(id) ^ hashSeed); }
  Bucket &bucketOf(uint64_t hash) const;
  Bucket &laterBucketOf(uint64_t hash, int64_t steps) const;
  Place locate(int64_t id, uint64_t hash) const;
  float *lookup(int64_t id, uint64_t hash) const;
  float *insert(int64_t id, uint64_t hash);
  void place(int64_t id, uint64_t hash, float *row);
  void allocateKeys(int64_t count);
  void rehash(int64_t times);
  void growAhead(const int64_t *ids, const uint8_t *valid, int64_t count);
  float *newRow(int64_t id);
  void allocateAhead();
  void initializeRows(genrec_rt_pool *pool, int64_t from, int64_t to);
  template <bool WillInsert, class Next, class Resolve>
  void searchEach(const int64_t *ids, int64_t begin, int64_t end, const Next &next,
                  const Resolve &resolve) const;
  void insertRange(const int64_t *ids, const uint8_t *valid, int64_t begin, int64_t end,
                   bool onlyMissing, float **rows);
  int64_t findRange(const int64_t *ids, const uint8_t *valid, int64_t begin, int64_t end,
                    float **rows) const;
  Sighting &sightingOf(float *row) const {
    return *reinterpret_cast<Sighting *>(row + sightingOffset);
  }
  bool isAdmitted(int64_t id, int64_t step);
  void see(genrec_rt_pool *pool, int64_t count, int64_t step, float *const *rows,
           const uint8_t *valid);
  float *findOrAdmitOne(int64_t id, int64_t step);
  int64_t numberOf(int64_t id) const;
  void removeRow(int64_t number);
  void listLowest(int64_t member, int64_t count);
  void removeLeaving();

  StoreConfig config;
  int64_t stride = 0;
  int64_t chunkShift = 0, chunkMask = 0;
  int64_t rowCount = 0;
  int64_t usedSlots = 0; ///< of rows, and of erased ones in buckets that ids went past
  int64_t bucketMask = 0;
  uint64_t hashSeed = 0;
  Bucket *buckets = nullptr;
  std::vector<float *> chunks;
  std::vector<int64_t *> idChunks;
  std::vector<int64_t> memberCounts;
  /// Row numbers by member, brought up to `listedRows` when somebody asks.
  mutable std::vector<std::vector<int64_t>> memberRows;
  mutable int64_t listedRows = 0;
  // With rules.
  int64_t sightingOffset = 0;
  std::unique_ptr<EmbeddingStore> waitingIds;
  std::vector<std::pair<Sighting::Rank, int64_t>> ranks; ///< scratch: rank and number
  std::vector<int64_t> leaving;                          ///< scratch: numbers
};

} // namespace genrec::rt

#endif // GENREC_RT_STORE_H
