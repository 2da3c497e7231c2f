//===- row_exchange.h - Rows of portions and ranks on a device --*- C++ -*-===//

#ifndef GENREC_RT_RANKS_CUDA_ROW_EXCHANGE_H
#define GENREC_RT_RANKS_CUDA_ROW_EXCHANGE_H

#include "float_messages.h"
#include "genrec_rt/device_exchange.h"
#include "genrec_rt/kernels/cuda/segments_warp.h"
#include "genrec_rt/kernels/cuda/ranks.h"
#include "genrec_rt/kernels/cuda/unique.h"
#include "genrec_rt/portions.h"
#include "row_kernels.h"
#include "tables.h"

#include <memory>

namespace genrec::rt::cuda {

/// Keys of all stores are numbered at once (unique.h), grouped by cell (row_kernels.h) and sent to
/// their owners, who find them and send values back. Values of a step, and each node of sums, lie
/// as the messages that come and go: by owner, then by store.
class RowExchange final : public DeviceRowExchange {
public:
  /// `queue` is where the stream of the queue in use is.
  RowExchange(Communicator &comm, std::vector<DeviceExchangedStore> stores, int32_t portions,
              RowTravel travel, const cudaStream_t &queue);
  ~RowExchange() override;

  void begin() override;
  int64_t *layOutKeys(std::span<const DeviceRowRequest> requests) override;
  void ask(Communicator &on) override;
  void bring(Communicator &on, const FindRows &find) override;
  void beginPortion(int32_t portion) override;
  void contribute(int32_t portion, int32_t store, const genrec_domain *touched, int64_t capacity,
                  float *const *rows, const float *sums) override;
  void endPortion(int32_t portion) override;
  void collect() override;
  Update getUpdate(int32_t store) const override;
  void describe(int32_t store, genrec_domain *owned) override;
  ExchangeCounts getTraffic() const override { return traffic; }

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

  int64_t storeCount() const { return static_cast<int64_t>(stores.size()); }
  int64_t cell(int32_t of, int64_t store) const { return of * storeCount() + store; }
  MessageLayout layOutValues(const int64_t *counts) const;
  MessageLayout layOutSums(const int64_t *counts) const;
  void numberKeys();
  void countKeys(Communicator &on);
  void layOutMessages();
  void exchangeKeys(Communicator &on);
  void findWanted(const FindRows &find);
  void exchangeValues(Communicator &on);
  void giveAllAddresses();
  float *takeNode();
  void exchangeNode(size_t number);
  OwnedRows describeOwned();
  void describeUpdates();
  CommMemory onDevice() const { return {CommMemory::Kind::device, queue}; }

  Communicator &comm;
  const std::vector<DeviceExchangedStore> stores;
  const int32_t ranks, rank;
  const PortionRange portions;
  const cudaStream_t &queue;
  std::vector<std::vector<PortionNode>> covers; ///< by rank: the nodes that it sends
  int64_t widest = 1;
  ExchangeCounts traffic;
  FloatMessages valueMessages, sumMessages;
  StepTables tables{"exchange.tables"};

  // What this rank asks for.
  std::vector<DeviceRowRequest> requests;
  std::vector<int64_t> storeEntries; ///< [stores + 1] where the entries of a store begin
  int64_t entries = 0;
  std::vector<int64_t> positions;   ///< [cells + 1] where each cell begins
  std::vector<MessageLayout> askedValues, askedSums; ///< by owner
  std::vector<int64_t> valueBegins; ///< [ranks + 1] by owner: the float of `values`
  std::vector<int64_t> sumBegins;   ///< [ranks + 1] by owner: the float of a node
  RowCells cells;
  DeviceArray<int64_t> keys{"exchange.keys"}, distinctKeys{"exchange.distinct"},
      distinctFirsts{"exchange.distinct_firsts"}, groupedKeys{"exchange.grouped"},
      cellFirsts{"exchange.cell_firsts"};
  DeviceArray<uint32_t> numbers{"exchange.numbers"}, cellOf{"exchange.cells"},
      order{"exchange.order"}, positionOf{"exchange.positions"}, total{"exchange.total"};
  DeviceArray<float> values{"exchange.values"};
  int64_t *firstsOnHost = nullptr; ///< pinned
  Unique unique{"exchange"};
  StableOrder stableOrder{"exchange"};

  // What ranks ask this one for.
  std::vector<int64_t> served;        ///< [cells] by rank, then store: how many rows
  std::vector<int64_t> wanted;        ///< [cells + 1] by store, then rank: where a cell begins
  std::vector<MessageLayout> servedValues, servedSums; ///< by rank
  DeviceArray<int64_t> receivedKeys{"exchange.received"}, wantedKeys{"exchange.wanted"};
  const int64_t *wantedInOrder = nullptr; ///< the keys that ranks ask for, by store, then rank
  DeviceArray<float *> rows{"exchange.rows"};
  DeviceArray<float> sent{"exchange.sent"};

  // Sums.
  std::vector<Node> nodes;   ///< of this rank's portions, from left to right
  std::vector<float *> open; ///< by portion of this rank: its sums while it computes, else null
  std::vector<DeviceArray<float>> nodeMemory;
  std::vector<float *> freeNodes;
  std::vector<DeviceArray<float>> received; ///< by number of a node: the messages of all ranks
  std::vector<std::vector<const float *>> leafMessages; ///< by rank and node
  DeviceArray<uint8_t> touched{"exchange.touched"};
  DeviceArray<uint32_t> touchedRanks{"exchange.touched_ranks"},
      touchedTotal{"exchange.touched_total"}, ownedNumbers{"exchange.owned_numbers"},
      ownedTotal{"exchange.owned_total"};
  DeviceArray<int64_t> ownedFirsts{"exchange.owned_firsts"}, counts{"exchange.counts"};
  DeviceArray<int32_t> places{"exchange.places"};
  DeviceArray<float *> updateRows{"exchange.update_rows"};
  DeviceArray<float> updateSums{"exchange.update_sums"};
  FlagRanks flagRanks{"exchange"};
  DeviceArray<int64_t> iota{"exchange.iota"};
  DeviceArray<uint32_t> narrowIota{"exchange.narrow_iota"};
  std::vector<Update> updates; ///< by store
};

} // namespace genrec::rt::cuda

#endif // GENREC_RT_RANKS_CUDA_ROW_EXCHANGE_H
