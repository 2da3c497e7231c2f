//===- store.h - The embedding store on a device -----------------*- C++ -*-===//
//
// TableStore (genrec_rt/table_store.h) for CUDA: rows are numbered by the first appearance of
// their ids, those of a cache by their slots, whatever runs at the same time; initial values are a
// function of (seed, table, id, column); rows never move.
//
// Tables that share a store (StoreConfig::members) are told apart by their keys, which stand for
// ids everywhere here.
//
// Keys: key_table.h, which move when the table grows, at load 0.75; of a cache
// cache_table.h, which has all of its slots from the start. Values: chunks
// of rows [value dim][state dim]…, each row aligned to 64 bytes, behind them the
// ids of the chunk's rows. A cache is one chunk, from the start. Lower halves of hot rows:
// lower_halves.h.
//
// Calls take a stream and return before the device is done, except that inserting
// waits where what the host last heard of the number of rows does not say whether
// they fit. Two calls on one store must be ordered by the caller. Nothing is
// allocated but for growth, for a new chunk and for a larger batch than before.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CUDA_STORE_H
#define GENREC_RT_CUDA_STORE_H

#include "genrec_rt/cuda/cache_keys.h"
#include "genrec_rt/cuda/host_chunks.h"
#include "genrec_rt/cuda/key_table.h"
#include "genrec_rt/cuda/lower_halves.h"
#include "genrec_rt/cuda/lowest_rows.h"
#include "genrec_rt/cuda/row_addresses.h"
#include "genrec_rt/kernels/cuda/ranks.h"
#include "genrec_rt/table_store.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace genrec::rt::cuda {

/// Numbers that only the device knows at once.
struct StoreCounters {
  uint32_t used;       ///< slots that are not empty, erased ones counted
  uint32_t rows;       ///< row numbers given out so far; of a cache, rows that it holds
  uint32_t freed;      ///< of these, erased ones, to be given out again
  uint32_t fresh;      ///< new ids of the current batch
  uint32_t unresolved; ///< ids of the current batch that found no room
  uint32_t refused;    ///< ids so far that a cache had no room for
  uint32_t erased;     ///< slots that were erased and are not empty
  LowerCounters lower; ///< blocks of lower halves
};

/// Rows by member, counted where tables that share a store are bounded; copied into kernels.
struct MemberCounts {
  uint32_t *rows = nullptr; ///< null: not counted
  int64_t keyBits = 0;

  __device__ void add(int64_t key) const {
    if (rows)
      atomicAdd(rows + (key >> keyBits), 1u);
  }
  __device__ void remove(int64_t key) const {
    if (rows)
      atomicSub(rows + (key >> keyBits), 1u);
  }
};

struct RowDraws; ///< what initial values are drawn from; store_kernels.h

/// Where a chunk of rows begins.
struct ChunkPlace {
  const float *begin;
  int64_t number;
};

enum class ValueMemory : int32_t { device, host };

/// What the stores of a session share: together they wait for the device once in a step.
struct StoreStep {
  int64_t number = 0;
  bool hasWaited = false;
};

/// What a store on a device may be besides what StoreConfig says.
struct StoreOptions {
  CacheLimit cache = {};
  /// host: rows are in pinned memory of the host, which kernels reach over the bus at the same
  /// addresses; cached_store.h keeps those in use on the device.
  ValueMemory values = ValueMemory::device;
  /// Inserting waits once in a step; then it makes room as if all ids were new. Null: it waits as
  /// often as it helps.
  StoreStep *step = nullptr;
};

/// What left a cache in a call; arrays of the device with room for the call's ids, in the
/// order of the ids that took their place.
struct EvictedRows {
  uint32_t *count = nullptr; ///< how many; null: nothing is reported
  int64_t *ids = nullptr;
  float *values = nullptr; ///< rowStride() floats each: value and states; may be null
};

/// The stream of a device as calls of a TableStore take it.
inline StoreStream onStream(cudaStream_t stream) { return StoreStream::ofDevice(stream); }

class EmbeddingStore final : public TableStore {
public:
  /// `name` is that of the table, for messages. Every row is below 2^31; so are batches.
  EmbeddingStore(const StoreConfig &config, const std::string &name, cudaStream_t stream,
                 const StoreOptions &options = {});
  ~EmbeddingStore() override;

  const ArgumentMemory &arguments() const override { return deviceMemory(); }
  MemoryKind rowMemory() const override {
    return options.values == ValueMemory::host ? MemoryKind::pinned : MemoryKind::device;
  }

  void find(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
            float **rows, int64_t *missing) const override;
  /// A cache evicts where it is full (cache_shape.h); rows[i] is null where ids[i] was refused.
  void findOrInsert(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                    float **rows) override {
    insertAndEvict(on, ids, valid, count, rows, {});
  }
  /// The same, handing over what leaves: rows that are evicted are copied before others take them.
  void insertAndEvict(const StoreStream &on, const int64_t *ids, const uint8_t *valid,
                      int64_t count, float **rows, const EvictedRows &evicted);
  void findOrAdmit(const StoreStream &on, const int64_t *ids, const uint8_t *valid, int64_t count,
                   int64_t step, float **rows, int64_t *waits) override;
  /// Rows that stay keep their addresses. Waits where there may be more rows than the bound.
  void evict(const StoreStream &on, int64_t step, int64_t expired) override;
  /// The rows' numbers are given out again, the one erased last first.
  void erase(const StoreStream &on, const int64_t *ids, int64_t count) override;
  void clear(const StoreStream &on) override;

  int64_t size(const StoreStream &on) const override;
  int64_t memberSize(const StoreStream &on, int64_t member) const override;
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
  int64_t hotRows(const StoreStream &on) const override;

  TableStore *waiting() const override { return waitingIds.get(); }
  int64_t rowStride() const override { return addresses.stride; }
  int64_t sightingOffset() const override { return config.sightingOffset(); }
  int64_t keyBytes() const override {
    return cache ? cache->bytes() : slots() * (1 + static_cast<int64_t>(sizeof(KeySlot)));
  }
  int64_t valueBytes() const override {
    return (options.values == ValueMemory::host
                ? hostChunks.getBytes()
                : static_cast<int64_t>(chunks.size()) * chunkBytes()) +
           lowerHalves.bytes();
  }

  /// Ids, counted as often as they occurred, that a cache had no room for. Waits.
  int64_t refused(cudaStream_t stream) const;
  int64_t slots() const { return cache ? cache->table().slots() : table.slots(); }
  /// Of a table that grows, as kernels take it, for tests of where keys lie.
  const KeyTable &keyTable() const { return table; }

private:
  /// Without memory of a device.
  EmbeddingStore(const StoreConfig &config, const std::string &name, const StoreOptions &options);
  void checkOptions() const;
  int64_t limit() const { return slots() / 4 * 3; }
  int64_t chunkBytes() const { return addresses.chunkRows * (addresses.stride * 4 + 8); }
  void allocateKeys(int64_t buckets, cudaStream_t stream);
  /// Moves keys into a table with room for `live` of them; `erased`: slots that then are empty.
  void grow(int64_t live, int64_t erased, cudaStream_t stream);
  /// Whether a call may wait for the device, which it does then.
  bool mayWait() const;
  void resolve(const int64_t *ids, const uint8_t *valid, int64_t count, cudaStream_t stream);
  void resolveOnce(const int64_t *ids, const uint8_t *valid, int64_t count, cudaStream_t stream);
  void placeInCache(const int64_t *ids, const uint8_t *valid, int64_t count,
                    const EvictedRows &evicted, cudaStream_t stream);
  void numberFresh(const int64_t *ids, int64_t count, cudaStream_t stream);
  template <class Numbers>
  void makeFlagged(const int64_t *ids, int64_t count, const Numbers &numbers, cudaStream_t stream);
  CacheCounts cacheCounts() const { return {&counters.data()->rows, &counters.data()->refused}; }
  /// Runs `body` with the table as kernels take it.
  template <class Body> void withTable(Body body) const {
    if (cache)
      body(cache->table());
    else
      body(table);
  }
  void makeRoomForRows(int64_t count, cudaStream_t stream);
  void noteChunk(cudaStream_t stream);
  void uploadDraws(cudaStream_t stream);
  void makeRoomForNumbers(cudaStream_t stream);
  void eraseValid(const int64_t *ids, const uint8_t *valid, int64_t count, cudaStream_t stream);
  void see(const uint8_t *valid, int64_t count, int64_t step, float *const *rows,
           cudaStream_t stream);
  void makeHot(const uint8_t *valid, int64_t count, float *const *rows, cudaStream_t stream);
  void makeRoomForHot(int64_t count, cudaStream_t stream);
  void giveBack(float *const *rows, int64_t count, bool ofAll, cudaStream_t stream);
  void giveBackErased(int64_t count, cudaStream_t stream);
  /// Flags the rows in use of numbers 0 to `numbers` - 1, of a member or of kAllMembers.
  void flagInUse(int64_t member, int64_t numbers, uint8_t *inUse, cudaStream_t stream) const;
  /// Brings `listing` up to date; its number of rows.
  int64_t list(int64_t member, cudaStream_t stream) const;
  void eraseFlagged(const uint8_t *flagged, int64_t numbers, cudaStream_t stream);
  /// Waits for `stream` and takes over what it says.
  StoreCounters readCounters(cudaStream_t stream) const;
  /// Copies the counters to `answer` and `memberAnswer`, in the order of `stream`.
  void copyCounters(cudaStream_t stream) const;
  /// Takes over an answer, since which `asked` ids may have come, and `askedHot` rows have become
  /// hot.
  void takeOver(int64_t asked, int64_t askedHot) const;
  bool countsMembers() const { return config.rules.bound > 0 && !config.members.empty(); }
  MemberCounts memberCountsOnDevice() const { return {memberCounts.data(), config.keyBits}; }
  /// Rows of a table, or of a member, as of the last answer.
  int64_t answeredRows(size_t member) const;
  /// Asks for the counters without waiting, and takes over the last answer if it is there.
  void requestCounters(cudaStream_t stream);
  void takeAnswer();

  StoreOptions options;
  std::string name;
  KeyTable table; ///< of a store that is no cache
  RowAddresses addresses;
  std::vector<float *> chunks;
  /// Of a store whose rows draw random numbers: chunks by address, behind the number of them.
  std::vector<ChunkPlace> chunkPlaces;
  // Bounds from what the host last heard and what it asked for since.
  mutable int64_t usedBound = 0, rowsBound = 0;
  mutable int64_t largestBound = 0; ///< rows of the largest of the tables that share the store
  mutable int64_t lowerBound = 0;   ///< blocks of lower halves
  mutable int64_t askedSinceRequest = 0, hotSinceRequest = 0;
  mutable bool isRequested = false;
  StoreCounters *answer = nullptr;  ///< pinned
  uint32_t *memberAnswer = nullptr; ///< pinned, where members are counted
  cudaEvent_t answered = nullptr;

  DeviceArray<uint8_t> digests;
  DeviceArray<KeySlot> keys;
  DeviceArray<float *> chunkTable;
  DeviceArray<ChunkPlace> placesOnDevice;
  DeviceArray<StoreCounters> counters;
  DeviceArray<uint32_t> memberCounts;
  DeviceArray<RowDraws> draws;
  // Of the current batch.
  DeviceArray<int64_t> placeOf; ///< of each id: its slot, or what store_kernels.h has beside it
  mutable DeviceArray<uint8_t> flags;
  DeviceArray<uint8_t> leaving;
  mutable DeviceArray<uint32_t> ranks;
  DeviceArray<uint32_t> freedNumbers;
  DeviceArray<uint32_t> firstOf; ///< by row number, of erase
  // With rules.
  DeviceArray<uint8_t> masks;       ///< two of a batch, or by row number
  DeviceArray<float *> waitingRows; ///< of a batch
  DeviceArray<int64_t> leavingIds;  ///< by row number
  DeviceArray<float *> leavingRows; ///< of a batch
  HostChunks hostChunks;            ///< of values in host memory
  LowerHalves lowerHalves;
  LowestRows lowest;
  std::unique_ptr<EmbeddingStore> waitingIds;

  /// Ids and rows of a member by ascending number, as of a version of the store.
  struct Listing {
    uint64_t version = 0;
    int64_t member = 0, count = 0;
    DeviceArray<int64_t> ids;
    DeviceArray<float *> rows;
  };
  uint64_t version = 1; ///< counts the calls that rows come or leave by
  mutable Listing listing;
  mutable DeviceArray<float> transfer; ///< of rows to and from the host

  mutable FlagRanks flagRanks;
  std::optional<CacheKeys> cache;
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_CUDA_STORE_H
