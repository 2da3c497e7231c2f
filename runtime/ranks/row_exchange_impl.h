//===- row_exchange_impl.h - What a row exchange remembers ------*- C++ -*-===//
//
// Keys of a store have numbers, in the order of first appearance. Rows that this rank asks for have
// positions: in the order of fetches, in each by owner. An owner keeps which of its rows every rank
// asked for, in the order of that rank's positions; so gradients travel without keys.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_RANKS_ROW_EXCHANGE_IMPL_H
#define GENREC_RT_RANKS_ROW_EXCHANGE_IMPL_H

#include "key_index.h"
#include "row_exchange.h"
#include "tree_sums.h"

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
  int64_t bytes(int32_t rank) const {
    return (starts[rank + 1] - starts[rank]) * static_cast<int64_t>(sizeof(T));
  }

  GrowBuffer<T> memory;
  std::vector<int64_t> starts;
};

/// What this rank asks of a store.
struct AskedRows {
  /// The rows that one fetch brought from one owner.
  struct Section {
    const float *begin;
    int64_t first, count; ///< positions
  };

  explicit AskedRows(int64_t dim) : sums(dim) {}
  void begin(int32_t firstPortion);

  KeyIndex keys;
  std::vector<float *> addresses; ///< by number; those of this fetch follow
  std::vector<Section> sections;  ///< by fetch and owner
  std::vector<Section> sorted;    ///< those that are not empty, by address
  std::vector<int32_t> touchedBy; ///< by position: the last portion that touched it, or -1
  std::vector<uint32_t> masks;    ///< by position: bit i, whether node i of the sums has it
  std::vector<float *> sumOf;     ///< by position, scratch: its sum in one node
  TreeSums sums;                  ///< of positions
  int32_t nextPortion = 0;
};

/// What this rank owns of a store, as far as ranks ask for it.
struct OwnedRows {
  explicit OwnedRows(int64_t dim) : sums(dim) {}
  void begin();
  /// The numbers that a rank asked for in a fetch.
  std::span<const int32_t> askedBy(size_t fetchAndRank) const {
    return std::span(asked).subspan(starts[fetchAndRank],
                                    starts[fetchAndRank + 1] - starts[fetchAndRank]);
  }

  KeyIndex keys;
  std::vector<float *> rows;   ///< by number: where the store has it
  std::vector<int32_t> asked;  ///< numbers, by fetch and rank
  std::vector<int64_t> starts; ///< in `asked`, by fetch and rank, and the end
  TreeSums sums;               ///< of numbers
  std::vector<float *> updateRows;
  GrowBuffer<float> updateSums;
};

class RowExchange::Impl {
public:
  Impl(Communicator &comm, std::vector<ExchangedStore> stores, int32_t portions);

  void begin();
  void fetch(std::span<const RowRequest> requests, const FindRows &find);
  void contribute(int32_t store, int32_t portion, std::span<float *const> rows, const float *sums);
  void collect();
  Update getUpdate(int32_t store) const;

  /// Runs `body`; what it throws ends the other ranks too.
  template <class Body> void tellOthers(const Body &body) {
    try {
      body();
    } catch (const CommError &) {
      throw; // they know
    } catch (const std::exception &error) {
      comm.abort(error.what());
      throw;
    }
  }

private:
  int32_t storeCount() const { return static_cast<int32_t>(stores.size()); }
  void checkStore(int32_t store) const;
  /// Where the number of a rank and a store is.
  size_t cell(int32_t rank, int32_t store) const { return size_t(rank) * stores.size() + store; }
  /// The same of a fetch and a rank.
  size_t visit(int64_t fetch, int32_t rank) const { return size_t(fetch) * ranks + rank; }
  template <class T> void exchange(Messages<T> &send, Messages<T> &receive) {
    for (int32_t rank = 0; rank < ranks; ++rank) {
      sendParts[rank] = {send.begin(rank), send.bytes(rank)};
      receiveParts[rank] = {receive.begin(rank), receive.bytes(rank)};
    }
    comm.exchange(sendParts, receiveParts);
  }

  // The steps of a fetch.
  void numberKeys(std::span<const RowRequest> requests);
  int32_t ownerOf(const ExchangedStore &store, int64_t key) const;
  void exchangeCounts();
  void exchangeKeys();
  void findRows(const FindRows &find);
  void exchangeValues();
  void noteSections();
  void giveAddresses(std::span<const RowRequest> requests) const;

  int64_t positionOf(int32_t store, const float *row) const;
  /// Portions before `until` that had no call touch nothing.
  void skipPortions(AskedRows &from, int32_t until);

  // The steps of `collect`.
  void exchangeMasks();
  void exchangeSums();
  void packSums(int32_t store);
  void addSums(int32_t store);

  Communicator &comm;
  const std::vector<ExchangedStore> stores;
  const int32_t ranks, rank;
  const PortionRange portions;                  ///< of this rank
  std::vector<std::vector<PortionNode>> covers; ///< by rank: the nodes that it sends
  std::vector<AskedRows> asked;                 ///< by store, as the next
  std::vector<OwnedRows> owned;
  int64_t fetches = 0; ///< of this step
  bool isCollected = false;

  // Scratch. "Cell": by rank and store, see above.
  std::vector<SendPart> sendParts;
  std::vector<ReceivePart> receiveParts;
  std::vector<int32_t> numbers;                   ///< by entry of the requests, -1: none
  std::vector<int32_t> owners;                    ///< by new key
  std::vector<int64_t> sendCounts, receiveCounts; ///< by cell: keys
  std::vector<int64_t> cursors;                   ///< by cell
  Messages<int64_t> sendKeys, receiveKeys;
  std::vector<int32_t> sentNumbers; ///< by key of sendKeys
  Messages<float> sendValues;
  std::vector<Messages<float>> values; ///< by fetch: what callers see, until `begin`
  Messages<uint32_t> sendMasks, receiveMasks;
  Messages<float> sendSums, receiveSums;
  std::vector<float *> sumCursors;           ///< by rank
  std::vector<const uint32_t *> maskCursors; ///< by rank
};

} // namespace genrec::rt

#endif // GENREC_RT_RANKS_ROW_EXCHANGE_IMPL_H
