//===- device_updates.cpp - The rows that a rank's device updates ---------===//

#include "device_updates.h"

#include "genrec_rt/device.h"
#include "ranks.h"

#include <algorithm>

namespace genrec::rt {

DeviceUpdates::DeviceUpdates(Device &device, const ExchangedTables &tables)
    : device(device), tables(tables) {
  for (size_t store = 0; store < tables.stores.size(); ++store)
    stores.emplace_back(device);
}

/// By fetch.
std::vector<DeviceRowExchange::Update> DeviceUpdates::given(int32_t store) const {
  std::vector<DeviceRowExchange::Update> updates;
  for (const DeviceRowExchange *fetch : fetches)
    updates.push_back(fetch->getUpdate(store));
  return updates;
}

void DeviceUpdates::layOut() {
  for (int32_t number = 0; number < static_cast<int32_t>(stores.size()); ++number) {
    Store &store = stores[number];
    store.capacity = 0;
    for (const DeviceRowExchange::Update &update : given(number))
      store.capacity += update.capacity;
    if (fetches.size() > 1) {
      layOutJoined(number);
      continue;
    }
    const DeviceRowExchange::Update update = fetches.front()->getUpdate(number);
    store.rows = {update.rows, update.sums, tables.stores[number].dim, update.numbers,
                  update.segments};
    store.isOwned = update.isOwned;
  }
}

void DeviceUpdates::layOutJoined(int32_t number) {
  Store &store = stores[number];
  const int64_t rows = store.capacity, dim = tables.stores[number].dim;
  store.domains.ensure(static_cast<int64_t>((fetches.size() + 1) * sizeof(genrec_domain)));
  store.rows.rows = reinterpret_cast<float **>(store.addresses.ensure(rows * 8 + 8));
  store.rows.sums = reinterpret_cast<float *>(store.sums.ensure(rows * dim * 4 + 4));
  store.rows.segments =
      store.segments.ensure(rows * GENREC_SEGMENT_BYTES_PER_ROW + GENREC_SEGMENT_BYTES);
  store.rows.dim = dim;
  store.rows.numbers = nullptr;
  store.isOwned = fetches.front()->getUpdate(number).isOwned
                      ? reinterpret_cast<float *>(store.owned.ensure(rows * 4 + 4))
                      : nullptr;
}

void DeviceUpdates::join() {
  if (fetches.size() > 1)
    for (int32_t store = 0; store < static_cast<int32_t>(stores.size()); ++store)
      joinStore(store);
}

/// Rows of the fetches are what lookups of one table are to genrec_rt_unique_rows: the same row has
/// one address, and its gradients are those of the fetches.
void DeviceUpdates::joinStore(int32_t number) {
  const Store &store = stores[number];
  const std::vector<DeviceRowExchange::Update> updates = given(number);
  const int64_t dim = tables.stores[number].dim;
  const size_t parts = updates.size();
  auto *descriptors = reinterpret_cast<genrec_domain *>(store.domains.data());
  std::vector<genrec_domain> domains(parts + 1);
  std::vector<const genrec_domain *> ofParts;
  std::vector<float *const *> handles;
  std::vector<const float *> sums, owned;
  for (size_t part = 0; part < parts; ++part) {
    genrec_domain &domain = domains[part + 1];
    domain.capacity = updates[part].capacity;
    domain.device = descriptors + part + 1;
    fetches[part]->describe(number, domain.device);
    ofParts.push_back(&domain);
    handles.push_back(updates[part].rows);
    sums.push_back(updates[part].sums);
    owned.push_back(updates[part].isOwned);
  }
  genrec_domain &joined = domains.front();
  joined.capacity = store.capacity;
  joined.device = descriptors;
  std::vector<int64_t> strides(parts, 1);
  const std::vector<const int64_t *> parents(parts);
  DeviceGradients from;
  from.table = tables.tableOf[number];
  from.reader = DeviceGradients::kJoin;
  from.parts = static_cast<int32_t>(parts);
  from.domains = ofParts.data();
  from.handles = handles.data();
  from.gradients = owned.data();
  from.strides = strides.data();
  from.parents = parents.data();
  from.dim = 1;
  from.all = true; // a row whose sum is 0 is updated
  float **rows = store.rows.rows;
  void *segments = store.rows.segments;
  if (store.isOwned) { // of each row, by how many fetches
    device.uniqueRows(from, &joined, rows, segments);
    device.sumSegments(&joined, segments, 1, const_cast<float *>(store.isOwned));
  }
  std::ranges::fill(strides, dim);
  from.gradients = sums.data();
  from.dim = dim;
  device.uniqueRows(from, &joined, rows, segments);
  device.sumSegments(&joined, segments, dim, store.rows.sums);
}

void DeviceUpdates::describePlaces(GraphKey &key) const {
  for (int32_t number = 0; number < static_cast<int32_t>(stores.size()); ++number) {
    for (const DeviceRowExchange::Update &update : given(number)) {
      key.add(update.capacity);
      for (const void *place :
           {static_cast<const void *>(update.rows), static_cast<const void *>(update.sums),
            static_cast<const void *>(update.segments), static_cast<const void *>(update.isOwned)})
        key.addPlace(place);
    }
    const Store &store = stores[number];
    for (const void *place :
         {static_cast<const void *>(store.rows.rows), static_cast<const void *>(store.rows.sums),
          static_cast<const void *>(store.rows.segments), static_cast<const void *>(store.isOwned)})
      key.addPlace(place);
  }
}

void DeviceUpdates::describe(int32_t store, genrec_domain *owned) const {
  if (fetches.size() == 1)
    return fetches.front()->describe(store, owned);
  device.copyDomain(owned, reinterpret_cast<const genrec_domain *>(stores[store].domains.data()),
                    /*stopped=*/nullptr);
}

} // namespace genrec::rt
