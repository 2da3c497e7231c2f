//===- device_exchange.h - Rows and sums of portions on a device -*- C++ -*-===//
//
// What ranks/row_exchange.h and portions.h do on the host, for values in the memory of a device:
// rows that the portions of a batch look up travel to the ranks that ask for them, sums of
// gradients back to their owners, and sums over portions are added in the tree of portions.h, so
// that the bits are those of any other number of ranks. Keys, rows and sums stay on the device; the
// host learns how many there are, once per step.
//
// Of a replicated table every rank has all rows: it finds those that it asks for itself, and keys
// and sums go to all ranks, which make the same updates.
//
// Work goes into the queue in use (device.h). A store is a table, or several that are merged. Calls
// that are collective name CommError's reason as those of a communicator do.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DEVICE_EXCHANGE_H
#define GENREC_RT_DEVICE_EXCHANGE_H

#include "genrec_rt/abi.h"
#include "genrec_rt/comm.h"
#include "genrec_rt/exchange_counts.h"
#include "genrec_rt/graph_key.h"
#include "genrec_rt/row_travel.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace genrec::rt {

/// The keys of one lookup of one portion. rows[i] becomes the address of a copy of the row's value:
/// the same one for equal keys of one step, there until `begin`; `zeros` where there is no key.
struct DeviceRowRequest {
  int32_t store = 0;
  int64_t count = 0; ///< entries
  float **rows = nullptr;
  float *zeros = nullptr;
};

/// One step after another: begin, layOutKeys, ask and bring, then for each portion beginPortion,
/// contribute, endPortion, then collect and getUpdate. Portions may compute in turns, but end in
/// their order. Buffers grow and are kept. Calls up to `ask` may be made beside the step before,
/// which has an exchange of its own.
class DeviceRowExchange {
public:
  virtual ~DeviceRowExchange() = default;

  /// Begins a step. The device has ended the one before.
  virtual void begin() = 0;
  /// Between two steps, all ranks at the same time: which tables have replicas from now on, by
  /// store as ExchangedStore::replicated.
  virtual void setReplicated(std::span<const std::vector<char>> ofStores) = 0;
  /// Where the caller writes the keys of all requests of this rank's portions, which are in the
  /// order of stores: one request behind another; a negative one is none.
  virtual int64_t *layOutKeys(std::span<const DeviceRowRequest> requests) = 0;
  /// Writes the addresses of the rows of keys that this rank owns, or has replicas of, on the
  /// device; a key may occur several times.
  using FindRows =
      std::function<void(int32_t store, const int64_t *keys, int64_t count, float **rows)>;
  /// Sends the keys that were written to their owners; those of replicas to all ranks, where the
  /// step `collects` sums of them. Waits for the device. Collective on `on`: a round of counts, and
  /// one each for keys that owners and that all ranks get.
  virtual void ask(Communicator &on, bool collects) = 0;
  /// Finds the rows that ranks ask for, and brings their values. Collective on `on`: one round, or
  /// none where all rows are replicas.
  virtual void bring(Communicator &on, const FindRows &find) = 0;

  /// A portion of this rank, by its number among all, computes.
  virtual void beginPortion(int32_t portion) = 0;
  /// Sums of gradients of the distinct rows that the portion touches: sums + i * dim is that of
  /// rows[i], an address that `fetch` gave; as many as `touched`, of the device, has rows, at most
  /// `capacity`; other addresses are left out. Once per store and portion; those without a call
  /// touch nothing.
  virtual void contribute(int32_t portion, int32_t store, const genrec_domain *touched,
                          int64_t capacity, float *const *rows, const float *sums) = 0;
  virtual void endPortion(int32_t portion) = 0;

  /// Adds the sums of all portions at the owners; a portion that did not touch a row adds nothing,
  /// not 0. Collective, a round for each node of the tree that a rank sends, at most; one more for
  /// those of replicas.
  virtual void collect() = 0;
  /// The rows of a store that this rank owns, or has replicas of, and some portion touched, after
  /// `collect`; arrays of the device. Where they are follows from the capacities of all stores, and
  /// not from how many rows there are, which the device knows: kernels of rows that are updated can
  /// be captured.
  struct Update {
    float **rows = nullptr;
    float *sums = nullptr;
    const int64_t *numbers = nullptr; ///< 0, 1, 2, …
    void *segments = nullptr;         ///< a kernels::SegmentSums in which each row has one term
    int64_t capacity = 0;             ///< of rows: a bucket (footprint.h), which never falls
    /// Of each row, whether this rank owns it, 1 or 0. Null: it owns all.
    const float *isOwned = nullptr;
  };
  virtual Update getUpdate(int32_t store) const = 0;
  /// `owned`, of the device, has the rows of a store that are updated.
  virtual void describe(int32_t store, genrec_domain *owned) = 0;

  /// The device has ended the step: what only it knew is in getTraffic.
  virtual void end() = 0;
  /// Of steps that have ended.
  virtual ExchangeCounts getTraffic() const = 0;
  /// Distinct ids that this rank has asked for in the step that has ended: by member of a store.
  /// Waits.
  virtual std::vector<int64_t> countAsked(int32_t store) const = 0;
};

/// Values of which an exact sum is asked for: a float per row of a domain of the host's step.
struct ExactValues {
  const genrec_domain *rows = nullptr;
  const float *values = nullptr;
  const float *counts = nullptr; ///< of the device, by row: 0 leaves it out; null: all count
  bool travels = false;          ///< other ranks have other rows
  float *sum = nullptr;          ///< rounded once
};

/// Sums over portions: gradients of parameters, weights of losses.
class DevicePortionSums {
public:
  virtual ~DevicePortionSums() = default;

  /// Begins a step. The device has ended the one before.
  virtual void begin() = 0;
  /// Gives lists of `floats` values of the next portion to the sum of `number`.
  virtual void contribute(int32_t number, std::span<const float *const> partial,
                          std::span<const int64_t> floats) = 0;
  /// Whether all portions of this rank have given to the sum of `number`, which is not added up
  /// yet.
  virtual bool isWhole(int32_t number) const = 0;
  /// Whether it is added up.
  virtual bool has(int32_t number) const = 0;
  /// Adds to `key` where totals are: the same places in each step that has given the same sums.
  virtual void describePlaces(GraphKey &key) const = 0;
  /// Adds up that one. Collective, as the next one.
  virtual void reduce(Communicator &on, int32_t number) = 0;
  /// Adds up the sums that all portions of this rank have given to. Collective on `on`, one round;
  /// one more where more than two ranks add slices of long ones.
  virtual void reduce(Communicator &on) = 0;
  /// The totals, after `reduce`: as many lists as were given.
  virtual void collect(int32_t number, std::span<float *const> totals) = 0;
  /// Collective, one round, where any travels.
  virtual void sumExactly(std::span<const ExactValues> sums) = 0;
  /// From other ranks, since this was made.
  virtual int64_t getReceivedBytes() const = 0;
};

} // namespace genrec::rt

#endif // GENREC_RT_DEVICE_EXCHANGE_H
