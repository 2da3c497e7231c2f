//===- session.cpp - Drives a compiled model ------------------------------===//

#include "genrec_rt/session.h"

#include "model_check.h"
#include "pipeline.h"

#include <algorithm>
#include <array>
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

const char *nameOf(Mode mode) { return genrec_mode_name(static_cast<int32_t>(mode)); }

} // namespace

struct Session::Impl {
  Impl(const genrec_model_desc &model, const SessionOptions &options)
      : state(checked(model), options) {
    for (auto &slot : slots)
      slot = std::make_unique<StepSlot>(state);
    for (Batch &batch : batches)
      batch = Batch(model);
    for (int32_t i = 0; i < model.parameter_count; ++i)
      parameterNames.emplace_back(model.parameters[i].name);
  }

  uint64_t stepNumber(Mode mode) const { return mode == Mode::train ? steps + 1 : steps; }

  /// Runs a prepared slot and reports. The step counts once it is done.
  StepReport finish(Mode mode, StepSlot &slot) {
    for (OutputRows &output : state.outputs)
      output.given = false;
    slot.runRest();
    if (state.profile)
      state.profile->add(slot.mode, slot.step, slot.spans, slot.domains);
    if (mode == Mode::train) {
      state.evict(slot.step);
      ++steps;
    }
    StepReport report{slot.step, &slot.currentBatch(), slot.losses,
                      totalLoss(state.model, slot.losses)};
    report.slot = &slot;
    if (mode == Mode::train)
      report.learningRate = state.learningRate(state.largestRate, slot.step);
    return report;
  }

  genrec_runtime state;
  std::array<std::unique_ptr<StepSlot>, Pipeline::kSlots> slots;
  std::array<Batch, Pipeline::kSlots> batches;
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
  return slot ? slot->nonFiniteOrigin : none;
}

std::string StepReport::describeNonFiniteInput() const {
  return slot ? slot->describeNonFiniteInput() : std::string();
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

StepReport Session::step(Mode mode, Batch &batch) {
  StepSlot &slot = *impl->slots[0];
  slot.spans.clear();
  slot.prepare(program(mode), batch, impl->stepNumber(mode));
  slot.runCopy(impl->state.pool.get());
  return impl->finish(mode, slot);
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
  Pipeline pipeline(program(mode), source,
                    {Pipeline::Place{impl->slots[0].get(), &impl->batches[0]},
                     Pipeline::Place{impl->slots[1].get(), &impl->batches[1]}},
                    impl->stepNumber(mode), mode == Mode::train ? 1 : 0);
  int64_t count = 0;
  while (true) {
    int64_t waiting = impl->state.profile ? profileClock() : 0;
    Pipeline::Place *place = pipeline.take();
    if (!place)
      break;
    if (impl->state.profile)
      place->slot->spans.add(Phase::wait, waiting, profileClock());
    StepReport report = impl->finish(mode, *place->slot);
    ++count;
    if (onStep && !onStep(report))
      break;
    pipeline.release();
  }
  return count;
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

ParameterView Session::parameter(int32_t index) {
  const genrec_parameter &parameter = impl->state.parameters[index];
  auto size = static_cast<size_t>(parameter.size);
  auto states = static_cast<size_t>(model().parameters[index].optimizer.states);
  return {{parameter.value, size}, {parameter.state, size * states}};
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
OutputRows &Session::output(int32_t index) { return impl->state.outputs[index]; }

MemoryUse Session::memoryUse() const {
  MemoryUse use;
  use.arenas = impl->state.computeArena.bytes();
  for (const auto &slot : impl->slots) {
    use.arenas += slot->arenaMemory().bytes();
    use.batches += slot->descriptorBytes();
    use.scratch += slot->ownScratch.capacity();
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
  for (const auto &parameter : impl->state.parameterMemory)
    use.parameters += parameter.capacity() * 4;
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
  int64_t count = impl->state.computeArena.allocations();
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
