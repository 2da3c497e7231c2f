//===- session.cpp - Drives a compiled model ------------------------------===//

#include "genrec_rt/session.h"

#include "dispatch_ahead.h"
#include "lookup_counter.h"
#include "model_check.h"
#include "non_finite.h"
#include "pipeline.h"
#include "ranks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include <dlfcn.h>

namespace genrec::rt {

namespace {

/// Checks before anything is made from the description.
const genrec_model_desc &checked(const genrec_model_desc &model) {
  checkModel(model);
  return model;
}

/// Sets what the host does while a device works, for as long as it lives.
class DuringSteps {
public:
  DuringSteps(std::function<void()> &place, std::function<void()> does) : place(place) {
    place = std::move(does);
  }
  ~DuringSteps() { place = nullptr; }

private:
  std::function<void()> &place;
};

const char *nameOf(Mode mode) { return genrec_mode_name(static_cast<int32_t>(mode)); }

} // namespace

struct Session::Impl {
  Impl(const genrec_model_desc &model, const SessionOptions &options)
      : state(checked(model), options) {
    PortionRange own = state.ranks ? state.ranks->own() : PortionRange{0, 1};
    ownPortions = own.count;
    // Where the dispatch stage runs beside a step, the reading thread is one batch more ahead.
    if (state.ranks && state.ranks->comm().getSize() > 1)
      overlap = options.overlap;
    int32_t inFlight = kBatchesInFlight + (overlap == Overlap::none ? 0 : 1);
    for (int32_t i = 0; i < inFlight * own.count; ++i) {
      slots.push_back(std::make_unique<StepSlot>(state));
      slots.back()->portion = own.first + i % own.count;
      batches.push_back(Batch(model));
    }
    for (int32_t i = 0; i < model.parameter_count; ++i)
      parameterNames.emplace_back(model.parameters[i].name);
  }

  /// Throws where the program cannot run on several ranks, or several portions on a rank.
  void requireRanks(const genrec_program_desc &program) const {
    if (!state.ranks)
      return;
    bool isOneEach = state.ranks->portions() == state.ranks->comm().getSize();
    const char *why = program.single_rank ? program.single_rank
                      : isOneEach         ? nullptr
                                          : program.single_portion;
    if (why)
      throw Error(std::string("program '") + program.name + "' cannot run on several " +
                      (program.single_rank ? "ranks: " : "portions per rank: ") + why,
                  program.single_rank ? "run it on one rank" : "ask for as many portions as ranks");
  }

  uint64_t stepNumber(Mode mode) const { return mode == Mode::train ? steps + 1 : steps; }

  /// The slots of this rank's portions of one global batch.
  size_t portions() const { return ownPortions; }

  /// Runs `body`, which makes a round with other ranks in the step of `last`.
  template <class Body> void exchange(StepSlot &last, const Body &body) {
    int64_t begin = last.profile ? profileClock() : 0;
    body();
    if (last.profile)
      last.spans.add(Phase::exchange, begin, profileClock());
  }

  /// Runs the stages after copy; null: alone.
  void runStages(std::span<StepSlot *const> portions, RankStep *step) {
    if (step)
      step->begin(portions);
    for (StepSlot *slot : portions)
      slot->runDispatch();
    if (step)
      exchange(*portions.back(), [&] { step->fetch(); });
    runAfterDispatch(portions, step);
  }

  void runAfterDispatch(std::span<StepSlot *const> portions, RankStep *step) {
    StepSlot &last = *portions.back();
    if (step)
      state.ranks->beginCompute(*step, last.hasUpdate());
    for (StepSlot *slot : portions)
      slot->runCompute();
    if (step)
      exchange(last, [&] { state.ranks->exchangeSums(*step, last.hasUpdate(), caughtSignal()); });
    last.runUpdate();
    if (step && last.hasUpdate())
      exchange(last, [&] { step->shareParameters(); });
  }

  int32_t caughtSignal() const { return state.caughtSignal ? state.caughtSignal() : 0; }

  /// Runs `body`; what it throws ends the other ranks too.
  template <class Body> void onRanks(const Body &body) {
    try {
      body();
    } catch (const CommError &error) { // they know
      if (state.ranks)
        state.ranks->abortAhead(error.what());
      throw;
    } catch (const std::exception &error) {
      if (state.ranks) {
        state.ranks->comm().abort(error.what());
        state.ranks->abortAhead(error.what());
      }
      throw;
    }
  }

  /// Runs prepared slots, one per portion, and reports.
  StepReport runStep(Mode mode, std::span<StepSlot *const> portions) {
    RankStep *step = state.ranks ? &state.ranks->nextStep() : nullptr;
    beginOutputs();
    onRanks([&] { runStages(portions, step); });
    return finish(mode, portions, step);
  }

  void beginOutputs() {
    for (OutputRows &output : state.outputs)
      output.given = false;
  }

  /// Ends a step whose stages have run, and reports. The step counts now.
  StepReport finish(Mode mode, std::span<StepSlot *const> portions, const RankStep *step) {
    StepSlot &slot = *portions.back();
    if (state.profile)
      for (StepSlot *each : portions)
        state.profile->add(each->mode, each->step, each->spans, each->domains);
    if (step)
      state.ranks->comm().setPurpose({"the end", slot.step});
    if (mode == Mode::train) {
      state.evict(slot.step);
      ++steps;
    }
    StepReport report;
    report.step = slot.step;
    report.batch = &slot.currentBatch();
    report.losses = slot.losses;
    report.rows = slot.currentBatch().rows;
    reportedBatches.clear();
    for (StepSlot *each : portions)
      reportedBatches.push_back(&each->currentBatch());
    report.batches = reportedBatches;
    report.signal = step ? step->getReport().signal : caughtSignal();
    if (step) {
      report.losses = step->getReport().losses;
      report.rows = step->getReport().rows;
    }
    report.loss = totalLoss(state.model, report.losses);
    report.slot = &slot;
    bool isFinite = !report.loss || std::isfinite(*report.loss);
    if (step && mode == Mode::train && state.explainNonFinite && !isFinite)
      report.cause = &(cause = agreeOnCause(state.ranks->comm(), portions));
    if (mode == Mode::train)
      report.learningRate = state.learningRate(state.largestRate, slot.step);
    return report;
  }

  using OnStep = std::function<bool(const StepReport &)>;

  /// Runs the steps of a pipeline one after another.
  int64_t runInTurn(Mode mode, Pipeline &pipeline, const OnStep &onStep) {
    DuringSteps during(state.whileDeviceWorks, [&] {
      for (const Pipeline::Place &place : pipeline.peek())
        place.slot->uploadAhead();
    });
    for (int64_t count = 1;; ++count) {
      int64_t waiting = state.profile ? profileClock() : 0;
      std::span<Pipeline::Place> taken = pipeline.take();
      if (taken.empty())
        return count - 1;
      running.clear();
      for (const Pipeline::Place &place : taken)
        running.push_back(place.slot);
      if (state.profile)
        running.back()->spans.add(Phase::wait, waiting, profileClock());
      StepReport report = runStep(mode, running);
      if (onStep && !onStep(report))
        return count;
      pipeline.release();
    }
  }

  /// The same, each beside the dispatch of the next one (dispatch_ahead.h).
  int64_t runAhead(Mode mode, Pipeline &pipeline, const genrec_program_desc &program,
                   const OnStep &onStep) {
    DispatchAhead ahead(*state.ranks, pipeline, program, overlap);
    try {
      ahead.start(nullptr);
      for (int64_t count = 1;; ++count) {
        DispatchedStep next = ahead.take();
        if (next.slots.empty()) {
          roundsAhead += ahead.rounds();
          return count - 1;
        }
        beginOutputs();
        onRanks([&] {
          StepSlot &last = *next.slots.back();
          next.slots.front()->pool = state.pool.get();
          if (mode == Mode::train)
            exchange(last, [&] { next.step->bring(state.ranks->comm()); });
          ahead.start(next.step);
          runAfterDispatch(next.slots, next.step);
        });
        StepReport report = finish(mode, next.slots, next.step);
        if (onStep && !onStep(report)) {
          ahead.stop();
          roundsAhead += ahead.rounds();
          state.ranks->reset(); // the step ahead may have come to some ranks only
          return count;
        }
        pipeline.release();
      }
    } catch (const std::exception &error) {
      ahead.abort(error.what());
      throw;
    }
  }

  genrec_runtime state;
  int32_t ownPortions = 1; ///< of this rank
  Overlap overlap = Overlap::none;
  int64_t roundsAhead = 0; ///< of all runs so far
  /// One per portion, for each batch in flight.
  std::vector<std::unique_ptr<StepSlot>> slots;
  std::vector<Batch> batches;
  std::vector<StepSlot *> running;            ///< the slots of the step that runs
  std::vector<const Batch *> reportedBatches; ///< of the last step
  NonFiniteCause cause;                       ///< of the last step that had one
  std::vector<std::string> parameterNames;
  uint64_t steps = 0;
};

std::optional<double> totalLoss(const genrec_model_desc &model, std::span<const LossValue> losses) {
  std::optional<double> total;
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::optional<double> mean = losses[i].mean())
      total = total.value_or(0) + model.losses[i].scale * *mean;
  return total;
}

const std::string &StepReport::nonFiniteOrigin() const {
  static const std::string none;
  return cause ? cause->origin : slot ? slot->nonFiniteOrigin : none;
}

std::string StepReport::describeNonFiniteInput() const {
  return cause ? cause->input : slot ? slot->describeNonFiniteInput() : std::string();
}

Session::Session(const genrec_model_desc &model, const SessionOptions &options)
    : impl(std::make_unique<Impl>(model, options)) {
  impl->state.schedule.check();
}

Session::~Session() = default;

const genrec_model_desc &Session::model() const { return impl->state.model; }
int32_t Session::threads() const { return genrec_rt_pool_threads(impl->state.pool.get()); }

bool Session::hasProgram(Mode mode) const {
  for (int32_t i = 0; i < model().program_count; ++i)
    if (model().programs[i].mode == static_cast<int32_t>(mode))
      return true;
  return false;
}

const genrec_program_desc &Session::program(Mode mode) const {
  for (int32_t i = 0; i < model().program_count; ++i)
    if (model().programs[i].mode == static_cast<int32_t>(mode))
      return model().programs[i];
  std::string needs = mode == Mode::train      ? "a loss (gr.loss)"
                      : mode == Mode::evaluate ? "a loss or a metric (gr.metric)"
                                               : "an output (gr.output)";
  throw Error(std::string("model '") + model().name + "' has no " + nameOf(mode) + " program",
              std::string("to ") + nameOf(mode) + ", give the model " + needs +
                  " and compile it again");
}

void Session::setCatalogue(int32_t domain, Batch rows) {
  genrec_runtime &state = impl->state;
  const genrec_model_desc &desc = model();
  if (domain < 0 || domain >= desc.domain_count ||
      desc.domains[domain].kind != GENREC_DOMAIN_CATALOGUE)
    throw Error("the model has no catalogue domain " + std::to_string(domain));
  if (state.catalogues[domain].given)
    throw Error(std::string("catalogue '") + desc.domains[domain].name + "' was given before");
  // Negatives are drawn among its rows by words of 32 bits.
  if (rows.domains[domain].count > int64_t(UINT32_MAX))
    throw Error(std::string("catalogue '") + desc.domains[domain].name + "' has " +
                    std::to_string(rows.domains[domain].count) + " rows, more than " +
                    std::to_string(UINT32_MAX),
                "split it, or leave out what is never a target");
  for (int32_t i = 0; i < desc.domain_count; ++i) {
    if (rootDomain(desc, i) != domain || desc.domains[i].kind == GENREC_DOMAIN_DERIVED ||
        desc.domains[i].kind == GENREC_DOMAIN_STEP)
      continue;
    CatalogueDomain &kept = state.catalogues[i];
    state.catalogueRows.domains[i] = std::move(rows.domains[i]);
    const DomainBatch &from = state.catalogueRows.domains[i];
    int32_t parent = desc.domains[i].parent;
    kept.given = true;
    kept.descriptor = parent < 0
                          ? describeRoot(from.count, nullptr, kept.rows)
                          : describeChild(from, state.catalogues[parent].descriptor, kept.rows);
  }
  for (int32_t i = 0; i < desc.feature_count; ++i)
    if (rootDomain(desc, desc.features[i].domain) == domain)
      state.catalogueRows.columns[i] = std::move(rows.columns[i]);
}

StepReport Session::step(Mode mode, Batch &batch) { return step(mode, std::span(&batch, 1)); }

StepReport Session::step(Mode mode, std::span<Batch> portions) {
  if (portions.size() != impl->portions())
    throw Error("a step takes " + std::to_string(impl->portions()) + " portions, got " +
                std::to_string(portions.size()));
  impl->requireRanks(program(mode));
  std::vector<StepSlot *> &slots = impl->running;
  slots.clear();
  for (size_t i = 0; i < portions.size(); ++i) {
    StepSlot &slot = *slots.emplace_back(impl->slots[i].get());
    slot.spans.clear();
    slot.prepare(program(mode), portions[i], impl->stepNumber(mode));
    slot.runCopy(impl->state.pool.get());
  }
  return impl->runStep(mode, slots);
}

StepReport Session::stepWithoutRows(Mode mode) {
  const genrec_model_desc &desc = model();
  Batch &batch = impl->batches[0];
  batch.reset();
  batch.positions.ensure(1);
  for (int32_t i = 0; i < desc.domain_count; ++i) {
    batch.domains[i].given = desc.domains[i].kind == GENREC_DOMAIN_DATA;
    *batch.domains[i].offsets.ensure(1) = 0;
  }
  for (int32_t i = 0; i < desc.feature_count; ++i) {
    batch.columns[i].given = true;
    batch.columns[i].hasNulls = false;
    int64_t bytes = std::max<int64_t>(64, rowBytes(desc.features[i]));
    std::memset(batch.columns[i].values.ensure(bytes), 0, static_cast<size_t>(bytes));
  }
  return step(mode, batch);
}

int64_t Session::run(Mode mode, BatchSource &source,
                     const std::function<bool(const StepReport &)> &onStep) {
  impl->requireRanks(program(mode));
  std::vector<Pipeline::Place> places;
  for (size_t i = 0; i < impl->slots.size(); ++i)
    places.push_back({impl->slots[i].get(), &impl->batches[i]});
  Pipeline pipeline(program(mode), source, std::move(places), impl->portions(),
                    impl->stepNumber(mode), mode == Mode::train ? 1 : 0);
  return impl->overlap == Overlap::none ? impl->runInTurn(mode, pipeline, onStep)
                                        : impl->runAhead(mode, pipeline, program(mode), onStep);
}

LookupCounts Session::countLookups(Mode mode, BatchSource &source) {
  const genrec_model_desc &desc = model();
  if (impl->state.ranks)
    throw Error("lookups are counted on one portion");
  if (impl->state.onDevice)
    throw Error(std::string("the lookups of model '") + desc.name +
                    "' cannot be counted: it was compiled for CUDA",
                "compile it with --target=cpu for that");
  for (int32_t i = 0; i < desc.table_count; ++i)
    if (desc.tables[i].group)
      throw Error(std::string("table '") + desc.tables[i].name +
                      "' is merged with others; their lookups cannot be told apart",
                  "compile the model with --merge-tables=false");
  LookupCounts counts;
  counts.tables.resize(desc.table_count);
  LookupCounter counter(desc, counts);
  StepSlot &slot = *impl->slots[0];
  Batch &batch = impl->batches[0];
  impl->state.lookupCounter = &counter;
  try {
    for (batch.reset(); source.next(batch); batch.reset()) {
      slot.spans.clear();
      slot.prepare(program(mode), batch, impl->stepNumber(mode));
      slot.runCopy(impl->state.pool.get());
      slot.runDispatch();
      counter.endBatch(batch.rows);
    }
  } catch (...) {
    impl->state.lookupCounter = nullptr;
    throw;
  }
  impl->state.lookupCounter = nullptr;
  return counts;
}

uint64_t Session::stepsDone() const { return impl->steps; }
void Session::setStepsDone(uint64_t steps) { impl->steps = steps; }

void Session::setScheduleSteps(int64_t steps) {
  if (impl->state.schedule.steps == 0)
    impl->state.schedule.steps = steps;
}

double Session::learningRate() const {
  return impl->state.learningRate(impl->state.largestRate, impl->steps + 1);
}

uint64_t Session::seed() const { return impl->state.seed; }

Communicator *Session::comm() const {
  Ranks *ranks = impl->state.ranks.get();
  return ranks ? &ranks->comm() : nullptr;
}

Communicator *Session::commOfRows(int32_t table) const {
  return impl->state.replicated[table] ? nullptr : comm();
}

int32_t Session::portions() const { return impl->state.ranks ? impl->state.ranks->portions() : 1; }

ExchangeCounts Session::exchanges() const {
  Ranks *ranks = impl->state.ranks.get();
  if (!ranks)
    return {};
  ExchangeCounts counts = ranks->getTraffic();
  counts.rounds = ranks->comm().rounds() + ranks->roundsAhead() + impl->roundsAhead;
  return counts;
}

ParameterView Session::parameter(int32_t index) {
  DeviceState *onDevice = impl->state.onDevice.get();
  const genrec_parameter &parameter =
      onDevice ? onDevice->fetchParameter(index) : impl->state.parameters[index];
  const ParameterShards &shards = impl->state.shards;
  ParameterView view;
  view.value = {parameter.value, static_cast<size_t>(parameter.size)};
  view.width = shards.width(index);
  view.stateCount = model().parameters[index].optimizer.states;
  view.firstRow = parameter.first_row;
  view.ownRows = parameter.own_rows;
  view.states = {parameter.states,
                 static_cast<size_t>(parameter.own_rows * view.width * view.stateCount)};
  if (shards.areShared())
    view.rowBounds = shards.bounds(index);
  return view;
}

ParameterView Session::parameter(const std::string &name) {
  for (size_t i = 0; i < impl->parameterNames.size(); ++i)
    if (impl->parameterNames[i] == name)
      return parameter(static_cast<int32_t>(i));
  throw Error("the model has no parameter '" + name + "'");
}

TableView Session::table(int32_t index) {
  return {*impl->state.tables[index], model().tables[index]};
}

TableView Session::table(const std::string &name) {
  for (int32_t i = 0; i < model().table_count; ++i)
    if (name == model().tables[i].name)
      return table(i);
  throw Error("the model has no table '" + name + "'");
}

void Session::eraseRows(const std::string &name, std::span<const int64_t> ids) {
  table(name).erase(ids.data(), static_cast<int64_t>(ids.size()));
  impl->state.handles.clear(); // rows have moved
}

Profile *Session::profile() { return impl->state.profile.get(); }

Metrics &Session::metrics() { return impl->state.metrics; }
OutputRows &Session::output(int32_t index, int32_t portion) {
  return impl->state.outputs[portion * model().output_count + index];
}

MemoryUse Session::memoryUse() const {
  MemoryUse use;
  use.arenas = impl->state.computeArena.bytes() + impl->state.updateArena.bytes();
  for (const auto &slot : impl->slots) {
    use.arenas += slot->arenaMemory().bytes();
    use.batches += slot->descriptorBytes();
    use.scratch += slot->ownScratch.capacity() + slot->ownBlocks.capacity();
  }
  for (const Batch &batch : impl->batches) {
    for (const DomainBatch &domain : batch.domains)
      use.batches += domain.offsets.capacity() * 8;
    for (const ColumnBatch &column : batch.columns)
      use.batches += column.values.capacity() + column.valid.capacity() + column.bytes.capacity();
  }
  for (const auto &scratch : impl->state.workerScratch)
    use.scratch += scratch.capacity();
  use.scratch += impl->state.blockMemory.capacity();
  use.parameters = impl->state.parameterValues.capacity() * 4;
  for (const auto &states : impl->state.parameterStates)
    use.optimizer += states.capacity() * 4;
  if (impl->state.onDevice)
    use.parameters += impl->state.onDevice->parameterBytes();
  const auto &tables = impl->state.tables;
  for (size_t i = 0; i < tables.size(); ++i) {
    const auto &table = tables[i];
    if (std::find(tables.begin(), tables.begin() + static_cast<std::ptrdiff_t>(i), table) !=
        tables.begin() + static_cast<std::ptrdiff_t>(i))
      continue; // a store that an earlier table shares
    use.tableKeys += table->keyBytes();
    use.tableValues += table->valueBytes();
  }
  return use;
}

int64_t Session::arenaAllocations() const {
  int64_t count = impl->state.computeArena.allocations() + impl->state.updateArena.allocations();
  for (const auto &slot : impl->slots)
    count += slot->arenaMemory().allocations();
  return count;
}

LoadedModel::LoadedModel(const std::string &path) {
  handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw Error(path + ": cannot be loaded as a compiled model: " + dlerror());
  auto entry = reinterpret_cast<decltype(&genrec_model)>(dlsym(handle, "genrec_model"));
  if (!entry) {
    dlclose(handle);
    throw Error(path + ": holds no compiled model (no symbol genrec_model)");
  }
  description = entry();
  checkModel(*description);
}

LoadedModel::~LoadedModel() {
  if (handle)
    dlclose(handle);
}

} // namespace genrec::rt
