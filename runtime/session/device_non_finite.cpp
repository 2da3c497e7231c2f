//===- device_non_finite.cpp - Where a NaN on a device comes from ---------===//
//
// What non_finite.cpp does for a step of a device. The host knows of the NaN when the step has
// ended; its parameters and rows are then what they were when it began (device_stop.h), so its
// stages run once more, all work of the device being done.
//
//===----------------------------------------------------------------------===//

#include "device_step.h"
#include "device_stop.h"
#include "non_finite.h"
#include "ranks.h"

namespace genrec::rt {

void StepSlot::findOnDevice() {
  shared.onDevice->finish(); // the next step may be queued, in the same memory
  nonFiniteOrigin = findNonFiniteParameter();
  if (!nonFiniteOrigin.empty())
    return;
  // With several portions the addresses of what was looked up are read again.
  Arena before(shared.device());
  underWay = plan->own.placedAt;
  arena.swap(before);
  setFinding(true);
  try {
    dispatchOnDevice(shared.pool.get());
    onDevice->runStages();
    onDevice->explain();
  } catch (const std::exception &) {
    // Without memory for it, the loss is named without its origin.
  }
  setFinding(false);
  failure.clear();
  shared.onDevice->finish(); // of the memory that is given back
  arena.swap(before);
}

void StepSlot::findOnDevice(std::span<StepSlot *const> portions) {
  bool isStopped = false;
  for (StepSlot *slot : portions) {
    if (slot->hasNonFiniteLoss && !slot->failure.any())
      slot->findOnDevice();
    isStopped |= slot->hasNonFiniteLoss;
  }
  if (isStopped)
    portions.front()->shared.onDevice->stop()->clear();
}

void DeviceStep::explain() {
  queueReports();
  await();
  leaving.explain();
}

void DeviceReports::explain() {
  for (const Report &report : reports)
    if (report.kind == Kind::note && slot.nonFiniteOrigin.empty())
      notes.explain(slot, static_cast<size_t>(report.number));
}

void DeviceReports::checkRows(int32_t table, const genrec_domain *domain, const int64_t *keys,
                              float *const *rows, const float *zeros) {
  const genrec_table_desc &desc = shared.model.tables[table];
  device.checkRows({.domain = domain->device,
                    .count = domain->capacity,
                    .rows = rows,
                    .keys = keys,
                    .dim = desc.dim,
                    .isBf16 = desc.element != GENREC_ROW_F32,
                    .zeros = zeros},
                   note({NoteSubject::Kind::rowNotFinite, table}));
}

} // namespace genrec::rt
