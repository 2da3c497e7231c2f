//===- session.cpp - Drives a compiled model ------------------------------===//

#include "session_impl.h"

#include "device_graphs.h"
#include "lookup_counter.h"
#include "model_check.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

/// Checks before anything is made from the description.
const genrec_model_desc &checked(const genrec_model_desc &model) {
  checkModel(model);
  return model;
}

const char *nameOf(Mode mode) { return genrec_mode_name(static_cast<int32_t>(mode)); }

} // namespace

Session::Impl::Impl(const genrec_model_desc &model, const SessionOptions &options)
    : state(checked(model), options), clock(options.clock) {
  PortionRange own = state.ranks ? state.ranks->own() : PortionRange{0, 1};
  ownPortions = own.count;
  if (state.ranks)
    overlap = state.ranks->overlap();
  choosePlacement(options);
  const bool dispatchesAhead = state.ranks ? overlap != Overlap::none : bool(state.onDevice);
  const int32_t inFlight = batchesInFlight(dispatchesAhead);
  for (int32_t i = 0; i < inFlight * own.count; ++i) {
    slots.push_back(std::make_unique<StepSlot>(state));
    slots.back()->portion = own.first + i % own.count;
    batches.push_back(Batch(model));
  }
  for (int32_t i = 0; i < model.parameter_count; ++i)
    parameterNames.emplace_back(model.parameters[i].name);
}

Session::Impl::~Impl() {
  if (state.onDevice) // a run that ended early has left a step that is dispatched
    state.onDevice->finish();
}

void Session::Impl::choosePlacement(const SessionOptions &options) {
  whySharded = options.replicate.empty() ? "--replicate none" : "--replicate does not name it";
  if (!options.choosesReplicas || !state.ranks || state.ranks->comm().getSize() == 1)
    return;
  if (!options.rowTravel.keepsBits())
    whySharded =
        "rows travel rounded or are not deduplicated, so that results depend on where they "
        "are: a run does not choose that";
  else
    chooser =
        std::make_unique<PlacementChooser>(state, overlap != Overlap::none, options.replicaBytes);
}

void Session::Impl::requireRanks(const genrec_program_desc &program) const {
  if (state.ranks && program.single_rank)
    throw Error(std::string("program '") + program.name +
                    "' cannot run on several ranks: " + program.single_rank,
                "run it on one rank");
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
  for (int32_t i = 0; i < desc.feature_count; ++i) {
    const genrec_feature_desc &feature = desc.features[i];
    if (rootDomain(desc, feature.domain) != domain)
      continue;
    ColumnBatch &column = state.catalogueRows.columns[i];
    column = std::move(rows.columns[i]);
    const auto most =
        static_cast<size_t>(columnRows(state.catalogueRows.domains[feature.domain].count));
    if (feature.nullable && !column.hasNulls && most > state.allValid.size())
      state.allValid.assign(most, 1);
  }
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
                     const std::function<bool(const StepReport &)> &onStep,
                     const std::function<bool(uint64_t)> &looksAfter) {
  impl->requireRanks(program(mode));
  std::vector<Pipeline::Place> places;
  for (size_t i = 0; i < impl->slots.size(); ++i)
    places.push_back({impl->slots[i].get(), &impl->batches[i]});
  Pipeline pipeline(program(mode), source, std::move(places), impl->portions(),
                    impl->stepNumber(mode), mode == Mode::train ? 1 : 0);
  if (impl->state.onDevice && !impl->state.ranks)
    return impl->runQueued(mode, pipeline, onStep, looksAfter);
  if (impl->state.onDevice)
    return impl->runRanksOnDevices(mode, pipeline, onStep);
  return impl->overlap == Overlap::none ? impl->runInTurn(mode, pipeline, onStep)
                                        : impl->runAhead(mode, pipeline, program(mode), onStep);
}

LookupCounts Session::countLookups(Mode mode, BatchSource &source) {
  const genrec_model_desc &desc = model();
  if (impl->state.ranks)
    throw Error("lookups are counted on one portion");
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
      slot.endLookups();
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

bool Session::needsClock() const { return impl->state.clock.isNeeded(); }
StepClock::State Session::clock() const { return impl->state.clock.state(); }
void Session::setClock(const StepClock::State &saved) { impl->state.clock.restore(saved); }

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

PlacementReport Session::placement() const {
  if (impl->chooser)
    return impl->chooser->report();
  if (!comm() || comm()->getSize() == 1)
    return {};
  return describePlacement(model(), impl->state.replicated, impl->whySharded);
}

int32_t Session::portions() const { return impl->state.ranks ? impl->state.ranks->portions() : 1; }

ExchangeCounts Session::exchanges() const {
  Ranks *ranks = impl->state.ranks.get();
  if (!ranks)
    return {};
  ExchangeCounts counts = ranks->getTraffic();
  counts.rounds = impl->roundsInSteps + ranks->roundsAhead() + impl->roundsAhead;
  return counts;
}

ParameterView Session::parameter(int32_t index) {
  DeviceState *onDevice = impl->state.onDevice.get();
  return viewOf(index, onDevice ? onDevice->fetchParameter(index) : impl->state.parameters[index]);
}

std::vector<ParameterView> Session::readParameters() {
  DeviceState *onDevice = impl->state.onDevice.get();
  if (onDevice)
    onDevice->readParameters();
  std::vector<ParameterView> views;
  for (int32_t i = 0; i < model().parameter_count; ++i)
    views.push_back(viewOf(i, onDevice ? onDevice->readParameter(i) : impl->state.parameters[i]));
  return views;
}

ParameterView Session::viewOf(int32_t index, const genrec_parameter &parameter) const {
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
    use.arenas += slot->arenaMemory().bytes() + slot->meetingMemory().bytes();
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

std::optional<DeviceUse> Session::deviceUse() const {
  DeviceState *onDevice = impl->state.onDevice.get();
  if (!onDevice)
    return std::nullopt;
  const DeviceCounts counts = onDevice->device().counts();
  const DeviceInfo &info = onDevice->device().info();
  return DeviceUse{info.number,
                   info.name,
                   info.uuid,
                   counts.waits,
                   counts.allocations,
                   onDevice->graphs().stages.captures,
                   onDevice->graphs().stages.launches,
                   onDevice->graphs().updates.captures,
                   onDevice->graphs().updates.launches,
                   impl->dispatchedAhead,
                   onDevice->graphs().refusals(),
                   impl->state.hostTimes.perStep()};
}

int64_t Session::arenaAllocations() const {
  int64_t count = impl->state.computeArena.allocations() + impl->state.updateArena.allocations();
  for (const auto &slot : impl->slots)
    count += slot->arenaMemory().allocations() + slot->meetingMemory().allocations();
  return count;
}

} // namespace genrec::rt
