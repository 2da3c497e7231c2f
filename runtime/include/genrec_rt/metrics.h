//===- metrics.h - Ranking quality, AUC, GAUC, NE, RMSE, MAE -----*- C++ -*-===//
//
// The definitions are those of `genrec.metric` (docs/reference/ops.md).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_RT_METRICS_H
#define GENREC_RT_METRICS_H

#include "genrec_rt/abi.h"
#include "genrec_rt/comm.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace genrec::rt {

/// A row of a weighted AUC.
struct WeightedScore {
  float score;
  bool isPositive;
  float weight;
};

/// Area under the ROC curve, exact: the probability that a positive scores
/// above a negative, ties counting one half. Sorts `scored`. NaN when there is only one class.
double areaUnderCurve(std::vector<std::pair<float, bool>> &scored);
/// The same where a pair of rows counts by the product of their weights.
double areaUnderCurve(std::vector<WeightedScore> &scored);

/// The rows that a step adds to a metric; what is null was not given.
struct MetricRows {
  int64_t count = 0;
  const void *x = nullptr;         ///< ranks (int64, 1 is best, 0 is no target), or floats
  const float *label = nullptr;    ///< 0 or 1; of rmse and mae any finite number
  const uint8_t *valid = nullptr;  ///< rows where it is 0 are skipped
  const int64_t *key = nullptr;    ///< gauc: the groups
  const float *weight = nullptr;   ///< per row; of a metric per list, per list
  const int64_t *offsets = nullptr; ///< per list: its rows, `lists` + 1 entries
  int64_t lists = 0;
};

/// A row that no metric can take.
struct BadRow {
  int64_t row;
  std::string problem; ///< "the label is 2, but must be 0 or 1"
  std::string help;
  bool isList = false; ///< `row` is one of the lists'
};

/// Accumulates the metrics of one evaluation. Values do not depend on the order of the rows, nor on
/// which rank has them.
class Metrics {
public:
  explicit Metrics(const genrec_model_desc &model);
  ~Metrics();

  void reset();
  /// Adds rows to metric `index`. Throws BadRow at a NaN score, a negative rank, a label that
  /// is none, or a weight that is negative or not finite.
  void add(int32_t index, const MetricRows &rows);

  /// Gives every rank what all have accumulated since the last reset; none adds more before the next.
  /// Areas under curves need all scores: 5 bytes per row, 17 with keys and weights. Collective.
  void gather(Communicator &comm);

  /// Values by name, in the model's order. A ranking metric called "ranking"
  /// (the default) gives "hr@10", "ndcg@10", …, "mrr"; one with another name
  /// N gives "N.hr@10" and so on, and one per list recalls beside; an auc, ne, rmse or mae
  /// metric gives its name, a gauc metric its name and "<name>.skipped", the number of groups
  /// with one class. Without rows (or with one class only) a value is NaN.
  std::vector<std::pair<std::string, double>> values() const;
  /// Names of the values that are NaN since no row has been counted, or none of any weight.
  std::vector<std::string> namesWithoutRows() const;

  /// Rows counted by metric `index` since the last reset; lists, of a metric per list.
  int64_t rows(int32_t index) const;

private:
  struct State;

  void addRanks(int32_t index, const MetricRows &rows);
  void addLists(int32_t index, const MetricRows &rows);
  void addScored(int32_t index, const MetricRows &rows);
  void addValues(int32_t index, std::vector<std::pair<std::string, double>> &to) const;

  const genrec_model_desc &model;
  std::vector<std::unique_ptr<State>> states;
};

} // namespace genrec::rt

#endif // GENREC_RT_METRICS_H
