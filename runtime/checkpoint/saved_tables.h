//===- saved_tables.h - Rows of tables as they are saved ---------*- C++ -*-===//
//
// Rows are saved by slice (owner.h), and by id within one: their order depends neither on when they
// came nor on how many ranks share them. Ranks own runs of slices, so the rows of a table are those
// of rank 0, then those of rank 1, and so on: each rank has a run of the bytes of every tensor.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_SAVED_TABLES_H
#define GENREC_RT_CHECKPOINT_SAVED_TABLES_H

#include "store_copy.h"

#include "genrec_rt/session.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace genrec::rt {

/// Calls body(first, count) for blocks of the rows [begin, end), in order.
inline constexpr int64_t kBlockRows = 1 << 14;
template <class Body> void forBlocks(int64_t begin, int64_t end, Body body) {
  for (int64_t first = begin; first < end; first += kBlockRows)
    body(first, std::min(kBlockRows, end - first));
}
template <class Body> void forBlocks(int64_t rows, Body body) { forBlocks(0, rows, body); }

/// Whether this rank has row `id` of the table called `name`.
bool ownsRow(const Communicator *comm, uint64_t nameHash, int64_t id);

/// What a tensor has of each row.
struct RowColumn {
  /// `values`: those of a table with hot rows, as floats; `halves`: those of another one of bf16.
  enum class Kind : int32_t { ids, floats, values, halves, lastStep, steps };
  Kind kind = Kind::ids;
  int64_t offset = 0, width = 0; ///< floats of a row; of values and halves: elements

  bool isFloats() const { return kind == Kind::floats || kind == Kind::values; }
  int64_t bytes() const { return isFloats() ? width * 4 : kind == Kind::halves ? width * 2 : 8; }
};

/// A table of the model, or the ids that it does not admit yet; of either, with `isRemoved`, the
/// ids that left since the save before.
struct SavedTable {
  int32_t index = 0;
  bool isWaiting = false;
  bool isRemoved = false;
};

class RowChanges;

class SavedTables {
public:
  /// Collective. Nothing may change in the session as long as this is used. Of all rows, or of
  /// those that `changes` has.
  explicit SavedTables(Session &session, const RowChanges *changes = nullptr);

  /// Rows on all ranks.
  int64_t size(SavedTable table) const;
  /// The bounds of a column's bytes on the ranks: SharedTensor::bounds.
  std::vector<int64_t> boundsOf(SavedTable table, const RowColumn &column) const;
  /// Bytes [begin, end) of a column of all rows, which are of this rank's.
  void read(SavedTable table, const RowColumn &column, int64_t begin, int64_t end, char *to);

private:
  /// The rows of a table that this rank owns, sorted.
  struct SortedRows {
    int64_t place = -1;
    std::vector<int64_t> ids;
    std::optional<TableRows> rows;
    /// Instead of these: the table's store is on the host, and where in it each row is.
    const StoreCopy *copy = nullptr;
    std::vector<int64_t> placesInCopy;
  };

  int64_t rowsBefore(int32_t rank, SavedTable table) const;
  int64_t sizeHere(SavedTable table) const;
  std::vector<int64_t> idsHere(SavedTable table) const;
  TableView view(SavedTable table) const;
  const SortedRows &sortedRows(SavedTable table);
  const StoreCopy *copyOf(SavedTable table) const;
  void sortCopied(const StoreCopy &copy, SavedTable table);
  void readRows(SavedTable table, const RowColumn &column, int64_t first, int64_t count, char *to);
  void readCopied(SavedTable table, const RowColumn &column, int64_t first, int64_t count,
                  char *to) const;

  Session &session;
  Communicator *comm;
  const RowChanges *changes;
  std::vector<int64_t> sizes; ///< by rank and place
  mutable StoreCopies copies;
  SortedRows sorted; ///< of one table, whose tensors are read one after another
  std::vector<char> block;
  std::vector<float> packed; ///< values of bf16
  std::vector<Sighting> sightings;
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_SAVED_TABLES_H
