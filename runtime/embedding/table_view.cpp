//===- table_view.cpp - The rows of one logical table ---------------------===//

#include "genrec_rt/table_view.h"

#include <cassert>

namespace genrec::rt {

void TableRows::readValues(int64_t first, int64_t count, float *to) const {
  const StoreConfig &config = store->configuration();
  const int64_t floats = config.valueFloats(), dim = config.dim;
  if (config.element == RowElement::f32)
    return read(first, count, 0, dim, to);
  if (config.keepsLower())
    return store->readHalves({}, addresses.data() + first, count, to);
  std::vector<float> packed(static_cast<size_t>(count * floats));
  read(first, count, 0, floats, packed.data());
  for (int64_t i = 0; i < count; ++i)
    unpackValues(packed.data() + i * floats, dim, to + i * dim);
}

void TableRows::writeValues(const float *from) {
  const StoreConfig &config = store->configuration();
  const int64_t floats = config.valueFloats(), dim = config.dim;
  if (config.element == RowElement::f32)
    return write(0, dim, from);
  if (config.keepsLower())
    return store->writeHalves({}, addresses.data(), size(), from);
  std::vector<float> packed(static_cast<size_t>(size() * floats));
  for (int64_t i = 0; i < size(); ++i)
    packValues(from + i * dim, dim, packed.data() + i * floats);
  write(0, floats, packed.data());
}

/// Keys of the store for ids of the table.
StoreArray<int64_t> TableView::keysOf(const int64_t *ids, int64_t count) const {
  std::vector<int64_t> keys(ids, ids + count);
  for (int64_t &id : keys)
    id |= key;
  return {*store, keys.data(), count, {}};
}

std::vector<int64_t> TableView::ids(int64_t first, int64_t count) const {
  StoreArray<int64_t> keys(*store, count, {});
  store->exportRows({}, member, first, count, keys.data(), nullptr);
  std::vector<int64_t> ids(static_cast<size_t>(count));
  keys.fetch(ids.data());
  for (int64_t &id : ids)
    id ^= key;
  return ids;
}

TableRows TableView::rows(int64_t first, int64_t count) const {
  StoreArray<float *> addresses(*store, count, {});
  store->exportRows({}, member, first, count, nullptr, addresses.data());
  return {*store, std::move(addresses)};
}

TableRows TableView::find(const int64_t *ids, int64_t count) const {
  StoreArray<int64_t> keys = keysOf(ids, count);
  StoreArray<float *> addresses(*store, count, {});
  store->find({}, keys.data(), nullptr, count, addresses.data(), nullptr);
  return {*store, std::move(addresses)};
}

TableRows TableView::findOrInsert(const int64_t *ids, int64_t count) {
  StoreArray<int64_t> keys = keysOf(ids, count);
  StoreArray<float *> addresses(*store, count, {});
  store->findOrInsert({}, keys.data(), nullptr, count, addresses.data());
  return {*store, std::move(addresses)};
}

void TableView::erase(const int64_t *ids, int64_t count) {
  store->erase({}, keysOf(ids, count).data(), count);
}

float *TableView::row(int64_t number) const {
  assert(store->rowMemory() == MemoryKind::host);
  float *address = nullptr;
  store->exportRows({}, member, number, 1, nullptr, &address);
  return address;
}

} // namespace genrec::rt
