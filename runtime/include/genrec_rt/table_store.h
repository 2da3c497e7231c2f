//===- table_store.h - What every store of table rows does -------*- C++ -*-===//
//
// Rows by 64-bit ids: [value dim][state]…[sighting], numbered in the order of insertion. All are
// floats, but that values may be bfloat16, filled up to whole floats. Where rows may be hot
// (RowRules::hotAfter), the address of a row's lower halves comes before its states, null where it
// is not hot. The stores of the host
// (store.h) and of a device (cuda/store.h) implement this interface; session, checkpoint and
// trainer know no other. One conformance suite judges both (test/Runtime/store_conformance.h).
//
// Calls take whole batches. Their arrays (ids, valid, rows, counters) are memory that
// `arguments()` allocates; the addresses they write are memory of the kind `rowMemory()`. A store
// on the host takes any host memory and is done when a call returns; a store on a device queues
// its work on the stream of the call.
//
// A store without rules (row_rules.h) is unbounded: it keeps every row. With rules, training finds
// rows by `findOrAdmit`, and ends each step with `evict`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_TABLE_STORE_H
#define GENREC_RT_TABLE_STORE_H

#include "genrec_rt/footprint.h"
#include "genrec_rt/identity.h"
#include "genrec_rt/kinds.h"
#include "genrec_rt/parallel.h"
#include "genrec_rt/row_rules.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace genrec::rt {

/// What initial values are drawn from, as kernels/shared/init.h has it.
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

/// In what values are stored. bf16: initial ones are rounded to nearest, ties to even.
enum class RowElement : int32_t { f32 = GENREC_ROW_F32, bf16 = GENREC_ROW_BF16 };

/// Writes `dim` floats as the value of a row of bf16, each rounded to nearest, ties to even; and
/// back.
void packValues(const float *values, int64_t dim, float *row);
void unpackValues(const float *row, int64_t dim, float *values);

struct StoreConfig {
  int64_t dim = 0; ///< 0: ids without values
  RowElement element = RowElement::f32;
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
  int64_t stateFloats() const { return states * stateWidth(); }
  /// Whether rows may be hot, and then keep the lower halves of their floats elsewhere.
  bool keepsLower() const { return element == RowElement::bf16 && rules.hotAfter > 0; }
  /// Floats that a row's value takes.
  int64_t valueFloats() const { return storeValueFloats(dim, element == RowElement::bf16); }
  /// Floats before a row's states.
  int64_t stateOffset() const {
    return storeStateOffset(dim, element == RowElement::bf16, keepsLower());
  }
  /// Floats that a row's value and states take, and what lies between them.
  int64_t usedFloats() const { return stateOffset() + stateFloats(); }
  /// Floats before a row's sighting, where rows have one.
  int64_t sightingOffset() const { return storeSightingOffset(stateOffset(), stateFloats()); }
  /// Floats from one row to the next.
  int64_t rowFloats() const { return storeRowFloats(stateOffset(), stateFloats(), rules.any()); }
  /// What the store of the ids has that the rules do not admit yet.
  StoreConfig ofWaitingIds() const {
    StoreConfig ids;
    ids.rules = rules;
    ids.rules.admitAfter = 1;
    ids.rules.hotAfter = 0;
    ids.members = members;
    ids.keyBits = keyBits;
    ids.hashSeed = hashSeed;
    return ids;
  }
  const RowInitializer &initializerOf(int64_t key) const {
    return members.empty() ? initializer : members[key >> keyBits];
  }
  uint64_t idOf(int64_t key) const {
    return static_cast<uint64_t>(members.empty() ? key : key & ((int64_t(1) << keyBits) - 1));
  }
  /// The identity of a row in random streams: of its table's name and its id, whatever tables share
  /// the store.
  uint64_t identityOf(int64_t key) const {
    return mixIdentity(initializerOf(key).nameHash, idOf(key));
  }
};

/// As a member of a store: all tables that share it.
constexpr int64_t kAllMembers = -1;

/// Who reaches an address: the host alone, both, or the device alone.
enum class MemoryKind : int32_t { host, pinned, device };

/// What a call of a store runs on: the threads of a host, or the stream of a device
/// (cudaStream_t).
struct StoreStream {
  StoreStream(genrec_rt_pool *pool = nullptr) : pool(pool) {} // a pool is given as it is
  static StoreStream ofDevice(void *stream) {
    StoreStream result;
    result.device = stream;
    return result;
  }

  genrec_rt_pool *pool = nullptr;
  void *device = nullptr;
};

/// Memory of one kind for the arguments of calls, and copies between it and the host. Copies are
/// done when they return.
class ArgumentMemory {
public:
  virtual MemoryKind kind() const = 0;
  virtual void *allocate(int64_t bytes, const StoreStream &on) const = 0;
  virtual void release(void *memory, int64_t bytes, const StoreStream &on) const noexcept = 0;
  virtual void copyIn(void *to, const void *host, int64_t bytes, const StoreStream &on) const = 0;
  virtual void copyOut(void *host, const void *from, int64_t bytes,
                       const StoreStream &on) const = 0;

protected:
  ~ArgumentMemory() = default;
};

/// Memory of the host.
const ArgumentMemory &hostMemory();

class TableStore {
public:
  virtual ~TableStore() = default;
  TableStore(const TableStore &) = delete;
  TableStore &operator=(const TableStore &) = delete;

  const StoreConfig &configuration() const { return config; }
  virtual const ArgumentMemory &arguments() const = 0;
  virtual MemoryKind rowMemory() const = 0;

  /// rows[i] = the row of ids[i], null where the store has none; entries with valid[i] == 0 are
  /// left untouched. `valid` may be null. Adds the number of entries that were not found to
  /// *missing, unless that is null. Safe beside other finds.
  virtual void find(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                    float **rows, int64_t *missing) const = 0;

  /// The same, inserting what is missing: new rows are numbered in the order of first appearance
  /// in `ids`, whatever runs at the same time, and hold their initial values.
  virtual void findOrInsert(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                            int64_t count, float **rows) = 0;

  /// The same for a store with rules, in training: `step` sees the ids, and gives rows to those
  /// that are admitted; the others' rows[i] are null, and their number is added to *waits, unless
  /// that is null.
  virtual void findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                           int64_t count, int64_t step, float **rows, int64_t *waits) = 0;

  /// The end of a step of training: the rows that the rules send away leave; by `ttlSeconds`, those
  /// last seen in step `expired` or before (below 0: none). Voids addresses of rows.
  virtual void evict(const StoreStream &on, int64_t step, int64_t expired) = 0;

  /// Forgets ids, with their states and counts; those it does not have, and repeated ones, count
  /// once or not at all. Voids addresses of rows.
  virtual void erase(const StoreStream &on, const int64_t *ids, int64_t count) = 0;

  /// Forgets all rows and keeps the memory.
  virtual void clear(const StoreStream &on) = 0;

  /// The number of rows; of those of a member, one of the tables that share the store (0 in a
  /// store of one table). Waits for the stream.
  virtual int64_t size(const StoreStream &on) const = 0;
  virtual int64_t memberSize(const StoreStream &on, int64_t member) const = 0;

  /// Ids and addresses of the rows of a member (or kAllMembers) from place `first` on, in the order
  /// of their numbers. Either array may be null. Waits for the stream.
  virtual void exportRows(const StoreStream &on, int64_t member, int64_t first, int64_t count,
                          int64_t *ids, float **rows) const = 0;

  /// Of a store of bfloat16 rows: identities[i] = StoreConfig::identityOf of the row at rows[i]; 0
  /// outside of the store's memory. Of a device, `counted` may hold the number of rows, at most
  /// `count`; else null.
  virtual void identify(const StoreStream &on, float *const *rows, int64_t count,
                        const int64_t *counted, uint64_t *identities) const = 0;

  /// Copies `width` floats of each row from `offset` on to the host, or from it, row behind row.
  /// Waits for the stream.
  virtual void readRows(const StoreStream &on, float *const *rows, int64_t count, int64_t offset,
                        int64_t width, float *to) const = 0;
  virtual void writeRows(const StoreStream &on, float *const *rows, int64_t count, int64_t offset,
                         int64_t width, const float *from) = 0;

  /// The values of rows of a table that keeps lower halves, `dim` floats each: of a hot row both
  /// halves, of another one its bfloat16. What is written to a row that is not hot is rounded to
  /// nearest. Wait for the stream. A cache keeps none.
  virtual void readHalves(const StoreStream &on, float *const *rows, int64_t count,
                          float *to) const;
  virtual void writeHalves(const StoreStream &on, float *const *rows, int64_t count,
                           const float *from);
  /// After sightings were written to such rows, each once: gives lower halves, zeros, to those that
  /// are hot now, and takes them from those that are not.
  virtual void settleHot(const StoreStream &on, float *const *rows, int64_t count);
  /// The number of rows that are hot. Waits for the stream.
  virtual int64_t hotRows(const StoreStream &on) const { return 0; }

  /// The ids that are not admitted yet, a store of dimension 0; null without `admitAfter`.
  virtual TableStore *waiting() const = 0;
  /// Floats from one row to the next, a multiple of 16.
  virtual int64_t rowStride() const = 0;
  /// With rules: floats of a row before its Sighting.
  virtual int64_t sightingOffset() const = 0;
  /// Bytes of keys and of values in use.
  virtual int64_t keyBytes() const = 0;
  virtual int64_t valueBytes() const = 0;

protected:
  explicit TableStore(const StoreConfig &config) : config(config) {}

  const StoreConfig config;
};

/// A store in the memory of the host: store.h.
std::unique_ptr<TableStore> makeHostStore(const StoreConfig &config);

/// An array that calls of a store take.
template <class T> class StoreArray {
public:
  StoreArray(const TableStore &store, int64_t count, const StoreStream &on)
      : memory(&store.arguments()), on(on), count(count),
        array(static_cast<T *>(memory->allocate(count * static_cast<int64_t>(sizeof(T)), on))) {}
  /// With what the host has.
  StoreArray(const TableStore &store, const T *from, int64_t count, const StoreStream &on)
      : StoreArray(store, count, on) {
    memory->copyIn(array, from, count * static_cast<int64_t>(sizeof(T)), on);
  }
  StoreArray(StoreArray &&other) noexcept
      : memory(other.memory), on(other.on), count(other.count),
        array(std::exchange(other.array, nullptr)) {}
  StoreArray &operator=(StoreArray &&) = delete;
  ~StoreArray() {
    if (array)
      memory->release(array, count * static_cast<int64_t>(sizeof(T)), on);
  }

  T *data() const { return array; }
  int64_t size() const { return count; }
  /// Copies all to the host.
  void fetch(T *to) const {
    memory->copyOut(to, array, count * static_cast<int64_t>(sizeof(T)), on);
  }

private:
  const ArgumentMemory *memory;
  StoreStream on;
  int64_t count;
  T *array;
};

} // namespace genrec::rt

#endif // GENREC_RT_TABLE_STORE_H
