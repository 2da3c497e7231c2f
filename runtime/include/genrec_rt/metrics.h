//===- metrics.h - Ranking quality, AUC, GAUC, NE ----------------*- C++ -*-===//

#ifndef GENREC_RT_METRICS_H
#define GENREC_RT_METRICS_H

#include "genrec_rt/abi.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace genrec::rt {

/// Area under the ROC curve, exact: the probability that a positive scores
/// above a negative, ties counting one half. Sorts `scores` and `labels`
/// together. NaN when there is only one class. Labels above 0.5 are positive.
double areaUnderCurve(std::vector<std::pair<float, bool>> &scored);

/// Accumulates the metrics of one evaluation.
class Metrics {
public:
  explicit Metrics(const genrec_model_desc &model);

  void reset();
  /// Adds `count` rows to metric `index`: ranks (int64, 1 is best, 0 is no
  /// target) or scores (float) with labels, and for gauc the keys of their groups. Rows with
  /// valid[r] == 0 are skipped; `valid` may be null. Throws Error at a NaN score or a negative
  /// rank.
  void add(int32_t index, int64_t count, const void *x, const float *label, const uint8_t *valid,
           const int64_t *key = nullptr);

  /// Values by name, in the model's order. A ranking metric called "ranking"
  /// (the default) gives "hr@10", "ndcg@10", …, "mrr"; one with another name
  /// N gives "N.hr@10" and so on; an auc or ne metric gives its name, a gauc metric its
  /// name and "<name>.skipped", the number of groups with one class. Without rows (or
  /// with one class only) a value is NaN.
  std::vector<std::pair<std::string, double>> values() const;

  /// Rows counted by metric `index` since the last reset.
  int64_t rows(int32_t index) const;

private:
  struct State {
    int64_t rows = 0;
    std::vector<int64_t> hits; ///< per cut-off
    std::vector<double> gains; ///< per cut-off: sum of 1 / log2(rank + 1)
    double reciprocalRanks = 0;
    std::vector<std::pair<float, bool>> scored;
    std::vector<int64_t> keys; ///< gauc: of `scored`
    int64_t positives = 0;     ///< ne
    double crossEntropy = 0;   ///< ne: summed over rows
  };

  const genrec_model_desc &model;
  std::vector<State> states;
};

} // namespace genrec::rt

#endif // GENREC_RT_METRICS_H
