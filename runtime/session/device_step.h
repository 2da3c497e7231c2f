//===- device_step.h - A step whose values are on a device -------*- C++ -*-===//
//
// Stages of a model for a device see descriptors whose arrays are on the device (genrec_rt/abi.h),
// while the batch, its descriptors and everything that leaves a step stay on the host. This is what
// lies between:
//
//   upload   descriptors and columns of the batch, packed into one pinned buffer and copied at once
//   calls    of abi.h, whose parts on the device are the Device's (genrec_rt/device.h)
//   finish   waits for the device, and only then hands over what the stages reported: they queued
//   copies of
//            it to pinned memory. Errors are said as on the host, from the host's descriptors.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_STEP_H
#define GENREC_RT_SESSION_DEVICE_STEP_H

#include "device_notes.h"
#include "runtime_state.h"

#include <memory>
#include <vector>

namespace genrec::rt {

class StepSlot;

class DeviceStep {
public:
  DeviceStep(StepSlot &slot, DeviceState &state);
  ~DeviceStep();

  /// Brings the batch of the slot to the device; `hosts` and `columns` are the host's descriptors,
  /// `longest` bounds each domain's longest list.
  /// What the stages see is described by `genrec_step::domains` and `columns` then.
  void upload(std::vector<genrec_domain> &hosts, const genrec_column *columns,
              const std::vector<int64_t> &longest, const genrec_program_desc &program);
  /// The same while the step before runs, beside its work, where the batch fits into the memory
  /// that there is; `upload` then only waits for it. `forget`: the slot has another batch.
  void uploadAhead(std::vector<genrec_domain> &hosts, const genrec_column *columns,
                   const std::vector<int64_t> &longest, const genrec_program_desc &program);
  void forget() { isAhead = false; }
  /// Waits for the stages, then reports: losses, metrics, outputs and errors are in the slot and
  /// the session.
  void finish();

  /// The number of a domain of the stages; -1 where it is none.
  ptrdiff_t indexOf(const genrec_domain *domain) const;

  //===-- calls of abi.h ---------------------------------------------------===//
  void tableRows(int32_t table, const genrec_domain *domain, const int64_t *ids,
                 const uint8_t *valid, float **rows);
  void mergedRows(int32_t table, const genrec_domain *domain, const int64_t *keys, float **rows);
  void mergedKeys(int32_t parts, const int32_t *tables, const genrec_domain *const *domains,
                  const int64_t *const *ids, const uint8_t *const *valid, int64_t *keys);
  void uniqueRows(const DeviceGradients &gradients, genrec_domain *touched, float **rows,
                  void *segments);
  void sumSegments(const genrec_domain *touched, const void *segments, int64_t dim, float *sums);
  void resolve(const genrec_domain *domain, const int64_t *ids, const uint8_t *valid,
               const genrec_domain *catalogue, const int64_t *catalogueIds, int32_t feature,
               bool allowsMissing, int64_t *rows);
  genrec_row_note *noteFailure(int32_t op, const genrec_domain *domain, const char *const *reasons);
  void sumExactly(const genrec_domain *rows, const float *values, float *sum);
  void collectRows(const genrec_domain *touched, genrec_domain *owned);
  void storeValue(float value, float *to);
  void copyFloats(const float *from, int64_t count, float *to);
  void reportLoss(int32_t loss, const float *sum, const float *weight);
  void reportMetric(int32_t op, int32_t metric, const genrec_domain *domain, const void *x,
                    const float *label, const uint8_t *valid, const int64_t *key,
                    const float *weight);
  void reportOutput(int32_t output, const genrec_domain *domain, const void *x,
                    const uint8_t *valid);
  void requireRange(const RangeRule &rule, const genrec_domain *domain, const void *values,
                    const float *weight, const uint8_t *valid, const genrec_domain *items);
  void checkFinite(int32_t op, const float *values, const genrec_domain *domain, int64_t rowSize,
                   int64_t stride);

  int64_t memoryBytes() const { return batchMemory.bytes(); }
  int64_t allocations() const { return batchMemory.allocations(); }

private:
  /// A call of a sink, or a note to be looked at, when the step has ended. Pointers are the host's,
  /// into what was fetched.
  struct Report;
  struct Layout;
  void addBatch(Layout &layout, const std::vector<genrec_domain> &hosts,
                const genrec_column *columns, const genrec_program_desc &program);
  void describe(const std::vector<genrec_domain> &hosts, const std::vector<int64_t> &longest);
  void useCatalogues();
  void layOut(std::vector<genrec_domain> &hosts, const genrec_column *columns,
              const std::vector<int64_t> &longest, const genrec_program_desc &program);
  void pack(char *base, char *pinned);

  /// Queues a copy of `bytes` to pinned memory, which is there when the step has ended; null for
  /// null.
  const void *fetchBytes(const void *from, int64_t bytes);
  template <class T> const T *fetch(const T *from, int64_t count) {
    return static_cast<const T *>(fetchBytes(from, count * static_cast<int64_t>(sizeof(T))));
  }
  /// A descriptor whose count is that of `domain` when the step has ended.
  const genrec_domain *countOf(const genrec_domain *domain);
  /// Queues copies of what the host does not know of a domain, and of those above it.
  void fetchDomain(const genrec_domain *domain);
  void takeDomains();
  genrec_row_note *note(const NoteSubject &subject);
  void findRows(int32_t table, const DeviceIds &ids, float **rows, genrec_row_note *beyond);
  const genrec_domain *hostDomain(const genrec_domain *domain) const;
  /// Rows that a buffer of `domain` has room for; 1 without a domain.
  static int64_t roomOf(const genrec_domain *domain) { return domain ? domain->capacity : 1; }

  StepSlot &slot;
  genrec_runtime &shared;
  DeviceState &state;
  Device &device;
  std::vector<genrec_domain> domains; ///< what the stages see
  std::vector<genrec_column> columns;
  std::vector<genrec_domain> *hosts = nullptr;
  std::vector<int64_t>
      fixedRows; ///< by domain: its rows in the last step, where the host knows; -1
  std::vector<const genrec_domain *>
      fetched; ///< by domain: its descriptor as the device has it, or null
  DeviceMemory batchMemory, staging, chosen;
  PinnedPieces results;
  DeviceNotes notes;
  std::vector<Report> reports; ///< notes, too: in the order of the calls
  std::unique_ptr<Layout> layout;
  genrec_step mirrorStep{}; ///< as the device gets it, and the domains
  std::vector<genrec_domain> mirror;
  const genrec_step *stepOnDevice = nullptr;
  const genrec_domain *domainsOnDevice = nullptr;
  bool isAhead = false;   ///< the batch of the slot was copied ahead
  bool isCopying = false; ///< a copy ahead was queued that nothing waits for yet
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_STEP_H
