//===- World.h - what several ranks would exchange and hold -----*- C++ -*-===//
//
// A step of a distributed program on so many ranks, without running it: from the ids that data look
// up and the owners of rows (owner.h) follow the rows and bytes of each exchange, per rank.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_REPORT_WORLD_H
#define GENREC_LIB_REPORT_WORLD_H

#include "StepExchanges.h"

#include <map>
#include <memory>
#include <optional>

namespace genrec {

/// What one rank exchanges in a step, in the mean. Bytes are those that come from other ranks and
/// those that go to them; the counters of a run have the first (`traffic` of --metrics-json).
struct RankTraffic {
  double lookedUp = 0; ///< ids, as often as they occur
  double asked = 0;    ///< distinct ids
  double served = 0;   ///< ids that ranks ask this one for
  double found = 0;    ///< distinct ids of those
  struct Bytes {
    double received = 0, sent = 0;
    double most() const { return std::max(received, sent); }
  };
  Bytes ids, rows, gradients, dense;

  double received() const {
    return ids.received + rows.received + gradients.received + dense.received;
  }
};

/// What a step moves of a table's rows per rank, in the mean, wherever they lie.
struct TablePlacement {
  double shardedBytes = 0;    ///< if each rank owns some rows
  double replicatedBytes = 0; ///< if every rank has all rows
};

/// What a table adds.
struct TableTraffic {
  TableOp table;
  std::string source;                                    ///< what is known of its ids
  double ids = 0;                                        ///< distinct ones
  double mostOwned = 0;                                  ///< on one rank
  double lookedUp = 0, asked = 0, served = 0, found = 0; ///< of all ranks together
  TablePlacement placement;
  std::shared_ptr<const IdModel> model; ///< of its ids; null where nothing tells them
};

/// `options` for one of so many portions of the batch: data have that part of their rows, a
/// catalogue has all.
ExplainOptions getPortionOptions(ModelOp model, const ExplainOptions &options, int64_t portions);

class World {
public:
  World(ProgramOp program, const ExplainOptions &options);

  int64_t ranks() const { return worldSize; }
  int64_t portions() const { return portionCount; }
  std::vector<RankTraffic> traffic; ///< by rank
  std::vector<TableTraffic> tables;
  StepExchanges step;

  /// Rounds of messages in a step that nothing hides.
  int64_t countRounds() const { return countRounds(allAreReplicated); }
  /// With all tables replicated, or not.
  int64_t countRounds(bool isReplicated) const;
  /// Those of them after the compute stage.
  int64_t countRoundsOfSums() const;
  /// Bytes for rows, keys and sums that a rank holds besides its tables, at most.
  double exchangeBytes() const;
  /// Portions of a rank, and the first of them.
  int64_t portionsOf(int64_t rank) const;
  int64_t firstPortionOf(int64_t rank) const;

private:
  /// Of a table's rows.
  struct RowSize {
    double dim;         ///< floats of a gradient
    double valueFloats; ///< that a value takes
  };

  void addTable(TableOp table, llvm::ArrayRef<const StepLookup *> lookups);
  void addSharded(int64_t rank, int64_t owner, double asked, double touched, RowSize row);
  void addReplicas(int64_t rank, double asked, double touched, double dim);
  void addDense();
  bool sharesUpdates() const { return options.shardOptimizer && worldSize > 1; }
  bool hasSlices(int64_t floats) const;

  const ExplainOptions &options;
  const int64_t worldSize, portionCount;
  const double portionRows; ///< root rows
  bool allAreReplicated = true;
};

} // namespace genrec

#endif // GENREC_LIB_REPORT_WORLD_H
