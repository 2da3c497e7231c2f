//===- device_step.cpp - A step whose values are on a device --------------===//

#include "device_step.h"

#include "../core/model_queries.h"
#include "sinks.h"
#include "step_slot.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

constexpr int64_t roundUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }

} // namespace

struct DeviceStep::Report {
  enum class Kind { loss, metric, output, note } kind;
  int32_t op, number; ///< of the loss, metric, output or note
  const genrec_domain *domain = nullptr;
  const void *values = nullptr;
  const float *label = nullptr, *weight = nullptr;
  const uint8_t *valid = nullptr;
  const int64_t *key = nullptr;
};

/// What goes to the device: arrays one behind another, 256 bytes aligned, each with room for all
/// rows of its capacity; behind the rows that there are lie zeros.
struct DeviceStep::Layout {
  struct Piece {
    const void *from;
    int64_t bytes, room, at;
    const void **place; ///< gets the address on the device
  };
  std::vector<Piece> pieces;
  int64_t bytes = 0;

  void clear() {
    pieces.clear();
    bytes = 0;
  }
  template <class T> void add(const T *from, int64_t count, int64_t room, const T *&place) {
    addBytes(from, count * int64_t(sizeof(T)), room * int64_t(sizeof(T)),
             reinterpret_cast<const void **>(&place));
  }
  void addBytes(const void *from, int64_t size, int64_t room, const void **place) {
    room = roundUp(std::max(room, size));
    pieces.push_back({from, size, room, bytes, place});
    bytes += room;
  }
};

DeviceStep::DeviceStep(StepSlot &slot, DeviceState &state)
    : slot(slot), shared(slot.state()), state(state), device(state.device()),
      domains(shared.model.domain_count), columns(shared.model.feature_count),
      fixedRows(shared.model.domain_count, -1), fetched(shared.model.domain_count),
      batchMemory(device, "batch"), staging(device, "batch", DeviceMemory::Kind::pinned),
      chosen(device, "lookup.chosen"), results(device), notes(device),
      layout(std::make_unique<Layout>()) {}

DeviceStep::~DeviceStep() {
  if (!isCopying)
    return;
  try { // memory of a copy under way must stay
    device.joinCopies();
    device.synchronize();
  } catch (const std::exception &) {
    // The device has failed, and so has the copy.
  }
}

ptrdiff_t DeviceStep::indexOf(const genrec_domain *domain) const {
  ptrdiff_t index = domain - domains.data();
  return index >= 0 && index < static_cast<ptrdiff_t>(domains.size()) ? index : -1;
}

const genrec_domain *DeviceStep::hostDomain(const genrec_domain *domain) const {
  return domain ? &(*hosts)[indexOf(domain)] : nullptr;
}

//===----------------------------------------------------------------------===//
// The batch goes to the device
//===----------------------------------------------------------------------===//

void DeviceStep::addBatch(Layout &layout, const std::vector<genrec_domain> &all,
                          const genrec_column *given, const genrec_program_desc &program) {
  const genrec_model_desc &model = shared.model;
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain &from = all[i];
    if (model.domains[i].kind != GENREC_DOMAIN_DATA || !from.identity)
      continue;
    genrec_domain &to = domains[i];
    int64_t above = from.parent_domain ? from.parent_domain->count : 0;
    int64_t roomAbove = from.parent_domain ? from.parent_domain->capacity : 0;
    if (from.offsets)
      layout.add(from.offsets, above + 1, roomAbove + 1, to.offsets);
    if (from.parent)
      layout.add(from.parent, from.count, from.capacity, to.parent);
    layout.add(from.identity, from.count, from.capacity, to.identity);
  }
  for (int32_t i = 0; i < program.feature_count; ++i) {
    int32_t number = program.features[i];
    const genrec_feature_desc &feature = model.features[number];
    const genrec_domain &rows = all[feature.domain];
    if (shared.catalogues[feature.domain].given || !given[number].values)
      continue;
    int64_t each = rowBytes(feature);
    layout.addBytes(given[number].values, rows.count * each, rows.capacity * each,
                    &columns[number].values);
    if (given[number].valid)
      layout.add(given[number].valid, rows.count, rows.capacity, columns[number].valid);
  }
}

/// Descriptors as the stages see them, but for addresses on the device.
void DeviceStep::describe(const std::vector<genrec_domain> &all,
                          const std::vector<int64_t> &longest) {
  const genrec_model_desc &model = shared.model;
  for (size_t i = 0; i < domains.size(); ++i) {
    genrec_domain &to = domains[i];
    int32_t kind = model.domains[i].kind, parent = model.domains[i].parent;
    bool isRead = kind == GENREC_DOMAIN_DATA || kind == GENREC_DOMAIN_CATALOGUE;
    to = {};
    to.count = isRead ? all[i].count : kind == GENREC_DOMAIN_STEP ? fixedRows[i] : -1;
    to.capacity = all[i].capacity;
    to.max_length = isRead ? all[i].max_length : longest[i];
    to.parent_domain = parent < 0 ? nullptr : &domains[parent];
  }
}

void DeviceStep::useCatalogues() {
  for (size_t i = 0; i < domains.size(); ++i)
    if (shared.catalogues[i].given)
      state.useCatalogue(static_cast<int32_t>(i), shared.catalogues[i].descriptor, domains[i]);
  for (size_t i = 0; i < columns.size(); ++i) {
    const genrec_feature_desc &feature = shared.model.features[i];
    const CatalogueDomain &catalogue = shared.catalogues[feature.domain];
    int64_t rows = catalogue.descriptor.count;
    if (catalogue.given)
      columns[i] = state.catalogueColumn(static_cast<int32_t>(i), shared.catalogueRows.columns[i],
                                         rows * rowBytes(feature), rows);
  }
}

/// Describes the batch and lays out what goes to the device. Nothing of it is there yet.
void DeviceStep::layOut(std::vector<genrec_domain> &all, const genrec_column *given,
                        const std::vector<int64_t> &longest, const genrec_program_desc &program) {
  hosts = &all;
  describe(all, longest);
  std::fill(columns.begin(), columns.end(), genrec_column{});
  useCatalogues();
  layout->clear();
  mirror.resize(domains.size());
  layout->add(&mirrorStep, 1, 1, stepOnDevice);
  layout->add(mirror.data(), static_cast<int64_t>(mirror.size()),
              static_cast<int64_t>(mirror.size()), domainsOnDevice);
  addBatch(*layout, all, given, program);
}

/// Packs what was laid out for memory of the device at `base`.
void DeviceStep::pack(char *base, char *pinned) {
  for (Layout::Piece &piece : layout->pieces)
    *piece.place = base + piece.at;
  for (size_t i = 0; i < domains.size(); ++i) {
    domains[i].device = const_cast<genrec_domain *>(domainsOnDevice) + i;
    mirror[i] = domains[i];
    mirror[i].count = std::max<int64_t>(domains[i].count, 0);
    if (const genrec_domain *above = domains[i].parent_domain)
      mirror[i].parent_domain = domainsOnDevice + (above - domains.data());
  }
  mirrorStep = {};
  mirrorStep.domains = const_cast<genrec_domain *>(domainsOnDevice);
  mirrorStep.seed = slot.seed;
  mirrorStep.step = slot.step;
  mirrorStep.mode = slot.mode;
  for (const Layout::Piece &piece : layout->pieces) {
    char *to = pinned + piece.at;
    if (piece.bytes > 0)
      std::memcpy(to, piece.from, static_cast<size_t>(piece.bytes));
    std::memset(to + piece.bytes, 0, static_cast<size_t>(piece.room - piece.bytes));
  }
}

void DeviceStep::uploadAhead(std::vector<genrec_domain> &all, const genrec_column *given,
                             const std::vector<int64_t> &longest,
                             const genrec_program_desc &program) {
  if (isAhead)
    return;
  layOut(all, given, longest, program);
  if (layout->bytes > batchMemory.bytes() || layout->bytes > staging.bytes())
    return; // memory that grows is ordered with the steps
  pack(batchMemory.data(), staging.data());
  device.copyInAhead(batchMemory.data(), staging.data(), layout->bytes);
  isAhead = isCopying = true;
}

void DeviceStep::upload(std::vector<genrec_domain> &all, const genrec_column *given,
                        const std::vector<int64_t> &longest, const genrec_program_desc &program) {
  if (isCopying)
    device.joinCopies();
  if (isCopying && !isAhead) // of a batch that never ran
    device.synchronize();
  if (!isAhead) {
    layOut(all, given, longest, program);
    char *base = batchMemory.ensure(layout->bytes), *pinned = staging.ensure(layout->bytes);
    pack(base, pinned);
    device.copyIn(base, pinned, layout->bytes);
  }
  isAhead = isCopying = false;
  notes.begin();

  slot.domains = domains.data();
  slot.columns = columns.data();
  slot.stream = device.stream();
  slot.genrec_step::device = const_cast<genrec_step *>(stepOnDevice);
  results.reset();
  reports.clear();
  std::fill(fetched.begin(), fetched.end(), nullptr);
}

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

genrec_row_note *DeviceStep::note(const NoteSubject &subject) {
  reports.push_back({Report::Kind::note, -1, static_cast<int32_t>(notes.size())});
  return notes.add(slot, subject);
}

void DeviceStep::findRows(int32_t table, const DeviceIds &ids, float **rows,
                          genrec_row_note *beyond) {
  const genrec_table_desc &desc = shared.model.tables[table];
  TableStore &store = *shared.tables[table];
  StoreStream on = state.storeStream();
  auto *mask = reinterpret_cast<uint8_t *>(chosen.ensure(std::max<int64_t>(ids.count, 1)));
  device.chooseEntries(ids, state.zeroRow(table), mask, rows, beyond);
  bool inserts = slot.mode == static_cast<int32_t>(Mode::train) &&
                 desc.optimizer.kind != GENREC_OPTIMIZER_FROZEN;
  bool hasRules = store.configuration().rules.any();
  if (inserts && !hasRules)
    return store.findOrInsert(on, ids.ids, mask, ids.count, rows);
  if (inserts)
    store.findOrAdmit(on, ids.ids, mask, ids.count, static_cast<int64_t>(slot.step), rows, nullptr);
  else
    store.find(on, ids.ids, mask, ids.count, rows, nullptr);
  // Ids without a row have one for this step. How many these are only the device knows.
  device.chooseMissing(mask, rows, ids.count);
  slot.temporaryTable(table).findOrInsert(on, ids.ids, mask, ids.count, rows);
}

void DeviceStep::tableRows(int32_t table, const genrec_domain *domain, const int64_t *ids,
                           const uint8_t *valid, float **rows) {
  DeviceIds from;
  from.domain = domain->device;
  from.count = domain->capacity;
  from.ids = ids;
  from.valid = valid;
  from.idBits = shared.model.tables[table].id_bits;
  findRows(table, from, rows, note({NoteSubject::Kind::idBeyondTable, table, domain}));
}

void DeviceStep::mergedRows(int32_t table, const genrec_domain *domain, const int64_t *keys,
                            float **rows) {
  DeviceIds from;
  from.domain = domain->device;
  from.count = domain->capacity;
  from.ids = keys;
  from.areKeys = true;
  findRows(table, from, rows, nullptr);
}

void DeviceStep::mergedKeys(int32_t parts, const int32_t *tables, const genrec_domain *const *of,
                            const int64_t *const *ids, const uint8_t *const *valid, int64_t *keys) {
  for (int32_t part = 0; part < parts; ++part) {
    const genrec_table_desc &table = shared.model.tables[tables[part]];
    DeviceIds from;
    from.domain = of[part]->device;
    from.count = of[part]->capacity;
    from.ids = ids[part];
    from.valid = valid[part];
    from.idBits = table.id_bits;
    device.writeKeys(from, table.key, keys,
                     note({NoteSubject::Kind::idBeyondTable, tables[part], of[part]}));
    keys += of[part]->capacity; // parts of a stacked domain have such room
  }
}

void DeviceStep::uniqueRows(const DeviceGradients &gradients, genrec_domain *touched, float **rows,
                            void *segments) {
  DeviceGradients from = gradients;
  from.zeros = state.zeroRow(from.table);
  touched->count = -1;
  touched->offsets = touched->parent = nullptr;
  touched->identity = nullptr;
  touched->parent_domain = nullptr;
  device.uniqueRows(from, touched, rows, segments);
}

void DeviceStep::sumSegments(const genrec_domain *touched, const void *segments, int64_t dim,
                             float *sums) {
  device.sumSegments(touched, segments, dim, sums);
}

void DeviceStep::sumExactly(const genrec_domain *rows, const float *values, float *sum) {
  device.addExactly(rows, values, sum, shared.deviceScratch->ensure(Device::kExactSumBytes));
}

void DeviceStep::collectRows(const genrec_domain *touched, genrec_domain *owned) {
  owned->count = -1;
  device.copyDomain(owned->device, touched->device);
}

void DeviceStep::storeValue(float value, float *to) {
  auto *pinned = static_cast<float *>(results.take(sizeof value));
  *pinned = value;
  device.copyIn(to, pinned, sizeof value);
}

void DeviceStep::copyFloats(const float *from, int64_t count, float *to) {
  device.copyWithin(to, from, count * static_cast<int64_t>(sizeof(float)));
}

//===----------------------------------------------------------------------===//
// What leaves a step
//===----------------------------------------------------------------------===//

const void *DeviceStep::fetchBytes(const void *from, int64_t bytes) {
  if (!from)
    return nullptr;
  void *to = results.take(std::max<int64_t>(bytes, 1));
  device.copyOut(to, from, bytes);
  return to;
}

void DeviceStep::fetchDomain(const genrec_domain *domain) {
  for (; domain; domain = domain->parent_domain) {
    ptrdiff_t index = indexOf(domain);
    int32_t kind = shared.model.domains[index].kind;
    if (kind == GENREC_DOMAIN_DATA || kind == GENREC_DOMAIN_CATALOGUE || fetched[index])
      return;
    fetched[index] = fetch(domain->device, 1);
    genrec_domain &host = (*hosts)[index];
    const genrec_domain *above = domain->parent_domain;
    host.offsets = above ? fetch(domain->offsets, above->capacity + 1) : nullptr;
    host.parent = fetch(domain->parent, domain->capacity);
    host.parent_domain = above ? &(*hosts)[indexOf(above)] : nullptr;
  }
}

void DeviceStep::takeDomains() {
  for (size_t i = 0; i < fetched.size(); ++i)
    if (fetched[i]) {
      (*hosts)[i].count = fetched[i]->count;
      (*hosts)[i].max_length = fetched[i]->max_length;
    }
}

void DeviceStep::reportLoss(int32_t loss, const float *sum, const float *weight) {
  Report &report = reports.emplace_back(Report{Report::Kind::loss, -1, loss});
  report.values = fetch(sum, 1);
  report.weight = fetch(weight, 1);
}

void DeviceStep::reportMetric(int32_t op, int32_t metric, const genrec_domain *domain,
                              const void *x, const float *label, const uint8_t *valid,
                              const int64_t *key, const float *weight) {
  const genrec_metric_desc &desc = shared.model.metrics[metric];
  fetchDomain(domain);
  int64_t rows = domain->capacity;
  Report &report = reports.emplace_back(Report{Report::Kind::metric, op, metric});
  report.domain = domain;
  report.values = fetchBytes(x, rows * (desc.kind == GENREC_METRIC_RANKING ? 8 : 4));
  report.label = fetch(label, rows);
  report.valid = fetch(valid, rows);
  report.key = fetch(key, rows);
  report.weight = fetch(weight, desc.per_list ? roomOf(domain->parent_domain) : rows);
}

void DeviceStep::reportOutput(int32_t output, const genrec_domain *domain, const void *x,
                              const uint8_t *valid) {
  const genrec_output_desc &desc = shared.model.outputs[output];
  fetchDomain(domain);
  int64_t width = std::max<int64_t>(desc.width, 1), rows = domain->capacity;
  Report &report = reports.emplace_back(Report{Report::Kind::output, -1, output});
  report.domain = domain;
  report.values = fetchBytes(x, rows * width * elementBytes(desc.type));
  report.valid = fetch(valid, rows * (desc.nulls == GENREC_NULLS_ELEMENTS ? width : 1));
}

void DeviceStep::finish() {
  notes.fetch();
  device.synchronize();
  takeDomains();
  for (const Report &report : reports) {
    if (slot.failure.any())
      break;
    const genrec_domain *domain = hostDomain(report.domain);
    switch (report.kind) {
    case Report::Kind::loss:
      hostReportLoss(slot, report.number, *static_cast<const float *>(report.values),
                     *report.weight);
      break;
    case Report::Kind::metric:
      hostReportMetric(slot, report.op, report.number, domain, report.values, report.label,
                       report.valid, report.key, report.weight);
      break;
    case Report::Kind::output:
      hostReportOutput(slot, report.number, domain, report.values, report.valid);
      break;
    case Report::Kind::note:
      notes.report(slot, static_cast<size_t>(report.number));
      break;
    }
  }
  for (size_t i = 0; i < domains.size(); ++i)
    if (shared.model.domains[i].kind == GENREC_DOMAIN_STEP && !domains[i].offsets)
      fixedRows[i] = domains[i].count;
}

} // namespace genrec::rt
