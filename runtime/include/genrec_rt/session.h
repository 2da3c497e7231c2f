//===- session.h - Drives a compiled model -----------------------*- C++ -*-===//
//
// The interface that the trainer, tests and tools use to run a compiled model: a
// session owns the tables, the parameters, the thread pool and the memory of the
// batches in flight (footprint.h).
//
//   Session session(*genrec_model(), {.seed = 1});
//   Batch batch = BatchBuilder(session.model()).rows("user", 2)….take();
//   session.train(batch);
//   session.parameter("tower.weight").value[0];
//
// A session is used by one thread at a time. Everything throws Error on the
// user's mistakes; after an Error from a step the session's state is undefined.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_H
#define GENREC_RT_SESSION_H

#include "genrec_rt/batch.h"
#include "genrec_rt/comm.h"
#include "genrec_rt/error.h"
#include "genrec_rt/exchange_counts.h"
#include "genrec_rt/metrics.h"
#include "genrec_rt/portions.h"
#include "genrec_rt/row_travel.h"
#include "genrec_rt/step_clock.h"
#include "genrec_rt/table_view.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace genrec::rt {

struct NonFiniteCause;
struct PlacementReport;
class Profile;
class StepSlot;

/// genrec_mode.
enum class Mode : int32_t {
  train = GENREC_MODE_TRAIN,
  evaluate = GENREC_MODE_EVALUATE,
  predict = GENREC_MODE_PREDICT,
  items = GENREC_MODE_ITEMS
};

/// Learning rate over steps, as a factor of each base rate. With t the 1-based
/// step: t / warmup up to t = warmup; then, with p = (t - warmup) / (steps - warmup)
/// capped at 1: "constant" 1; "linear" 1 + (final - 1) p; "cosine"
/// final + (1 - final) (1 + cos(pi p)) / 2.
struct Schedule {
  std::string kind = "constant";
  int64_t warmup = 0;
  int64_t steps = 0;
  double final = 0;

  double factor(uint64_t step) const;
  /// Throws Error at an unknown kind or negative counts. A decaying kind with
  /// steps <= warmup stays at 1 after the warm-up.
  void check() const;
};

/// What of a step several ranks do beside the one before it. Results are the same.
enum class Overlap {
  none, ///< nothing
  keys, ///< the dispatch stages: keys travel to the owners of their rows
  rows  ///< rows, too, that the step before does not update
};

/// Whether sums of parameters' gradients travel while the backward pass goes on. Results are the
/// same.
enum class EarlyGradients {
  no,
  yes,
  tried ///< as it turns out to be faster
};

struct SessionOptions {
  /// Of the ranks that train together, which outlives the session; null: this one alone.
  Communicator *comm = nullptr;
  /// Of a global batch, at least as many as ranks; 0: as many. The same number gives the same bits
  /// on any number of ranks.
  int32_t portions = 0;
  Overlap overlap = Overlap::rows;
  EarlyGradients earlyGradients = EarlyGradients::no;
  RowTravel rowTravel;
  /// Tables of which every rank has all rows; the others' rows are divided among ranks. Results are
  /// the same.
  std::vector<std::string> replicate;
  /// While several ranks train, they choose such tables themselves (placement.h); `replicate` is
  /// empty then. Not where rows travel rounded or without being deduplicated: results would depend
  /// on the choice.
  bool choosesReplicas = false;
  int64_t replicaBytes = 0; ///< that those may take on each rank; 0: kReplicaShare of its memory
  /// Ranks share the updates of dense parameters: each keeps optimizer states of some rows only
  /// (ZeRO, stage 1). Results have the same bits. One round more per step.
  bool shardOptimizer = false;
  uint64_t seed = 0;
  int32_t threads = 0; ///< 0: the machine's cores / ranks on it
  /// The largest base learning rate of the model becomes this one; the others
  /// keep their ratio to it.
  std::optional<double> learningRate;
  std::optional<double> clipNorm; ///< override the model's; 0 is off
  std::optional<double> clipValue;
  std::optional<Schedule> schedule; ///< overrides the model's
  bool checkFinite = false;
  /// A training step whose loss is a NaN or an infinity runs once more, with every op's result
  /// looked at, to say where that comes from (StepReport::nonFiniteOrigin). Costs nothing else. On
  /// several portions, those whose own losses are not finite run once more, and all ranks agree on
  /// the first, and on the first column with such a value. On a device a rank whose own loss is not
  /// finite keeps its parameters and, with one portion, its rows; so does a step queued behind it.
  bool explainNonFinite = false;
  bool profile = false; ///< note when each op of each step runs
  /// On a device, steps that repeat what they queue are captured once and launched as a whole from
  /// then on. Results are the same.
  bool captureSteps = true;
  /// Tables of a model for a device whose rows are in the host's memory, by name, and how many of
  /// them the device's memory has room for (cuda/cached_store.h). Results are the same. Tables of
  /// one store, which merge-tables makes, go there together.
  std::map<std::string, int64_t> hostTables;
  /// Asked at the end of each step: the signal that this process has caught, 0 for none. Ranks see
  /// the largest of all (StepReport::signal), so that they end after the same step.
  std::function<int32_t()> caughtSignal;
  /// The time of a training step, in seconds since 1970, of tables with a ttl in seconds: asked on
  /// rank 0 at the step's end. Null: the latest of Batch::seconds of all its portions. It never
  /// goes back.
  std::function<int64_t(uint64_t step)> clock;
};

/// A loss over some rows: its weighted sum and the weight. Without weight there is no mean.
struct LossValue {
  double sum = 0;
  double weight = 0;

  std::optional<double> mean() const {
    return weight == 0 ? std::nullopt : std::optional(sum / weight);
  }
  void add(const LossValue &other) {
    sum += other.sum;
    weight += other.weight;
  }
};

/// What one step reported: on several portions, of all together. Valid until the next step.
struct StepReport {
  uint64_t step = 0;                     ///< the optimizer step; the current one otherwise
  const Batch *batch = nullptr;          ///< of this rank's last portion
  std::span<const Batch *const> batches; ///< of all its portions, in order
  std::span<const LossValue> losses;     ///< by loss index
  std::optional<double> loss;            ///< see totalLoss
  int64_t rows = 0;                      ///< root rows of all portions
  double learningRate = 0;               ///< the largest of this step; 0 outside of training
  int32_t signal = 0;                    ///< see SessionOptions::caughtSignal
  bool hasMovedRows = false;             ///< after this step: see Session::placement
  const StepSlot *slot = nullptr;
  const NonFiniteCause *cause = nullptr; ///< on several portions, which have agreed on it

  /// "op 'linear' (model.py:12) made a NaN in row 0, element 0": the first op of a training step
  /// whose loss is not finite that made one. Empty unless asked for
  /// (SessionOptions::explainNonFinite).
  const std::string &nonFiniteOrigin() const;
  /// "column 'price' is nan in row 3 of 'event' (train.parquet, …)": what a loss that is not
  /// finite may come from. Empty where all columns of the batch are finite.
  std::string describeNonFiniteInput() const;
};

/// The sum of scale * mean over the losses that have rows; none where no loss has any.
std::optional<double> totalLoss(const genrec_model_desc &model, std::span<const LossValue> losses);

/// genrec_nulls.
enum class Nulls : int32_t {
  none = GENREC_NULLS_NONE,
  rows = GENREC_NULLS_ROWS,
  elements = GENREC_NULLS_ELEMENTS
};

/// One output of the last step, copied out of the step's memory.
struct OutputRows {
  int64_t count = 0;
  int64_t width = 0; ///< values per row; 0: a scalar per row
  int32_t type = GENREC_F32;
  Nulls nulls = Nulls::none;
  bool given = false; ///< whether the last step reported it
  GrowBuffer<char> values;
  GrowBuffer<uint8_t> valid;    ///< as `nulls` says: a byte per row or per value
  GrowBuffer<int64_t> rootRows; ///< per row, the root row of the batch

  template <class T> std::span<const T> as() const {
    return {reinterpret_cast<const T *>(values.data()),
            static_cast<size_t>(count * (width ? width : 1))};
  }
  bool isNull(int64_t row) const { return nulls == Nulls::rows && !valid.data()[row]; }
  bool isNull(int64_t row, int64_t element) const {
    return nulls == Nulls::elements && !valid.data()[row * (width ? width : 1) + element];
  }
};

/// A dense parameter. Rows are those of [n, w]; [w] and scalars have one.
struct ParameterView {
  std::span<float> value;
  int64_t width = 1;      ///< floats of a row
  int32_t stateCount = 0; ///< of the optimizer
  int64_t firstRow = 0;   ///< of those that this rank updates: all, unless ranks share the updates
  int64_t ownRows = 0;    ///< so many
  std::span<float>
      states; ///< of these rows, one after another: `stateCount` arrays of `width` floats
  /// Rank r has the states of rows rowBounds[r] to rowBounds[r + 1] - 1. Empty: this one of all.
  std::span<const int64_t> rowBounds;

  /// State `number` of an own row.
  std::span<float> state(int32_t number, int64_t row) const {
    return states.subspan(((row - firstRow) * stateCount + number) * width, width);
  }
};

/// Bytes that a session holds, as of now.
struct MemoryUse {
  int64_t arenas = 0;  ///< planned buffers: one arena per batch in flight, one of compute
  int64_t batches = 0; ///< descriptors' arrays: parents, identities
  int64_t scratch = 0;
  int64_t parameters = 0;
  int64_t optimizer = 0; ///< states of dense parameters
  int64_t tableKeys = 0;
  int64_t tableValues = 0; ///< rows in use
};

/// Where the thread that queues a device's steps spends a step, in seconds: means of steps that
/// were launched as graphs. A device that it waits for is busy; else it is what takes the time.
struct HostSeconds {
  int64_t steps = 0;   ///< that these are the means of
  double data = 0;     ///< waiting for the thread that reads
  double batch = 0;    ///< packing the batch, and queueing its copy
  double dispatch = 0; ///< queueing lookups, and waiting where a table may grow
  double stages = 0;   ///< queueing the other stages
  double wait = 0;     ///< for the device
  double end = 0;      ///< handing over what the step reports, and what the caller does then
};

/// What a device was asked for so far, by this process.
struct DeviceUse {
  int32_t number = 0;                ///< of the device among those that this process sees
  std::string name, uuid;            ///< likewise: "NVIDIA H200", "GPU-…"
  int64_t waits = 0;                 ///< of the host for the device
  int64_t allocations = 0;           ///< of memory there, and of pinned memory
  int64_t captures = 0;              ///< steps that were captured; of portions, each by itself
  int64_t launches = 0;              ///< of captured steps, likewise
  int64_t updateCaptures = 0;        ///< update stages of several portions that were captured
  int64_t updateLaunches = 0;        ///< of captured ones
  int64_t dispatchedAhead = 0;       ///< steps whose lookups ran beside the step before
  std::vector<std::string> refusals; ///< why steps were not captured
  HostSeconds host;
};

/// Which ids data look up, and how often.
struct LookupCounts {
  int64_t rows = 0; ///< root rows of the data
  struct Table {
    int64_t entries = 0;                       ///< ids looked up, as often as they occur
    std::unordered_map<int64_t, int64_t> rows; ///< by id: the root rows that look it up
  };
  std::vector<Table> tables; ///< by index
};

class Session {
public:
  /// Checks the description (Error where it is of another ABI version or broken)
  /// and gives parameters their initial values.
  Session(const genrec_model_desc &model, const SessionOptions &options);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  const genrec_model_desc &model() const;
  int32_t threads() const;
  bool hasProgram(Mode mode) const;
  /// The program of a mode; Error where the model has none.
  const genrec_program_desc &program(Mode mode) const;

  /// Gives the rows of a catalogue (and of the domains below it), once, before
  /// the first step. `rows` holds those domains and features only.
  void setCatalogue(int32_t domain, Batch rows);

  //===-- single steps, one batch at a time ------------------------------===//

  StepReport train(Batch &batch) { return step(Mode::train, batch); }
  StepReport evaluate(Batch &batch) { return step(Mode::evaluate, batch); }
  StepReport predict(Batch &batch) { return step(Mode::predict, batch); }
  StepReport step(Mode mode, Batch &batch);
  /// The same with a batch for each of this rank's portions.
  StepReport step(Mode mode, std::span<Batch> portions);
  /// Runs the program of a mode on a batch without rows.
  StepReport stepWithoutRows(Mode mode);

  //===-- a stream of batches, two in flight -------------------------------===//

  /// On several portions, `source` gives a batch for each of this rank's, in order; all ranks'
  /// sources end after the same global batch. Runs a program over all batches of `source`: while
  /// one batch computes, the next is read and its copy stage runs on another thread. Same results
  /// as single steps. `onStep` is called after each step on the calling thread and ends the run by
  /// returning false. Returns the number of steps. On several ranks `onStep` may read tables, but
  /// changes none: rows of the next step may be on their way.
  /// On a device the next step may be under way before `onStep` is called, unless
  /// `looksAfter(step)` says that it will look at values then, or end the run; null: it always may.
  int64_t run(Mode mode, BatchSource &source, const std::function<bool(const StepReport &)> &onStep,
              const std::function<bool(uint64_t)> &looksAfter = nullptr);

  /// Runs the program of a mode up to its first lookups over all batches of `source`, and counts
  /// the ids that rows of the data look up; those that all items of a catalogue or that draws look
  /// up do not count. Reads and changes no table. Error where tables are merged, or on several
  /// portions.
  LookupCounts countLookups(Mode mode, BatchSource &source);

  //===-- state --------------------------------------------------------------===//

  /// Optimizer steps done.
  uint64_t stepsDone() const;
  void setStepsDone(uint64_t steps);
  /// Whether a table has a ttl in seconds, and the clock of such tables: to be saved, and restored
  /// before training goes on.
  bool needsClock() const;
  StepClock::State clock() const;
  void setClock(const StepClock::State &saved);
  /// Decay schedules end at this step unless the model or a flag says otherwise.
  void setScheduleSteps(int64_t steps);
  /// The largest learning rate of the next training step. StepReport has that of a step.
  double learningRate() const;

  uint64_t seed() const;
  /// Of the ranks that share the tables; null where there is one.
  Communicator *comm() const;
  /// Of the ranks that divide the rows of a table: each has those that it owns (owner.h); null
  /// where this one has all of them.
  Communicator *commOfRows(int32_t table) const;
  /// Where rows of tables are among several ranks, and why; no tables where there is one rank.
  PlacementReport placement() const;
  /// Of a global batch, on all ranks.
  int32_t portions() const;
  ParameterView parameter(int32_t index);
  ParameterView parameter(const std::string &name);
  /// All of them, to be read only, until the next step.
  std::vector<ParameterView> readParameters();
  TableView table(int32_t index);
  TableView table(const std::string &name);
  /// Forgets rows of a table, with their states, between two steps; ids that have none do not
  /// count. Their next lookups in training start anew.
  void eraseRows(const std::string &table, std::span<const int64_t> ids);

  /// When the ops of the steps so far ran; null unless asked for.
  Profile *profile();

  /// What this rank has exchanged with others so far.
  ExchangeCounts exchanges() const;

  Metrics &metrics();
  /// What the last step gave out, in one of this rank's portions.
  OutputRows &output(int32_t index, int32_t portion = 0);
  MemoryUse memoryUse() const;
  /// Of a model for a device; nothing on the host.
  std::optional<DeviceUse> deviceUse() const;
  /// How often an arena was (re)allocated.
  int64_t arenaAllocations() const;

private:
  ParameterView viewOf(int32_t index, const genrec_parameter &parameter) const;

  struct Impl;
  std::unique_ptr<Impl> impl;
};

/// A compiled model in a shared object. The runtime's functions are resolved
/// from the loading program, which must export its symbols
/// (-Wl,--export-dynamic). Error where the file cannot be loaded.
class LoadedModel {
public:
  explicit LoadedModel(const std::string &path);
  ~LoadedModel();
  LoadedModel(const LoadedModel &) = delete;
  LoadedModel &operator=(const LoadedModel &) = delete;

  const genrec_model_desc &model() const { return *description; }

private:
  void *handle = nullptr;
  const genrec_model_desc *description = nullptr;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_H
