//===- device_ranks.cpp - What portions have in common on a device --------===//

#include "device_ranks.h"

#include "device_step.h"
#include "ranks.h"
#include "step_slot.h"

#include <algorithm>

namespace genrec::rt {

static std::vector<DeviceExchangedStore> describeStores(const ExchangedTables &tables) {
  std::vector<DeviceExchangedStore> stores;
  for (const ExchangedStore &store : tables.stores)
    stores.push_back({store.dim, store.members, store.keyBits, store.isBf16});
  return stores;
}

DeviceRanks::DeviceRanks(Device &device, Communicator &comm, int32_t portions,
                         const ExchangedTables &tables, const ParameterShards &shards,
                         RowTravel travel)
    : device(device), comm(comm), tables(tables), shards(shards),
      rows(device.makeRowExchange(comm, describeStores(tables), portions, travel)),
      sums(device.makePortionSums(comm, portions)), segmentSums(device, "sums of segments"),
      sharedRows(device, "shared parameters"), collectedRows(tables.stores.size()) {}

void DeviceRanks::begin(std::span<StepSlot *const> ofPortions) {
  slots = ofPortions;
  rows->begin();
  sums->begin();
  lookups.clear();
  isDispatched = false;
}

void DeviceRanks::request(const StepSlot &slot, int32_t table, const DeviceIds &ids, float **to,
                          float *zeros, genrec_row_note *beyond) {
  if (isDispatched)
    throw Error(std::string("rows of table '") + slot.state().model.tables[table].name +
                    "' are looked up by ids that the compute stage makes, which portions on a "
                    "device cannot do yet",
                "run it on one GPU with one portion, or compile it with --target=cpu");
  const int32_t store = tables.storeOf[table];
  auto behind = std::ranges::upper_bound(lookups, store, {}, &Lookup::store);
  lookups.insert(behind, {store, ids, to, zeros, beyond});
}

void DeviceRanks::ask(Communicator &on) {
  StepSlot &front = *slots.front();
  on.setPurpose({"the keys", front.step});
  requests.clear();
  for (const Lookup &lookup : lookups)
    requests.push_back({lookup.store, lookup.ids.count, lookup.rows, lookup.zeros});
  front.onDevice->besideDispatch([&] {
    sums->reduce(on);
    int64_t *keys = rows->layOutKeys(requests);
    for (const Lookup &lookup : lookups) {
      device.writeKeys(lookup.ids, 0, keys, lookup.beyond);
      keys += lookup.ids.count;
    }
    rows->ask(on);
  });
  isDispatched = true;
}

void DeviceRanks::bring(Communicator &on) {
  StepSlot &front = *slots.front();
  DeviceStep &step = *front.onDevice;
  on.setPurpose({"the rows", front.step});
  step.besideDispatch([&] {
    rows->bring(on, [&](int32_t store, const int64_t *of, int64_t count, float **found) {
      step.findOwned(tables.tableOf[store], of, count, found);
    });
  });
}

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
  joinAhead();
  sums->collect(number, totals);
}

void DeviceRanks::contributeRows(int32_t table, const genrec_domain *touched, float *const *of,
                                 const float *rowSums) {
  rows->contribute(tables.storeOf[table], touched->device, touched->capacity, of, rowSums);
}

void DeviceRanks::contributeSegments(int32_t table, const genrec_domain *touched, float *const *of,
                                     const void *segments, int64_t dim) {
  auto *to = reinterpret_cast<float *>(
      segmentSums.ensure(touched->capacity * dim * static_cast<int64_t>(sizeof(float))));
  device.sumSegments(touched, segments, dim, to);
  contributeRows(table, touched, of, to);
}

void DeviceRanks::exchangeSums(bool updates) {
  joinAhead();
  comm.setPurpose({updates ? "the gradients" : "the sums", slots.front()->step});
  sums->reduce(comm);
  if (!updates)
    return;
  rows->collect();
  for (size_t store = 0; store < collectedRows.size(); ++store) {
    const DeviceRowExchange::Update update = rows->getUpdate(static_cast<int32_t>(store));
    collectedRows[store] = {update.rows, update.sums, tables.stores[store].dim, update.numbers,
                            update.segments};
  }
}

int64_t DeviceRanks::countCollected(int32_t table) const {
  return rows->getUpdate(tables.storeOf[table]).most;
}

const genrec_collected_rows &DeviceRanks::collected(int32_t table) const {
  return collectedRows[tables.storeOf[table]];
}

void DeviceRanks::describeCollected(int32_t table, genrec_domain *owned) {
  owned->count = -1;
  rows->describe(tables.storeOf[table], owned->device);
  slots.front()->onDevice->identifyRows(table, collected(table).rows, countCollected(table),
                                        owned->device);
}

void DeviceRanks::sumExactly(std::span<const genrec_domain *const> owned,
                             const int32_t *ofParameters, std::span<const float *const> values,
                             std::span<float *const> totals) {
  std::vector<char> travels; // unless ranks share their updates, parameters are on every rank
  for (size_t i = 0; i < owned.size(); ++i)
    travels.push_back(!ofParameters[i] || shards.areShared());
  comm.setPurpose({"the norm", slots.front()->step});
  sums->sumExactly(owned, travels, values, totals);
}

void DeviceRanks::shareParameters() {
  if (!shards.areShared())
    return;
  const std::vector<genrec_parameter> &parameters = slots.front()->state().parameters;
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
        device.copyWithin(rows, from, floats * 4);
        from += floats;
      });
  }
}

ExchangeCounts DeviceRanks::getTraffic() const {
  ExchangeCounts counts = rows->getTraffic();
  counts.denseBytes += sums->getReceivedBytes() + sharedBytes;
  return counts;
}

} // namespace genrec::rt
