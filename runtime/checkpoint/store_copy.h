//===- store_copy.h - The rows of a store on a device, read at once -*- C++ -*-===//
//
// A save reads table by table and tensor by tensor. Each time it asks a device it waits; where many
// small tables share stores, it does nothing else. Rows of small stores are therefore read once,
// all of a store together.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_STORE_COPY_H
#define GENREC_RT_CHECKPOINT_STORE_COPY_H

#include "genrec_rt/table_view.h"

#include <map>
#include <optional>
#include <vector>

namespace genrec::rt {

class StoreCopy {
public:
  /// The bytes that a copy takes.
  static int64_t bytesOf(const TableStore &store);

  explicit StoreCopy(TableStore &store);

  /// Ids of a table of the store, by its rows' numbers.
  std::vector<int64_t> ids(const TableView &table) const;
  /// Of the row at a place among these: its floats as the store has them, and of hot rows' tables
  /// the values as floats.
  const float *row(const TableView &table, int64_t place) const {
    return floats.data() + numberOf(table, place) * width;
  }
  const float *values(const TableView &table, int64_t place) const {
    return whole.data() + numberOf(table, place) * dim;
  }
  int64_t size(const TableView &table) const { return countOf(table.number()); }

private:
  int64_t countOf(int64_t member) const { return begins[member + 1] - begins[member]; }
  int64_t numberOf(const TableView &table, int64_t place) const {
    return numbers[begins[table.number()] + place];
  }
  static int64_t widthOf(const TableStore &store);
  void sortByMember();
  void readRows(TableStore &store, float *const *rows);

  const StoreConfig &config;
  const int64_t dim, width; ///< floats that are read of each row
  std::vector<int64_t> keys;
  std::vector<int64_t> begins, numbers; ///< rows by member, of each in their order
  std::vector<float> floats, whole;
};

/// Copies of the stores that are small enough.
class StoreCopies {
public:
  /// The copy of a table's store, which is made the first time; null where none is: the host
  /// reaches its rows, or there are too many.
  const StoreCopy *of(const TableView &table);

private:
  int64_t bytes = 0; ///< of all copies
  std::map<const TableStore *, std::optional<StoreCopy>> copies;
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_STORE_COPY_H
