//===- step_slot.cpp - One batch in flight --------------------------------===//

#include "step_slot.h"

#include "../core/model_queries.h"
#include "device_step.h"
#include "genrec_rt/size.h"
#include "ranks.h"

#include <algorithm>
#include <cstdint>

namespace genrec::rt {

void Failure::record(const std::string &newMessage, const std::string &newHelp) {
  std::lock_guard<std::mutex> lock(mutex);
  if (failed)
    return;
  failed = true;
  message = newMessage;
  help = newHelp;
}

void Failure::clear() {
  std::lock_guard<std::mutex> lock(mutex);
  failed = false;
}

bool Failure::any() {
  std::lock_guard<std::mutex> lock(mutex);
  return failed;
}

void Failure::raise() {
  std::lock_guard<std::mutex> lock(mutex);
  if (!failed)
    return;
  failed = false;
  throw Error(message, help);
}

StepSlot::StepSlot(genrec_runtime &runtime)
    : genrec_step{}, losses(runtime.model.loss_count), shared(runtime),
      domainTable(runtime.model.domain_count), columnTable(runtime.model.feature_count),
      rows(runtime.model.domain_count), temporaries(runtime.model.table_count),
      arena(runtime.device()), meetingArena(runtime.device()) {
  this->runtime = &runtime;
  domains = domainTable.data();
  columns = columnTable.data();
  parameters = runtime.parameters.data();
  seed = runtime.seed;
  check_finite = runtime.checkFinite;
  profile = runtime.profile != nullptr;
  if (runtime.onDevice)
    onDevice = std::make_unique<DeviceStep>(*this, *runtime.onDevice);
}

StepSlot::~StepSlot() = default;

StepSlot::Plan &StepSlot::planOf(const genrec_program_desc &program) {
  for (auto &plan : plans)
    if (plan->program == &program)
      return *plan;
  auto plan = std::make_unique<Plan>();
  plan->program = &program;
  choosePlacements(*plan);
  plan->capacities.assign(domainTable.size(), -1);
  plan->maxLengths.assign(domainTable.size(), 0);
  plan->addresses.resize(program.buffer_count);
  plans.push_back(std::move(plan));
  return *plans.back();
}

void StepSlot::prepare(const genrec_program_desc &program, Batch &newBatch, uint64_t stepNumber) {
  batch = &newBatch;
  plan = &planOf(program);
  mode = program.mode;
  step = stepNumber;
  std::fill(losses.begin(), losses.end(), LossValue{});
  failure.clear();
  nonFiniteOrigin.clear();
  hasNonFiniteLoss = false;
  foundKeys.clear();
  if (onDevice)
    onDevice->forget();
  else
    clearTemporaries();

  requireGiven();
  const genrec_model_desc &model = shared.model;
  for (int32_t domain = 0; domain < model.domain_count; ++domain) {
    domainTable[domain] = {};
    if (shared.catalogues[domain].given)
      domainTable[domain] = shared.catalogues[domain].descriptor;
    else if (model.domains[domain].kind == GENREC_DOMAIN_DATA)
      describeData(domain);
    int32_t parent = model.domains[domain].parent;
    domainTable[domain].parent_domain = parent < 0 ? nullptr : &domainTable[parent];
  }
  bool grown = growCapacities(*plan);
  describeMade(*plan);
  buffers = plan->addresses.data();
  if (grown)
    for (Placement *placement : {&plan->own, &plan->shared, &plan->update}) {
      placement->layout = layOut(placement->buffers, plan->capacities);
      placement->placedAt = nullptr;
    }
  if (!onDevice) // else where the stages run, as one thread at a time calls a device
    place(plan->own, arena, plan->addresses);
  pointColumns();
}

void StepSlot::clearTemporaries() {
  for (auto &table : temporaries)
    if (table && table->size(shared.storeStream()) > 0)
      table->clear(shared.storeStream());
}

/// What the program reads must be there, or stages would follow null pointers.
void StepSlot::requireGiven() const {
  const genrec_model_desc &model = shared.model;
  for (int32_t i = 0; i < plan->program->feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[plan->program->features[i]];
    int32_t root = rootDomain(model, feature.domain);
    bool isData = model.domains[root].kind == GENREC_DOMAIN_DATA;
    if (!isData && !shared.catalogues[root].given)
      throw Error(std::string("catalogue '") + model.domains[root].name + "' was not given",
                  std::string("pass --catalogue ") + model.domains[root].name + "=<file>");
    if (isData && !batch->columns[plan->program->features[i]].given)
      throw Error(std::string("the batch lacks feature '") + feature.column + "', which program '" +
                  plan->program->name + "' reads");
  }
}

void StepSlot::describeData(int32_t domain) {
  const DomainBatch &from = batch->domains[domain];
  int32_t parent = shared.model.domains[domain].parent;
  if (parent < 0)
    domainTable[domain] = describeRoot(from.count, batch->positions.data(), rows[domain]);
  else if (from.given) // what this program does not read stays empty
    domainTable[domain] = describeChild(from, domainTable[parent], rows[domain]);
}

/// Raises capacities to what this batch needs; they never fall, so that the
/// arena settles. Returns whether any rose.
bool StepSlot::growCapacities(Plan &plan) {
  bool grown = false;
  const genrec_model_desc &model = shared.model;
  auto raise = [&](int64_t &value, int64_t wanted) {
    if (wanted <= value)
      return;
    value = wanted;
    grown = true;
  };
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain_desc &domain = model.domains[i];
    int64_t &capacity = plan.capacities[i];
    if (!domain.capacity) {
      raise(capacity, rowCapacity(domainTable[i].count));
      raise(plan.maxLengths[i], capacityBucket(domainTable[i].max_length));
      continue;
    }
    raise(capacity, std::min(mostRows(domain, plan), rowCapacity(truncatedRows(domain))));
    raise(plan.maxLengths[i], domain.max_length > 0 ? domain.max_length : capacity);
  }
  return grown;
}

/// The bound on the rows of a domain that the program makes.
int64_t StepSlot::mostRows(const genrec_domain_desc &domain, const Plan &plan) {
  // Emitted code multiplies as it is: lists cut at a length that none has are not cut.
  if (domain.max_length > 0 && !(Size(plan.capacities[domain.parent]) * domain.max_length).fits())
    return plan.capacities[domain.truncated];
  return Size(domain.capacity(plan.capacities.data(), plan.maxLengths.data())).value([&] {
    return std::string("domain '") + domain.name + "' of a batch";
  });
}

/// The rows of a domain cut from one of the data, whose lists are known; else no bound.
int64_t StepSlot::truncatedRows(const genrec_domain_desc &domain) const {
  if (domain.max_length <= 0 || shared.model.domains[domain.truncated].kind != GENREC_DOMAIN_DATA)
    return INT64_MAX / 2;
  const genrec_domain &cut = domainTable[domain.truncated];
  int64_t lists = domainTable[domain.parent].count, rows = 0;
  for (int64_t list = 0; cut.offsets && list < lists; ++list)
    rows += std::min(cut.offsets[list + 1] - cut.offsets[list], domain.max_length);
  return rows;
}

void StepSlot::describeMade(const Plan &plan) {
  for (size_t i = 0; i < domainTable.size(); ++i)
    domainTable[i].capacity = plan.capacities[i];
}

/// Each buffer is in the memory of the portion, of the compute stage, or of the update.
void StepSlot::choosePlacements(Plan &plan) const {
  const genrec_program_desc &program = *plan.program;
  int32_t firstOfCompute = program.first_compute_op, firstOfUpdate = program.first_update_op;
  if (firstOfCompute == 0 && program.copy)
    firstOfCompute = INT32_MAX;
  if (firstOfUpdate == 0 || !shared.ranks)
    firstOfUpdate = INT32_MAX;
  for (int32_t i = 0; i < program.buffer_count; ++i) {
    const genrec_buffer_desc &buffer = program.buffers[i];
    Placement *chosen = buffer.first < firstOfCompute  ? &plan.own
                        : buffer.first < firstOfUpdate ? &plan.shared
                                                       : &plan.update;
    for (Placement *placement : {&plan.own, &plan.shared, &plan.update}) {
      placement->mine.push_back(placement == chosen);
      placement->buffers.push_back(buffer);
      if (placement != chosen)
        placement->buffers.back().bytes = placement->buffers.back().bytes_per_row = 0;
    }
  }
}

/// Raises the capacities of rows that portions have touched to what was counted.
bool StepSlot::growCollected() {
  bool grown = false;
  const genrec_model_desc &model = shared.model;
  for (int32_t i = 0; i < model.domain_count; ++i) {
    int32_t table = model.domains[i].collected - 1;
    if (table < 0)
      continue;
    int64_t wanted = capacityBucket(rankStep->countCollected(table));
    grown |= wanted > plan->capacities[i];
    plan->capacities[i] = std::max(plan->capacities[i], wanted);
    domainTable[i].capacity = plan->capacities[i];
    if (onDevice)
      onDevice->setCapacity(i, plan->capacities[i]);
  }
  return grown;
}

void StepSlot::place(Placement &placement, Arena &arena, std::vector<void *> &addresses) {
  char *base = arena.ensure(placement.layout.bytes);
  if (placement.placedAt == base)
    return;
  placement.placedAt = base;
  for (size_t i = 0; i < addresses.size(); ++i)
    if (placement.mine[i])
      addresses[i] = base + placement.layout.offsets[i];
}

void StepSlot::pointColumns() {
  const genrec_model_desc &model = shared.model;
  int64_t most = 0;
  for (int32_t i = 0; i < model.feature_count; ++i)
    if (model.features[i].nullable)
      most = std::max(most, columnRows(batch->domains[model.features[i].domain].count));
  if (most > static_cast<int64_t>(allValid.size()))
    allValid.assign(static_cast<size_t>(most), 1);
  for (int32_t i = 0; i < model.feature_count; ++i) {
    const genrec_feature_desc &feature = model.features[i];
    const bool inCatalogue = shared.catalogues[feature.domain].given;
    const ColumnBatch &column = inCatalogue ? shared.catalogueRows.columns[i] : batch->columns[i];
    columnTable[i] = {column.values.data(), nullptr};
    if (feature.nullable)
      columnTable[i].valid = column.hasNulls ? column.valid.data()
                             : inCatalogue   ? shared.allValid.data()
                                             : allValid.data();
  }
}

void StepSlot::runStage(genrec_stage_fn stage, Phase phase, genrec_rt_pool *on) {
  if (!stage)
    return;
  pool = on;
  if (profile && onDevice)
    onDevice->profile().note(static_cast<int32_t>(phase));
  else if (profile)
    spans.begin(phase);
  stage(this);
  if (profile && onDevice)
    onDevice->profile().end();
  else if (profile)
    spans.end();
  failure.raise();
}

void StepSlot::runCopy(genrec_rt_pool *on) {
  if (!onDevice)
    runStage(plan->program->copy, Phase::copy, on);
}

void StepSlot::runDispatch(genrec_rt_pool *on) {
  if (!onDevice)
    runStage(plan->program->dispatch, Phase::dispatch, on);
  else if (!onDevice->isDispatched())
    dispatchOnDevice(on);
}

void StepSlot::endLookups() {
  if (!onDevice)
    return;
  onDevice->endWithDispatch();
  StepSlot *const self = this;
  finishOnDevice({&self, 1});
}

bool StepSlot::meetsPortions() const {
  return plan->program->meeting && shared.ranks && shared.ranks->own().count > 1;
}

/// Portions that meet are in the buffers of their compute stages at the same time.
Arena &StepSlot::computeMemory() { return meetsPortions() ? meetingArena : shared.computeArena; }

void StepSlot::runCompute() {
  if (onDevice) {
    shared.hostTimes.begin(HostWork::stages);
    shared.onDevice->giveParameters();
  }
  // Only now: the portion before may have been in this memory until its end.
  place(plan->shared, computeMemory(), plan->addresses);
  if (!onDevice)
    return runStage(plan->program->compute, Phase::compute, shared.pool.get());
  if (rankStep)
    rankStep->onDevice()->beginPortion(*this);
  onDevice->runStages();
  if (rankStep)
    rankStep->onDevice()->endPortion(*this);
}

void StepSlot::placeUpdate() {
  if (growCollected())
    plan->update.layout = layOut(plan->update.buffers, plan->capacities);
  plan->update.placedAt = nullptr;
  place(plan->update, shared.updateArena, plan->addresses);
}

void StepSlot::runUpdate() {
  if (onDevice && !rankStep) // is behind compute
    return;
  if (!plan->program->update)
    return;
  if (shared.ranks)
    placeUpdate();
  if (onDevice)
    return onDevice->runUpdate();
  runUpdateStage();
}

void StepSlot::queueReports(std::span<StepSlot *const> portions) {
  for (StepSlot *slot : portions)
    slot->onDevice->queueReports();
}

void StepSlot::finishOnDevice(std::span<StepSlot *const> portions) {
  HostTimes &times = portions.back()->shared.hostTimes;
  times.begin(HostWork::wait);
  portions.back()->onDevice->await();
  times.begin(HostWork::end);
  for (StepSlot *slot : portions) {
    slot->onDevice->finish();
    if (!slot->onDevice->hasFailedInUpdate())
      slot->failure.raise();
  }
  findOnDevice(portions);
}

//===----------------------------------------------------------------------===//
// Of a model for a device
//===----------------------------------------------------------------------===//

HostBatch StepSlot::hostBatch() {
  return {domainTable, columnTable.data(), plan->maxLengths, *plan->program};
}

void StepSlot::dispatchOnDevice(genrec_rt_pool *on) {
  shared.hostTimes.begin(HostWork::dispatch);
  onDevice->dispatch(hostBatch(), [&] {
    place(plan->own, arena, plan->addresses);
    runStage(plan->program->copy, Phase::copy, on);
    runStage(plan->program->dispatch, Phase::dispatch, on);
  });
}

void StepSlot::copyAhead() {
  if (!onDevice || onDevice->isDispatched())
    return;
  shared.hostTimes.begin(HostWork::batch);
  onDevice->copyAhead(hostBatch());
}

void StepSlot::runLateStages() {
  runStage(plan->program->compute, Phase::compute, shared.pool.get());
  if (!rankStep && !isFindingNonFinite) // else it is behind what portions exchange
    runUpdateStage();
}

void StepSlot::runUpdateStage() {
  runStage(plan->program->update, Phase::update, shared.pool.get());
}

void StepSlot::describePlaces(GraphKey &key, bool ofUpdate) const {
  for (const void *place :
       {static_cast<const void *>(plan->program), static_cast<const void *>(plan->own.placedAt),
        static_cast<const void *>(plan->shared.placedAt),
        static_cast<const void *>(ofUpdate ? plan->update.placedAt : nullptr)})
    key.addPlace(place);
}

float StepSlot::stepScalar(int32_t kind, double argument) const {
  constexpr int32_t kClipNorm = 3, kClipValue = 4;
  if (kind == kClipNorm)
    return static_cast<float>(shared.clipNorm);
  if (kind == kClipValue)
    return static_cast<float>(shared.clipValue);
  return genrec_rt_step_value(this, kind, argument);
}

TableStore &StepSlot::temporaryTable(int32_t table) {
  if (!temporaries[table])
    temporaries[table] =
        onDevice
            ? shared.device()->makeStore(shared.tables[table]->configuration(), "rows of a step")
            : makeHostStore(shared.tables[table]->configuration());
  return *temporaries[table];
}

int64_t StepSlot::descriptorBytes() const {
  int64_t bytes = 0;
  for (const DescribedRows &memory : rows)
    bytes += memory.bytes();
  if (onDevice)
    bytes += onDevice->memoryBytes();
  return bytes;
}

} // namespace genrec::rt
