//===- metrics.cpp - Ranking quality, AUC, GAUC, NE, RMSE, MAE ------------===//

#include "genrec_rt/metrics.h"

#include "../core/text.h"
#include "../ranks/exact_sum.h"
#include "genrec_rt/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace genrec::rt {

namespace {

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

std::string prefixOf(const genrec_metric_desc &metric) {
  std::string name = metric.name ? metric.name : "";
  return name.empty() || name == "ranking" ? "" : name + ".";
}

bool isNumeric(const genrec_metric_desc &metric) {
  return metric.kind == GENREC_METRIC_RMSE || metric.kind == GENREC_METRIC_MAE;
}

/// What a hit at `rank` gains (Järvelin and Kekäläinen 2002, with a logarithm of base 2).
double gainOf(int64_t rank) { return 1 / std::log2(static_cast<double>(rank) + 1); }

/// log(1 + exp(logit)) - label * logit, without overflow.
double crossEntropy(double logit, bool isPositive) {
  return std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - (isPositive ? logit : 0.0);
}

/// Cross entropy of rows of a weight over the entropy of their share of positives.
double normalizedEntropy(double sum, double weight, double positives) {
  if (positives == 0 || positives == weight)
    return kUndefined;
  double p = positives / weight;
  double entropy = -p * std::log(p) - (1 - p) * std::log1p(-p);
  return sum / weight / entropy;
}

/// The weight of a row or list: 1, or the given one, which must be one.
double weightAt(const MetricRows &rows, int64_t row, bool isList) {
  if (!rows.weight)
    return 1;
  float weight = rows.weight[row];
  if (std::isfinite(weight) && weight >= 0)
    return weight;
  throw BadRow{row, "the weight is " + formatted("%g", weight),
               "weights are finite and not negative", isList};
}

/// Throws where the score or label of a row cannot be measured.
void checkRow(bool isNumeric, float score, float label, int64_t row) {
  if (std::isnan(score))
    throw BadRow{row, isNumeric ? "the prediction is NaN" : "the score is NaN",
                 "train with --check-finite to find its source"};
  if (isNumeric ? std::isfinite(label) : label == 0 || label == 1)
    return;
  throw BadRow{row,
               "the label is " + formatted("%g", label) +
                   (isNumeric ? ", which is not finite" : ", but must be 0 or 1"),
               "mend or drop the row; one that is not to count is null in a nullable column"};
}

/// The number (or weight) of negatives below each positive, and half of those beside it;
/// doubled, so that unweighted rows are counted in integers. `scored` ascends.
template <class Count, class Rows, class WeightOf, class IsPositive, class ScoreOf>
double areaOfSorted(const Rows &scored, WeightOf weightOf, IsPositive isPositive, ScoreOf scoreOf) {
  Count below = 0, positives = 0, doubled = 0;
  for (size_t begin = 0; begin < scored.size();) {
    size_t end = begin;
    Count up = 0, down = 0;
    for (; end < scored.size() && scoreOf(scored[end]) == scoreOf(scored[begin]); ++end)
      (isPositive(scored[end]) ? up : down) += weightOf(scored[end]);
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

struct GroupedArea {
  double mean;
  int64_t skipped;
};

/// The AUC of each group of one key, averaged by its weight; groups of one class are skipped.
/// `weightOf(row)` is a row's weight, `areaOf(rows)` the area under some of them.
template <class WeightOf, class AreaOf>
GroupedArea areaUnderCurves(const std::vector<int64_t> &keys, WeightOf weightOf, AreaOf areaOf) {
  std::vector<size_t> order(keys.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return keys[a] < keys[b]; });
  double sum = 0, weight = 0;
  int64_t skipped = 0;
  std::vector<size_t> group;
  for (size_t i = 0; i < order.size(); ++i) {
    group.push_back(order[i]);
    if (i + 1 < order.size() && keys[order[i + 1]] == keys[order[i]])
      continue;
    if (double area = areaOf(group); std::isnan(area)) {
      ++skipped;
    } else {
      ExactDoubleSum ofGroup;
      for (size_t row : group)
        ofGroup.add(weightOf(row));
      sum += area * ofGroup.round();
      weight += ofGroup.round();
    }
    group.clear();
  }
  return {weight > 0 ? sum / weight : kUndefined, skipped};
}

} // namespace

double areaUnderCurve(std::vector<std::pair<float, bool>> &scored) {
  std::sort(scored.begin(), scored.end());
  return areaOfSorted<int64_t>(
      scored, [](const auto &) { return int64_t{1}; }, [](const auto &row) { return row.second; },
      [](const auto &row) { return row.first; });
}

double areaUnderCurve(std::vector<WeightedScore> &scored) {
  // By weight as well, so that sums do not depend on the order of the rows.
  std::sort(scored.begin(), scored.end(), [](const WeightedScore &a, const WeightedScore &b) {
    return std::tie(a.score, a.isPositive, a.weight) < std::tie(b.score, b.isPositive, b.weight);
  });
  return areaOfSorted<double>(
      scored, [](const WeightedScore &row) { return static_cast<double>(row.weight); },
      [](const WeightedScore &row) { return row.isPositive; },
      [](const WeightedScore &row) { return row.score; });
}

/// Sums are exact, so that their values do not depend on the order of the rows.
struct Metrics::State {
  explicit State(size_t cutoffs) : hits(cutoffs), recalls(cutoffs), gains(cutoffs) {}

  int64_t rows = 0;
  ExactDoubleSum weight;
  std::vector<ExactDoubleSum> hits;    ///< per cut-off
  std::vector<ExactDoubleSum> recalls; ///< per cut-off, per list
  std::vector<ExactDoubleSum> gains;   ///< per cut-off: sum of 1 / log2(rank + 1)
  ExactDoubleSum reciprocalRanks;
  std::vector<std::pair<float, bool>> scored;
  std::vector<float> weights; ///< of `scored`, where rows have weights
  std::vector<int64_t> keys;  ///< gauc: of `scored`
  ExactDoubleSum positives;   ///< ne: their weight
  ExactDoubleSum sum;         ///< ne: of cross entropies; rmse: of squares; mae: of differences
};

Metrics::Metrics(const genrec_model_desc &model) : model(model), states(model.metric_count) {
  reset();
}

Metrics::~Metrics() = default;

void Metrics::reset() {
  for (int32_t i = 0; i < model.metric_count; ++i)
    states[i] = std::make_unique<State>(static_cast<size_t>(model.metrics[i].at_count));
}

namespace {

/// The values of all ranks, one rank behind another, on every rank.
template <class T> void gatherValues(Communicator &comm, std::vector<T> &values) {
  auto mine = static_cast<int64_t>(values.size());
  std::vector<int64_t> counts(comm.getSize());
  comm.allGather(&mine, counts.data(), sizeof mine);
  std::vector<T> all(static_cast<size_t>(std::reduce(counts.begin(), counts.end())));
  std::vector<SendPart> send(comm.getSize(), {values.data(), mine * int64_t(sizeof(T))});
  std::vector<ReceivePart> receive;
  T *to = all.data();
  for (int64_t count : counts) {
    receive.push_back({to, count * int64_t(sizeof(T))});
    to += count;
  }
  comm.exchange(send, receive);
  values = std::move(all);
}

void gatherScored(Communicator &comm, std::vector<std::pair<float, bool>> &scored) {
  std::vector<float> scores;
  std::vector<uint8_t> positives;
  for (const auto &[score, isPositive] : scored) {
    scores.push_back(score);
    positives.push_back(isPositive);
  }
  gatherValues(comm, scores);
  gatherValues(comm, positives);
  scored.clear();
  for (size_t i = 0; i < scores.size(); ++i)
    scored.emplace_back(scores[i], positives[i] != 0);
}

} // namespace

void Metrics::gather(Communicator &comm) {
  for (std::unique_ptr<State> &each : states) {
    State &state = *each;
    std::vector<int64_t> rows{state.rows};
    gatherValues(comm, rows);
    state.rows = std::reduce(rows.begin(), rows.end());
    for (ExactDoubleSum *sum :
         {&state.weight, &state.reciprocalRanks, &state.positives, &state.sum})
      sum->reduce(comm);
    for (auto *sums : {&state.hits, &state.recalls, &state.gains})
      for (ExactDoubleSum &sum : *sums)
        sum.reduce(comm);
    gatherScored(comm, state.scored);
    gatherValues(comm, state.weights);
    gatherValues(comm, state.keys);
  }
}

void Metrics::add(int32_t index, const MetricRows &rows) {
  const genrec_metric_desc &metric = model.metrics[index];
  if (metric.kind != GENREC_METRIC_RANKING)
    addScored(index, rows);
  else if (metric.per_list)
    addLists(index, rows);
  else
    addRanks(index, rows);
}

void Metrics::addRanks(int32_t index, const MetricRows &rows) {
  const genrec_metric_desc &metric = model.metrics[index];
  State &state = *states[index];
  const auto *ranks = static_cast<const int64_t *>(rows.x);
  for (int64_t row = 0; row < rows.count; ++row) {
    if ((rows.valid && !rows.valid[row]) || ranks[row] == 0)
      continue;
    if (ranks[row] < 0)
      throw BadRow{row, "rank " + std::to_string(ranks[row]) + " is negative", ""};
    double weight = weightAt(rows, row, false);
    if (weight == 0)
      continue;
    ++state.rows;
    state.weight.add(weight);
    state.reciprocalRanks.add(weight / static_cast<double>(ranks[row]));
    for (int32_t i = 0; i < metric.at_count; ++i)
      if (ranks[row] <= metric.at[i]) {
        state.hits[i].add(weight);
        state.gains[i].add(weight * gainOf(ranks[row]));
      }
  }
}

void Metrics::addLists(int32_t index, const MetricRows &rows) {
  const genrec_metric_desc &metric = model.metrics[index];
  State &state = *states[index];
  const auto *given = static_cast<const int64_t *>(rows.x);
  std::vector<int64_t> ranks; // of one list
  for (int64_t list = 0; rows.offsets && list < rows.lists; ++list) {
    ranks.clear();
    for (int64_t row = rows.offsets[list]; row < rows.offsets[list + 1]; ++row) {
      if ((rows.valid && !rows.valid[row]) || given[row] == 0)
        continue;
      if (given[row] < 0)
        throw BadRow{row, "rank " + std::to_string(given[row]) + " is negative", ""};
      ranks.push_back(given[row]);
    }
    if (ranks.empty())
      continue;
    double weight = weightAt(rows, list, true);
    if (weight == 0)
      continue;
    ++state.rows;
    state.weight.add(weight);
    std::sort(ranks.begin(), ranks.end());
    state.reciprocalRanks.add(weight / static_cast<double>(ranks.front()));
    double gain = 0, best = 0;
    size_t hits = 0, places = 0;
    for (int32_t i = 0; i < metric.at_count; ++i) {
      for (; hits < ranks.size() && ranks[hits] <= metric.at[i]; ++hits)
        gain += gainOf(ranks[hits]);
      for (; places < ranks.size() && static_cast<int64_t>(places) < metric.at[i]; ++places)
        best += gainOf(static_cast<int64_t>(places) + 1);
      state.hits[i].add(hits > 0 ? weight : 0);
      state.recalls[i].add(weight * static_cast<double>(hits) / static_cast<double>(ranks.size()));
      state.gains[i].add(weight * gain / best);
    }
  }
}

void Metrics::addScored(int32_t index, const MetricRows &rows) {
  const genrec_metric_desc &metric = model.metrics[index];
  State &state = *states[index];
  const auto *scores = static_cast<const float *>(rows.x);
  for (int64_t row = 0; row < rows.count; ++row) {
    if (rows.valid && !rows.valid[row])
      continue;
    double weight = weightAt(rows, row, false);
    if (weight == 0)
      continue;
    checkRow(isNumeric(metric), scores[row], rows.label[row], row);
    ++state.rows;
    state.weight.add(weight);
    bool isPositive = rows.label[row] == 1;
    double difference = static_cast<double>(scores[row]) - static_cast<double>(rows.label[row]);
    switch (metric.kind) {
    case GENREC_METRIC_NE:
      state.positives.add(isPositive ? weight : 0);
      state.sum.add(weight * crossEntropy(scores[row], isPositive));
      break;
    case GENREC_METRIC_RMSE:
      state.sum.add(weight * difference * difference);
      break;
    case GENREC_METRIC_MAE:
      state.sum.add(weight * std::abs(difference));
      break;
    default:
      state.scored.emplace_back(scores[row], isPositive);
      if (rows.weight)
        state.weights.push_back(rows.weight[row]);
      if (metric.kind == GENREC_METRIC_GAUC)
        state.keys.push_back(rows.key[row]);
    }
  }
}

void Metrics::addValues(int32_t index, std::vector<std::pair<std::string, double>> &to) const {
  const genrec_metric_desc &metric = model.metrics[index];
  const State &state = *states[index];
  double sum = state.sum.round(), total = state.weight.round();
  double weight = total > 0 ? total : kUndefined;
  auto weightOf = [&](size_t row) { return state.weights.empty() ? 1.0 : state.weights[row]; };
  auto areaOf = [&](const std::vector<size_t> &rows) {
    if (state.weights.empty()) {
      std::vector<std::pair<float, bool>> scored;
      for (size_t row : rows)
        scored.push_back(state.scored[row]);
      return areaUnderCurve(scored);
    }
    std::vector<WeightedScore> scored;
    for (size_t row : rows)
      scored.push_back({state.scored[row].first, state.scored[row].second, state.weights[row]});
    return areaUnderCurve(scored);
  };
  switch (metric.kind) {
  case GENREC_METRIC_NE:
    to.emplace_back(metric.name, normalizedEntropy(sum, weight, state.positives.round()));
    return;
  case GENREC_METRIC_RMSE:
    to.emplace_back(metric.name, std::sqrt(sum / weight));
    return;
  case GENREC_METRIC_MAE:
    to.emplace_back(metric.name, sum / weight);
    return;
  case GENREC_METRIC_GAUC: {
    GroupedArea area = areaUnderCurves(state.keys, weightOf, areaOf);
    to.emplace_back(metric.name, area.mean);
    to.emplace_back(std::string(metric.name) + ".skipped", static_cast<double>(area.skipped));
    return;
  }
  case GENREC_METRIC_AUC: {
    if (state.weights.empty()) {
      auto scored = state.scored;
      to.emplace_back(metric.name, areaUnderCurve(scored));
      return;
    }
    std::vector<size_t> all(state.scored.size());
    std::iota(all.begin(), all.end(), size_t{0});
    to.emplace_back(metric.name, areaOf(all));
    return;
  }
  default:
    break;
  }
  std::string prefix = prefixOf(metric);
  auto addCutoffs = [&](const char *name, const std::vector<ExactDoubleSum> &sums) {
    for (int32_t k = 0; k < metric.at_count; ++k)
      to.emplace_back(prefix + name + "@" + std::to_string(metric.at[k]), sums[k].round() / weight);
  };
  addCutoffs("hr", state.hits);
  if (metric.per_list)
    addCutoffs("recall", state.recalls);
  addCutoffs("ndcg", state.gains);
  to.emplace_back(prefix + "mrr", state.reciprocalRanks.round() / weight);
}

std::vector<std::pair<std::string, double>> Metrics::values() const {
  std::vector<std::pair<std::string, double>> result;
  for (int32_t i = 0; i < model.metric_count; ++i)
    addValues(i, result);
  return result;
}

std::vector<std::string> Metrics::namesWithoutRows() const {
  std::vector<std::string> names;
  for (int32_t i = 0; i < model.metric_count; ++i) {
    if (states[i]->weight.round() > 0)
      continue;
    std::vector<std::pair<std::string, double>> values;
    addValues(i, values);
    for (const auto &[name, value] : values)
      if (std::isnan(value))
        names.push_back(name);
  }
  return names;
}

int64_t Metrics::rows(int32_t index) const { return states[index]->rows; }

} // namespace genrec::rt
