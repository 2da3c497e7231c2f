//===- ranks.h - What the portions of a batch have in common -----*- C++ -*-===//
//
// A global batch is S portions (portions.h); this rank runs some of them, each in a slot of its
// own. Here is what they share with each other and with other ranks: rows that they look up, sums
// over portions, the rows that this rank updates. The calls of generated code that need it come
// through abi_ranks.cpp; with one portion on one rank there is no Ranks.
//
// A training step makes three rounds: keys and weights of losses; values of rows; gradients of rows
// and parameters, and what the step reports. A clip norm takes one more, and so do parameters that
// more than two ranks add up in slices, or whose updates ranks share.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_RANKS_H
#define GENREC_RT_SESSION_RANKS_H

#include "../comm/bucketed_round.h"
#include "../ranks/exact_sum.h"
#include "../ranks/row_exchange.h"
#include "device_ranks.h"
#include "genrec_rt/abi.h"
#include "portion_turns.h"
#include "step_sums.h"

#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace genrec::rt {

/// Which of the tables that share a store a table is.
size_t memberOf(const genrec_table_desc &table);

/// The stores of a model's tables: those of one group share one.
struct ExchangedTables {
  /// `replicated`: by table.
  ExchangedTables(const genrec_model_desc &model,
                  std::span<const std::shared_ptr<TableStore>> tables,
                  std::span<const char> replicated);
  void setReplicated(const genrec_model_desc &model, std::span<const char> replicated);

  std::vector<int32_t> storeOf; ///< by table
  std::vector<int32_t> tableOf; ///< by store: its first table
  std::vector<ExchangedStore> stores;
};

/// One step of all portions, from its dispatch stage to its update. Calls that are collective on
/// `on` may be made by a thread that runs beside the step before (dispatch_ahead.h); the others
/// belong to the thread that runs steps.
class RankStep {
public:
  RankStep(Communicator &comm, int32_t portions, const genrec_model_desc &model,
           const ExchangedTables &tables, ParameterShards &shards, RowTravel travel,
           PortionTurns &turns, Device *device);

  /// The part of the step whose values are on a device; null on the host. Then what is said of
  /// lookups and sums below is for that one, but for `fetch`, `exchangeSums` and `report`.
  DeviceRanks *onDevice() const { return deviceStep.get(); }

  /// Begins a step: `slots` are those of this rank's portions, in order.
  void begin(std::span<StepSlot *const> slots);
  /// All ranks at the same time: forgets how large messages were.
  void reset();
  /// The same, between two steps: what `tables` says of replicas has changed.
  void adoptReplicas();

  //===-- table rows ------------------------------------------------------===//

  /// Notes a lookup of the dispatch stage; portions meet at one of the compute stage.
  void request(StepSlot &slot, int32_t table, const int64_t *keys, const uint8_t *valid,
               int64_t count, float **rows);
  /// Sends the keys that the dispatch stages of all portions asked for, and adds up what they gave
  /// to sums. Collective.
  void ask(Communicator &on);
  /// Brings rows that `running`, the step that goes on meanwhile, does not update; null: none goes
  /// on. Collective.
  void bringEarly(Communicator &on, const RankStep *running);
  /// Finds rows or inserts them, in the order of steps, and brings those that are not there.
  /// Collective.
  void bring(Communicator &on);
  /// Both, for what the dispatch stages asked for or a later lookup does. Collective.
  void fetch();

  //===-- sums over portions ----------------------------------------------===//

  void contribute(int32_t number, std::span<const float *const> partial,
                  std::span<const int64_t> floats, std::span<const int32_t> parameters);
  /// From now on, sums of whole buckets travel by `of` beside the compute stage; null: they do not.
  void setAhead(SumsAhead *of) { ahead = of; }
  /// Sums that are needed in the compute stage that gives them: portions meet. Collective.
  void collect(int32_t number, std::span<float *const> totals);
  /// Whether the sums of `number` are known.
  bool hasSum(int32_t number) const {
    return deviceStep ? deviceStep->hasSum(number) : sums.has(number);
  }
  void contributeRows(StepSlot &slot, int32_t table, std::span<float *const> rows,
                      const float *rowSums);

  /// Once all portions have computed: adds up sums, what the step reports, and, where it updates,
  /// the gradients of all tables' rows at their owners. Collective. Of `own`,
  /// whether sums should travel ahead in the next step is what rank 0 says.
  void exchangeSums(bool updates, const OwnReport &own);
  /// Of a model for a device, when the step has ended there: adds up what it reports. Collective.
  void report(const OwnReport &own);
  const RanksReport &getReport() const { return sums.getReport(); }
  const genrec_collected_rows &collected(int32_t table) const {
    return deviceStep ? deviceStep->collected(table) : collectedRows[tables.storeOf[table]];
  }
  int64_t countCollected(int32_t table) const {
    if (deviceStep)
      return deviceStep->countCollected(table);
    return static_cast<int64_t>(exchange.getUpdate(tables.storeOf[table]).rows.size());
  }
  /// See genrec_rt_exact_sums.
  struct OwnedValues {
    int32_t count;
    const genrec_domain *const *owned;
    const int32_t *ofParameters;
    const float *const *values;
    const StepSlot *slot; ///< whose domains these are
  };
  /// sums[i]: of the values of all ranks. Collective where ranks have rows that others have not:
  /// all sums in one round.
  void sumExactly(const OwnedValues &values, float *const *sums);
  /// After the update: rows of parameters that other ranks have updated. Collective where ranks
  /// share that.
  void shareParameters();

  /// Of the last step that updated.
  const RowExchange &rows() const { return exchange; }
  ExchangeCounts getTraffic() const {
    ExchangeCounts all = exchange.getTraffic();
    if (deviceStep)
      all.add(deviceStep->getTraffic());
    all.denseBytes += sums.getReceivedBytes() + parameterBytes;
    return all;
  }

private:
  std::span<const float> withoutReplicas(const OwnedValues &values, int32_t number);
  /// Finds rows of a store, or inserts them, as a lookup of the step does.
  RowExchange::FindRows makeFinder();
  void describeCollected();

  Communicator &comm;
  const ExchangedTables &tables;
  ParameterShards &shards;
  PortionTurns &turns;
  RowExchange exchange;
  StepSums sums;
  BucketedRound reportRound; ///< of steps without an update, and on a device
  std::unique_ptr<DeviceRanks> deviceStep;
  std::span<StepSlot *const> slots;
  std::vector<RowRequest> requests;
  bool isDispatched = false;
  SumsAhead *ahead = nullptr;
  std::vector<genrec_collected_rows> collectedRows; ///< by store
  std::vector<int64_t> numbers;                     ///< 0, 1, 2, …
  std::vector<float> ownedValues;                   ///< scratch of sumExactly
  std::vector<ExactSum> exact;                      ///< scratch of sumExactly
  int64_t parameterBytes = 0;                       ///< received by shareParameters
};

class Ranks {
public:
  Ranks(Communicator &comm, int32_t portions, const genrec_model_desc &model,
        std::span<const std::shared_ptr<TableStore>> tables, std::span<const char> replicated,
        ParameterShards &shards, RowTravel travel, EarlyGradients early, Device *device,
        Overlap overlap);

  Communicator &comm() { return communicator; }
  int32_t portions() const { return count; }
  /// The portions of this rank.
  PortionRange own() const { return range; }
  /// Of their compute stages.
  PortionTurns &portionTurns() { return turns; }

  /// What is done of the next step beside a step. Of a device, no rows travel early.
  Overlap overlap() const { return overlapping; }

  /// The memory of the next step: where steps overlap, one is dispatched while the one before runs.
  RankStep &nextStep() {
    return steps[overlapping == Overlap::none ? 0 : number++ % std::size(steps)];
  }
  /// All ranks at the same time: forgets how large messages were.
  void reset();
  ExchangeCounts getTraffic() const;
  const ExchangedTables &exchangedTables() const { return tables; }
  /// All ranks at the same time, between two steps: of which tables, by index, every rank has all
  /// rows from now on.
  void setReplicated(const genrec_model_desc &model, std::span<const char> replicated);
  /// Before the compute stage of a step: whether sums travel ahead in it, on a device where it was
  /// asked for, whatever their size. Collective at the first one that updates.
  void beginCompute(RankStep &step, bool updates);
  /// See RankStep; also finds out whether sums should travel ahead in the next step.
  void exchangeSums(RankStep &step, bool updates, OwnReport own);
  /// Of a device: what the next step's keys travel by, for all runs. Collective at the first call.
  Communicator &dispatchComm();
  /// From here on there is another one. All ranks at the same time.
  void dropDispatchComm() { ofDispatch.reset(); }
  /// Ends what is under way on all ranks, by all communicators: the run ends by an exception that
  /// says `why`.
  void abort(const std::string &why) noexcept;
  int64_t roundsAhead() const {
    return ahead ? ahead->rounds() : aheadOnDevice ? aheadOnDevice->rounds() : 0;
  }

private:
  bool chooseNext();

  Communicator &communicator;
  const int32_t count;
  const PortionRange range;
  ExchangedTables tables;
  const Overlap overlapping;
  PortionTurns turns;
  RankStep steps[2];
  size_t number = 0;
  bool mayBeAhead = false;                     ///< some sum is large enough, and may travel ahead
  std::unique_ptr<SumsAhead> ahead;            ///< once a step updates
  std::unique_ptr<Communicator> aheadOnDevice; ///< of a device, in place of it
  std::unique_ptr<Communicator> ofDispatch;    ///< see dispatchComm
  bool isAhead = false;
  std::optional<AheadTrial> trial; ///< of rank 0
  int64_t lastEnd = 0;             ///< of a step, by profileClock
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_RANKS_H
