//===- table_view.cpp - The rows of one logical table ---------------------===//

#include "genrec_rt/table_view.h"

namespace genrec::rt {

void TableView::findOrInsert(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid,
                             int64_t count, float **rows) {
  if (key == 0)
    return store->findOrInsert(pool, ids, valid, count, rows);
  std::vector<int64_t> keys(ids, ids + count);
  for (int64_t &id : keys)
    id |= key;
  store->findOrInsert(pool, keys.data(), valid, count, rows);
}

void TableView::erase(const int64_t *ids, int64_t count) {
  std::vector<int64_t> keys(ids, ids + count);
  for (int64_t &id : keys)
    id |= key;
  store->erase(keys.data(), count);
}

int64_t EmbeddingStore::memberRow(int64_t member, int64_t place) const {
  if (config.members.empty())
    return place;
  for (; listedRows < rowCount; ++listedRows)
    memberRows[id(listedRows) >> config.keyBits].push_back(listedRows);
  return memberRows[member][place];
}

} // namespace genrec::rt
