//===- device_step.h - A step whose values are on a device -------*- C++ -*-===//
//
// Stages of a model for a device see descriptors whose arrays are on the device (genrec_rt/abi.h),
// while the batch, its descriptors and everything that leaves a step stay on the host. This is what
// lies between:
//
//   batch     descriptors and columns, packed and copied at once (device_batch.h)
//   dispatch  the stages copy and dispatch, queued in DeviceQueue::dispatch: beside the step before
//             where that changes nothing that they read
//   stages    the others, in DeviceQueue::compute behind it: queued one call after another, or
//             as one graph (device_graphs.h)
//   end       copies of what was reported are queued (device_reports.h). Once the host has
//             waited for them, perhaps behind the next step's stages, they are handed over.
//             Errors are said as on the host, from the host's descriptors
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_STEP_H
#define GENREC_RT_SESSION_DEVICE_STEP_H

#include "device_batch.h"
#include "device_graphs.h"
#include "device_profile.h"
#include "device_reports.h"

#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace genrec::rt {

class DeviceStep {
public:
  DeviceStep(StepSlot &slot, DeviceState &state);

  /// Copies the batch while the step before runs, if there is room for it; whether it is on its
  /// way.
  bool copyAhead(const HostBatch &host) { return !isAbandoned && batch.copyAhead(host); }
  /// The slot has another batch; what was dispatched of the one before is dropped.
  void forget();
  /// Brings the batch, and runs `stages`, those up to dispatch.
  template <class Stages> void dispatch(const HostBatch &host, const Stages &stages) {
    try {
      beginDispatch(host);
      stages();
      endDispatch(true);
    } catch (...) {
      endDispatch(false);
      throw;
    }
  }
  bool isDispatched() const { return dispatched; }
  /// Runs the stages behind dispatch; of one of several portions, the compute stage.
  void runStages();
  /// Runs the update stage of several portions, once they have exchanged their sums.
  void runUpdate();
  /// Makes a call of a stage that cannot be captured, between what is queued before and behind it:
  /// at once, or, while the stage is captured, each time that it is launched.
  template <class Call> void callBetween(Call call) {
    if (isCapturing)
      endPiece(std::move(call));
    else
      call();
  }
  /// The step ends with what is dispatched, and what that reported: the stages behind do not run.
  void endWithDispatch();
  /// Queues copies of what is reported: the end of what the step queues.
  void queueReports();
  /// Waits for that end.
  void await() { device.await(*end); }
  /// The host has waited: losses, metrics, outputs and errors are in the slot and the session.
  void finish();
  /// Ends a step that runs once more: says in its slot what was not finite first.
  void explain();
  /// What is wrong then may have come from another rank, with a sum.
  bool hasFailedInUpdate() const { return leaving.hasFailedInUpdate(); }

  /// Queues what `body` does behind what is dispatched.
  template <class Body> void besideDispatch(const Body &body) {
    beginBesideDispatch();
    try {
      body();
    } catch (...) {
      endBesideDispatch();
      throw;
    }
    endBesideDispatch();
  }
  /// Finds rows of keys that ranks ask for, as a lookup of the step does.
  void findOwned(int32_t table, const int64_t *keys, int64_t count, float **rows);
  /// Where steps draw random numbers for the rows of a table: at most `capacity` that are updated,
  /// those of the device's `touched`.
  void identifyRows(int32_t table, float *const *rows, int64_t capacity, genrec_domain *touched);
  /// Of a domain whose rows are counted late.
  void setCapacity(int32_t domain, int64_t rows) { batch.domains[domain].capacity = rows; }

  /// With --profile: op `op` begins.
  void enter(int32_t op);

  /// The number of a domain of the stages; -1 where it is none.
  ptrdiff_t indexOf(const genrec_domain *domain) const { return batch.indexOf(domain); }
  DeviceReports &reports() { return leaving; }
  DeviceProfile &profile() { return times; }

  //===-- calls of abi.h ---------------------------------------------------===//
  void tableRows(int32_t table, const genrec_domain *domain, const int64_t *ids,
                 const uint8_t *valid, float **rows);
  void mergedRows(int32_t table, const genrec_domain *domain, const int64_t *keys, float **rows);
  void mergedKeys(int32_t parts, const int32_t *tables, const genrec_domain *const *domains,
                  const int64_t *const *ids, const uint8_t *const *valid, int64_t *keys);
  void uniqueRows(const DeviceGradients &gradients, genrec_domain *touched, float **rows,
                  void *segments);
  void sumSegments(const genrec_domain *touched, const void *segments, int64_t dim, float *sums);
  void distinctRows(const DeviceLookups &lookups);
  void resolve(const genrec_domain *domain, const int64_t *ids, const uint8_t *valid,
               const genrec_domain *catalogue, const int64_t *catalogueIds, int32_t feature,
               bool allowsMissing, int64_t *rows);
  void collect(int32_t number, std::span<float *const> totals);
  void sumExactly(std::span<const genrec_domain *const> rows, std::span<const int32_t> ofParameters,
                  std::span<const float *const> values, std::span<float *const> sums);
  void collectRows(const genrec_domain *touched, genrec_domain *owned);
  void storeValue(int32_t kind, double argument, float *to);
  void copyFloats(const float *from, int64_t count, float *to);
  void *scratch(int64_t bytes);

  int64_t memoryBytes() const { return batch.memoryBytes(); }

private:
  void beginDispatch(const HostBatch &host);
  void endDispatch(bool isWhole);
  void beginBesideDispatch();
  void endBesideDispatch();
  void findRows(int32_t table, const DeviceIds &ids, float **rows, genrec_row_note *beyond);
  void zeroRows(int32_t table, const DeviceIds &of, float **rows);
  void requestRows(int32_t table, const DeviceIds &ids, float **rows, genrec_row_note *beyond);
  void lookUp(int32_t table, const DeviceIds &from, float **rows, genrec_row_note *beyond,
              const genrec_domain *domain);
  void clearTemporaries();
  /// Whether the stages are ever captured.
  bool mayCapture();
  void beginKey();
  void addColumnsToKey();
  using Stages = std::function<void()>;
  /// Runs `stages`, or what was captured of them under the key.
  void runOrLaunch(const Stages &stages, CaptureCounts &counts);
  bool capture(StepGraph &graph, const Stages &stages);
  /// Ends a graph of the stage that is captured, and begins the next one unless it is the last.
  void endPiece(std::function<void()> then);
  void play(StepGraph &graph);
  void launch(StepGraph &graph);

  StepSlot &slot;
  genrec_runtime &shared;
  DeviceState &state;
  Device &device;
  DeviceBatch batch;
  DeviceReports leaving;
  DeviceProfile times;
  std::unique_ptr<DeviceMark> end; ///< of what the step has queued
  DeviceMemory chosen;
  std::vector<char> usesTemporary; ///< by table: ids had rows for this step only
  std::vector<std::unique_ptr<DeviceMemory>> identities; ///< by table: of rows that are updated
  GraphKey key;                                          ///< of this step's graph
  std::vector<StepScalar> scalars; ///< that stages asked for while they are captured
  std::vector<StepPiece> pieces;   ///< captured so far
  std::string refused;             ///< why they cannot be
  bool isDispatching = false, isCapturing = false, isUpdating = false;
  bool dispatched = false;  ///< and runStages has not come yet
  bool isAbandoned = false; ///< work of a batch that never ran may be queued
};

/// An array of a call that is made again when the stage that makes it is launched as graphs.
template <class T> std::vector<T> copyOf(std::span<const T> from) {
  return {from.begin(), from.end()};
}

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_STEP_H
