//===- device_batch.cpp - A batch in the memory of a device ---------------===//

#include "device_batch.h"

#include "../core/model_queries.h"
#include "step_slot.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

static constexpr int64_t roundUp(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// What goes to the device: arrays one behind another, 256 bytes aligned, each with room for all
/// rows of its capacity; behind the rows that there are lie zeros.
struct DeviceBatch::Layout {
  struct Piece {
    const void *from; ///< null: bytes of 1
    int64_t bytes, room, at;
    const void **place;               ///< gets the address on the device
    const ColumnText *text = nullptr; ///< of strings: what they point into
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

DeviceBatch::DeviceBatch(StepSlot &slot, DeviceState &state)
    : domains(slot.state().model.domain_count), columns(slot.state().model.feature_count),
      slot(slot), shared(slot.state()), state(state), device(state.device()),
      fixedRows(shared.model.domain_count, -1), hadNulls(shared.model.feature_count),
      memory(device, "batch"), staging(device, "batch", DeviceMemory::Kind::pinned),
      layout(std::make_unique<Layout>()) {
  texts.reserve(columns.size()); // pieces point to them
}

DeviceBatch::~DeviceBatch() = default;

ptrdiff_t DeviceBatch::indexOf(const genrec_domain *domain) const {
  ptrdiff_t index = domain - domains.data();
  return index >= 0 && index < static_cast<ptrdiff_t>(domains.size()) ? index : -1;
}

genrec_domain *DeviceBatch::hostDomain(const genrec_domain *domain) const {
  return domain ? &(*hosts)[slot.numberOf(domain)] : nullptr;
}

bool DeviceBatch::isMade(ptrdiff_t index) const {
  int32_t kind = shared.model.domains[index].kind;
  return kind != GENREC_DOMAIN_DATA && kind != GENREC_DOMAIN_CATALOGUE;
}

void DeviceBatch::addColumn(const HostBatch &batch, int32_t number) {
  const genrec_feature_desc &feature = shared.model.features[number];
  const genrec_domain &rows = batch.domains[feature.domain];
  const genrec_column &given = batch.columns[number];
  if (shared.catalogues[feature.domain].given || !given.values)
    return;
  int64_t each = rowBytes(feature);
  layout->addBytes(given.values, rows.count * each, rows.capacity * each, &columns[number].values);
  if (hasBytes(feature.type)) {
    texts.push_back(ColumnText::of(slot.currentBatch().columns[number],
                                   static_cast<const genrec_string *>(given.values),
                                   rows.count * each / elementBytes(feature.type)));
    layout->pieces.back().text = &texts.back();
  }
  // With flags in some batches and without in others, a step would have to be captured for each.
  const bool hasNulls = slot.currentBatch().columns[number].hasNulls;
  hadNulls[number] |= hasNulls;
  if (hadNulls[number])
    layout->add(hasNulls ? given.valid : nullptr, rows.count, rows.capacity, columns[number].valid);
  else if (feature.nullable)
    mostValid = std::max(mostValid, rows.capacity);
}

void DeviceBatch::addBatch(const HostBatch &batch) {
  const genrec_model_desc &model = shared.model;
  for (int32_t i = 0; i < model.domain_count; ++i) {
    const genrec_domain &from = batch.domains[i];
    if (model.domains[i].kind != GENREC_DOMAIN_DATA || !from.identity)
      continue;
    genrec_domain &to = domains[i];
    int64_t above = from.parent_domain ? from.parent_domain->count : 0;
    int64_t roomAbove = from.parent_domain ? from.parent_domain->capacity : 0;
    if (from.offsets)
      layout->add(from.offsets, above + 1, roomAbove + 1, to.offsets);
    if (from.parent)
      layout->add(from.parent, from.count, from.capacity, to.parent);
    layout->add(from.identity, from.count, from.capacity, to.identity);
  }
  mostValid = 0;
  for (int32_t i = 0; i < batch.program.feature_count; ++i)
    addColumn(batch, batch.program.features[i]);
  layout->add(static_cast<const uint8_t *>(nullptr), mostValid, mostValid, allValid);
}

/// Texts come last: nothing that a captured step names moves with their sizes.
void DeviceBatch::addTexts() {
  for (ColumnText &text : texts)
    layout->add(text.host, text.bytes, text.bytes, text.device);
}

/// Descriptors as the stages see them, but for addresses on the device. What shapes of launches
/// follow from (capacities, longest lists) is the same for all batches of a bucket.
void DeviceBatch::describe(const HostBatch &batch) {
  const genrec_model_desc &model = shared.model;
  for (size_t i = 0; i < domains.size(); ++i) {
    genrec_domain &to = domains[i];
    const genrec_domain &from = batch.domains[i];
    int32_t kind = model.domains[i].kind, parent = model.domains[i].parent;
    to = {};
    to.count = !isMade(static_cast<ptrdiff_t>(i)) ? from.count
               : kind == GENREC_DOMAIN_STEP       ? rowsOfStep(i)
                                                  : -1;
    to.capacity = from.capacity;
    to.max_length = kind == GENREC_DOMAIN_CATALOGUE ? from.max_length : batch.longest[i];
    to.parent_domain = parent < 0 ? nullptr : &domains[parent];
  }
}

void DeviceBatch::useCatalogues() {
  for (size_t i = 0; i < domains.size(); ++i)
    if (shared.catalogues[i].given)
      state.useCatalogue(static_cast<int32_t>(i), shared.catalogues[i].descriptor, domains[i]);
  for (size_t i = 0; i < columns.size(); ++i) {
    const genrec_feature_desc &feature = shared.model.features[i];
    const CatalogueDomain &catalogue = shared.catalogues[feature.domain];
    if (catalogue.given)
      columns[i] =
          state.catalogueColumn(static_cast<int32_t>(i), feature, shared.catalogueRows.columns[i],
                                catalogue.descriptor.count);
  }
}

/// Of a step domain; -1 where the host does not know. Rows of parameters are known before the first
/// step, so that nothing makes them anew behind a loss that has taken them away (device_stop.h).
int64_t DeviceBatch::rowsOfStep(size_t domain) const {
  const int32_t parameter = shared.model.domains[domain].parameter - 1;
  return parameter < 0 ? fixedRows[domain] : shared.parameters[parameter].own_rows;
}

/// Describes the batch and lays out what goes to the device. Nothing of it is there yet.
void DeviceBatch::layOut(const HostBatch &batch) {
  hosts = &batch.domains;
  describe(batch);
  std::fill(columns.begin(), columns.end(), genrec_column{});
  useCatalogues();
  layout->clear();
  texts.clear();
  mirror.resize(domains.size());
  layout->add(&mirrorStep, 1, 1, stepOnDevice);
  layout->add(mirror.data(), static_cast<int64_t>(mirror.size()),
              static_cast<int64_t>(mirror.size()), domainsOnDevice);
  addBatch(batch);
  addTexts();
}

/// Packs what was laid out for memory of the device at `base`.
void DeviceBatch::pack(char *base, char *pinned) {
  for (Layout::Piece &piece : layout->pieces)
    *piece.place = base + piece.at;
  for (size_t i = 0; i < columns.size(); ++i)
    if (columns[i].values && !columns[i].valid && shared.model.features[i].nullable)
      columns[i].valid = allValid;
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
    auto bytes = static_cast<size_t>(piece.bytes);
    if (piece.text)
      piece.text->toDevice(static_cast<const genrec_string *>(piece.from),
                           piece.bytes / static_cast<int64_t>(sizeof(genrec_string)),
                           reinterpret_cast<genrec_string *>(to));
    else if (bytes > 0 && piece.from)
      std::memcpy(to, piece.from, bytes);
    else
      std::memset(to, 1, bytes);
    std::memset(to + bytes, 0, static_cast<size_t>(piece.room) - bytes);
  }
}

bool DeviceBatch::copyAhead(const HostBatch &batch) {
  if (isAhead || isCopying)
    return isAhead;
  layOut(batch);
  if (layout->bytes > memory.bytes() || layout->bytes > staging.bytes())
    return false; // memory that grows is ordered with the steps
  pack(memory.data(), staging.data());
  device.copyInAhead(memory.data(), staging.data(), layout->bytes);
  return isAhead = isCopying = true;
}

void DeviceBatch::bring(const HostBatch &batch) {
  if (isCopying)
    device.joinCopies();
  if (isCopying && !isAhead) // of a batch that never ran
    device.synchronize();
  if (!isAhead) {
    layOut(batch);
    char *base = memory.ensure(layout->bytes), *pinned = staging.ensure(layout->bytes);
    pack(base, pinned);
    device.copyIn(base, pinned, layout->bytes);
  }
  isAhead = isCopying = false;
}

void DeviceBatch::returnStrings(genrec_string *strings, int64_t count) const {
  auto find = [&](const std::vector<ColumnText> &in, const genrec_string &string) {
    auto found = std::find_if(in.begin(), in.end(),
                              [&](const ColumnText &text) { return text.has(string); });
    return found == in.end() ? nullptr : &*found;
  };
  const ColumnText *text = nullptr; // of neighbours it is mostly the same
  for (int64_t i = 0; i < count; ++i) {
    if (strings[i].size > 0 && !(text && text->has(strings[i]))) {
      text = find(texts, strings[i]);
      if (!text)
        text = find(state.catalogueTexts(), strings[i]);
    }
    strings[i] = text && strings[i].size > 0 ? text->toHost(strings[i]) : genrec_string{"", 0};
  }
}

void DeviceBatch::keepFixedRows() {
  for (size_t i = 0; i < domains.size(); ++i)
    if (shared.model.domains[i].kind == GENREC_DOMAIN_STEP && !domains[i].offsets)
      fixedRows[i] = domains[i].count;
}

} // namespace genrec::rt
