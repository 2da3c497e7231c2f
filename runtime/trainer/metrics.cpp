//===- metrics.cpp - Ranking quality and AUC ------------------------------===//

#include "genrec_rt/metrics.h"

#include "genrec_rt/error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace genrec::rt {

namespace {

constexpr int32_t kRanking = 0;
constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

std::string prefixOf(const genrec_metric_desc &metric) {
  std::string name = metric.name ? metric.name : "";
  return name.empty() || name == "ranking" ? "" : name + ".";
}

} // namespace

double areaUnderCurve(std::vector<std::pair<float, bool>> &scored) {
  std::sort(scored.begin(), scored.end());
  // The number of negatives below each positive, and half of those beside it;
  // doubled, so that all is counted in integers.
  int64_t below = 0, positives = 0, doubled = 0;
  for (size_t begin = 0; begin < scored.size();) {
    size_t end = begin;
    int64_t up = 0, down = 0;
    for (; end < scored.size() && scored[end].first == scored[begin].first; ++end)
      ++(scored[end].second ? up : down);
    doubled += up * (2 * below + down);
    below += down;
    positives += up;
    begin = end;
  }
  if (positives == 0 || below == 0)
    return kUndefined;
  return static_cast<double>(doubled) / 2 / static_cast<double>(positives) /
         static_cast<double>(below);
}

Metrics::Metrics(const genrec_model_desc &model) : model(model), states(model.metric_count) {
  reset();
}

void Metrics::reset() {
  for (int32_t i = 0; i < model.metric_count; ++i) {
    State &state = states[i];
    state.rows = 0;
    state.hits.assign(model.metrics[i].at_count, 0);
    state.gains.assign(model.metrics[i].at_count, 0);
    state.reciprocalRanks = 0;
    state.scored.clear();
  }
}

void Metrics::add(int32_t index, int64_t count, const void *x, const float *label,
                  const uint8_t *valid) {
  const genrec_metric_desc &metric = model.metrics[index];
  State &state = states[index];
  auto at = [&](int64_t row) {
    return "metric '" + std::string(metric.name) + "', row " + std::to_string(row) +
           " of a batch: ";
  };
  if (metric.kind == kRanking) {
    const auto *ranks = static_cast<const int64_t *>(x);
    for (int64_t row = 0; row < count; ++row) {
      if ((valid && !valid[row]) || ranks[row] == 0)
        continue;
      if (ranks[row] < 0)
        throw Error(at(row) + "rank " + std::to_string(ranks[row]) + " is negative");
      ++state.rows;
      auto rank = static_cast<double>(ranks[row]);
      state.reciprocalRanks += 1 / rank;
      for (int32_t i = 0; i < metric.at_count; ++i)
        if (ranks[row] <= metric.at[i]) {
          ++state.hits[i];
          state.gains[i] += 1 / std::log2(rank + 1);
        }
    }
    return;
  }
  const auto *scores = static_cast<const float *>(x);
  for (int64_t row = 0; row < count; ++row) {
    if (valid && !valid[row])
      continue;
    if (std::isnan(scores[row]))
      throw Error(at(row) + "the score is NaN", "train with --check-finite to find its source");
    ++state.rows;
    state.scored.emplace_back(scores[row], label[row] > 0.5f);
  }
}

std::vector<std::pair<std::string, double>> Metrics::values() const {
  std::vector<std::pair<std::string, double>> result;
  for (int32_t i = 0; i < model.metric_count; ++i) {
    const genrec_metric_desc &metric = model.metrics[i];
    const State &state = states[i];
    if (metric.kind != kRanking) {
      auto scored = state.scored;
      result.emplace_back(metric.name, areaUnderCurve(scored));
      continue;
    }
    std::string prefix = prefixOf(metric);
    double rows = state.rows > 0 ? static_cast<double>(state.rows) : kUndefined;
    for (int32_t k = 0; k < metric.at_count; ++k)
      result.emplace_back(prefix + "hr@" + std::to_string(metric.at[k]),
                          static_cast<double>(state.hits[k]) / rows);
    for (int32_t k = 0; k < metric.at_count; ++k)
      result.emplace_back(prefix + "ndcg@" + std::to_string(metric.at[k]), state.gains[k] / rows);
    result.emplace_back(prefix + "mrr", state.reciprocalRanks / rows);
  }
  return result;
}

int64_t Metrics::rows(int32_t index) const { return states[index].rows; }

} // namespace genrec::rt
