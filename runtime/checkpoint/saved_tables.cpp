//===- saved_tables.cpp - Rows of tables as they are saved ----------------===//

#include "saved_tables.h"

#include "row_changes.h"

#include "genrec_rt/comm.h"
#include "genrec_rt/owner.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

namespace genrec::rt {

namespace {

/// An id of a table, and where its row is in a copy.
using PlacedId = std::pair<int64_t, int64_t>;
int64_t idOf(int64_t id) { return id; }
int64_t idOf(const PlacedId &placed) { return placed.first; }

/// Sorts ids of a table by slice, and by id within a slice.
template <class Id> void sortBySlice(std::vector<Id> &ids, uint64_t nameHash) {
  std::vector<int64_t> begins(kSlices + 1);
  std::vector<Id> sorted(ids.size());
  for (const Id &id : ids)
    ++begins[getSlice(nameHash, idOf(id)) + 1];
  for (int32_t slice = 0; slice < kSlices; ++slice)
    begins[slice + 1] += begins[slice];
  std::vector<int64_t> next(begins.begin(), begins.end() - 1);
  for (const Id &id : ids)
    sorted[next[getSlice(nameHash, idOf(id))]++] = id;
  for (int32_t slice = 0; slice < kSlices; ++slice)
    std::sort(sorted.begin() + begins[slice], sorted.begin() + begins[slice + 1]);
  ids = std::move(sorted);
}

/// Of a table.
constexpr int64_t kPlaces = 4;
int64_t placeOf(SavedTable table) {
  return kPlaces * table.index + 2 * table.isRemoved + table.isWaiting;
}

} // namespace

bool ownsRow(const Communicator *comm, uint64_t nameHash, int64_t id) {
  return !comm || getOwner(getSlice(nameHash, id), comm->getSize()) == comm->getRank();
}

SavedTables::SavedTables(Session &session, const RowChanges *changes)
    : session(session), comm(session.comm()), changes(changes) {
  std::vector<int64_t> mine;
  runTogether(comm, [&] {
    for (int32_t i = 0; i < session.model().table_count; ++i)
      for (bool isRemoved : {false, true})
        for (bool isWaiting : {false, true})
          mine.push_back(sizeHere({i, isWaiting, isRemoved}));
    sizes.resize(mine.size() * (comm ? comm->getSize() : 1));
  });
  if (comm)
    comm->allGather(mine.data(), sizes.data(), static_cast<int64_t>(mine.size()) * 8);
  else
    sizes = std::move(mine);
}

int64_t SavedTables::sizeHere(SavedTable table) const {
  if (changes)
    return static_cast<int64_t>(
        (table.isRemoved ? changes->removed(table) : changes->changed(table)).size());
  std::optional<TableView> waiting = session.table(table.index).waiting();
  if (table.isRemoved || (table.isWaiting && !waiting))
    return 0;
  if (!session.commOfRows(table.index))
    return static_cast<int64_t>(idsHere(table).size());
  if (const StoreCopy *copy = copyOf(table))
    return copy->size(view(table));
  return table.isWaiting ? waiting->size() : session.table(table.index).size();
}

int64_t SavedTables::rowsBefore(int32_t rank, SavedTable table) const {
  int64_t rows = 0;
  for (int32_t before = 0; before < rank; ++before)
    rows += sizes[kPlaces * session.model().table_count * before + placeOf(table)];
  return rows;
}

int64_t SavedTables::size(SavedTable table) const {
  return rowsBefore(comm ? comm->getSize() : 1, table);
}

std::vector<int64_t> SavedTables::boundsOf(SavedTable table, const RowColumn &column) const {
  std::vector<int64_t> bounds;
  for (int32_t rank = 0; rank <= (comm ? comm->getSize() : 1); ++rank)
    bounds.push_back(rowsBefore(rank, table) * column.bytes());
  return bounds;
}

/// Of the rows that this rank has, those that it saves: of a replicated table, as of others, those
/// that it owns.
std::vector<int64_t> SavedTables::idsHere(SavedTable table) const {
  TableView rows = view(table);
  const StoreCopy *copy = copyOf(table);
  std::vector<int64_t> ids = copy ? copy->ids(rows) : rows.ids(0, rows.size());
  if (comm && !session.commOfRows(table.index)) {
    uint64_t nameHash = hashTableName(session.model().tables[table.index].name);
    std::erase_if(ids, [&](int64_t id) { return !ownsRow(comm, nameHash, id); });
  }
  return ids;
}

TableView SavedTables::view(SavedTable table) const {
  TableView rows = session.table(table.index);
  return table.isWaiting ? *rows.waiting() : rows;
}

/// Null where rows are found by id: few of them may be wanted.
const StoreCopy *SavedTables::copyOf(SavedTable table) const {
  return changes || table.isRemoved ? nullptr : copies.of(view(table));
}

/// The rows of a table in the copy of its store.
void SavedTables::sortCopied(const StoreCopy &copy, SavedTable table) {
  const uint64_t nameHash = hashTableName(session.model().tables[table.index].name);
  const bool isReplicated = comm && !session.commOfRows(table.index);
  std::vector<PlacedId> placed;
  for (const int64_t id : copy.ids(view(table)))
    placed.emplace_back(id, static_cast<int64_t>(placed.size()));
  if (isReplicated)
    std::erase_if(placed, [&](const PlacedId &one) { return !ownsRow(comm, nameHash, one.first); });
  sortBySlice(placed, nameHash);
  sorted.ids.clear();
  sorted.placesInCopy.clear();
  for (const auto &[id, place] : placed) {
    sorted.ids.push_back(id);
    sorted.placesInCopy.push_back(place);
  }
}

const SavedTables::SortedRows &SavedTables::sortedRows(SavedTable table) {
  if (sorted.place == placeOf(table))
    return sorted;
  sorted.place = -1;
  sorted.rows.reset();
  TableView rows = view(table);
  sorted.copy = copyOf(table);
  if (sorted.copy) {
    sortCopied(*sorted.copy, table);
    sorted.place = placeOf(table);
    return sorted;
  }
  if (changes)
    sorted.ids = table.isRemoved ? changes->removed(table) : changes->changed(table);
  else
    sorted.ids = idsHere(table);
  sortBySlice(sorted.ids, hashTableName(session.model().tables[table.index].name));
  if (!table.isRemoved)
    sorted.rows.emplace(rows.find(sorted.ids.data(), static_cast<int64_t>(sorted.ids.size())));
  sorted.place = placeOf(table);
  return sorted;
}

/// The same from a copy.
void SavedTables::readCopied(SavedTable table, const RowColumn &column, int64_t first,
                             int64_t count, char *to) const {
  using Kind = RowColumn::Kind;
  const TableView rows = view(table);
  const StoreCopy &copy = *sorted.copy;
  const int64_t bytes = column.bytes();
  const int64_t offset = column.kind == Kind::floats ? column.offset
                         : column.kind == Kind::lastStep || column.kind == Kind::steps
                             ? rows.memory().sightingOffset()
                             : 0;
  const size_t inSighting = column.kind == Kind::lastStep ? offsetof(Sighting, lastStep)
                            : column.kind == Kind::steps  ? offsetof(Sighting, steps)
                                                          : 0;
  for (int64_t i = first; i < first + count; ++i, to += bytes) {
    const int64_t place = sorted.placesInCopy[i];
    const float *from =
        column.kind == Kind::values ? copy.values(rows, place) : copy.row(rows, place) + offset;
    std::memcpy(to, reinterpret_cast<const char *>(from) + inSighting, static_cast<size_t>(bytes));
  }
}

/// A column of some of this rank's rows.
void SavedTables::readRows(SavedTable table, const RowColumn &column, int64_t first, int64_t count,
                           char *to) {
  const SortedRows &from = sortedRows(table);
  if (column.kind == RowColumn::Kind::ids) {
    std::memcpy(to, from.ids.data() + first, static_cast<size_t>(count * 8));
    return;
  }
  if (from.copy)
    return readCopied(table, column, first, count, to);
  if (column.kind == RowColumn::Kind::floats)
    return from.rows->read(first, count, column.offset, column.width,
                           reinterpret_cast<float *>(to));
  if (column.kind == RowColumn::Kind::values)
    return from.rows->readValues(first, count, reinterpret_cast<float *>(to));
  if (column.kind == RowColumn::Kind::halves) {
    const int64_t floats = storeValueFloats(column.width, /*isBf16=*/true);
    packed.resize(static_cast<size_t>(count * floats));
    from.rows->read(first, count, 0, floats, packed.data());
    for (int64_t i = 0; i < count; ++i)
      std::memcpy(to + i * column.bytes(), packed.data() + i * floats,
                  static_cast<size_t>(column.bytes()));
    return;
  }
  sightings.resize(static_cast<size_t>(count));
  from.rows->readSightings(first, count, sightings.data());
  for (const Sighting &sighting : sightings) {
    std::memcpy(to, column.kind == RowColumn::Kind::steps ? &sighting.steps : &sighting.lastStep,
                8);
    to += 8;
  }
}

void SavedTables::read(SavedTable table, const RowColumn &column, int64_t begin, int64_t end,
                       char *to) {
  int64_t bytes = column.bytes(), skipped = rowsBefore(comm ? comm->getRank() : 0, table);
  int64_t first = begin / bytes, last = (end + bytes - 1) / bytes;
  if (begin % bytes == 0 && end % bytes == 0)
    return readRows(table, column, first - skipped, last - first, to);
  block.resize(static_cast<size_t>((last - first) * bytes)); // blocks of bytes cut rows
  readRows(table, column, first - skipped, last - first, block.data());
  std::memcpy(to, block.data() + (begin - first * bytes), static_cast<size_t>(end - begin));
}

} // namespace genrec::rt
