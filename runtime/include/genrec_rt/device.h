//===- device.h - The device whose memory a model's values are in -*- C++ -*-===//
//
// What a session asks of a device, so that it needs to know none: memory, copies, tables, and the
// parts of runtime calls (abi.h) that read or write values there. The host has no implementation:
// without a device a session does what it does in its own memory. Models for CUDA name theirs in
// their description (genrec_model_desc.device, runtime/embedding/cuda/device.cu).
//
// Work goes into one of three queues, each in order: lookups of a step into `dispatch`, sums that
// travel while it computes into `sums`, the rest of it into `compute`. What one does for another is
// waited for where that is said (`follow`). A
// call is done when it returns only where that is said. One thread at a time calls a device.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_DEVICE_H
#define GENREC_RT_DEVICE_H

#include "genrec_rt/abi.h"
#include "genrec_rt/device_exchange.h"
#include "genrec_rt/kernels/shared/catalogue_slots.h"
#include "genrec_rt/lookup_groups.h"
#include "genrec_rt/roofline.h"
#include "genrec_rt/table_store.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace genrec::rt {

/// The queues of a device.
enum class DeviceQueue { compute, dispatch, sums };

/// Work that was captured, to be launched any number of times.
struct DeviceGraph {
  virtual ~DeviceGraph() = default;
};

/// A moment of a queue.
struct DeviceMark {
  virtual ~DeviceMark() = default;
};

/// Which device it is.
struct DeviceInfo {
  int32_t number = 0; ///< among those that this process sees
  std::string name;   ///< "NVIDIA H200"
  std::string uuid;   ///< "GPU-…", of no other device
  bool isEmulated = false;
};

/// Bytes of a device's memory.
struct DeviceSpace {
  int64_t total = 0, free = 0;
};

/// What a device has been asked for so far, in this process.
struct DeviceCounts {
  int64_t waits = 0;       ///< of the host for the device
  int64_t allocations = 0; ///< of the device's memory and of pinned memory
};

/// Entries of a lookup. All arrays are the device's; one of `count` entries.
struct DeviceIds {
  const genrec_domain *domain = nullptr; ///< whose count says how many entries exist; of the device
  int64_t count = 0;                     ///< at most
  const int64_t *ids = nullptr;          ///< negative: none, where `areKeys`
  const uint8_t *valid = nullptr;        ///< 0: none; may be null
  bool areKeys = false;                  ///< ids with the number of their table (merge-tables)
  int64_t idBits = 64;                   ///< of ids
};

/// What genrec_rt_unique_rows is given, with domains of the host's step.
struct DeviceGradients {
  int32_t table = 0;
  int32_t parts = 0;
  const genrec_domain *const *domains = nullptr;
  float *const *const *handles = nullptr;
  const float *const *gradients = nullptr;
  const int64_t *strides = nullptr;
  const int64_t *const *parents = nullptr;
  int64_t dim = 0;
  bool all = false;
  const float *zeros = nullptr; ///< the row that is never touched
  /// Who reads what the call makes, until its next call for the table: portions that meet make and
  /// read in turns.
  int32_t reader = 0;
  static constexpr int32_t kJoin = -1; ///< rows of several fetches (session/device_updates.h)
};

/// Lookups of the rows of `domain`; domains are of the host's step.
struct DeviceLookups {
  LookupGroups of;
  const genrec_domain *domain = nullptr;
  genrec_domain *const *distinct = nullptr; ///< of each group: the device's gets the count
};

/// Values that must lie in [low, high] and below the rows of `items`, which may be null, as
/// genrec_rt_require_range says. All arrays and domains are the device's.
struct DeviceRange {
  const genrec_domain *domain = nullptr;
  int64_t count = 0; ///< at most
  int32_t type = 0;  ///< genrec_type
  const void *values = nullptr;
  const float *weight = nullptr;
  const uint8_t *valid = nullptr;
  const genrec_domain *items = nullptr;
  double low = 0, high = 0;
};

/// Floats that must be finite: rows of `domain`, or one row where that is null; of the device.
struct DeviceFloats {
  const float *values = nullptr;
  const genrec_domain *domain = nullptr;
  int64_t count = 1; ///< of rows, at most
  int64_t rowSize = 1, stride = 1;
};

/// Rows of a table that must be finite; all arrays and domains are the device's.
struct DeviceRows {
  const genrec_domain *domain = nullptr;
  int64_t count = 0; ///< at most
  float *const *rows = nullptr;
  const int64_t *keys = nullptr; ///< of these
  int64_t dim = 0;
  bool isBf16 = false;
  const float *zeros = nullptr; ///< the row that is none of the table
};

/// A loss of a training step (kernels/cuda/stopped_steps.h). But for `to`, which is pinned, all is
/// the device's.
struct DeviceLoss {
  const float *sum = nullptr, *weight = nullptr;
  float *to = nullptr;              ///< both
  uint32_t *stopped = nullptr;      ///< 1 from the first loss on that is not finite
  genrec_domain *domains = nullptr; ///< of the step
  const int32_t *updated = nullptr; ///< numbers of those that have no rows then
  int32_t updatedCount = 0;
};

/// Calls that look for what may not be take notes (genrec_row_note), in the device's memory.
class Device {
public:
  virtual ~Device() = default;
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  /// The calling thread calls the device from here on, in place of another, or in turns with it.
  virtual void enter() = 0;

  //===-- memory -----------------------------------------------------------===//

  /// Memory of the device, and of the host that copies to and from it are fast from. `name` is for
  /// messages where there is none left.
  virtual void *allocate(const char *name, int64_t bytes) = 0;
  virtual void release(void *memory) noexcept = 0;
  virtual void *allocatePinned(const char *name, int64_t bytes) = 0;
  virtual void releasePinned(void *memory) noexcept = 0;
  /// Before pinned memory is given back within a step, which waits for all that is queued: throws
  /// where that waits for a rank that is gone.
  virtual void watchQueues() = 0;

  //===-- queued work ------------------------------------------------------===//

  /// Calls put their work into this queue from here on, and take and release memory in its order.
  /// `compute` at first.
  virtual void use(DeviceQueue queue) = 0;
  /// cudaStream_t of the queue in use, and of any.
  virtual void *stream() const = 0;
  virtual void *streamOf(DeviceQueue queue) const = 0;
  /// What `queue` gets from here on waits for all that `before` has.
  virtual void follow(DeviceQueue queue, DeviceQueue before) = 0;
  /// The host's side is pinned and stays as it is until the host has waited.
  virtual void copyIn(void *to, const void *host, int64_t bytes) = 0;
  /// Beside what is queued, which does not use `to`; what the queue in use gets after `joinCopies`
  /// waits for it.
  virtual void copyInAhead(void *to, const void *host, int64_t bytes) = 0;
  virtual void joinCopies() = 0;
  virtual void copyOut(void *host, const void *from, int64_t bytes) = 0;
  virtual void copyWithin(void *to, const void *from, int64_t bytes) = 0;
  virtual void fill(void *memory, uint8_t byte, int64_t bytes) = 0;
  /// Waits for all that the queue in use has. Throws Error where a kernel failed.
  virtual void synchronize() = 0;
  /// The same of what the mark's queue had when it was placed.
  virtual void await(DeviceMark &mark) = 0;

  //===-- captured work ----------------------------------------------------===//

  /// From here to `endCapture`, what goes into the queue in use is noted instead of run. Nothing
  /// may be waited for, and no memory taken: an Error says so.
  virtual void beginCapture() = 0;
  /// Null where something could not be captured: `*why` says what.
  virtual std::unique_ptr<DeviceGraph> endCapture(std::string *why) = 0;
  /// Puts what was captured into the queue in use.
  virtual void launch(DeviceGraph &graph) = 0;
  /// Rises where memory was given back or has moved: what was captured before may name it.
  virtual int64_t memoryVersion() const = 0;
  virtual DeviceCounts counts() const = 0;
  virtual DeviceSpace space() const = 0;
  virtual const DeviceInfo &info() const = 0;
  /// Measures for some seconds what the device reaches, with the queue in use.
  virtual Roofline calibrate() = 0;

  //===-- moments -----------------------------------------------------------===//

  virtual std::unique_ptr<DeviceMark> makeMark() = 0;
  /// The mark is where the queue in use is now.
  virtual void place(DeviceMark &mark) = 0;
  /// Seconds from one to the other, both of which the host has waited for.
  virtual double secondsBetween(const DeviceMark &from, const DeviceMark &to) = 0;

  //===-- tables -----------------------------------------------------------===//

  /// A store waits for the device at most once between two of these calls, all stores together:
  /// where that is not enough it makes room for as many new rows as there may be.
  virtual void beginDispatch() = 0;
  /// Used in the order of `dispatch`. `cachedRows` above 0: rows are in host memory, and so many of
  /// them in the device's, where they stay from a lookup to the next step (beginDispatch); its
  /// lookups must follow what writes them. Throws Error where the table has rules about rows.
  virtual std::unique_ptr<TableStore> makeStore(const StoreConfig &config, const std::string &name,
                                                int64_t cachedRows = 0) = 0;
  /// chosen[i]: whether entry i is looked up; rows[i] = `zeros` where it is not. Notes in `beyond`
  /// the first entry that is beyond its table, with its id; it is not looked up either.
  virtual void chooseEntries(const DeviceIds &ids, float *zeros, uint8_t *chosen, float **rows,
                             genrec_row_note *beyond) = 0;
  /// chosen[i] stays where rows[i] is null.
  virtual void chooseMissing(uint8_t *chosen, float *const *rows, int64_t count) = 0;
  /// keys[i] = key | id, -1 where there is none, up to `count`, which may be more than there are.
  virtual void writeKeys(const DeviceIds &ids, int64_t key, int64_t *keys,
                         genrec_row_note *beyond) = 0;
  /// Distinct touched rows of all parts in the order of first appearance; `segments` begins with a
  /// kernels::SegmentSums for kernels over `touched`.
  virtual void uniqueRows(const DeviceGradients &gradients, genrec_domain *touched, float **rows,
                          void *segments) = 0;
  /// Gives `touched`, a descriptor here, the identities of its rows, which are of `store`
  /// (TableStore::identify); `identities` has room for `capacity` of them.
  virtual void identifyRows(const TableStore &store, float *const *rows, int64_t capacity,
                            uint64_t *identities, genrec_domain *touched) = 0;
  /// sums[s] = the sum of the gradients of touched row s, `dim` floats each; `segments` is of
  /// uniqueRows.
  virtual void sumSegments(const genrec_domain *touched, const void *segments, int64_t dim,
                           float *sums) = 0;
  /// Distinct rows of each lookup in the order of first appearance; `memory` is for kernels of
  /// step_distinct.h.
  virtual void distinctRows(const DeviceLookups &lookups) = 0;
  /// Exact sums of this process. `scratch`: kExactSumBytes for each.
  virtual void sumExactly(std::span<const ExactValues> sums, void *scratch) = 0;
  static constexpr int64_t kExactSumBytes = 128;
  /// `made` has the rows of `from`; none where steps are stopped (null: they never are).
  virtual void copyDomain(genrec_domain *made, const genrec_domain *from,
                          const uint32_t *stopped) = 0;

  //===-- portions and ranks -----------------------------------------------===//

  /// A communicator of the ranks of `host`, which outlives it, that carries the device's memory.
  /// Collective.
  virtual std::unique_ptr<Communicator> connect(Communicator &host) = 0;

  /// Collective calls of these go to `comm`, which outlives them and carries memory of the device
  /// where it has several ranks. Owners find rows of equal keys once, whatever `travel` says.
  virtual std::unique_ptr<DeviceRowExchange> makeRowExchange(Communicator &comm,
                                                             std::vector<ExchangedStore> stores,
                                                             int32_t portions,
                                                             RowTravel travel) = 0;
  virtual std::unique_ptr<DevicePortionSums> makePortionSums(Communicator &comm,
                                                             int32_t portions) = 0;

  //===-- catalogues and checks --------------------------------------------===//

  /// rows[i] = the catalogue's row of an id, -1 where there is none; the first id that is missing
  /// is noted (null: it may be). `slots` are in the device's memory.
  virtual void resolveIds(const DeviceIds &ids, const CatalogueSlots &slots, int64_t *rows,
                          genrec_row_note *missing) = 0;
  /// Notes the first row beyond a range, with its value.
  virtual void checkRange(const DeviceRange &range, genrec_row_note *note) = 0;
  /// Notes row * rowSize + element of the first NaN or infinity, with its value.
  virtual void checkFinite(const DeviceFloats &floats, genrec_row_note *note) = 0;
  /// Notes the first row with a NaN or an infinity, with its key.
  virtual void checkRows(const DeviceRows &rows, genrec_row_note *note) = 0;
  /// Copies a loss to the host; one that is not finite stops steps.
  virtual void reportLoss(const DeviceLoss &loss) = 0;
  /// copyWithin of floats, unless steps are stopped (null: they never are).
  virtual void copyUnlessStopped(float *to, const float *from, int64_t count,
                                 const uint32_t *stopped) = 0;

protected:
  Device() = default;
};

} // namespace genrec::rt

/// What genrec_model_desc.device makes.
struct genrec_rt_device {
  virtual ~genrec_rt_device() = default;
  /// The device of this process; of several ranks, each has one of its own. It belongs to the
  /// calling thread. Null: this process alone. Throws Error where there is none that the program
  /// can use. Collective.
  virtual std::unique_ptr<genrec::rt::Device> open(genrec::rt::Communicator *comm) = 0;
};

#endif // GENREC_RT_DEVICE_H
