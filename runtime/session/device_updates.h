//===- device_updates.h - The rows that a rank's device updates --*- C++ -*-===//
//
// Each fetch of a step has a row exchange, which gives the rows of its own that some portion
// touched (device_exchange.h). A row of several fetches is updated once, with the sum of what they
// give, in their order.
//
// Where rows and sums are follows from capacities, so what is queued for them can be captured.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_UPDATES_H
#define GENREC_RT_SESSION_DEVICE_UPDATES_H

#include "device_memory.h"
#include "genrec_rt/device_exchange.h"

#include <deque>
#include <vector>

namespace genrec::rt {

struct ExchangedTables;

class DeviceUpdates {
public:
  DeviceUpdates(Device &device, const ExchangedTables &tables);

  /// Begins a step.
  void begin() { fetches.clear(); }
  /// A fetch of the step, after its `collect`.
  void add(DeviceRowExchange &fetch) { fetches.push_back(&fetch); }
  /// Once all are added: says where the rows of stores will be.
  void layOut();
  /// Queues what brings them there.
  void join();
  /// Adds to `key` what the work of `join`, and of whoever reads the rows, follows from.
  void describePlaces(GraphKey &key) const;

  const genrec_collected_rows &of(int32_t store) const { return stores[store].rows; }
  /// Rows of a store, at most.
  int64_t capacity(int32_t store) const { return stores[store].capacity; }
  /// Of these, which ones this rank owns, 1 or 0; null: all of them.
  const float *isOwned(int32_t store) const { return stores[store].isOwned; }
  /// `owned`, of the device, has the rows of a store.
  void describe(int32_t store, genrec_domain *owned) const;

private:
  struct Store {
    explicit Store(Device &device)
        : domains(device, "updates.domains"), addresses(device, "updates.rows"),
          segments(device, "updates.segments"), sums(device, "updates.sums"),
          owned(device, "updates.owned") {}

    genrec_collected_rows rows{};
    int64_t capacity = 0;
    const float *isOwned = nullptr;
    DeviceMemory domains; ///< of the joined rows, then of each fetch
    DeviceMemory addresses, segments, sums, owned;
  };

  std::vector<DeviceRowExchange::Update> given(int32_t store) const;
  void layOutJoined(int32_t store);
  void joinStore(int32_t store);

  Device &device;
  const ExchangedTables &tables;
  std::vector<DeviceRowExchange *> fetches;
  std::deque<Store> stores;
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_UPDATES_H
