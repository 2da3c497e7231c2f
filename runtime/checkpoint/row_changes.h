//===- row_changes.h - Rows that changed since a save ------------*- C++ -*-===//
//
// Incremental checkpoints hold the rows that changed since the save before, and the ids of those
// that left. Training does not note what it touches: a save compares. Of each row that the last
// save saw, its id and a hash of all that is saved of it are kept: 16 bytes. So a step costs
// nothing, rows that were touched and are as they were do not count, and whatever changed or
// removed a row is seen.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_CHECKPOINT_ROW_CHANGES_H
#define GENREC_RT_CHECKPOINT_ROW_CHANGES_H

#include "genrec_rt/session.h"
#include "saved_tables.h"

#include <vector>

namespace genrec::rt {

class RowChanges {
public:
  /// Compares the rows that this rank saves with those of the call before, from then on with these.
  void update(Session &session);
  /// What the next call finds is not to be used.
  void forget() { tables.clear(); }
  /// Whether there was a call to compare the next one with.
  bool isKnown() const { return !tables.empty(); }

  /// Of the last call, in no order. Ids that are new or have other contents; ids that are gone.
  const std::vector<int64_t> &changed(SavedTable table) const;
  const std::vector<int64_t> &removed(SavedTable table) const;

private:
  /// By position in the table.
  struct Contents {
    std::vector<int64_t> ids;
    std::vector<uint64_t> hashes;
  };
  struct Table {
    Contents contents; ///< as of the last call
    std::vector<int64_t> changed, removed;
  };

  static Contents contentsOf(const TableView &view);
  static void compare(Table &table, Contents now);
  /// Of a replicated table, or one that was, the owners save what changed.
  static void keepOwned(Table &table, const Communicator &comm, uint64_t nameHash);

  std::vector<Table> tables; ///< two per table of the model: its rows, and the ids that wait
};

} // namespace genrec::rt

#endif // GENREC_RT_CHECKPOINT_ROW_CHANGES_H
