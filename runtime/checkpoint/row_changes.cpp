//===- row_changes.cpp - Rows that changed since a save --------------------===//

#include "row_changes.h"

#include "genrec_rt/owner.h" // and XXH3

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace genrec::rt {

static size_t indexOf(SavedTable table) {
  return 2 * static_cast<size_t>(table.index) + (table.isWaiting ? 1 : 0);
}

const std::vector<int64_t> &RowChanges::changed(SavedTable table) const {
  return tables[indexOf(table)].changed;
}

const std::vector<int64_t> &RowChanges::removed(SavedTable table) const {
  return tables[indexOf(table)].removed;
}

/// The value, with both halves, and the states of each row.
static void readHot(const TableRows &rows, const StoreConfig &config, std::vector<float> &to) {
  const int64_t dim = config.dim, states = config.stateFloats(), count = rows.size();
  std::vector<float> values(static_cast<size_t>(count * dim)),
      stored(static_cast<size_t>(count * states));
  rows.readValues(values.data());
  rows.read(config.stateOffset(), states, stored.data());
  for (int64_t row = 0; row < count; ++row) {
    float *at = std::copy_n(values.data() + row * dim, dim, to.data() + row * (dim + states));
    std::copy_n(stored.data() + row * states, states, at);
  }
}

RowChanges::Contents RowChanges::contentsOf(const TableView &view) {
  const StoreConfig &config = view.configuration();
  // Values as they are saved: of hot rows with both halves.
  const int64_t width =
      config.keepsLower() ? config.dim + config.stateFloats() : config.usedFloats();
  const bool hasRules = config.rules.any();
  const int64_t bytes = width * 4 + (hasRules ? static_cast<int64_t>(sizeof(Sighting)) : 0);
  Contents contents;
  contents.ids = view.ids(0, view.size());
  contents.hashes.reserve(contents.ids.size());
  std::vector<float> floats;
  std::vector<Sighting> sightings;
  std::vector<char> row(static_cast<size_t>(bytes));
  forBlocks(view.size(), [&](int64_t first, int64_t count) {
    TableRows rows = view.rows(first, count);
    floats.resize(static_cast<size_t>(count * width));
    if (config.keepsLower())
      readHot(rows, config, floats);
    else
      rows.read(0, width, floats.data());
    sightings.resize(static_cast<size_t>(count));
    if (hasRules)
      rows.readSightings(sightings.data());
    for (int64_t i = 0; i < count; ++i) {
      const auto *from = reinterpret_cast<const char *>(floats.data() + i * width);
      if (hasRules) {
        std::memcpy(row.data(), from, static_cast<size_t>(width * 4));
        std::memcpy(row.data() + width * 4, &sightings[i], sizeof(Sighting));
        from = row.data();
      }
      contents.hashes.push_back(XXH3_64bits(from, static_cast<size_t>(bytes)));
    }
  });
  return contents;
}

void RowChanges::compare(Table &table, Contents now) {
  const Contents &before = table.contents;
  table.changed.clear();
  table.removed.clear();
  // Rows keep their places unless rows leave; only those of other places are searched for by id.
  std::unordered_map<int64_t, uint64_t> elsewhere;
  for (size_t i = 0; i < before.ids.size(); ++i)
    if (i >= now.ids.size() || now.ids[i] != before.ids[i])
      elsewhere.emplace(before.ids[i], before.hashes[i]);
  for (size_t i = 0; i < now.ids.size(); ++i) {
    if (i < before.ids.size() && before.ids[i] == now.ids[i]) {
      if (before.hashes[i] != now.hashes[i])
        table.changed.push_back(now.ids[i]);
      continue;
    }
    auto found = elsewhere.find(now.ids[i]);
    if (found == elsewhere.end() || found->second != now.hashes[i])
      table.changed.push_back(now.ids[i]);
    if (found != elsewhere.end())
      elsewhere.erase(found);
  }
  for (const auto &[id, hash] : elsewhere)
    table.removed.push_back(id);
  table.contents = std::move(now);
}

void RowChanges::keepOwned(Table &table, const Communicator &comm, uint64_t nameHash) {
  for (std::vector<int64_t> *ids : {&table.changed, &table.removed})
    std::erase_if(*ids, [&](int64_t id) { return !ownsRow(&comm, nameHash, id); });
}

void RowChanges::update(Session &session) {
  int32_t count = session.model().table_count;
  tables.resize(2 * static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) {
    TableView view = session.table(i);
    compare(tables[indexOf({i, false})], contentsOf(view));
    if (session.comm()) // rows of others may have come or gone, as placement changes
      keepOwned(tables[indexOf({i, false})], *session.comm(),
                hashTableName(session.model().tables[i].name));
    if (std::optional<TableView> waiting = view.waiting())
      compare(tables[indexOf({i, true})], contentsOf(*waiting));
  }
}

} // namespace genrec::rt
