//===- device_ranks.h - What portions have in common on a device -*- C++ -*-===//
//
// The part of RankStep (ranks.h) whose values are on a device: rows that portions look up, sums
// over portions. Keys go to their owners when the dispatch stages of all portions are queued,
// gradients when the compute stages are; what the step reports follows once the host has waited for
// it.
//
// A lookup by ids that the compute stage makes is a fetch of its own, with a row exchange of its
// own: keys, values and sums of gradients travel as those of the dispatch stages do. What owners
// are given of the same row by several fetches is joined (device_updates.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_RANKS_H
#define GENREC_RT_SESSION_DEVICE_RANKS_H

#include "../ranks/row_exchange.h"
#include "device_memory.h"
#include "device_updates.h"
#include "genrec_rt/device_exchange.h"
#include "genrec_rt/portions.h"
#include "parameter_shards.h"

#include <memory>
#include <span>
#include <vector>

namespace genrec::rt {

struct ExchangedTables;
class PortionTurns;
class StepSlot;

class DeviceRanks {
public:
  DeviceRanks(Device &device, Communicator &comm, int32_t portions, const ExchangedTables &tables,
              const ParameterShards &shards, RowTravel travel, PortionTurns &turns);

  void begin(std::span<StepSlot *const> slots);
  /// All ranks at the same time, between two steps: what the tables say of replicas has changed.
  void adoptReplicas();
  /// Notes a lookup of the dispatch stage; one of the compute stage is done at once, and
  /// collective. `beyond` is for ids beyond their table, or null.
  void request(const StepSlot &slot, int32_t table, const DeviceIds &ids, float **rows,
               float *zeros, genrec_row_note *beyond);
  /// Sends the keys of the rows that all dispatch stages asked for, and adds up what they gave to
  /// sums. Beside the step before, or behind it. Collective on `on`.
  void ask(Communicator &on);
  /// Finds the rows, in the order of steps, and brings them. Collective on `on`.
  void bring(Communicator &on);

  void beginPortion(const StepSlot &slot);
  void endPortion(const StepSlot &slot);
  /// parameters[i]: as StepSums has them.
  void contribute(int32_t number, std::span<const float *const> partial,
                  std::span<const int64_t> floats, std::span<const int32_t> parameters);
  /// From now on, sums that only the update reads travel by `of`, in a queue of their own, while
  /// the compute stage goes on; null: behind it.
  void setAhead(Communicator *of) { ahead = of; }
  void collect(int32_t number, std::span<float *const> totals);
  bool hasSum(int32_t number) const { return sums->has(number); }
  void contributeRows(const StepSlot &slot, int32_t table, const genrec_domain *touched,
                      float *const *of, const float *rowSums);
  /// The same of sums that the device adds up from `segments` (genrec_rt_unique_rows).
  void contributeSegments(const StepSlot &slot, int32_t table, const genrec_domain *touched,
                          float *const *of, const void *segments, int64_t dim);
  /// Once all portions have computed. Collective.
  void exchangeSums(bool updates);

  //===-- the update stage -------------------------------------------------===//

  /// What its work follows from, once sums are exchanged, beside the model and the slot.
  void describeUpdate(GraphKey &key) const;
  /// Queues what comes before its calls.
  void beginUpdate() { updates.join(); }
  /// Rows of a table, at most: the same in steps that update about as many.
  int64_t countCollected(int32_t table) const;
  const genrec_collected_rows &collected(int32_t table) const;
  void describeCollected(int32_t table, genrec_domain *owned);
  /// Whether exact sums take a round: it is not captured.
  bool exchangesExactly(std::span<const int32_t> ofParameters) const;
  void sumExactly(const StepSlot &slot, std::span<const genrec_domain *const> owned,
                  std::span<const int32_t> ofParameters, std::span<const float *const> values,
                  std::span<float *const> totals);

  /// After the update: rows of parameters that other ranks have updated. Collective where ranks
  /// share that.
  void shareParameters();

  /// What this rank had of a store's tables in the step that has ended: sums of all that it asked
  /// for, as devices send them.
  RowExchange::Use getUse(int32_t store) const;
  /// Of lookups, in that step.
  int64_t countFetches() const { return static_cast<int64_t>(fetchCount); }
  /// The device has ended the step.
  void end();
  /// Of steps that have ended.
  ExchangeCounts getTraffic() const;

private:
  struct Lookup {
    int32_t store;
    DeviceIds ids;
    float **rows;
    float *zeros;
    genrec_row_note *beyond;
  };
  /// What the dispatch stages look up, or one lookup of the compute stage.
  struct Fetch {
    std::unique_ptr<DeviceRowExchange> rows;
    std::vector<Lookup> lookups;            ///< by store
    std::vector<DeviceRowRequest> requests; ///< of these, in the same order
  };

  Fetch &beginFetch();
  void fetchLate();
  void ask(Fetch &fetch, Communicator &on);
  void bring(Fetch &fetch, Communicator &on);
  std::span<Fetch> begun() { return {fetches.data(), fetchCount}; }
  void joinAhead();
  const float *ownedRows(int32_t domain) const;
  /// Unless ranks share their updates, parameters are on every rank.
  bool travels(int32_t ofParameter) const { return !ofParameter || shards.areShared(); }

  Device &device;
  Communicator &comm;
  const ExchangedTables &tables;
  const ParameterShards &shards;
  const int32_t portions;
  const int64_t nodes; ///< of the tree of portions, whose sums this rank sends
  const RowTravel travel;
  PortionTurns &turns;
  std::vector<Fetch> fetches; ///< those that a step had so far, at most
  size_t fetchCount = 0;      ///< of this step
  bool isGathering = false;   ///< the last one: not all portions have come to it
  std::unique_ptr<DevicePortionSums> sums;
  Communicator *ahead = nullptr;
  bool areSumsAhead = false; ///< some of the step, which nothing has followed yet
  std::span<StepSlot *const> slots;
  bool isDispatched = false;
  DeviceMemory segmentSums;
  DeviceMemory sharedRows; ///< of parameters: rank by rank
  int64_t sharedBytes = 0; ///< of these, received
  DeviceUpdates updates;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_RANKS_H
