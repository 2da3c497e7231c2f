//===- table_view.h - The rows of one logical table --------------*- C++ -*-===//
//
// Tables of one spec may share a store (genrec_table_desc.group). All that
// outlives a step sees them apart: by id, in the order in which their rows were
// inserted, as if each had a store of its own.
//
// Arrays here are the host's, whatever memory the store has.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_TABLE_VIEW_H
#define GENREC_RT_TABLE_VIEW_H

#include "genrec_rt/abi.h"
#include "genrec_rt/table_store.h"

#include <optional>

namespace genrec::rt {

/// Some rows of a table, whose contents go to and from the host, row behind row. Void once rows of
/// the table leave.
class TableRows {
public:
  TableRows(TableStore &store, StoreArray<float *> addresses)
      : store(&store), addresses(std::move(addresses)) {}

  int64_t size() const { return addresses.size(); }
  /// The value of each row, widened to float where it is bf16, and all of it where the row is hot;
  /// what is written is rounded to nearest, where it is not.
  void readValues(int64_t first, int64_t count, float *to) const;
  void readValues(float *to) const { readValues(0, size(), to); }
  void writeValues(const float *from);
  /// `width` floats of each row from `offset` on, as they are: value, then states.
  void read(int64_t offset, int64_t width, float *to) const { read(0, size(), offset, width, to); }
  /// The same of the rows [first, first + count).
  void read(int64_t first, int64_t count, int64_t offset, int64_t width, float *to) const {
    store->readRows({}, addresses.data() + first, count, offset, width, to);
  }
  void write(int64_t offset, int64_t width, const float *from) {
    store->writeRows({}, addresses.data(), size(), offset, width, from);
  }
  /// Where the table has rules (row_rules.h). Which rows are hot follows from what is written:
  /// write sightings before values.
  void readSightings(Sighting *to) const { readSightings(0, size(), to); }
  void readSightings(int64_t first, int64_t count, Sighting *to) const {
    read(first, count, store->sightingOffset(), kSightingFloats, reinterpret_cast<float *>(to));
  }
  void writeSightings(const Sighting *from) {
    write(store->sightingOffset(), kSightingFloats, reinterpret_cast<const float *>(from));
    if (store->configuration().keepsLower())
      store->settleHot({}, addresses.data(), size());
  }

private:
  static constexpr int64_t kSightingFloats = sizeof(Sighting) / sizeof(float);

  TableStore *store;
  StoreArray<float *> addresses;
};

/// A logical table; copies see the same rows. The store must live longer.
class TableView {
public:
  TableView(TableStore &store, const genrec_table_desc &desc)
      : store(&store), member(desc.group ? desc.key >> desc.key_bits : 0),
        key(desc.group ? desc.key : 0) {}

  int64_t size() const { return store->memberSize({}, member); }
  int64_t dim() const { return store->configuration().dim; }
  int32_t states() const { return store->configuration().states; }
  const StoreConfig &configuration() const { return store->configuration(); }
  /// Where its rows are, which of the tables there it is, and what its keys there have above ids.
  TableStore &memory() const { return *store; }
  int64_t number() const { return member; }
  int64_t keyPart() const { return key; }
  /// The ids that are not admitted yet, as a table of dimension 0; none without `admit_after`.
  std::optional<TableView> waiting() const {
    if (!store->waiting())
      return std::nullopt;
    return TableView(*store->waiting(), member, key);
  }

  /// Ids and rows by number, from `first` on, in the order of insertion.
  std::vector<int64_t> ids(int64_t first, int64_t count) const;
  TableRows rows(int64_t first, int64_t count) const;
  /// Rows by id. All of them are there, or are inserted with their initial values.
  TableRows find(const int64_t *ids, int64_t count) const;
  TableRows findOrInsert(const int64_t *ids, int64_t count);
  void erase(const int64_t *ids, int64_t count);

  /// Row `number`, where the host reaches the store's rows, and its id.
  float *row(int64_t number) const;
  int64_t id(int64_t number) const { return ids(number, 1)[0]; }

private:
  TableView(TableStore &store, int64_t member, int64_t key)
      : store(&store), member(member), key(key) {}

  StoreArray<int64_t> keysOf(const int64_t *ids, int64_t count) const;

  TableStore *store;
  int64_t member, key;
};

} // namespace genrec::rt

#endif // GENREC_RT_TABLE_VIEW_H
