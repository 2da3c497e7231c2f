//===- Metrics.h - evaluation metrics of one run ----------------*- C++ -*-===//

#ifndef GENREC_LIB_INTERPRETER_METRICS_H
#define GENREC_LIB_INTERPRETER_METRICS_H

#include "genrec/Interpreter/Tensor.h"

#include "llvm/ADT/StringRef.h"

#include <string>
#include <utility>
#include <vector>

namespace genrec::interpreter {

/// The metrics of the rows of one batch, named as the runtime names them.
class MetricAccumulator {
public:
  /// Ranks, 1 the best, 0 skipped: HR and NDCG at each of `at`, MRR.
  void addRanks(llvm::StringRef name, llvm::ArrayRef<int64_t> ranks, llvm::ArrayRef<int64_t> at);
  /// Pairs of score and whether the row is positive.
  void addScores(llvm::StringRef name, llvm::ArrayRef<std::pair<double, bool>> scored);
  /// The same within the rows of each key, averaged by rows; `name`.skipped counts keys with
  /// one class.
  void addGroups(llvm::StringRef name, llvm::ArrayRef<std::pair<double, bool>> scored,
                 llvm::ArrayRef<int64_t> keys);
  /// Logits: cross entropy over the entropy of the share of positives.
  void addLogits(llvm::StringRef name, llvm::ArrayRef<std::pair<double, bool>> scored);

  std::vector<std::pair<std::string, double>> values;
};

} // namespace genrec::interpreter

#endif // GENREC_LIB_INTERPRETER_METRICS_H
