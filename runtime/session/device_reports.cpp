//===- device_reports.cpp - What leaves a step on a device ----------------===//

#include "device_reports.h"

#include "../core/model_queries.h"
#include "device_stop.h"
#include "lookup_counter.h"
#include "sinks.h"
#include "step_slot.h"

#include <algorithm>

namespace genrec::rt {

DeviceReports::DeviceReports(StepSlot &slot, DeviceState &state, DeviceBatch &batch)
    : slot(slot), shared(slot.state()), device(state.device()), batch(batch), notes(device),
      results(device), isFetched(shared.model.domain_count) {}

void DeviceReports::begin() {
  notes.begin();
  results.reset();
  pieces = &results;
  reports.clear();
  domains.clear();
  firstOfUpdate = SIZE_MAX;
  failedInUpdate = false;
  std::fill(isFetched.begin(), isFetched.end(), 0);
}

//===----------------------------------------------------------------------===//
// What is fetched
//===----------------------------------------------------------------------===//

const void *DeviceReports::fetchBytes(const void *from, int64_t bytes) {
  if (!from)
    return nullptr;
  void *to = takePinned(std::max<int64_t>(bytes, 1));
  device.copyOut(to, from, bytes);
  return to;
}

void DeviceReports::fetchDomain(const genrec_domain *domain) {
  for (; domain; domain = domain->parent_domain) {
    ptrdiff_t index = slot.numberOf(domain);
    if (!batch.isMade(index) || isFetched[index])
      return;
    const genrec_domain *above = domain->parent_domain;
    useFetched({index, fetch(domain->device, 1),
                above ? fetch(domain->offsets, above->capacity + 1) : nullptr,
                fetch(domain->parent, domain->capacity)});
  }
}

void DeviceReports::useFetched(const FetchedDomain &fetched) {
  const genrec_domain &seen = batch.domains[fetched.index];
  genrec_domain &host = *batch.hostDomain(&seen);
  isFetched[fetched.index] = 1;
  host.offsets = fetched.offsets;
  host.parent = fetched.parent;
  host.parent_domain = batch.hostDomain(seen.parent_domain);
  domains.push_back(fetched);
}

void DeviceReports::takeDomains() {
  for (const FetchedDomain &fetched : domains) {
    genrec_domain &host = *batch.hostDomain(&batch.domains[fetched.index]);
    host.count = fetched.descriptor->count;
    host.max_length = fetched.descriptor->max_length;
  }
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void DeviceReports::loss(int32_t loss, const float *sum, const float *weight) {
  if (slot.isFindingNonFinite)
    return;
  Report &report = reports.emplace_back(Report{Kind::loss, -1, loss});
  DeviceStop *stop = shared.onDevice->stop();
  if (stop && slot.mode == static_cast<int32_t>(Mode::train)) {
    auto *to = static_cast<float *>(takePinned(2 * sizeof(float)));
    stop->report(sum, weight, to, batch.domains.data()->device);
    report.values = to;
    report.weight = to + 1;
    return;
  }
  report.values = fetch(sum, 1);
  report.weight = fetch(weight, 1);
}

void DeviceReports::metric(int32_t op, int32_t metric, const genrec_domain *domain, const void *x,
                           const float *label, const uint8_t *valid, const int64_t *key,
                           const float *weight) {
  const genrec_metric_desc &desc = shared.model.metrics[metric];
  fetchDomain(domain);
  int64_t rows = domain->capacity;
  Report &report = reports.emplace_back(Report{Kind::metric, op, metric});
  report.domain = domain;
  report.values = fetchBytes(x, rows * (desc.kind == GENREC_METRIC_RANKING ? 8 : 4));
  report.label = fetch(label, rows);
  report.valid = fetch(valid, rows);
  report.key = fetch(key, rows);
  report.weight = fetch(weight, desc.per_list ? roomOf(domain->parent_domain) : rows);
}

void DeviceReports::output(int32_t output, const genrec_domain *domain, const void *x,
                           const uint8_t *valid) {
  const genrec_output_desc &desc = shared.model.outputs[output];
  fetchDomain(domain);
  int64_t width = std::max<int64_t>(desc.width, 1), rows = domain->capacity;
  Report &report = reports.emplace_back(Report{Kind::output, -1, output});
  report.domain = domain;
  report.values = fetchBytes(x, rows * width * elementBytes(desc.type));
  report.valid = fetch(valid, rows * (desc.nulls == GENREC_NULLS_ELEMENTS ? width : 1));
}

void DeviceReports::lookup(int32_t table, const genrec_domain *domain, const int64_t *ids,
                           const uint8_t *valid) {
  fetchDomain(domain);
  Report &report = reports.emplace_back(Report{Kind::lookup, -1, table});
  report.domain = domain;
  report.key = fetch(ids, domain->capacity);
  report.valid = fetch(valid, domain->capacity);
}

genrec_row_note *DeviceReports::note(const NoteSubject &subject) {
  reports.push_back({Kind::note, -1, static_cast<int32_t>(notes.size())});
  return notes.add(slot, subject);
}

void DeviceReports::countRows() {
  for (ptrdiff_t i = 0; i < static_cast<ptrdiff_t>(batch.domains.size()); ++i)
    if (batch.isMade(i) && !isFetched[i])
      useFetched({i, fetch(batch.domains[i].device, 1), nullptr, nullptr});
}

//===----------------------------------------------------------------------===//
// When the step has ended
//===----------------------------------------------------------------------===//

void DeviceReports::handOverOutput(const Report &report) {
  const genrec_domain *domain = batch.hostDomain(report.domain);
  hostReportOutput(slot, report.number, domain, report.values, report.valid);
  OutputRows &rows = shared.output(slot.portion, report.number);
  if (hasBytes(rows.type))
    batch.returnStrings(reinterpret_cast<genrec_string *>(rows.values.data()),
                        rows.count * std::max<int64_t>(rows.width, 1));
}

void DeviceReports::handOver(const Report &report) {
  const genrec_domain *domain = batch.hostDomain(report.domain);
  switch (report.kind) {
  case Kind::loss:
    return hostReportLoss(slot, report.number, *static_cast<const float *>(report.values),
                          *report.weight);
  case Kind::metric:
    return hostReportMetric(slot, report.op, report.number, domain, report.values, report.label,
                            report.valid, report.key, report.weight);
  case Kind::output:
    return handOverOutput(report);
  case Kind::lookup:
    return shared.lookupCounter->add(slot, report.number, domain, report.key, report.valid);
  case Kind::note:
    return notes.report(slot, static_cast<size_t>(report.number));
  }
}

void DeviceReports::finish() {
  takeDomains();
  for (size_t i = 0; i < reports.size() && !slot.failure.any(); ++i) {
    handOver(reports[i]);
    failedInUpdate = i >= firstOfUpdate && slot.failure.any();
  }
}

//===----------------------------------------------------------------------===//
// Captured steps
//===----------------------------------------------------------------------===//

void DeviceReports::record(PinnedPieces &into) {
  pieces = &into;
  reportsBefore = reports.size();
  domainsBefore = domains.size();
  notesBefore = notes.size();
}

DeviceReports::Recorded DeviceReports::stopRecording(bool kept) {
  pieces = &results;
  Recorded recorded;
  recorded.reports.assign(reports.begin() + static_cast<ptrdiff_t>(reportsBefore), reports.end());
  recorded.notes.assign(notes.all().begin() + static_cast<ptrdiff_t>(notesBefore),
                        notes.all().end());
  recorded.domains.assign(domains.begin() + static_cast<ptrdiff_t>(domainsBefore), domains.end());
  if (!kept) {
    for (const FetchedDomain &fetched : recorded.domains)
      isFetched[fetched.index] = 0;
    reports.erase(reports.begin() + static_cast<ptrdiff_t>(reportsBefore), reports.end());
    domains.erase(domains.begin() + static_cast<ptrdiff_t>(domainsBefore), domains.end());
    notes.drop(notesBefore);
  }
  return recorded;
}

void DeviceReports::replay(const Recorded &recorded) {
  reports.insert(reports.end(), recorded.reports.begin(), recorded.reports.end());
  for (const NoteSubject &subject : recorded.notes)
    notes.repeat(subject);
  for (const FetchedDomain &fetched : recorded.domains)
    useFetched(fetched);
}

} // namespace genrec::rt
