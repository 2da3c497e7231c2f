//===- Metrics.h - evaluation metrics of one run ----------------*- C++ -*-===//

#ifndef GENREC_LIB_INTERPRETER_METRICS_H
#define GENREC_LIB_INTERPRETER_METRICS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/ArrayRef.h"

#include <string>
#include <utility>
#include <vector>

namespace genrec::interpreter {

/// A rank that counts, 1 the best, and its weight.
struct WeighedRank {
  int64_t rank;
  double weight;
};

/// The ranks of one list that has some, and its weight.
struct RankedList {
  std::vector<int64_t> ranks;
  double weight;
};

/// A row with a label that counts.
struct WeighedScore {
  double score;
  double label;
  double weight;
  int64_t key; ///< gauc: its group
};

/// The metrics of the rows of one batch, named as the runtime names them, each computed as its
/// definition reads.
class MetricAccumulator {
public:
  void addRanks(MetricOp op, llvm::ArrayRef<WeighedRank> ranks);
  void addLists(MetricOp op, llvm::ArrayRef<RankedList> lists);
  /// auc, gauc, ne, rmse, mae.
  void addScores(MetricOp op, llvm::ArrayRef<WeighedScore> rows);

  std::vector<std::pair<std::string, double>> values;
};

} // namespace genrec::interpreter

#endif // GENREC_LIB_INTERPRETER_METRICS_H
