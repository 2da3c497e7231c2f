//===- device_ranks.cpp - What portions have in common on a device --------===//

#include "device_ranks.h"

#include "device_step.h"
#include "ranks.h"
#include "step_slot.h"

#include <algorithm>
#include <functional>
#include <numeric>

namespace genrec::rt {

DeviceRanks::DeviceRanks(Device &device, Communicator &comm, int32_t portions,
                         const ExchangedTables &tables, const ParameterShards &shards,
                         RowTravel travel, PortionTurns &turns)
    : device(device), comm(comm), tables(tables), shards(shards), portions(portions),
      nodes(static_cast<int64_t>(
          getNodes(getPortions(portions, comm.getRank(), comm.getSize())).size())),
      travel(travel), turns(turns), sums(device.makePortionSums(comm, portions)),
      segmentSums(device, "sums of segments"), sharedRows(device, "shared parameters"),
      updates(device, tables) {}

void DeviceRanks::begin(std::span<StepSlot *const> ofPortions) {
  slots = ofPortions;
  fetchCount = 0;
  beginFetch();
  sums->begin();
  isDispatched = isGathering = false;
}

//===----------------------------------------------------------------------===//
// Table rows
//===----------------------------------------------------------------------===//

DeviceRanks::Fetch &DeviceRanks::beginFetch() {
  if (fetchCount == fetches.size())
    fetches.push_back({device.makeRowExchange(comm, tables.stores, portions, travel), {}, {}});
  Fetch &fetch = fetches[fetchCount++];
  fetch.rows->begin();
  fetch.lookups.clear();
  return fetch;
}

void DeviceRanks::adoptReplicas() {
  std::vector<std::vector<char>> ofStores;
  for (const ExchangedStore &store : tables.stores)
    ofStores.push_back(store.replicated);
  for (Fetch &fetch : fetches)
    fetch.rows->setReplicated(ofStores);
}

void DeviceRanks::request(const StepSlot &slot, int32_t table, const DeviceIds &ids, float **to,
                          float *zeros, genrec_row_note *beyond) {
  if (isDispatched && !isGathering) {
    beginFetch();
    isGathering = true;
  }
  const Lookup lookup{tables.storeOf[table], ids, to, zeros, beyond};
  std::vector<Lookup> &lookups = fetches[fetchCount - 1].lookups;
  lookups.insert(std::ranges::upper_bound(lookups, lookup.store, {}, &Lookup::store), lookup);
  if (isDispatched)
    turns.meet([this] { fetchLate(); });
}

void DeviceRanks::fetchLate() {
  isGathering = false;
  Fetch &fetch = fetches[fetchCount - 1];
  const uint64_t step = slots.front()->step;
  joinAhead();
  comm.setPurpose({"the keys of a later lookup", step});
  ask(fetch, comm);
  comm.setPurpose({"the rows of a later lookup", step});
  bring(fetch, comm);
  for (const StepSlot *slot : slots)
    fetch.rows->beginPortion(slot->portion);
}

void DeviceRanks::ask(Fetch &fetch, Communicator &on) {
  fetch.requests.clear();
  for (const Lookup &lookup : fetch.lookups)
    fetch.requests.push_back({lookup.store, lookup.ids.count, lookup.rows, lookup.zeros});
  int64_t *keys = fetch.rows->layOutKeys(fetch.requests);
  for (const Lookup &lookup : fetch.lookups) {
    device.writeKeys(lookup.ids, 0, keys, lookup.beyond);
    keys += lookup.ids.count;
  }
  fetch.rows->ask(on, slots.front()->hasUpdate());
}

void DeviceRanks::bring(Fetch &fetch, Communicator &on) {
  fetch.rows->bring(on, [&](int32_t store, const int64_t *of, int64_t count, float **found) {
    slots.front()->onDevice->findOwned(tables.tableOf[store], of, count, found);
  });
}

void DeviceRanks::ask(Communicator &on) {
  StepSlot &front = *slots.front();
  on.setPurpose({"the keys", front.step});
  // The counts of keys go from host to host, where a rank hears that another one has no such step.
  // A device with sums under way to a rank that does not come would be waited for instead.
  front.onDevice->besideDispatch([&] {
    ask(fetches.front(), on);
    sums->reduce(on);
  });
  isDispatched = true;
}

void DeviceRanks::bring(Communicator &on) {
  StepSlot &front = *slots.front();
  on.setPurpose({"the rows", front.step});
  front.onDevice->besideDispatch([&] { bring(fetches.front(), on); });
}

/// A fetch of the compute stage begins in the midst of the portions.
void DeviceRanks::beginPortion(const StepSlot &slot) {
  fetches.front().rows->beginPortion(slot.portion);
}

void DeviceRanks::endPortion(const StepSlot &slot) {
  for (Fetch &fetch : begun())
    fetch.rows->endPortion(slot.portion);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// All ranks give the same sums in the same order, so their rounds have one order, too.
void DeviceRanks::contribute(int32_t number, std::span<const float *const> partial,
                             std::span<const int64_t> floats, std::span<const int32_t> parameters) {
  sums->contribute(number, partial, floats);
  // Others may be read by the compute stage. A step that is not dispatched may run beside another.
  const bool ofParameters = std::ranges::all_of(parameters, [](int32_t of) { return of >= 0; });
  if (!ahead || !isDispatched || !ofParameters || !sums->isWhole(number))
    return;
  ahead->setPurpose({"the gradients", slots.front()->step});
  device.follow(DeviceQueue::sums, DeviceQueue::compute);
  device.use(DeviceQueue::sums);
  areSumsAhead = true;
  try {
    sums->reduce(*ahead, number);
  } catch (...) {
    device.use(DeviceQueue::compute);
    throw;
  }
  device.use(DeviceQueue::compute);
}

void DeviceRanks::joinAhead() {
  if (areSumsAhead)
    device.follow(DeviceQueue::compute, DeviceQueue::sums);
  areSumsAhead = false;
}

void DeviceRanks::collect(int32_t number, std::span<float *const> totals) {
  if (!sums->has(number)) // it is needed in the compute stage that gives it
    turns.meet([] {});
  joinAhead();
  sums->collect(number, totals);
}

void DeviceRanks::contributeRows(const StepSlot &slot, int32_t table, const genrec_domain *touched,
                                 float *const *of, const float *rowSums) {
  for (Fetch &fetch : begun()) // each takes those of its rows
    fetch.rows->contribute(slot.portion, tables.storeOf[table], touched->device, touched->capacity,
                           of, rowSums);
}

void DeviceRanks::contributeSegments(const StepSlot &slot, int32_t table,
                                     const genrec_domain *touched, float *const *of,
                                     const void *segments, int64_t dim) {
  auto *to = reinterpret_cast<float *>(
      segmentSums.ensure(touched->capacity * dim * static_cast<int64_t>(sizeof(float))));
  device.sumSegments(touched, segments, dim, to);
  contributeRows(slot, table, touched, of, to);
}

void DeviceRanks::exchangeSums(bool isUpdated) {
  joinAhead();
  comm.setPurpose({isUpdated ? "the gradients" : "the sums", slots.front()->step});
  sums->reduce(comm);
  if (!isUpdated)
    return;
  updates.begin();
  for (Fetch &fetch : begun()) {
    fetch.rows->collect();
    updates.add(*fetch.rows);
  }
  updates.layOut();
}

void DeviceRanks::describeUpdate(GraphKey &key) const {
  key.addPlace(this);
  updates.describePlaces(key);
  sums->describePlaces(key);
}

int64_t DeviceRanks::countCollected(int32_t table) const {
  return updates.capacity(tables.storeOf[table]);
}

const genrec_collected_rows &DeviceRanks::collected(int32_t table) const {
  return updates.of(tables.storeOf[table]);
}

void DeviceRanks::describeCollected(int32_t table, genrec_domain *owned) {
  owned->count = -1;
  updates.describe(tables.storeOf[table], owned->device);
  slots.front()->onDevice->identifyRows(table, collected(table).rows, countCollected(table),
                                        owned->device);
}

/// Of rows that a domain has collected, which ones this rank owns: those of replicas count there.
/// Null: all of them.
const float *DeviceRanks::ownedRows(int32_t domain) const {
  const int32_t table = slots.front()->state().model.domains[domain].collected - 1;
  return table < 0 ? nullptr : updates.isOwned(tables.storeOf[table]);
}

bool DeviceRanks::exchangesExactly(std::span<const int32_t> ofParameters) const {
  return comm.getSize() > 1 &&
         std::ranges::any_of(ofParameters, [this](int32_t of) { return travels(of); });
}

void DeviceRanks::sumExactly(const StepSlot &slot, std::span<const genrec_domain *const> owned,
                             std::span<const int32_t> ofParameters,
                             std::span<const float *const> values, std::span<float *const> totals) {
  std::vector<ExactValues> exact;
  for (size_t i = 0; i < owned.size(); ++i) {
    ExactValues &of = exact.emplace_back();
    of.rows = owned[i];
    of.values = values[i];
    of.sum = totals[i];
    of.travels = travels(ofParameters[i]);
    of.counts = ownedRows(slot.numberOf(owned[i]));
  }
  comm.setPurpose({"the norm", slots.front()->step});
  sums->sumExactly(exact);
}

void DeviceRanks::shareParameters() {
  if (!shards.areShared())
    return;
  const genrec_runtime &state = slots.front()->state();
  const std::vector<genrec_parameter> &parameters = state.parameters;
  const uint32_t *stopped = state.onDevice->stoppedFlag();
  const int32_t self = comm.getRank(), ranks = comm.getSize();
  /// Calls `body(rows of a parameter, floats)` for those that a rank updates.
  auto forRows = [&](int32_t of, const auto &body) {
    for (int32_t i = 0; i < static_cast<int32_t>(parameters.size()); ++i)
      if (const ParameterShards::Rows own = shards.of(i, of); shards.isTrained(i) && own.count > 0)
        body(parameters[i].value + own.first * shards.width(i), own.count * shards.width(i));
  };
  std::vector<int64_t> begins{0};
  for (int32_t of = 0; of < ranks; ++of) {
    begins.push_back(begins.back());
    forRows(of, [&](const float *, int64_t floats) { begins[of + 1] += floats; });
  }
  auto *rowsOf = reinterpret_cast<float *>(sharedRows.ensure(begins.back() * 4 + 4));
  float *to = rowsOf + begins[self];
  forRows(self, [&](const float *from, int64_t floats) {
    device.copyWithin(to, from, floats * 4);
    to += floats;
  });
  std::vector<SendPart> send(ranks);
  std::vector<ReceivePart> receive(ranks);
  for (int32_t other = 0; other < ranks; ++other) {
    if (other == self)
      continue;
    send[other] = {rowsOf + begins[self], (begins[self + 1] - begins[self]) * 4};
    receive[other] = {rowsOf + begins[other], (begins[other + 1] - begins[other]) * 4};
    sharedBytes += receive[other].bytes;
  }
  comm.setPurpose({"the parameters", slots.front()->step});
  comm.exchange(send, receive, {CommMemory::Kind::device, device.stream()});
  for (int32_t other = 0; other < ranks; ++other) {
    const float *from = rowsOf + begins[other];
    if (other != self)
      forRows(other, [&](float *rows, int64_t floats) {
        device.copyUnlessStopped(rows, from, floats, stopped);
        from += floats;
      });
  }
}

RowExchange::Use DeviceRanks::getUse(int32_t store) const {
  RowExchange::Use use;
  use.asked.resize(tables.stores[store].members.size());
  for (const Fetch &fetch : std::span(fetches).first(fetchCount)) {
    const std::vector<int64_t> asked = fetch.rows->countAsked(store);
    std::ranges::transform(use.asked, asked, use.asked.begin(), std::plus());
  }
  use.sums = nodes * std::reduce(use.asked.begin(), use.asked.end());
  return use;
}

void DeviceRanks::end() {
  for (Fetch &fetch : begun())
    fetch.rows->end();
}

ExchangeCounts DeviceRanks::getTraffic() const {
  ExchangeCounts counts;
  for (const Fetch &fetch : fetches)
    counts.add(fetch.rows->getTraffic());
  counts.denseBytes += sums->getReceivedBytes() + sharedBytes;
  return counts;
}

} // namespace genrec::rt
