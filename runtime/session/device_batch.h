//===- device_batch.h - A batch in the memory of a device --------*- C++ -*-===//
//
// Descriptors and columns of a slot's batch, packed into one pinned buffer and copied at once, and
// what the stages see of them. Each slot has its own, so that the next batch is copied while a step
// runs.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_SESSION_DEVICE_BATCH_H
#define GENREC_RT_SESSION_DEVICE_BATCH_H

#include "column_text.h"
#include "device_memory.h"
#include "runtime_state.h"

#include <memory>
#include <vector>

namespace genrec::rt {

class StepSlot;

/// A batch as the host has it.
struct HostBatch {
  std::vector<genrec_domain> &domains;
  const genrec_column *columns;
  const std::vector<int64_t>
      &longest; ///< by domain: no list of a batch of these capacities is longer
  const genrec_program_desc &program;
};

class DeviceBatch {
public:
  DeviceBatch(StepSlot &slot, DeviceState &state);
  ~DeviceBatch();

  /// Copies the batch beside what runs, where the memory that there is has room for it. Whether it
  /// is on its way.
  bool copyAhead(const HostBatch &batch);
  /// What the queue in use gets from here on sees the batch.
  void bring(const HostBatch &batch);
  /// The slot gets another batch.
  void forget() { isAhead = false; }
  /// Notes rows of step domains that are the same in every step, which are described beforehand.
  void keepFixedRows();

  /// The number of a domain of the stages; -1 where it is none.
  ptrdiff_t indexOf(const genrec_domain *domain) const;
  /// The host's descriptor of a domain of the stages; null for null.
  genrec_domain *hostDomain(const genrec_domain *domain) const;
  /// Turns strings that a step has reported into the host's: of the batch, or of a catalogue.
  void returnStrings(genrec_string *strings, int64_t count) const;
  /// Whether stages make the domain, rather than reading it.
  bool isMade(ptrdiff_t index) const;

  std::vector<genrec_domain> domains; ///< what the stages see
  std::vector<genrec_column> columns;
  const genrec_step *stepOnDevice = nullptr;

  int64_t memoryBytes() const { return memory.bytes(); }

private:
  struct Layout;
  void addBatch(const HostBatch &batch);
  void addColumn(const HostBatch &batch, int32_t number);
  void addTexts();
  void describe(const HostBatch &batch);
  int64_t rowsOfStep(size_t domain) const;
  void useCatalogues();
  void layOut(const HostBatch &batch);
  void pack(char *base, char *pinned);

  StepSlot &slot;
  genrec_runtime &shared;
  DeviceState &state;
  Device &device;
  std::vector<genrec_domain> *hosts = nullptr;
  std::vector<int64_t>
      fixedRows;              ///< by domain: its rows in the last step, where the host knows; -1
  std::vector<char> hadNulls; ///< by feature: batches without nulls then have flags, too
  /// Flags of columns that may have nulls and had none yet: so many that any has enough.
  const uint8_t *allValid = nullptr;
  int64_t mostValid = 0;
  DeviceMemory memory, staging;
  std::unique_ptr<Layout> layout;
  std::vector<ColumnText> texts; ///< of the batch's columns of strings
  genrec_step mirrorStep{};      ///< as the device gets it, and the domains
  std::vector<genrec_domain> mirror;
  const genrec_domain *domainsOnDevice = nullptr;
  bool isAhead = false;   ///< the batch of the slot was copied ahead
  bool isCopying = false; ///< a copy ahead was queued that nothing waits for yet
};

} // namespace genrec::rt

#endif // GENREC_RT_SESSION_DEVICE_BATCH_H
