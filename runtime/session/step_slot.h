//===- step_slot.h - One batch in flight -------------------------*- C++ -*-===//

#ifndef GENREC_RT_SESSION_STEP_SLOT_H
#define GENREC_RT_SESSION_STEP_SLOT_H

#include "arena.h"
#include "descriptor.h"
#include "found_keys.h"
#include "genrec_rt/graph_key.h"
#include "profile.h"
#include "runtime_state.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace genrec::rt {

/// The first failure that a stage recorded; thrown once the stage has returned.
class Failure {
public:
  void record(const std::string &message, const std::string &help = {});
  void clear();
  bool any();
  /// Throws the recorded failure as an Error, if any.
  void raise();

private:
  std::mutex mutex;
  bool failed = false;
  std::string message, help;
};

class DeviceStep;
class RankStep;
struct HostBatch;

/// The context of one batch in flight: what generated code sees (genrec_step)
/// and the memory behind it. Prepared and run through its copy stage by one
/// thread, through the others by another, or two: one at a time.
class StepSlot : public genrec_step {
public:
  explicit StepSlot(genrec_runtime &runtime);
  ~StepSlot();

  /// Points descriptors, columns and buffers at `batch`, which must stay until
  /// the step is done. Takes memory only when a capacity is the largest so far.
  void prepare(const genrec_program_desc &program, Batch &batch, uint64_t stepNumber);
  /// Runs a stage on `pool` (null: on this thread) and throws what it recorded.
  void runCopy(genrec_rt_pool *pool);
  /// The others in this order: on several portions, each stage of all before the next, but for
  /// compute, which one portion after another runs. The last portion runs update.
  void runDispatch() { runDispatch(shared.pool.get()); }
  void runDispatch(genrec_rt_pool *pool);
  void runCompute();
  void runUpdate();
  /// Of a step whose lookups are counted: ends it behind dispatch. On a device its lookups are
  /// known now.
  void endLookups();
  /// Of a model for a device, once the stages of all portions are queued: queues what they report.
  static void queueReports(std::span<StepSlot *const> portions);
  /// Waits for that, and reports. What an update has found stays recorded.
  static void finishOnDevice(std::span<StepSlot *const> portions);
  /// Of a model for a device, while the step before runs: brings the prepared batch there if there
  /// is memory for it. `runDispatch` does it else.
  void copyAhead();
  /// Of a model for a device: the stages behind dispatch.
  void runLateStages();
  /// The same of several portions: that which `runUpdate` runs.
  void runUpdateStage();
  /// Adds what addresses of the program's buffers follow from, beside capacities.
  void describePlaces(GraphKey &key, bool ofUpdate) const;
  /// A scalar that genrec_rt_store_step_value writes.
  float stepScalar(int32_t kind, double argument) const;
  bool hasUpdate() const { return plan->program->update != nullptr; }
  /// The number of a domain of the stages; throws where the step has no such domain.
  int32_t numberOf(const genrec_domain *domain) const;
  /// Whether the portions of this rank meet in their compute stages (portion_turns.h).
  bool meetsPortions() const;

  static StepSlot &of(genrec_step *step) { return *static_cast<StepSlot *>(step); }

  /// "row 3 of 'history' (train.parquet, row group 0, row 17)".
  std::string describeRow(const genrec_domain *domain, int64_t row) const;
  /// The same where the row of the root domain above it is known.
  std::string describeRow(const genrec_domain *domain, int64_t row, int64_t root) const;
  /// "step 12, whose batch begins at train.parquet, row group 0, row 17".
  std::string describeBatch() const;
  /// "op 'gate' (model.py:12)".
  std::string describeOp(int32_t op) const;
  /// " (model.py:12)", or nothing where that is not known.
  std::string describePlace(int32_t op) const;
  /// "op 'gate' (model.py:12) made a NaN in row 3, element 0".
  std::string describeNonFinite(int32_t op, float value, int64_t row, int64_t element) const;
  /// "column 'price' is nan in row 3 of 'event' (train.parquet, …)": the first value that the
  /// program read and that is a NaN or an infinity; empty without any.
  std::string describeNonFiniteInput() const;
  /// The row of the root domain above a row.
  static int64_t rootRow(const genrec_domain *domain, int64_t row);

  genrec_runtime &state() { return shared; }
  const genrec_runtime &state() const { return shared; }
  const Batch &currentBatch() const { return *batch; }
  /// The domains as the host knows them.
  const genrec_domain *hostDomains() const { return domainTable.data(); }
  std::vector<LossValue> losses;
  Failure failure;
  SpanRecorder spans;  ///< with --profile
  int32_t portion = 0; ///< which portion of the global batch
  /// What the portions of this step have in common; null with one portion on one rank.
  RankStep *rankStep = nullptr;

  /// Of a model for a device; null on the host. Then the copy stage runs with dispatch, and update
  /// with compute where there is one portion.
  std::unique_ptr<DeviceStep> onDevice;

  /// Called while the step runs, when its loss turns out not to be finite: runs its stages once
  /// more, in other memory and with checks, and notes what they find first.
  void findNonFinite();
  /// The same on a device, where portions with such losses have ended.
  static void findOnDevice(std::span<StepSlot *const> portions);
  bool isFindingNonFinite = false;
  bool hasNonFiniteLoss = false; ///< of a training step, and it is asked for why
  /// Of several portions, meanwhile: the rows that the step under way looked up at this place.
  /// False where a lookup of the compute stage has none yet: rows of zeros do.
  bool repeatRows(float **addresses, int64_t count);
  /// Whether what comes from here on depends on values that the step under way does not have yet.
  bool isPastKnown = false;
  std::string nonFiniteOrigin; ///< see StepReport

  /// Rows that only this step sees: unseen ids outside training.
  TableStore &temporaryTable(int32_t table);
  GrowBuffer<uint8_t> missing;                     ///< scratch of lookups
  GrowBuffer<float> rowSums;                       ///< scratch of genrec_rt_contribute_segments
  std::vector<GrowBuffer<uint64_t>> rowIdentities; ///< by table: of rows that are updated
  FoundKeys foundKeys;                             ///< of tables whose updates ask for identities
  GrowBuffer<char> ownScratch, ownBlocks;          ///< for stages beside the pool

  /// The number of a domain, as the host or the stages see it; -1 where it is none.
  ptrdiff_t indexOf(const genrec_domain *domain) const;
  const Arena &arenaMemory() const { return arena; }
  const Arena &meetingMemory() const { return meetingArena; }
  int64_t descriptorBytes() const;

private:
  /// Some buffers of a program: those of this slot, or those that all slots share.
  struct Placement {
    std::vector<char> mine;                  ///< per buffer of the program
    std::vector<genrec_buffer_desc> buffers; ///< the others have no size
    ArenaLayout layout;
    char *placedAt = nullptr;
  };
  struct Plan { ///< of one program
    const genrec_program_desc *program = nullptr;
    std::vector<int64_t> capacities, maxLengths;
    std::vector<void *> addresses;
    Placement own, shared;
    Placement update; ///< on several portions: rows that any of them touched are counted late
  };

  Plan &planOf(const genrec_program_desc &program);
  void requireGiven() const;
  void clearTemporaries();
  HostBatch hostBatch();
  void dispatchOnDevice(genrec_rt_pool *pool);
  void describeData(int32_t domain);
  bool growCapacities(Plan &plan);
  static int64_t mostRows(const genrec_domain_desc &domain, const Plan &plan);
  int64_t truncatedRows(const genrec_domain_desc &domain) const;
  void describeMade(const Plan &plan);
  void choosePlacements(Plan &plan) const;
  bool growCollected();
  void placeUpdate();
  Arena &computeMemory();
  static void place(Placement &placement, Arena &arena, std::vector<void *> &addresses);
  void pointColumns();
  std::string findNonFiniteParameter() const;
  void setFinding(bool on);
  void findOnDevice();
  void runStage(genrec_stage_fn stage, Phase phase, genrec_rt_pool *pool);

  genrec_runtime &shared;
  Batch *batch = nullptr;
  Plan *plan = nullptr; ///< of the current program
  std::vector<genrec_domain> domainTable;
  std::vector<genrec_column> columnTable;
  std::vector<uint8_t> allValid;   ///< of columns that may have nulls and have none
  std::vector<DescribedRows> rows; ///< of data domains
  std::vector<std::unique_ptr<TableStore>> temporaries;
  std::vector<std::unique_ptr<Plan>> plans;
  Arena arena;
  Arena meetingArena;       ///< of a compute stage in which portions meet
  char *underWay = nullptr; ///< the arena of the step, while a second run looks for NaNs
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_STEP_SLOT_H
