//===- placement_chooser.cpp - A run chooses where rows are ---------------===//

#include "placement_chooser.h"

#include "../core/machine_memory.h"
#include "../core/threads.h"
#include "exchange_probe.h"
#include "genrec_rt/owner.h"

#include <cstring>

namespace genrec::rt {

namespace {

/// Rows that travel at a time.
constexpr int64_t kTravellingRows = 4096;

/// Gives every rank the rows that the others have.
void gatherRows(Communicator &comm, TableView table) {
  const int64_t own = table.size(), width = table.configuration().usedFloats();
  std::vector<int64_t> sizes(comm.getSize());
  comm.allGather(&own, sizes.data(), sizeof own);
  std::vector<int64_t> ids;
  std::vector<float> floats;
  for (int32_t from = 0; from < comm.getSize(); ++from)
    for (int64_t first = 0; first < sizes[from]; first += kTravellingRows) {
      const bool isOwn = from == comm.getRank();
      const int64_t count = std::min(kTravellingRows, sizes[from] - first);
      ids.resize(count);
      floats.resize(count * width);
      if (isOwn) { // in front of those of others
        ids = table.ids(first, count);
        table.rows(first, count).read(0, width, floats.data());
      }
      comm.broadcast(ids.data(), count * static_cast<int64_t>(sizeof(int64_t)), from);
      comm.broadcast(floats.data(), count * width * static_cast<int64_t>(sizeof(float)), from);
      if (!isOwn)
        table.findOrInsert(ids.data(), count).write(0, width, floats.data());
    }
}

/// Forgets the rows that others own.
void dropRows(const Communicator &comm, TableView table, const char *name) {
  const uint64_t nameHash = hashTableName(name);
  std::vector<int64_t> ids = table.ids(0, table.size());
  std::erase_if(ids, [&](int64_t id) {
    return getOwner(getSlice(nameHash, id), comm.getSize()) == comm.getRank();
  });
  table.erase(ids.data(), static_cast<int64_t>(ids.size()));
}

bool learns(const genrec_table_desc &table) {
  return table.optimizer.kind != GENREC_OPTIMIZER_FROZEN;
}

} // namespace

PlacementReport describePlacement(const genrec_model_desc &model, std::span<const char> replicated,
                                  const std::string &why) {
  PlacementReport report;
  for (int32_t i = 0; i < model.table_count; ++i)
    report.tables.push_back({.name = model.tables[i].name,
                             .isReplicated = replicated[i] != 0,
                             .why = replicated[i] ? "--replicate names it" : why});
  return report;
}

PlacementChooser::PlacementChooser(genrec_runtime &state, bool hidesKeys, int64_t replicaBytes)
    : state(state), comm(state.ranks->comm()), hidesKeys(hidesKeys), replicaBytes(replicaBytes),
      told(describePlacement(state.model, state.replicated,
                             "a run chooses after " + std::to_string(kFirstLook) + " steps")) {}

TableView PlacementChooser::view(int32_t table) const {
  return {*state.tables[table], state.model.tables[table]};
}

bool PlacementChooser::endStep(const RankStep &step, uint64_t number) {
  if (++steps != nextLook)
    return false;
  nextLook *= 2;
  comm.setPurpose({"the placement of tables", number});
  look(step);
  return move(number);
}

void PlacementChooser::look(const RankStep &step) {
  const int32_t ranks = comm.getSize(), tableCount = state.model.table_count;
  const Figures own = measure(step);
  std::vector<Figures> all(ranks);
  comm.allGather(&own, all.data(), sizeof own);
  const std::vector<TableFigures> ofTables = count(step);
  std::vector<TableFigures> allTables(static_cast<size_t>(ranks) * tableCount);
  comm.allGather(ofTables.data(), allTables.data(),
                 static_cast<int64_t>(tableCount * sizeof(TableFigures)));
  const std::vector<PlacedTable> placed = placeTables(allTables, all);
  told.machine = describeMachine(all, placed);
  told.rounds =
      step.onDevice() ? countRoundsOfDevices(*step.onDevice()) : countRounds(all.front().fetches);
  const Placement chosen = choosePlacement(placed, told.rounds, told.machine);
  ++told.looks;
  told.seconds = chosen.seconds;
  told.shardedSeconds = chosen.shardedSeconds;
  told.replicatedSeconds = chosen.replicatedSeconds;
  for (int32_t i = 0; i < tableCount; ++i) {
    PlacementReport::Table &table = told.tables[i];
    table.needs = placed[i];
    table.isReplicated = chosen.tables[i].isReplicated;
    table.why = chosen.tables[i].why;
  }
}

PlacementChooser::Figures PlacementChooser::measure(const RankStep &step) const {
  Figures own{};
  Device *device = state.device();
  if (device) { // which no other rank has
    std::strncpy(own.machine, device->info().uuid.c_str(), sizeof own.machine);
    const DeviceSpace space = device->space();
    own.memoryBytes = static_cast<double>(space.total);
    own.freeBytes = static_cast<double>(space.free);
    own.copiedBytesPerSecond = measureCopyRate(*device);
  } else {
    const Cores cores = ownCores();
    static_assert(sizeof own.machine == sizeof cores.machine);
    std::memcpy(own.machine, cores.machine, sizeof own.machine);
    own.memoryBytes = own.freeBytes = static_cast<double>(machineMemory());
  }
  const RoundTimes times = timeRounds(comm, device);
  own.roundSeconds = times.small;
  own.largeRoundSeconds = times.large;
  const ExchangeCounts traffic = state.ranks->getTraffic();
  own.rowBytes = static_cast<double>(traffic.rowBytes);
  own.earlyRowBytes = static_cast<double>(traffic.earlyRowBytes);
  own.fetches = step.rows().getFetches(); // of the host
  return own;
}

std::vector<PlacementChooser::TableFigures> PlacementChooser::count(const RankStep &step) const {
  const ExchangedTables &tables = state.ranks->exchangedTables();
  std::vector<RowExchange::Use> uses;
  for (size_t i = 0; i < tables.stores.size(); ++i) {
    const auto store = static_cast<int32_t>(i);
    uses.push_back(step.onDevice() ? step.onDevice()->getUse(store) : step.rows().getUse(store));
  }
  std::vector<TableFigures> figures;
  for (int32_t i = 0; i < state.model.table_count; ++i) {
    const RowExchange::Use &use = uses[tables.storeOf[i]];
    const auto asked = static_cast<double>(use.asked[memberOf(state.model.tables[i])]);
    const double ofStore = std::accumulate(use.asked.begin(), use.asked.end(), 0.0);
    const double share = ofStore > 0 ? asked / ofStore : 0;
    figures.push_back({asked, share * static_cast<double>(use.sums), view(i).size()});
  }
  return figures;
}

/// What the cost model asks of every table: `all` has the figures of all, rank by rank.
std::vector<PlacedTable> PlacementChooser::placeTables(std::span<const TableFigures> all,
                                                       std::span<const Figures> ranks) {
  constexpr double kKey = 8, kFloat = 4;
  // What says which sums a row has: devices send a byte with each, and all keys before the step.
  const double mask = state.device() ? 1 : 4, replicaKey = state.device() && hidesKeys ? 0 : kKey;
  const auto rankCount = static_cast<double>(ranks.size());
  double rowBytes = 0, earlyBytes = 0;
  for (const Figures &rank : ranks) {
    rowBytes += rank.rowBytes;
    earlyBytes += rank.earlyRowBytes;
  }
  const double late = rowBytes > 0 ? 1 - earlyBytes / rowBytes : 1;
  std::vector<PlacedTable> placed;
  for (int32_t i = 0; i < state.model.table_count; ++i) {
    const genrec_table_desc &desc = state.model.tables[i];
    double asked = 0, sums = 0;
    int64_t rows = 0;
    for (size_t rank = 0; rank < ranks.size(); ++rank) {
      const TableFigures &of = all[rank * state.model.table_count + i];
      asked += of.asked / rankCount;
      sums += of.sums / rankCount;
      rows = state.replicated[i] ? of.rows : rows + of.rows;
    }
    PlacedTable &table = placed.emplace_back();
    table.dim = desc.dim;
    table.learns = learns(desc);
    table.isReplicated = state.replicated[i] != 0;
    table.asked = asked;
    const StoreConfig &config = state.tables[i]->configuration();
    const double rowSize = kFloat * static_cast<double>(config.valueFloats()),
                 sumBytes = kFloat * static_cast<double>(desc.dim) * sums;
    const double before = asked * ((hidesKeys ? 0 : kKey) + rowSize * late);
    const double masks = mask * (state.device() ? sums : asked);
    table.shardedBytes = (rankCount - 1) / rankCount * (before + masks + sumBytes);
    if (table.learns)
      table.replicatedBytes = (rankCount - 1) * (asked * replicaKey + masks + sumBytes);
    if (state.device())
      table.rowSeconds = secondsOfRow(config, ranks);
    const int64_t later = rows * (table.learns ? 2 : 1); // at the next look, at most
    table.residentBytes = static_cast<double>(
        storeValueBytes(later, config.stateOffset(), config.stateFloats()) + storeKeyBytes(later));
    if (config.rules.any())
      table.refusal = "has rules, which count what all ranks look up";
    told.tables[i].rows = rows;
  }
  return placed;
}

PlacementMachine PlacementChooser::describeMachine(std::span<const Figures> ranks,
                                                   std::span<const PlacedTable> placed) const {
  PlacementMachine machine;
  machine.ranks = static_cast<int64_t>(ranks.size());
  double memory = ranks.front().memoryBytes, free = ranks.front().freeBytes, large = 0;
  for (const Figures &rank : ranks) { // the slowest rank, the one with the least memory
    machine.roundSeconds = std::max(machine.roundSeconds, rank.roundSeconds);
    large = std::max(large, rank.largeRoundSeconds);
    auto sharing = std::count_if(ranks.begin(), ranks.end(), [&](const Figures &other) {
      return std::strncmp(other.machine, rank.machine, sizeof rank.machine) == 0;
    });
    memory = std::min(memory, rank.memoryBytes / static_cast<double>(sharing));
    free = std::min(free, rank.freeBytes);
  }
  for (const PlacedTable &table : placed) // replicas that are there take none of what is free
    free += table.isReplicated ? table.residentBytes : 0;
  constexpr double kLeastSeconds = 1e-6;
  machine.bytesPerSecond = static_cast<double>(probeBytes(comm) * (machine.ranks - 1)) /
                           std::max(large - machine.roundSeconds, kLeastSeconds);
  machine.replicaBytes =
      std::min(free, replicaBytes > 0 ? static_cast<double>(replicaBytes) : kReplicaShare * memory);
  return machine;
}

PlacementRounds PlacementChooser::countRounds(const RowExchange::Fetches &fetches) const {
  PlacementRounds rounds{.sharded = 2 * fetches.all, .replicated = fetches.ridden};
  if (hidesKeys) { // those of the first fetch
    rounds.sharded -= fetches.all > 0;
    rounds.replicated -= fetches.ridden > 0;
  }
  return rounds;
}

/// On a device: its value, states and sum are read and written, at the rate of the slowest.
double PlacementChooser::secondsOfRow(const StoreConfig &config, std::span<const Figures> ranks) {
  const double bytes = 2.0 * sizeof(float) * static_cast<double>(config.usedFloats() + config.dim);
  double seconds = 0;
  for (const Figures &rank : ranks)
    seconds = std::max(seconds, bytes / rank.copiedBytesPerSecond);
  return seconds;
}

/// Counts and keys, which may be hidden, and values; counts and keys of replicas that learn.
PlacementRounds PlacementChooser::countRoundsOfDevices(const DeviceRanks &step) const {
  bool anyLearns = false;
  for (int32_t i = 0; i < state.model.table_count; ++i)
    anyLearns |= learns(state.model.tables[i]);
  constexpr int64_t kOfKeys = 2;
  const int64_t fetches = step.countFetches(), hidden = hidesKeys ? kOfKeys : 0;
  return {.sharded = (kOfKeys + 1) * fetches - hidden,
          .replicated = anyLearns ? kOfKeys * fetches - hidden : 0};
}

/// Moves rows to where the last look wants them.
bool PlacementChooser::move(uint64_t step) {
  bool isMoved = false;
  for (int32_t i = 0; i < state.model.table_count; ++i) {
    const bool isReplicated = told.tables[i].isReplicated;
    if (isReplicated == (state.replicated[i] != 0))
      continue;
    if (isReplicated)
      gatherRows(comm, view(i));
    else
      dropRows(comm, view(i), state.model.tables[i].name);
    state.replicated[i] = isReplicated;
    isMoved = true;
  }
  if (!isMoved)
    return false;
  state.ranks->setReplicated(state.model, state.replicated);
  PlacementReport::Move &move = told.moves.emplace_back();
  move.step = step;
  for (int32_t i = 0; i < state.model.table_count; ++i)
    if (state.replicated[i])
      move.replicated.push_back(state.model.tables[i].name);
  return true;
}

} // namespace genrec::rt
