//===- Placement.cpp - which tables ranks replicate -----------------------===//

#include "Placement.h"

#include "genrec_rt/footprint.h"

#include <cmath>

using namespace mlir;
using namespace genrec;

static double getResidentBytes(const TableTraffic &traffic) {
  TableOp table = traffic.table;
  auto rows = static_cast<int64_t>(std::ceil(traffic.ids));
  return static_cast<double>(rt::storeValueBytes(rows, table.getRowType().getStateOffset(),
                                                 table.getStateFloats(), table.hasRowRules()) +
                             rt::storeKeyBytes(rows));
}

/// What the cost model asks of a table.
static rt::PlacedTable place(const World &world, const TableTraffic &traffic) {
  TableOp table = traffic.table;
  rt::PlacedTable placed;
  placed.dim = table.getDim();
  placed.learns = world.step.updatesRows && table.getOptimizer().getOption("frozen") == 0.0;
  placed.asked = traffic.asked / static_cast<double>(world.ranks());
  placed.shardedBytes = traffic.placement.shardedBytes;
  placed.replicatedBytes = traffic.placement.replicatedBytes;
  placed.residentBytes = getResidentBytes(traffic);
  if (table.hasRowRules())
    placed.refusal = "has rules, which count what all ranks look up";
  else if (traffic.ids == 0)
    placed.refusal = "nothing tells its ids";
  return placed;
}

WorldPlacement::WorldPlacement(const World &world, const RankMachine &machine) {
  std::vector<rt::PlacedTable> tables;
  for (const TableTraffic &traffic : world.tables) {
    tables.push_back(place(world, traffic));
    residentBytes.push_back(tables.back().residentBytes);
  }
  int64_t others = world.ranks() - 1, ofSums = world.countRoundsOfSums();
  static_cast<rt::Placement &>(*this) =
      rt::choosePlacement(tables,
                          {.sharded = world.countRounds(false) - ofSums,
                           .replicated = world.countRounds(true) - ofSums},
                          {.ranks = world.ranks(),
                           .bytesPerSecond = machine.networkBitsPerSecond / 8,
                           .roundSeconds = static_cast<double>(others) * machine.messageSeconds,
                           .replicaBytes = rt::kReplicaShare * machine.memoryBytes});
}
