//===- table_view.h - The rows of one logical table --------------*- C++ -*-===//
//
// Tables of one spec may share a store (genrec_table_desc.group). All that
// outlives a step sees them apart: by id, in the order in which their rows were
// inserted, as if each had a store of its own.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_TABLE_VIEW_H
#define GENREC_RT_TABLE_VIEW_H

#include "genrec_rt/abi.h"
#include "genrec_rt/store.h"

#include <optional>

namespace genrec::rt {

/// A logical table; copies see the same rows. The store must live longer.
class TableView {
public:
  TableView(EmbeddingStore &store, const genrec_table_desc &desc)
      : store(&store), member(desc.group ? desc.key >> desc.key_bits : 0),
        key(desc.group ? desc.key : 0) {}

  int64_t size() const { return store->memberSize(member); }
  /// Row `number` of the table, from 0 in the order of insertion: value, then states.
  float *row(int64_t number) const { return store->row(store->memberRow(member, number)); }
  int64_t id(int64_t number) const { return store->id(store->memberRow(member, number)) ^ key; }
  int64_t dim() const { return store->configuration().dim; }
  /// Row `number`'s, where the table has rules (row_rules.h).
  Sighting &sighting(int64_t number) const {
    return store->sighting(store->memberRow(member, number));
  }
  /// The ids that are not admitted yet, as a table of dimension 0; none without `admit_after`.
  std::optional<TableView> waiting() const {
    if (!store->waiting())
      return std::nullopt;
    return TableView(*store->waiting(), member, key);
  }
  int32_t states() const { return store->configuration().states; }
  const StoreConfig &configuration() const { return store->configuration(); }

  /// As EmbeddingStore::findOrInsert, by ids of this table.
  void findOrInsert(genrec_rt_pool *pool, const int64_t *ids, const uint8_t *valid, int64_t count,
                    float **rows);
  /// As EmbeddingStore::erase, by ids of this table.
  void erase(const int64_t *ids, int64_t count);

private:
  TableView(EmbeddingStore &store, int64_t member, int64_t key)
      : store(&store), member(member), key(key) {}

  EmbeddingStore *store;
  int64_t member, key;
};

} // namespace genrec::rt

#endif // GENREC_RT_TABLE_VIEW_H
