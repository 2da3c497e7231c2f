//===- metrics.cpp - Ranking quality, AUC, GAUC, NE -----------------------===//

#include "genrec_rt/metrics.h"

#include "genrec_rt/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace genrec::rt {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

std::string prefixOf(const genrec_metric_desc &metric) {
  std::string name = metric.name ? metric.name : "";
  return name.empty() || name == "ranking" ? "" : name + ".";
}

/// log(1 + exp(logit)) - label * logit, without overflow.
double crossEntropy(double logit, bool isPositive) {
  return std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - (isPositive ? logit : 0.0);
}

/// Cross entropy of `rows` rows over the entropy of their share of positives.
double normalizedEntropy(double sum, int64_t rows, int64_t positives) {
  if (positives == 0 || positives == rows)
    return kUndefined;
  double p = static_cast<double>(positives) / static_cast<double>(rows);
  double entropy = -p * std::log(p) - (1 - p) * std::log1p(-p);
  return sum / static_cast<double>(rows) / entropy;
}

struct GroupedArea {
  double mean;
  int64_t skipped;
};

/// The AUC of each group of one key, averaged by its rows; groups of one class are skipped.
GroupedArea areaUnderCurves(const std::vector<std::pair<float, bool>> &scored,
                            const std::vector<int64_t> &keys) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  double sum = 0, rows = 0;
  int64_t skipped = 0;
  std::vector<std::pair<float, bool>> group;
  for (size_t i = 0; i < order.size(); ++i) {
    group.push_back(scored[order[i]]);
    if (i + 1 < order.size() && keys[order[i + 1]] == keys[order[i]])
      continue;
    double area = areaUnderCurve(group);
    if (std::isnan(area)) {
      ++skipped;
    } else {
      sum += area * static_cast<double>(group.size());
      rows += static_cast<double>(group.size());
    }
    group.clear();
  }
  return {rows > 0 ? sum / rows : kUndefined, skipped};
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
    state.keys.clear();
    state.positives = 0;
    state.crossEntropy = 0;
  }
}

void Metrics::add(int32_t index, int64_t count, const void *x, const float *label,
                  const uint8_t *valid, const int64_t *key) {
  const genrec_metric_desc &metric = model.metrics[index];
  State &state = states[index];
  auto at = [&](int64_t row) {
    return "metric '" + std::string(metric.name) + "', row " + std::to_string(row) +
           " of a batch: ";
  };
  if (metric.kind == GENREC_METRIC_RANKING) {
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
    bool isPositive = label[row] > 0.5f;
    if (metric.kind == GENREC_METRIC_NE) {
      state.positives += isPositive;
      state.crossEntropy += crossEntropy(scores[row], isPositive);
      continue;
    }
    state.scored.emplace_back(scores[row], isPositive);
    if (metric.kind == GENREC_METRIC_GAUC)
      state.keys.push_back(key[row]);
  }
}

std::vector<std::pair<std::string, double>> Metrics::values() const {
  std::vector<std::pair<std::string, double>> result;
  for (int32_t i = 0; i < model.metric_count; ++i) {
    const genrec_metric_desc &metric = model.metrics[i];
    const State &state = states[i];
    if (metric.kind == GENREC_METRIC_NE) {
      result.emplace_back(metric.name,
                          normalizedEntropy(state.crossEntropy, state.rows, state.positives));
      continue;
    }
    if (metric.kind == GENREC_METRIC_GAUC) {
      GroupedArea area = areaUnderCurves(state.scored, state.keys);
      result.emplace_back(metric.name, area.mean);
      result.emplace_back(std::string(metric.name) + ".skipped", static_cast<double>(area.skipped));
      continue;
    }
    if (metric.kind != GENREC_METRIC_RANKING) {
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
