//===- Metrics.h - evaluation metrics of one run ----------------*- C++ -*-===//

#ifndef GENREC_INTERPRETER_METRICS_H
#define GENREC_INTERPRETER_METRICS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <utility>
#include <vector>

namespace genrec::interpreter {

/// A rank that is not masked (1 is the best) and its weight.
struct WeighedRank {
  int64_t rank;
  double weight;
};

/// The ranks of one list that has at least one, and its weight.
struct RankedList {
  std::vector<int64_t> ranks;
  double weight;
};

/// A score whose label is not masked.
struct WeighedScore {
  double score;
  double label;
  double weight;
  int64_t key; ///< gauc: the group of the row
};

/// The metrics over the rows of one batch, under the runtime's names. Each is computed directly by
/// its definition.
class MetricAccumulator {
public:
  void addRanks(MetricOp op, llvm::ArrayRef<WeighedRank> ranks);
  void addLists(MetricOp op, llvm::ArrayRef<RankedList> lists);
  /// Adds auc, gauc, ne, rmse or mae.
  void addScores(MetricOp op, llvm::ArrayRef<WeighedScore> rows);

  std::vector<std::pair<std::string, double>> values;
};

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_METRICS_H
