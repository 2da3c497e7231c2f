//===- saved_tables.cpp - Rows of tables as they are saved ----------------===//

#include "saved_tables.h"

#include "genrec_rt/owner.h"

#include <algorithm>
#include <cstring>

namespace genrec::rt {

namespace {

/// Sorts ids of a table by slice, and by id within a slice.
void sortBySlice(std::vector<int64_t> &ids, uint64_t nameHash) {
  std::vector<int64_t> begins(kSlices + 1), sorted(ids.size());
  for (int64_t id : ids)
    ++begins[getSlice(nameHash, id) + 1];
  for (int32_t slice = 0; slice < kSlices; ++slice)
    begins[slice + 1] += begins[slice];
  std::vector<int64_t> next(begins.begin(), begins.end() - 1);
  for (int64_t id : ids)
    sorted[next[getSlice(nameHash, id)]++] = id;
  for (int32_t slice = 0; slice < kSlices; ++slice)
    std::sort(sorted.begin() + begins[slice], sorted.begin() + begins[slice + 1]);
  ids = std::move(sorted);
}

int64_t placeOf(SavedTable table) { return 2 * int64_t(table.index) + table.isWaiting; }

} // namespace

bool ownsRow(const Communicator *comm, uint64_t nameHash, int64_t id) {
  return !comm || getOwner(getSlice(nameHash, id), comm->getSize()) == comm->getRank();
}

SavedTables::SavedTables(Session &session) : session(session), comm(session.comm()) {
  std::vector<int64_t> mine;
  for (int32_t i = 0; i < session.model().table_count; ++i) {
    std::optional<TableView> waiting = session.table(i).waiting();
    mine.push_back(session.table(i).size());
    mine.push_back(waiting ? waiting->size() : 0);
  }
  sizes.resize(mine.size() * (comm ? comm->getSize() : 1));
  if (comm)
    comm->allGather(mine.data(), sizes.data(), static_cast<int64_t>(mine.size()) * 8);
  else
    sizes = std::move(mine);
}

int64_t SavedTables::sizeOn(int32_t rank, SavedTable table) const {
  return sizes[2 * int64_t(session.model().table_count) * rank + placeOf(table)];
}

int64_t SavedTables::size(SavedTable table) const {
  int64_t rows = 0;
  for (int32_t rank = 0; rank < (comm ? comm->getSize() : 1); ++rank)
    rows += sizeOn(rank, table);
  return rows;
}

TableView SavedTables::view(SavedTable table) const {
  TableView rows = session.table(table.index);
  return table.isWaiting ? *rows.waiting() : rows;
}

/// This rank's ids of a table, sorted. Those of one table are kept: its tensors are asked for one
/// after another.
const std::vector<int64_t> &SavedTables::idsOf(SavedTable table) {
  if (sortedPlace == placeOf(table))
    return sortedIds;
  TableView rows = view(table);
  sortedIds = rows.ids(0, rows.size());
  sortBySlice(sortedIds, hashTableName(session.model().tables[table.index].name));
  sortedPlace = placeOf(table);
  return sortedIds;
}

/// A column of some of this rank's rows.
void SavedTables::read(const Request &request, char *to) {
  const int64_t *ids = idsOf(request.table).data() + request.first;
  const RowColumn &column = request.column;
  if (column.kind == RowColumn::Kind::ids) {
    std::memcpy(to, ids, static_cast<size_t>(request.count * 8));
    return;
  }
  TableRows rows = view(request.table).find(ids, request.count);
  if (column.kind == RowColumn::Kind::floats)
    return rows.read(column.offset, column.width, reinterpret_cast<float *>(to));
  std::vector<Sighting> sightings(static_cast<size_t>(request.count));
  rows.readSightings(sightings.data());
  for (const Sighting &sighting : sightings) {
    std::memcpy(to, column.kind == RowColumn::Kind::steps ? &sighting.steps : &sighting.lastStep,
                8);
    to += 8;
  }
}

/// Moves what was asked for to rank 0.
void SavedTables::exchange(const Request &request, char *to) {
  int64_t bytes = request.count * request.column.bytes();
  std::vector<SendPart> send(comm->getSize());
  std::vector<ReceivePart> receive(comm->getSize());
  if (comm->getRank() == request.rank)
    send[0] = {to, bytes};
  if (comm->getRank() == 0)
    receive[request.rank] = {to, bytes};
  comm->exchange(send, receive);
}

void SavedTables::put(SavedTable table, const RowColumn &column,
                      const SafetensorsWriter::Put &put) {
  for (int32_t rank = 0; rank < (comm ? comm->getSize() : 1); ++rank)
    forBlocks(sizeOn(rank, table), [&](int64_t first, int64_t count) {
      Request request{false, rank, table, column, first, count};
      block.resize(static_cast<size_t>(count * column.bytes()));
      if (rank == 0) {
        read(request, block.data());
      } else {
        comm->broadcast(&request, sizeof request, 0);
        exchange(request, block.data());
      }
      put(block.data(), static_cast<int64_t>(block.size()));
    });
}

void SavedTables::end() {
  Request request;
  request.isEnd = true;
  if (comm)
    comm->broadcast(&request, sizeof request, 0);
}

void SavedTables::serve() {
  try {
    while (true) {
      Request request;
      comm->broadcast(&request, sizeof request, 0);
      if (request.isEnd)
        return;
      if (request.rank == comm->getRank()) {
        block.resize(static_cast<size_t>(request.count * request.column.bytes()));
        read(request, block.data());
      }
      exchange(request, block.data());
    }
  } catch (const CommError &) {
    throw; // rank 0 knows
  } catch (const std::exception &error) {
    comm->abort(error.what());
    throw;
  }
}

} // namespace genrec::rt
