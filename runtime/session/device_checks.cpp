//===- device_checks.cpp - Calls that look for rows that may not be -------===//
//
// What they find is noted on the device, and said when the step has ended (device_notes.h).
//
//===----------------------------------------------------------------------===//

#include "device_step.h"
#include "step_slot.h"

namespace genrec::rt {

namespace {

DeviceIds idsOf(const genrec_domain *domain, const int64_t *ids, const uint8_t *valid) {
  DeviceIds from;
  from.domain = domain->device;
  from.count = domain->capacity;
  from.ids = ids;
  from.valid = valid;
  return from;
}

} // namespace

void DeviceStep::resolve(const genrec_domain *domain, const int64_t *ids, const uint8_t *valid,
                         const genrec_domain *catalogue, const int64_t *catalogueIds,
                         int32_t feature, bool allowsMissing, int64_t *rows) {
  // The column is the device's copy; the index is made of the host's.
  size_t column = 0;
  while (batch.columns[column].values != catalogueIds)
    ++column;
  const auto *ofHost =
      reinterpret_cast<const int64_t *>(shared.catalogueRows.columns[column].values.data());
  const CatalogueIndex &index = shared.catalogueIndex(ofHost, catalogue->count);
  CatalogueSlots slots = state.catalogueSlots(static_cast<int32_t>(column), index.view());
  genrec_row_note *missing =
      allowsMissing ? nullptr
                    : leaving.note({NoteSubject::Kind::idNotInCatalogue, feature, domain});
  device.resolveIds(idsOf(domain, ids, valid), slots, rows, missing);
}

void DeviceReports::requireRange(const RangeRule &rule, const genrec_domain *domain,
                                 const void *values, const float *weight, const uint8_t *valid,
                                 const genrec_domain *items) {
  NoteSubject subject{NoteSubject::Kind::valueBeyond, rule.op, domain, rule, countOf(items)};
  DeviceRange range;
  range.domain = domain->device;
  range.count = domain->capacity;
  range.type = rule.type;
  range.values = values;
  range.weight = weight;
  range.valid = valid;
  range.items = items ? items->device : nullptr;
  range.low = rule.low;
  range.high = rule.high;
  device.checkRange(range, note(subject));
}

void DeviceReports::checkFinite(int32_t op, const float *values, const genrec_domain *domain,
                                int64_t rowSize, int64_t stride) {
  if (slot.isPastKnown)
    return;
  NoteSubject subject{NoteSubject::Kind::notFinite, op};
  subject.rowSize = rowSize;
  device.checkFinite({values, domain ? domain->device : nullptr, roomOf(domain), rowSize, stride},
                     note(subject));
}

genrec_row_note *DeviceReports::noteFailure(int32_t op, const genrec_domain *domain,
                                            const char *const *reasons) {
  NoteSubject subject{NoteSubject::Kind::failure, op, domain};
  subject.reasons = reasons;
  return note(subject);
}

const genrec_domain *DeviceReports::countOf(const genrec_domain *domain) {
  return !domain || domain->count >= 0 ? domain : fetch(domain->device, 1);
}

} // namespace genrec::rt
