//===- Placement.cpp - which tables ranks replicate -----------------------===//

#include "Placement.h"

#include "genrec_rt/footprint.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace mlir;
using namespace genrec;

/// Of one table alone: whether it may have replicas, and whether they move fewer bytes.
void Placement::judge(const TableTraffic &table) {
  TableOp op = table.table;
  PlacementChoice &choice = choices.emplace_back();
  auto rows = static_cast<int64_t>(std::ceil(table.ids));
  int64_t states = op.getOptimizer().getStateFloats(op.getDim());
  choice.residentBytes = static_cast<double>(
      rt::storeValueBytes(rows, op.getDim(), states, op.hasRowRules()) + rt::storeKeyBytes(rows));
  double most = kReplicaShare * machine.memoryBytes;
  const TablePlacement &bytes = table.placement;
  isAllowed.push_back(false);
  if (op.hasRowRules())
    choice.why = "has rules, which count what all ranks look up";
  else if (table.ids == 0)
    choice.why = "nothing tells its ids";
  else if (choice.residentBytes > most)
    choice.why = llvm::formatv("a replica takes {0:f1} MB, more than {1:f0} % of a rank's memory",
                               choice.residentBytes * 1e-6, kReplicaShare * 100);
  else
    isAllowed.back() = true;
  if (!isAllowed.back())
    return;
  choice.isReplicated = bytes.replicatedBytes < bytes.shardedBytes;
  choice.why = choice.isReplicated ? "moves fewer bytes" : "would move more bytes";
}

double Placement::getSeconds(llvm::function_ref<bool(size_t)> isReplicated) const {
  double bytes = 0;
  bool all = true;
  for (auto [number, table] : llvm::enumerate(world.tables)) {
    bool is = isReplicated(number);
    bytes += is ? table.placement.replicatedBytes : table.placement.shardedBytes;
    all &= is;
  }
  return bytes * 8 / machine.networkBitsPerSecond +
         static_cast<double>(world.countRounds(all) * (world.ranks() - 1)) * machine.messageSeconds;
}

Placement::Placement(const World &world, const ExplainOptions &options)
    : world(world), machine(options.machine) {
  for (const TableTraffic &table : world.tables)
    judge(table);
  shardedSeconds = getSeconds([](size_t) { return false; });
  seconds = getSeconds([&](size_t number) { return choices[number].isReplicated; });
  double all = getSeconds([](size_t) { return true; });
  if (!llvm::all_of(isAllowed, [](bool is) { return is; }) || all >= seconds)
    return;
  seconds = all;
  std::string why =
      llvm::formatv("with all tables replicated, a step has {0} rounds instead of {1}",
                    world.countRounds(true), world.countRounds(false));
  for (PlacementChoice &choice : choices)
    if (!std::exchange(choice.isReplicated, true))
      choice.why = why;
}
