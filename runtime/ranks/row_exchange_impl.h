//===- row_exchange_impl.h - What a row exchange remembers ------*- C++ -*-===//
//
// Keys of a store have numbers, in the order of first appearance. Rows that this rank asks for have
// positions: in the order of fetches, in each by owner, and there those that came early first. An
// owner keeps which of its rows every rank asked for, in the order of that rank's positions; so
// gradients travel without keys.
//
// For rows of replicas a rank is its own owner: they are the last ones of its part in a fetch. When
// sums are collected, these parts become sections of all other ranks, too, and others note the keys
// as those of one more fetch (row_replicas.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_RANKS_ROW_EXCHANGE_IMPL_H
#define GENREC_RT_RANKS_ROW_EXCHANGE_IMPL_H

#include "key_index.h"
#include "leaf_sums.h"
#include "row_copies.h"
#include "row_exchange.h"
#include "tree_sums.h"

#include <bit>
#include <numeric>

namespace genrec::rt {

/// One message to every rank, or from every rank, one behind another.
template <class T> struct Messages {
  explicit Messages(int32_t ranks) : starts(ranks + 1) {}

  /// Makes room for getSize(rank) elements each.
  template <class GetSize> void layOut(const GetSize &getSize) {
    for (size_t rank = 0; rank + 1 < starts.size(); ++rank)
      starts[rank + 1] = starts[rank] + getSize(static_cast<int32_t>(rank));
    memory.ensure(starts.back());
  }
  T *begin(int32_t rank) { return memory.data() + starts[rank]; }
  int64_t size(int32_t rank) const { return starts[rank + 1] - starts[rank]; }
  int64_t bytes(int32_t rank) const { return size(rank) * static_cast<int64_t>(sizeof(T)); }

  GrowBuffer<T> memory;
  std::vector<int64_t> starts;
};

/// Divides multiples of a number by it, without a division; of others the result is none that
/// gives them when it is multiplied.
class ExactDivision {
public:
  explicit ExactDivision(int64_t by) : shift(std::countr_zero(static_cast<uint64_t>(by))) {
    uint64_t odd = static_cast<uint64_t>(by) >> shift;
    for (inverse = odd; odd * inverse != 1;) // Newton's method, modulo 2^64
      inverse *= 2 - odd * inverse;
  }
  int64_t divide(int64_t number) const {
    return static_cast<int64_t>((static_cast<uint64_t>(number) >> shift) * inverse & INT64_MAX);
  }

private:
  int shift;
  uint64_t inverse;
};

/// What this rank asks of a store.
struct AskedRows {
  /// Rows that one fetch brought from one owner.
  struct Section {
    const float *begin;   ///< of `sorted`
    int64_t first, count; ///< positions
  };

  AskedRows(int64_t valueFloats, int64_t dim) : division(valueFloats), sums(dim) {}
  void begin(int32_t firstPortion);

  ExactDivision division; ///< of distances from a section's begin, by a row's floats
  KeyIndex keys;
  std::vector<float *> addresses; ///< by number; those of this fetch follow
  std::vector<Section> sections; ///< by fetch and owner; then, of replicas, by fetch and other rank
  std::vector<Section> sorted;   ///< where they lie: those of one message, by address
  std::vector<int64_t> replicas; ///< by fetch: rows of replicas
  std::vector<int64_t> replicaKeys; ///< of those, in the order of their positions
  std::vector<int32_t> touchedBy;   ///< by position: the last portion that touched it, or -1
  std::vector<uint32_t> masks;      ///< by position: bit i, whether node i of the sums has it
  std::vector<float *> sumOf;       ///< by position, scratch: its sum in one node
  TreeSums sums;                    ///< of positions
  std::vector<float *> places;      ///< of the last contribution's sums
  int32_t nextPortion = 0;
};

/// What this rank owns of a store, as far as ranks ask for it.
struct OwnedRows {
  explicit OwnedRows(int64_t dim) : sums(dim) {}
  void begin();
  /// Numbers the keys that the next rank asks for.
  void note(const int64_t *wanted, int64_t count, bool deduplicates) {
    asked.resize(asked.size() + static_cast<size_t>(count));
    int32_t *to = asked.data() + asked.size() - count;
    if (deduplicates)
      keys.findOrAdd(wanted, nullptr, count, to);
    else
      keys.add(wanted, nullptr, count, to);
    starts.push_back(static_cast<int64_t>(asked.size()));
  }
  /// The numbers that a rank asked for in a fetch.
  std::span<int32_t> askedBy(size_t fetchAndRank) {
    return std::span(asked).subspan(starts[fetchAndRank],
                                    starts[fetchAndRank + 1] - starts[fetchAndRank]);
  }

  KeyIndex keys;
  std::vector<float *> rows;  ///< by number: where the store has it; null until it is found
  int64_t known = 0;          ///< numbers before this fetch
  std::vector<char> isEarly;  ///< by number, in the first fetch
  std::vector<int32_t> asked; ///< numbers, by fetch and rank
  std::vector<int64_t>
      starts;    ///< in `asked`, by fetch and rank, and the end; of replicas others last
  LeafSums sums; ///< of numbers
  std::vector<float *> updateRows;
  GrowBuffer<float> updateSums;
  std::vector<char> isOwned; ///< by updated row, of a store with replicas
  KeyIndex distinctRows;     ///< addresses, where equal keys have several numbers
};

class RowExchange::Impl {
public:
  Impl(Communicator &comm, std::vector<ExchangedStore> stores, int32_t portions, RowTravel travel);

  void begin();
  void reset();
  void setReplicated(std::span<const std::vector<char>> ofStores);
  void ask(Communicator &on, std::span<const RowRequest> requests, Rider *rider);
  void bringEarly(Communicator &on, const Impl *running, const FindEarly &find);
  void find(const FindRows &find);
  void bring(Communicator &on);
  std::span<float *const> contribute(int32_t store, int32_t portion, std::span<float *const> rows);
  void collect(Rider *rider, const FindRows &find);
  Update getUpdate(int32_t store) const;
  Use getUse(int32_t store) const;
  Fetches getFetches() const { return {fetches, riddenFetches}; }
  int64_t dimOf(int32_t store) const { return stores[store].dim; }

  Communicator &comm;
  ExchangeCounts traffic;

private:
  int32_t storeCount() const { return static_cast<int32_t>(stores.size()); }
  void checkStore(int32_t store) const;
  void checkReplicas();
  /// Where the number of a rank and a store is.
  size_t cell(int32_t rank, int32_t store) const { return size_t(rank) * stores.size() + store; }
  /// The same of a fetch and a rank.
  size_t visit(size_t fetch, int32_t rank) const { return fetch * ranks + rank; }
  /// Calls body(store, numbers) for what a rank asked this one for.
  template <class Body> void forAskedBy(int32_t from, const Body &body) {
    for (int32_t store = 0; store < storeCount(); ++store)
      for (size_t fetch = 0; fetch < visits(owned[store]); ++fetch)
        body(store, owned[store].askedBy(visit(fetch, from)));
  }
  /// Of all stores.
  int64_t sumOfCells(const std::vector<int64_t> &counts, int32_t rank) const {
    auto first = counts.begin() + cell(rank, 0);
    return std::accumulate(first, first + storeCount(), int64_t(0));
  }

  // The steps of `ask`.
  void numberKeys();
  static size_t memberOf(const ExchangedStore &store, int64_t key);
  static bool isReplica(const ExchangedStore &store, int64_t key) {
    return !store.replicated.empty() && store.replicated[memberOf(store, key)];
  }
  int32_t ownerOf(const ExchangedStore &store, int64_t key) const;
  void sortKeys();
  bool travels(const Rider *rider) const;
  void exchangeKeys(Communicator &on, Rider *rider);
  void readKeys(Rider *rider);
  void keepKeys();
  void noteKeys();

  // Those of `bringEarly`.
  void findEarly(const Impl *running, const FindEarly &find);
  void packEarly(int32_t to);
  void readEarly(int32_t from);
  /// Bits that say which rows of a message are early.
  static int64_t bitBytes(int64_t rows) { return (rows + 511) / 512 * 64; }

  // Those of `bring`.
  void arrange();
  void noteRows(int32_t store, const float *begin, int64_t count, const int32_t *number);
  void giveAddresses() const;
  void packValues();
  void exchangeValues(Communicator &on);
  template <class Body>
  void forLateRows(std::span<const int64_t> counts, std::span<const int64_t> early, int32_t other,
                   const Body &body) const;
  void exchangeNarrow(Communicator &on);

  int64_t positionOf(int32_t store, const float *row) const;
  /// Portions before `until` that had no call touch nothing.
  void skipPortions(AskedRows &from, int32_t until);

  // The steps of `collect`.
  void noteMasks();
  /// How many times sections name every rank, and owners every rank that asks.
  size_t visits(const AskedRows &from) const { return from.sections.size() / ranks; }
  size_t visits(const OwnedRows &of) const { return (of.starts.size() - 1) / ranks; }
  static bool sendsKeysOf(const ExchangedStore &store) {
    return store.hasReplicas() && !store.isFrozen;
  }
  /// Bytes of what rides, before what is aligned.
  static int64_t ridingBytes(const Rider *rider, int32_t from, int32_t to) {
    return rider ? (rider->getBytes(from, to) + 63) / 64 * 64 : 0;
  }
  void shareReplicas();
  int64_t replicaBytes() const;
  void packReplicaKeys(char *message) const;
  void readReplicaKeys(Rider *rider);
  int64_t noteReplicaKeys(int32_t from, std::span<const char> message);
  void noteOwned(int32_t store, std::span<const int32_t> touched);
  void layOutSums(Rider *rider);
  void packMasks(int32_t to);
  void packSums(int32_t store);
  void readSums(Rider *rider);
  int64_t sumBytes(int64_t floats) const { return floats * (travel.bf16Sums ? 2 : 4); }
  void narrowSums();
  void widenSums();
  void addSums(int32_t store);
  /// Gives keys that were found one by one, and have one row, one number.
  void joinRows(int32_t store);
  void addLeaves(int32_t store, int32_t other, int32_t first);
  void addOwnLeaves(int32_t store, int32_t first);

  const RowTravel travel;
  std::vector<ExchangedStore> stores;
  const int32_t ranks, rank;
  const PortionRange portions;                  ///< of this rank
  std::vector<std::vector<PortionNode>> covers; ///< by rank: the nodes that it sends
  std::vector<PortionNode> leaves;              ///< those of all ranks, in the order of portions
  std::vector<AskedRows> asked;                 ///< by store, as the next
  std::vector<OwnedRows> owned;
  int64_t fetches = 0;       ///< of this step
  int64_t riddenFetches = 0; ///< those whose keys something rode with
  bool isAsked = false, isArranged = false, isCollected = false;
  bool hasShards = false, hasReplicas = false; ///< any store
  bool sendsReplicas = false;                  ///< any store has replicas that steps change
  BucketedRound keyRound, earlyRound, sumRound;

  // Scratch. "Cell": by rank and store, see above.
  std::vector<SendPart> sendParts;
  std::vector<ReceivePart> receiveParts;
  std::vector<int64_t> messageBytes;              ///< by rank
  std::vector<RowRequest> requests;               ///< of this fetch
  std::vector<int32_t> numbers;                   ///< by entry of the requests, -1: none
  std::vector<int32_t> owners;                    ///< by new key
  std::vector<int64_t> sendCounts, receiveCounts; ///< by cell: keys
  std::vector<int64_t> cursors;                   ///< by cell
  std::vector<int64_t> replicaCursors;            ///< by store
  std::vector<int64_t> sentKeys;                  ///< by rank, then by store
  std::vector<int32_t> sentNumbers; ///< by key of sentKeys; early ones of a cell first
  /// By cell: how many of the keys sent, and received, have early rows.
  std::vector<int64_t> sendEarly, receiveEarly;
  std::vector<int32_t> lateOnes;  ///< of one cell
  std::vector<int64_t> missing;   ///< keys of one store
  std::vector<float *> foundRows; ///< of those
  Messages<float> sendValues;
  Messages<uint16_t> sendNarrow, receiveNarrow; ///< values as bf16
  std::vector<Messages<float>> values;          ///< by fetch: what callers see, until `begin`
  std::vector<float *> earlyValues;          ///< by rank, of this fetch: the same, that came early
  std::vector<uint32_t *> sendMasks;         ///< by rank
  std::vector<int64_t> sumFloats;            ///< by rank: of the sums sent, then received
  Messages<float> wideSums;                  ///< those that travel as bf16
  std::vector<int32_t> joined;               ///< numbers of distinct rows
  std::vector<int32_t> gathered;             ///< positions whose sums are copied next
  std::vector<float *> sumCursors;           ///< by rank
  std::vector<const uint32_t *> maskCursors; ///< by rank
  std::vector<const int64_t *> keyCursors;   ///< by rank
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_ROW_EXCHANGE_IMPL_H
