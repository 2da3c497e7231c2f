//===- saved_tables.h - Rows of tables as they are saved ---------*- C++ -*-===//
//
// Rows are saved by slice (owner.h), and by id within one: their order depends neither on when they
// came nor on how many ranks share them. Ranks own runs of slices, so the rows of a table are those of
// rank 0, then those of rank 1, and so on. Rank 0 asks for them in blocks; no rank holds a
// whole table.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_SAVED_TABLES_H
#define GENREC_RT_CHECKPOINT_SAVED_TABLES_H

#include "genrec_rt/safetensors.h"
#include "genrec_rt/session.h"

#include <algorithm>
#include <vector>

namespace genrec::rt {

/// Calls body(first, count) for blocks of rows, in order.
inline constexpr int64_t kBlockRows = 1 << 14;
template <class Body> void forBlocks(int64_t rows, Body body) {
  for (int64_t first = 0; first < rows; first += kBlockRows)
    body(first, std::min(kBlockRows, rows - first));
}

/// Whether this rank has row `id` of the table called `name`.
bool ownsRow(const Communicator *comm, uint64_t nameHash, int64_t id);

/// What a tensor has of each row.
struct RowColumn {
  enum class Kind : int32_t { ids, floats, lastStep, steps };
  Kind kind = Kind::ids;
  int64_t offset = 0, width = 0; ///< floats of a row

  int64_t bytes() const { return kind == Kind::floats ? width * 4 : 8; }
};

/// A table of the model, or the ids that it does not admit yet.
struct SavedTable {
  int32_t index = 0;
  bool isWaiting = false;
};

class SavedTables {
public:
  /// Collective. Nothing may change in the session as long as this is used.
  explicit SavedTables(Session &session);

  /// Rows on all ranks.
  int64_t size(SavedTable table) const;
  /// On rank 0: hands a column of all rows of all ranks to `put`. The others serve meanwhile.
  void put(SavedTable table, const RowColumn &column, const SafetensorsWriter::Put &put);
  /// On rank 0, after the last `put`, whatever came of it.
  void end();
  /// On the other ranks: gives rows to rank 0 until it ends.
  void serve();

private:
  /// What rank 0 asks a rank for.
  struct Request {
    bool isEnd = false;
    int32_t rank = 0;
    SavedTable table;
    RowColumn column;
    int64_t first = 0, count = 0;
  };

  int64_t sizeOn(int32_t rank, SavedTable table) const;
  TableView view(SavedTable table) const;
  const std::vector<int64_t> &idsOf(SavedTable table);
  void read(const Request &request, char *to);
  void exchange(const Request &request, char *to);

  Session &session;
  Communicator *comm;
  std::vector<int64_t> sizes; ///< by rank, table and whether it is the waiting ids
  int64_t sortedPlace = -1;   ///< what `sortedIds` is of
  std::vector<int64_t> sortedIds;
  std::vector<char> block;
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_SAVED_TABLES_H
