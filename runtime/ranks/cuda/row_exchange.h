//===- row_exchange.h - Rows of portions and ranks on a device --*- C++ -*-===//

#ifndef GENREC_RT_RANKS_CUDA_ROW_EXCHANGE_H
#define GENREC_RT_RANKS_CUDA_ROW_EXCHANGE_H

#include "float_messages.h"
#include "genrec_rt/device_exchange.h"
#include "genrec_rt/kernels/cuda/order.h"
#include "genrec_rt/kernels/cuda/ranks.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"
#include "genrec_rt/kernels/cuda/unique.h"
#include "genrec_rt/portions.h"
#include "row_kernels.h"
#include "tables.h"

#include <memory>

namespace genrec::rt::cuda {

/// Keys of all stores are numbered at once (unique.h), grouped by cell (row_kernels.h) and sent to
/// their owners, who find them and send values back. Values of a step, and each node of sums, lie
/// as the messages that come and go: by section, then by store.
///
/// Rows of replicas are found by the rank itself. Where a step collects their sums they are a
/// section of their own, whose keys and sums go to all ranks; else they are of the section that
/// this rank asks itself for.
class RowExchange final : public DeviceRowExchange {
public:
  /// `queue` is where the stream of the queue in use is.
  RowExchange(Communicator &comm, std::vector<ExchangedStore> stores, int32_t portions,
              RowTravel travel, const cudaStream_t &queue);
  ~RowExchange() override;

  void begin() override;
  void setReplicated(std::span<const std::vector<char>> ofStores) override;
  int64_t *layOutKeys(std::span<const DeviceRowRequest> requests) override;
  void ask(Communicator &on, bool collects) override;
  void bring(Communicator &on, const FindRows &find) override;
  void beginPortion(int32_t portion) override;
  void contribute(int32_t portion, int32_t store, const genrec_domain *touched, int64_t capacity,
                  float *const *rows, const float *sums) override;
  void endPortion(int32_t portion) override;
  void collect() override;
  Update getUpdate(int32_t store) const override;
  void describe(int32_t store, genrec_domain *owned) override;
  void end() override;
  ExchangeCounts getTraffic() const override { return traffic; }
  std::vector<int64_t> countAsked(int32_t store) const override;

private:
  /// Where rows of stores are in a message. Values of float are in front of those that are bf16
  /// already, sums in front of flags.
  struct MessageLayout {
    std::vector<int64_t> begins; ///< by store: the float where its rows begin
    std::vector<int64_t> flags;  ///< by store: the byte of its first flag; of sums
    int64_t values = 0;          ///< floats that may be rounded on their way
    int64_t others = 0;          ///< floats behind them

    int64_t floats() const { return values + others; }
    FloatPart part(float *data) const { return {data, values, others}; }
  };
  struct Node : PortionNode {
    float *sums = nullptr;
  };

  /// Messages and their parts begin where a cache line may: floats, rounded up.
  static int64_t aligned(int64_t floats) {
    constexpr int64_t kAlign = 16;
    return (floats + kAlign - 1) / kAlign * kAlign;
  }

  int64_t storeCount() const { return static_cast<int64_t>(stores.size()); }
  /// Of the section of a rank, or of that behind all: of replicas.
  int64_t cell(int32_t section, int64_t store) const { return section * storeCount() + store; }
  int64_t cellCount() const { return cell(ranks + 1, 0); }
  /// Rows of a cell that this rank asks for.
  int64_t countRows(int64_t cell) const { return positions[cell + 1] - positions[cell]; }
  /// Where the rows of an asker (row_kernels.h) are in what this rank is asked for, and how many.
  int64_t firstWanted(int64_t store, int32_t asker = 0) const {
    return wanted[store * askers + asker];
  }
  int64_t countServed(int32_t asker, int64_t store) const { return served[cell(asker, store)]; }
  bool sharesReplicas(const ExchangedStore &store) const {
    return ranks > 1 && collects && store.hasReplicas() && !store.isFrozen;
  }
  MessageLayout layOutValues(const int64_t *counts) const;
  MessageLayout layOutSums(const int64_t *counts) const;
  void noteReplicas();
  DistinctKeys numberKeys();
  KeyOwners describeOwners();
  void sortKeys();
  void countKeys(Communicator &on);
  void layOutMessages();
  void exchangeKeys(Communicator &on);
  void exchangeKeys(Communicator &on, bool ofReplicas, std::span<int64_t *const> to);
  void numberWanted();
  void findWanted(const FindRows &find);
  void gatherValues(int32_t asker, const MessageLayout &layout, float *to);
  void exchangeValues(Communicator &on);
  void giveAllAddresses();
  float *takeNode();
  void exchangeNode(size_t number);
  float *exchangeNode(size_t number, bool ofReplicas, float *to);
  std::vector<LeafNode> listLeaves() const;
  OwnedRows describeOwned();
  OwnedUpdates layOutUpdates();
  void describeUpdates();
  CommMemory onDevice() const { return {CommMemory::Kind::device, queue}; }

  Communicator &comm;
  const RowTravel travel;
  std::vector<ExchangedStore> stores;
  const int32_t ranks, rank;
  const PortionRange portions;
  const cudaStream_t &queue;
  std::vector<std::vector<PortionNode>> covers; ///< by rank: the nodes that it sends
  int64_t widest = 1;
  ExchangeCounts traffic;
  FloatMessages valueMessages, sumMessages;
  StepTables tables{"exchange.tables"};

  bool hasShards = false; ///< any store
  bool collects = false;  ///< the step, sums of rows
  int32_t askers = 1;     ///< ranks; twice as many where they share replicas

  // What this rank asks for.
  std::vector<DeviceRowRequest> requests;
  std::vector<int64_t> storeEntries; ///< [stores + 1] where the entries of a store begin
  int64_t entries = 0;
  std::vector<int64_t> positions;                    ///< [cells + 1] where each cell begins
  std::vector<MessageLayout> askedValues, askedSums; ///< by section
  std::vector<int64_t> valueBegins;                  ///< [sections + 1] the float of `values`
  std::vector<int64_t> sumBegins;                    ///< [sections + 1] the float of a node
  RowCells cells;
  DeviceArray<int64_t> keys{"exchange.keys"}, distinctKeys{"exchange.distinct"},
      distinctFirsts{"exchange.distinct_firsts"}, groupedKeys{"exchange.grouped"},
      cellFirsts{"exchange.cell_firsts"};
  DeviceArray<uint32_t> numbers{"exchange.numbers"}, cellOf{"exchange.cells"},
      order{"exchange.order"}, positionOf{"exchange.positions"}, total{"exchange.total"};
  DeviceArray<float> values{"exchange.values"};
  KeyOwners owners;
  int64_t *firstsOnHost = nullptr; ///< pinned: where cells begin, and how many ids were looked up
  int64_t *foundOnHost = nullptr;  ///< pinned
  bool isFoundTold = false;        ///< by the device once the step has ended
  Unique unique{"exchange"};
  StableOrder stableOrder{"exchange"};

  // What ranks ask this one for.
  std::vector<int64_t> served; ///< by asker, then store: how many rows
  std::vector<int64_t> wanted; ///< by store, then asker: where a cell begins; and the end
  std::vector<MessageLayout> servedValues, servedSums; ///< by asker
  DeviceArray<int64_t> receivedKeys{"exchange.received"}, wantedKeys{"exchange.wanted"};
  const int64_t *wantedInOrder = nullptr; ///< the keys that ranks ask for, by store, then asker
  AskedCells askedCells;
  DeviceArray<uint32_t> ownedNumbers{"exchange.owned_numbers"}, ownedTotal{"exchange.owned_total"},
      ownedOrder{"exchange.owned_order"}, seen{"exchange.seen"};
  DeviceArray<int64_t> ownedFirsts{"exchange.owned_firsts"}, segments{"exchange.segments"},
      found{"exchange.found"};
  DeviceArray<AskedRow> askedRows{"exchange.asked_rows"};
  DeviceArray<float *> rows{"exchange.rows"};
  DeviceArray<float> sent{"exchange.sent"};

  // Sums.
  std::vector<Node> nodes;   ///< of this rank's portions, from left to right
  std::vector<float *> open; ///< by portion of this rank: its sums while it computes, else null
  std::vector<DeviceArray<float>> nodeMemory;
  std::vector<float *> freeNodes;
  std::vector<DeviceArray<float>> received; ///< by number of a node: the messages of all ranks
  std::vector<std::vector<const float *>> leafMessages; ///< by asker and node
  DeviceArray<uint8_t> touched{"exchange.touched"};
  DeviceArray<uint32_t> touchedRanks{"exchange.touched_ranks"},
      touchedTotal{"exchange.touched_total"};
  DeviceArray<int64_t> counts{"exchange.counts"};
  DeviceArray<float *> updateRows{"exchange.update_rows"};
  DeviceArray<float> updateSums{"exchange.update_sums"}, updateOwned{"exchange.update_owned"};
  FlagRanks flagRanks{"exchange"};
  DeviceArray<int64_t> iota{"exchange.iota"};
  DeviceArray<uint32_t> narrowIota{"exchange.narrow_iota"};
  std::vector<Update> updates; ///< by store
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_RANKS_CUDA_ROW_EXCHANGE_H
