//===- Placement.h - which tables ranks replicate ---------------*- C++ -*-===//
//
// Rows of a table are divided among ranks, or every rank has all. What that costs of a step: bytes
// over bandwidth, and for each round what messages take besides. Replicas of trained rows move more
// bytes than shards on more than two ranks, as gradients go to all; what they save is rounds, once
// no table is sharded. Replicas of rows that no step trains move nothing.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_REPORT_PLACEMENT_H
#define GENREC_LIB_REPORT_PLACEMENT_H

#include "World.h"

namespace genrec {

/// The share of a rank's memory that a replica of one table may take.
inline constexpr double kReplicaShare = 0.01;

/// What to do with one table.
struct PlacementChoice {
  bool isReplicated = false;
  double residentBytes = 0; ///< of a replica on each rank
  std::string why;
};

/// The tables to replicate so that exchanges of a step take least.
class Placement {
public:
  Placement(const World &world, const ExplainOptions &options);

  std::vector<PlacementChoice> choices; ///< by table of the world
  double seconds = 0;                   ///< that exchanges of rows take in a step
  double shardedSeconds = 0;            ///< if all tables are sharded

private:
  void judge(const TableTraffic &table);
  double getSeconds(llvm::function_ref<bool(size_t)> isReplicated) const;

  const World &world;
  const RankMachine &machine;
  std::vector<bool> isAllowed; ///< by table
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_PLACEMENT_H
