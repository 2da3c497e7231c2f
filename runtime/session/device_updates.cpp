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

void DeviceUpdates::join() {
  std::vector<DeviceRowExchange::Update> given;
  for (int32_t store = 0; store < static_cast<int32_t>(stores.size()); ++store) {
    given.clear();
    for (const DeviceRowExchange *fetch : fetches)
      given.push_back(fetch->getUpdate(store));
    stores[store].isOwned = given[0].isOwned;
    if (given.size() > 1)
      joinStore(store, given);
    else
      stores[store].rows = {given[0].rows, given[0].sums, tables.stores[store].dim,
                            given[0].numbers, given[0].segments};
    stores[store].most = 0;
    for (const DeviceRowExchange::Update &update : given)
      stores[store].most += update.most;
  }
}

/// Rows of the fetches are what lookups of one table are to genrec_rt_unique_rows: the same row has
/// one address, and its gradients are those of the fetches.
void DeviceUpdates::joinStore(int32_t number, const std::vector<DeviceRowExchange::Update> &given) {
  Store &store = stores[number];
  const int64_t dim = tables.stores[number].dim;
  const size_t parts = given.size();
  auto *descriptors = reinterpret_cast<genrec_domain *>(
      store.domains.ensure(static_cast<int64_t>((parts + 1) * sizeof(genrec_domain))));
  std::vector<genrec_domain> domains(parts + 1);
  std::vector<const genrec_domain *> ofParts;
  std::vector<float *const *> handles;
  std::vector<const float *> sums, owned;
  for (size_t part = 0; part < parts; ++part) {
    genrec_domain &domain = domains[part + 1];
    domain.capacity = given[part].most;
    domain.device = descriptors + part + 1;
    fetches[part]->describe(number, domain.device);
    domains.front().capacity += domain.capacity;
    ofParts.push_back(&domain);
    handles.push_back(given[part].rows);
    sums.push_back(given[part].sums);
    owned.push_back(given[part].isOwned);
  }
  genrec_domain &joined = domains.front();
  joined.device = descriptors;
  std::vector<int64_t> strides(parts, 1);
  const std::vector<const int64_t *> parents(parts);
  DeviceGradients from;
  from.table = tables.tableOf[number];
  from.parts = static_cast<int32_t>(parts);
  from.domains = ofParts.data();
  from.handles = handles.data();
  from.gradients = owned.data();
  from.strides = strides.data();
  from.parents = parents.data();
  from.dim = 1;
  from.all = true; // a row whose sum is 0 is updated
  auto *rows = reinterpret_cast<float **>(store.addresses.ensure(joined.capacity * 8 + 8));
  void *segments =
      store.segments.ensure(joined.capacity * GENREC_SEGMENT_BYTES_PER_ROW + GENREC_SEGMENT_BYTES);
  auto *to = reinterpret_cast<float *>(store.sums.ensure(joined.capacity * dim * 4 + 4));
  if (store.isOwned) { // of each row, by how many fetches
    auto *by = reinterpret_cast<float *>(store.owned.ensure(joined.capacity * 4 + 4));
    device.uniqueRows(from, &joined, rows, segments);
    device.sumSegments(&joined, segments, 1, by);
    store.isOwned = by;
  }
  std::ranges::fill(strides, dim);
  from.gradients = sums.data();
  from.dim = dim;
  device.uniqueRows(from, &joined, rows, segments);
  device.sumSegments(&joined, segments, dim, to);
  store.rows = {rows, to, dim, nullptr, segments};
}

void DeviceUpdates::describe(int32_t store, genrec_domain *owned) const {
  if (fetches.size() == 1)
    return fetches.front()->describe(store, owned);
  device.copyDomain(owned, reinterpret_cast<const genrec_domain *>(stores[store].domains.data()));
}

} // namespace genrec::rt
