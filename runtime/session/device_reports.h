//===- device_reports.h - What leaves a step on a device ---------*- C++ -*-===//
//
// Stages report losses, metrics and outputs of memory that only the device reads. Copies of it to
// pinned memory are queued behind what computes it, and handed over by the code of the host once
// the step has ended. What a step only checks stays where it is (device_notes.h).
//
// What stages of a captured step report is recorded, and reported again each time that the graph is
// launched (device_graphs.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_REPORTS_H
#define GENREC_RT_SESSION_DEVICE_REPORTS_H

#include "device_batch.h"
#include "device_notes.h"

#include <cstdint>
#include <vector>

namespace genrec::rt {

class DeviceReports {
public:
  DeviceReports(StepSlot &slot, DeviceState &state, DeviceBatch &batch);

  /// A step begins: nothing was reported.
  void begin();
  /// Before the host waits for the step, and when it has.
  void fetchNotes() { notes.fetch(); }
  void finish();
  /// The same of a step that runs once more (StepSlot::findOnDevice): only what was not finite
  /// first.
  void explain();
  /// What is reported from here on is of the update of all portions.
  void beginUpdate() { firstOfUpdate = reports.size(); }
  /// Whether what the step cannot go on with was found in its update first.
  bool hasFailedInUpdate() const { return failedInUpdate; }

  //===-- calls of abi.h ---------------------------------------------------===//
  void loss(int32_t loss, const float *sum, const float *weight);
  void metric(int32_t op, int32_t metric, const genrec_domain *domain, const void *x,
              const float *label, const uint8_t *valid, const int64_t *key, const float *weight);
  void output(int32_t output, const genrec_domain *domain, const void *x, const uint8_t *valid);
  /// Of a table, for the runtime's LookupCounter.
  void lookup(int32_t table, const genrec_domain *domain, const int64_t *ids, const uint8_t *valid);
  void requireRange(const RangeRule &rule, const genrec_domain *domain, const void *values,
                    const float *weight, const uint8_t *valid, const genrec_domain *items);
  void checkFinite(int32_t op, const float *values, const genrec_domain *domain, int64_t rowSize,
                   int64_t stride);
  /// Of a step that runs once more: rows that a lookup has found.
  void checkRows(int32_t table, const genrec_domain *domain, const int64_t *keys,
                 float *const *rows, const float *zeros);
  genrec_row_note *noteFailure(int32_t op, const genrec_domain *domain, const char *const *reasons);
  /// Where kernels note what `subject` is about.
  genrec_row_note *note(const NoteSubject &subject);

  /// Queues copies of what the host does not know of a domain, and of those above it.
  void fetchDomain(const genrec_domain *domain);
  /// The same of how many rows all domains have, at the end of the step.
  void countRows();

  /// Pinned memory that stays until the step has ended.
  void *takePinned(int64_t bytes) { return pieces->take(bytes); }
  /// Bytes of it that this step has taken.
  int64_t pinnedBytes() const { return results.takenBytes(); }

  //===-- captured steps ---------------------------------------------------===//
private:
  enum class Kind { loss, metric, output, lookup, note };
  /// A call, to be made on the host when the step has ended. Pointers are the host's, into what was
  /// fetched; domains are the stages'.
  struct Report {
    Kind kind;
    int32_t op, number; ///< of the loss, metric, output, table or note
    const genrec_domain *domain = nullptr;
    const void *values = nullptr;
    const float *label = nullptr, *weight = nullptr;
    const uint8_t *valid = nullptr;
    const int64_t *key = nullptr;
  };
  /// What the host did not know of a domain.
  struct FetchedDomain {
    ptrdiff_t index;
    const genrec_domain *descriptor;
    const int64_t *offsets, *parent;
  };

public:
  /// What stages reported while they were captured.
  struct Recorded {
    std::vector<Report> reports; ///< notes, too: in the order of the calls
    std::vector<NoteSubject> notes;
    std::vector<FetchedDomain> domains;
  };
  /// From here on pinned memory is taken of `into`.
  void record(PinnedPieces &into);
  /// What was reported since. Nothing of it was, where it is not `kept`.
  Recorded stopRecording(bool kept);
  /// It is reported once more.
  void replay(const Recorded &recorded);

private:
  /// Queues a copy of `bytes` to pinned memory, which is there when the step has ended; null for
  /// null.
  const void *fetchBytes(const void *from, int64_t bytes);
  template <class T> const T *fetch(const T *from, int64_t count) {
    return static_cast<const T *>(fetchBytes(from, count * static_cast<int64_t>(sizeof(T))));
  }
  void useFetched(const FetchedDomain &fetched);
  void takeDomains();
  /// A descriptor whose count is that of `domain` when the step has ended.
  const genrec_domain *countOf(const genrec_domain *domain);
  void handOver(const Report &report);
  void handOverOutput(const Report &report);
  /// Rows that a buffer of `domain` has room for; 1 without a domain.
  static int64_t roomOf(const genrec_domain *domain) { return domain ? domain->capacity : 1; }

  StepSlot &slot;
  genrec_runtime &shared;
  Device &device;
  DeviceBatch &batch;
  DeviceNotes notes;
  PinnedPieces results, *pieces = &results;
  std::vector<Report> reports;
  std::vector<FetchedDomain> domains;
  size_t firstOfUpdate = SIZE_MAX;
  bool failedInUpdate = false;
  std::vector<char> isFetched;                                  ///< by domain
  size_t reportsBefore = 0, notesBefore = 0, domainsBefore = 0; ///< a capture
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_REPORTS_H
