//===- store_copy.cpp - The rows of a store on a device, read at once -----===//

#include "store_copy.h"

#include <algorithm>

namespace genrec::rt {

namespace {

/// Bytes that go to the host at once, and that all copies of a save may take.
constexpr int64_t kPieceBytes = int64_t(8) << 20;
constexpr int64_t kMostCopyBytes = int64_t(512) << 20;

} // namespace

int64_t StoreCopy::widthOf(const TableStore &store) {
  const StoreConfig &config = store.configuration();
  return config.rules.any() ? store.sightingOffset() + int64_t(sizeof(Sighting) / sizeof(float))
                            : config.usedFloats();
}

int64_t StoreCopy::bytesOf(const TableStore &store) {
  const StoreConfig &config = store.configuration();
  const int64_t row = widthOf(store) * 4 + (config.keepsLower() ? config.dim * 4 : 0) + 16;
  return store.size({}) * row;
}

StoreCopy::StoreCopy(TableStore &store)
    : config(store.configuration()), dim(config.dim), width(widthOf(store)) {
  const int64_t count = store.size({});
  StoreArray<int64_t> ids(store, count, {});
  StoreArray<float *> rows(store, count, {});
  store.exportRows({}, kAllMembers, 0, count, ids.data(), rows.data());
  keys.resize(static_cast<size_t>(count));
  ids.fetch(keys.data());
  sortByMember();
  readRows(store, rows.data());
}

void StoreCopy::sortByMember() {
  auto memberOf = [&](int64_t key) { return config.members.empty() ? 0 : key >> config.keyBits; };
  begins.resize(std::max<size_t>(config.members.size(), 1) + 1);
  for (const int64_t key : keys)
    ++begins[memberOf(key) + 1];
  for (size_t member = 1; member < begins.size(); ++member)
    begins[member] += begins[member - 1];
  std::vector<int64_t> next(begins.begin(), begins.end() - 1);
  numbers.resize(keys.size());
  for (size_t number = 0; number < keys.size(); ++number)
    numbers[next[memberOf(keys[number])]++] = static_cast<int64_t>(number);
}

void StoreCopy::readRows(TableStore &store, float *const *rows) {
  const auto count = static_cast<int64_t>(keys.size());
  floats.resize(static_cast<size_t>(count * width));
  if (config.keepsLower())
    whole.resize(static_cast<size_t>(count * dim));
  const int64_t atOnce = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(width * 4, 1));
  for (int64_t first = 0; first < count; first += atOnce) {
    const int64_t some = std::min(atOnce, count - first);
    store.readRows({}, rows + first, some, 0, width, floats.data() + first * width);
    if (config.keepsLower())
      store.readHalves({}, rows + first, some, whole.data() + first * dim);
  }
}

std::vector<int64_t> StoreCopy::ids(const TableView &table) const {
  std::vector<int64_t> ids;
  for (int64_t place = 0; place < size(table); ++place)
    ids.push_back(keys[numberOf(table, place)] ^ table.keyPart());
  return ids;
}

const StoreCopy *StoreCopies::of(const TableView &table) {
  TableStore &store = table.memory();
  if (store.rowMemory() == MemoryKind::host)
    return nullptr;
  auto [at, isNew] = copies.try_emplace(&store);
  const int64_t wanted = isNew ? StoreCopy::bytesOf(store) : 0;
  if (isNew && bytes + wanted <= kMostCopyBytes) {
    bytes += wanted;
    at->second.emplace(store);
  }
  return at->second ? &*at->second : nullptr;
}

} // namespace genrec::rt
