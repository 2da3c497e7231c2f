//===- device_step.cpp - A step whose values are on a device --------------===//

#include "device_step.h"

#include "ranks.h"
#include "step_slot.h"

#include <algorithm>

namespace genrec::rt {

DeviceStep::DeviceStep(StepSlot &slot, DeviceState &state)
    : slot(slot), shared(slot.state()), state(state), device(state.device()), batch(slot, state),
      leaving(slot, state, batch), times(device), end(device.makeMark()),
      chosen(device, "lookup.chosen"), usesTemporary(shared.model.table_count),
      identities(shared.model.table_count) {}

//===----------------------------------------------------------------------===//
// The stages
//===----------------------------------------------------------------------===//

void DeviceStep::forget() {
  batch.forget();
  isAbandoned = isAbandoned || dispatched;
  dispatched = false;
}

void DeviceStep::clearTemporaries() {
  for (size_t table = 0; table < usesTemporary.size(); ++table)
    if (usesTemporary[table])
      slot.temporaryTable(static_cast<int32_t>(table)).clear(state.storeStream());
  std::fill(usesTemporary.begin(), usesTemporary.end(), 0);
}

void DeviceStep::beginDispatch(const HostBatch &host) {
  device.use(DeviceQueue::dispatch);
  isDispatching = true;
  // Stores are used by one queue at a time. Several portions look up once the step before has
  // ended.
  if (state.takeLookedUp() || (state.lookupsFollow() && !slot.rankStep))
    device.follow(DeviceQueue::dispatch, DeviceQueue::compute);
  if (isAbandoned)
    device.synchronize();
  isAbandoned = false;
  device.beginDispatch();
  clearTemporaries();
  times.begin();
  batch.bring(host);
  leaving.begin();
  slot.domains = batch.domains.data();
  slot.columns = batch.columns.data();
  slot.stream = device.stream();
  slot.genrec_step::device = const_cast<genrec_step *>(batch.stepOnDevice);
}

void DeviceStep::endDispatch(bool isWhole) {
  device.use(DeviceQueue::compute);
  isDispatching = false;
  dispatched = isWhole;
  isAbandoned = !isWhole;
}

void DeviceStep::beginBesideDispatch() {
  device.use(DeviceQueue::dispatch);
  isDispatching = true;
  slot.stream = device.stream();
}

void DeviceStep::endBesideDispatch() {
  device.use(DeviceQueue::compute);
  isDispatching = false;
}

bool DeviceStep::mayCapture() {
  const char *why = slot.profile ? "with --profile the calls of a step are timed one by one"
                    : slot.meetsPortions() && !isUpdating
                        ? "portions of a rank that wait for each other may take memory in between"
                        : nullptr;
  if (why)
    state.graphs().refuse(why);
  return !why && state.capturesSteps();
}

/// All that launches of stages follow from, but for what is in memory: counts of the data are not.
void DeviceStep::beginKey() {
  key.clear();
  key.add(isUpdating);
  key.addPlace(this);
  slot.describePlaces(key, isUpdating);
  for (size_t i = 0; i < batch.domains.size(); ++i) {
    const genrec_domain &domain = batch.domains[i];
    key.add(batch.isMade(static_cast<ptrdiff_t>(i)) ? domain.count : 0);
    key.add(domain.capacity);
    key.add(domain.max_length);
    key.addPlace(domain.offsets);
    key.addPlace(domain.parent);
    key.addPlace(domain.identity);
  }
}

void DeviceStep::addColumnsToKey() {
  for (const genrec_column &column : batch.columns) {
    key.addPlace(column.values);
    key.addPlace(column.valid);
  }
}

void DeviceStep::runStages() {
  device.follow(DeviceQueue::compute, DeviceQueue::dispatch);
  slot.stream = device.stream();
  dispatched = false;
  if (slot.isFindingNonFinite || !mayCapture())
    return slot.runLateStages();
  beginKey();
  addColumnsToKey();
  runOrLaunch([this] { slot.runLateStages(); }, state.graphs().stages);
}

/// Where what was exchanged lies follows from capacities, and how much it is the device knows.
void DeviceStep::runUpdate() {
  DeviceRanks &ranks = *slot.rankStep->onDevice();
  const Stages stages = [this, &ranks] {
    ranks.beginUpdate();
    slot.runUpdateStage();
  };
  leaving.beginUpdate();
  isUpdating = true;
  try {
    if (mayCapture()) {
      beginKey();
      ranks.describeUpdate(key);
      runOrLaunch(stages, state.graphs().updates);
    } else {
      stages();
    }
  } catch (...) {
    isUpdating = false;
    throw;
  }
  isUpdating = false;
}

void DeviceStep::runOrLaunch(const Stages &stages, CaptureCounts &counts) {
  StepGraph &graph = state.graphs().of(key);
  if (graph.memoryVersion == device.memoryVersion()) {
    if (!graph.pieces.empty()) {
      ++counts.launches;
      return launch(graph);
    }
    if (!graph.isRefused && capture(graph, stages)) {
      ++counts.captures;
      ++counts.launches;
      return play(graph);
    }
  }
  graph.pieces.clear();
  stages();
  // All memory was taken now: the next step with this key takes none.
  graph.memoryVersion = device.memoryVersion();
  graph.pinnedBytes = leaving.pinnedBytes();
}

/// Runs the stages without what they queue. Where that fails, it is as if they had not run.
bool DeviceStep::capture(StepGraph &graph, const Stages &stages) {
  graph.results.reset();
  graph.results.reserve(graph.pinnedBytes);
  const std::vector<genrec_domain> before = batch.domains;
  leaving.record(graph.results);
  scalars.clear();
  pieces.clear();
  refused.clear();
  device.beginCapture();
  isCapturing = true;
  try {
    stages();
  } catch (const std::exception &error) {
    refused = error.what();
  }
  endPiece(nullptr);
  isCapturing = false;
  const bool isWhole = refused.empty();
  graph.reported = leaving.stopRecording(isWhole);
  graph.scalars = scalars;
  graph.domains = batch.domains;
  if (isWhole) {
    graph.pieces = std::move(pieces);
    return true;
  }
  pieces.clear();
  std::copy(before.begin(), before.end(), batch.domains.begin());
  slot.failure.clear();
  graph.isRefused = true;
  state.graphs().refuse(refused);
  return false;
}

void DeviceStep::endPiece(std::function<void()> then) {
  std::string why;
  StepPiece &piece = pieces.emplace_back();
  piece.graph = device.endCapture(&why);
  if (!piece.graph && refused.empty())
    refused = why;
  piece.then = std::move(then);
  if (piece.then)
    device.beginCapture();
}

void DeviceStep::play(StepGraph &graph) {
  for (StepPiece &piece : graph.pieces) {
    device.launch(*piece.graph);
    if (piece.then)
      piece.then();
  }
}

void DeviceStep::launch(StepGraph &graph) {
  for (const StepScalar &scalar : graph.scalars)
    *scalar.pinned = slot.stepScalar(scalar.kind, scalar.argument);
  for (size_t i = 0; i < batch.domains.size(); ++i)
    if (batch.isMade(static_cast<ptrdiff_t>(i)))
      batch.domains[i] = graph.domains[i];
  leaving.replay(graph.reported);
  play(graph);
}

void DeviceStep::endWithDispatch() {
  device.follow(DeviceQueue::compute, DeviceQueue::dispatch);
  dispatched = false;
  queueReports();
}

void DeviceStep::queueReports() {
  if (slot.profile)
    leaving.countRows();
  leaving.fetchNotes();
  device.place(*end);
}

void DeviceStep::finish() {
  leaving.finish();
  times.finish(slot.spans);
  batch.keepFixedRows();
}

void DeviceStep::enter(int32_t op) {
  // Lists that an op's work depends on may be gone when the step has ended.
  const genrec_op_desc &desc = shared.model.ops[op];
  for (int32_t i = 0; i < desc.cost_count; ++i)
    if (desc.costs[i].domain >= 0 && desc.costs[i].pair_flops > 0)
      leaving.fetchDomain(&batch.domains[desc.costs[i].domain]);
  times.note(op);
}

//===----------------------------------------------------------------------===//
// Calls of abi.h
//===----------------------------------------------------------------------===//

void DeviceStep::findRows(int32_t table, const DeviceIds &ids, float **rows,
                          genrec_row_note *beyond) {
  if (isCapturing)
    throw Error(std::string("rows of table '") + shared.model.tables[table].name +
                "' are looked up in the compute stage, and a table that grows is not captured");
  const genrec_table_desc &desc = shared.model.tables[table];
  TableStore &store = *shared.tables[table];
  if (!isDispatching && !slot.rankStep) // ranks look up once the step before has ended
    state.noteLookedUp();
  StoreStream on = StoreStream::ofDevice(device.stream());
  auto *mask = reinterpret_cast<uint8_t *>(chosen.ensure(std::max<int64_t>(ids.count, 1)));
  device.chooseEntries(ids, state.zeroRow(table), mask, rows, beyond);
  bool inserts = slot.mode == static_cast<int32_t>(Mode::train) &&
                 desc.optimizer.kind != GENREC_OPTIMIZER_FROZEN;
  bool hasRules = store.configuration().rules.any();
  if (inserts && !hasRules)
    return store.findOrInsert(on, ids.ids, mask, ids.count, rows);
  if (inserts)
    store.findOrAdmit(on, ids.ids, mask, ids.count, static_cast<int64_t>(slot.step), rows, nullptr);
  else
    store.find(on, ids.ids, mask, ids.count, rows, nullptr);
  // Ids without a row have one for this step. How many these are only the device knows.
  device.chooseMissing(mask, rows, ids.count);
  usesTemporary[table] = 1;
  TableStore &temporary = slot.temporaryTable(table);
  if (!isDispatching) // where it may have been made just now
    device.follow(DeviceQueue::compute, DeviceQueue::dispatch);
  temporary.findOrInsert(on, ids.ids, mask, ids.count, rows);
}

void DeviceStep::findOwned(int32_t table, const int64_t *keys, int64_t count, float **rows) {
  DeviceIds from;
  from.count = count;
  from.ids = keys;
  from.areKeys = true;
  findRows(table, from, rows, nullptr);
}

void DeviceStep::zeroRows(int32_t table, const DeviceIds &of, float **rows) {
  const int64_t count = std::max<int64_t>(of.count, 1);
  auto *mask = reinterpret_cast<uint8_t *>(chosen.ensure(count));
  device.fill(mask, 0, count);
  DeviceIds none = of;
  none.valid = mask;
  none.areKeys = true; // whatever their bits
  device.chooseEntries(none, state.zeroRow(table), mask, rows, nullptr);
}

/// How many rows a lookup of the compute stage brings follows from the data.
void DeviceStep::requestRows(int32_t table, const DeviceIds &ids, float **rows,
                             genrec_row_note *beyond) {
  if (slot.isFindingNonFinite) {
    if (!slot.repeatRows(rows, ids.count))
      zeroRows(table, ids, rows);
    return;
  }
  auto request = [=, this] {
    try {
      slot.rankStep->onDevice()->request(slot, table, ids, rows, state.zeroRow(table), beyond);
    } catch (...) { // the stage goes on, and nobody looks at what it makes
      zeroRows(table, ids, rows);
      throw;
    }
  };
  if (isDispatching)
    request();
  else
    callBetween(request);
}

void DeviceStep::tableRows(int32_t table, const genrec_domain *domain, const int64_t *ids,
                           const uint8_t *valid, float **rows) {
  DeviceIds from;
  from.domain = domain->device;
  from.count = domain->capacity;
  from.ids = ids;
  from.valid = valid;
  from.idBits = shared.model.tables[table].id_bits;
  genrec_row_note *beyond = leaving.note({NoteSubject::Kind::idBeyondTable, table, domain});
  if (shared.lookupCounter) {
    auto *mask = reinterpret_cast<uint8_t *>(chosen.ensure(std::max<int64_t>(from.count, 1)));
    device.chooseEntries(from, state.zeroRow(table), mask, rows, beyond);
    zeroRows(table, from, rows);
    return leaving.lookup(table, domain, ids, valid);
  }
  lookUp(table, from, rows, beyond, domain);
}

/// Rows of ids or keys, of a table or of several.
void DeviceStep::lookUp(int32_t table, const DeviceIds &from, float **rows, genrec_row_note *beyond,
                        const genrec_domain *domain) {
  if (slot.rankStep)
    requestRows(table, from, rows, beyond);
  else
    findRows(table, from, rows, beyond);
  if (slot.isFindingNonFinite && !slot.isPastKnown)
    leaving.checkRows(table, domain, from.ids, rows, state.zeroRow(table));
}

void DeviceStep::mergedRows(int32_t table, const genrec_domain *domain, const int64_t *keys,
                            float **rows) {
  DeviceIds from;
  from.domain = domain->device;
  from.count = domain->capacity;
  from.ids = keys;
  from.areKeys = true;
  lookUp(table, from, rows, nullptr, domain);
}

void DeviceStep::mergedKeys(int32_t parts, const int32_t *tables, const genrec_domain *const *of,
                            const int64_t *const *ids, const uint8_t *const *valid, int64_t *keys) {
  for (int32_t part = 0; part < parts; ++part) {
    const genrec_table_desc &table = shared.model.tables[tables[part]];
    DeviceIds from;
    from.domain = of[part]->device;
    from.count = of[part]->capacity;
    from.ids = ids[part];
    from.valid = valid[part];
    from.idBits = table.id_bits;
    device.writeKeys(from, table.key, keys,
                     leaving.note({NoteSubject::Kind::idBeyondTable, tables[part], of[part]}));
    keys += of[part]->capacity; // parts of a stacked domain have such room
  }
}

/// Rows that the device counts.
static void describeCounted(genrec_domain *domain) {
  domain->count = -1;
  domain->offsets = domain->parent = nullptr;
  domain->identity = nullptr;
  domain->parent_domain = nullptr;
}

void DeviceStep::uniqueRows(const DeviceGradients &gradients, genrec_domain *touched, float **rows,
                            void *segments) {
  DeviceGradients from = gradients;
  if (slot.meetsPortions()) // others may make theirs before this one has given its own
    from.reader = slot.portion;
  from.zeros = state.zeroRow(from.table);
  describeCounted(touched);
  device.uniqueRows(from, touched, rows, segments);
  if (!slot.rankStep) // else those that are collected are updated
    identifyRows(gradients.table, rows, touched->capacity, touched->device);
}

void DeviceStep::identifyRows(int32_t table, float *const *rows, int64_t capacity,
                              genrec_domain *touched) {
  if (shared.model.tables[table].rounding != GENREC_ROW_STOCHASTIC)
    return;
  std::unique_ptr<DeviceMemory> &memory = identities[table];
  if (!memory)
    memory = std::make_unique<DeviceMemory>(device, "identities of rows");
  const int64_t bytes = std::max<int64_t>(capacity, 1) * static_cast<int64_t>(sizeof(uint64_t));
  device.identifyRows(*shared.tables[table], rows, capacity,
                      reinterpret_cast<uint64_t *>(memory->ensure(bytes)), touched);
}

void DeviceStep::distinctRows(const DeviceLookups &lookups) {
  for (size_t group = 0; group < lookups.of.groups.size(); ++group)
    describeCounted(lookups.distinct[group]);
  device.distinctRows(lookups);
}

void DeviceStep::sumSegments(const genrec_domain *touched, const void *segments, int64_t dim,
                             float *sums) {
  device.sumSegments(touched, segments, dim, sums);
}

void *DeviceStep::scratch(int64_t bytes) {
  return shared.deviceScratch[isDispatching ? 1 : 0]->ensure(bytes);
}

void DeviceStep::collect(int32_t number, std::span<float *const> totals) {
  auto collect = [this, number, of = copyOf(totals)] {
    slot.rankStep->onDevice()->collect(number, of);
  };
  if (isUpdating) // they are known, and lie where the key says
    return collect();
  callBetween(std::move(collect));
}

void DeviceStep::sumExactly(std::span<const genrec_domain *const> rows,
                            std::span<const int32_t> ofParameters,
                            std::span<const float *const> values, std::span<float *const> sums) {
  if (!slot.rankStep) {
    std::vector<ExactValues> exact;
    for (size_t i = 0; i < rows.size(); ++i)
      exact.push_back({.rows = rows[i], .values = values[i], .sum = sums[i]});
    return device.sumExactly(exact,
                             scratch(static_cast<int64_t>(exact.size()) * Device::kExactSumBytes));
  }
  DeviceRanks &ranks = *slot.rankStep->onDevice();
  if (!ranks.exchangesExactly(ofParameters))
    return ranks.sumExactly(slot, rows, ofParameters, values, sums);
  callBetween(
      [this, of = copyOf(rows), whose = copyOf(ofParameters), from = copyOf(values),
       to = copyOf(sums)] { slot.rankStep->onDevice()->sumExactly(slot, of, whose, from, to); });
}

void DeviceStep::collectRows(const genrec_domain *touched, genrec_domain *owned) {
  owned->count = -1;
  device.copyDomain(owned->device, touched->device, state.stoppedFlag());
}

void DeviceStep::storeValue(int32_t kind, double argument, float *to) {
  auto *pinned = static_cast<float *>(leaving.takePinned(sizeof(float)));
  *pinned = slot.stepScalar(kind, argument);
  if (isCapturing)
    scalars.push_back({kind, argument, pinned});
  device.copyIn(to, pinned, sizeof(float));
}

void DeviceStep::copyFloats(const float *from, int64_t count, float *to) {
  device.copyWithin(to, from, count * static_cast<int64_t>(sizeof(float)));
}

} // namespace genrec::rt
