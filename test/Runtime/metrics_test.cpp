//===- metrics_test.cpp - Ranking quality, areas under curves, errors -----===//

#include "genrec_rt/metrics.h"

#include "TinyModel.h"
#include "genrec_rt/error.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace genrec::rt::test {
namespace {

std::map<std::string, double> valuesOf(const Metrics &metrics) {
  auto values = metrics.values();
  return {values.begin(), values.end()};
}

/// The definition, pair by pair.
double aucByPairs(const std::vector<std::pair<float, bool>> &scored) {
  double wins = 0, pairs = 0;
  for (const auto &positive : scored)
    for (const auto &negative : scored)
      if (positive.second && !negative.second) {
        ++pairs;
        wins += positive.first > negative.first ? 1 : positive.first == negative.first ? 0.5 : 0;
      }
  return wins / pairs;
}

TEST(Auc, AgreesWithAllPairs) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::pair<float, bool>> scored;
    int64_t distinct = round % 2 ? 5 : 1000000; // many ties, or few
    for (int i = 0; i < 300; ++i)
      scored.emplace_back(static_cast<float>(random() % distinct), random() % 3 == 0);
    double expected = aucByPairs(scored);
    EXPECT_DOUBLE_EQ(areaUnderCurve(scored), expected);
  }
}

TEST(Auc, EdgesAreDefined) {
  std::vector<std::pair<float, bool>> perfect = {{1, false}, {2, true}},
                                      tied = {{1, false}, {1, true}}, one = {{1, true}}, none;
  EXPECT_EQ(areaUnderCurve(perfect), 1.0);
  EXPECT_EQ(areaUnderCurve(tied), 0.5);
  EXPECT_TRUE(std::isnan(areaUnderCurve(one)));
  EXPECT_TRUE(std::isnan(areaUnderCurve(none)));
}

/// A model with one metric of `kind`.
genrec_model_desc modelWith(const genrec_metric_desc &metric) {
  genrec_model_desc model{};
  model.metrics = &metric;
  model.metric_count = 1;
  return model;
}

TEST(Metrics, GroupedAucAveragesByRows) {
  genrec_metric_desc metric{"by_user", 2, nullptr, 0, nullptr};
  genrec_model_desc model = modelWith(metric);
  Metrics metrics(model);
  // Key 5: 3 rows, the positive above one negative and below the other: 1/2. Key 9: 2 rows,
  // in order: 1. Keys 1 and 2 have one class.
  float scores[] = {3, 0.5f, 2, 7, 9, 1, 4};
  float labels[] = {0, 0, 1, 1, 1, 0, 1};
  int64_t keys[] = {5, 9, 5, 1, 9, 5, 2};
  metrics.add(0, {.count = 7, .x = scores, .label = labels, .key = keys});
  auto values = valuesOf(metrics);
  EXPECT_DOUBLE_EQ(values["by_user"], (0.5 * 3 + 1.0 * 2) / 5);
  EXPECT_EQ(values["by_user.skipped"], 2);
  // Rows may come in several batches; one group of one class alone is undefined.
  metrics.reset();
  metrics.add(0, {.count = 3, .x = scores, .label = labels, .key = keys});
  metrics.add(0, {.count = 4, .x = scores + 3, .label = labels + 3, .key = keys + 3});
  EXPECT_DOUBLE_EQ(valuesOf(metrics)["by_user"], (0.5 * 3 + 1.0 * 2) / 5);
  metrics.reset();
  metrics.add(0, {.count = 1, .x = scores + 3, .label = labels + 3, .key = keys + 3});
  EXPECT_TRUE(std::isnan(valuesOf(metrics)["by_user"]));
}

TEST(Metrics, NormalizedEntropyIsOneForTheRateItself) {
  genrec_metric_desc metric{"ne", 3, nullptr, 0, nullptr};
  genrec_model_desc model = modelWith(metric);
  Metrics metrics(model);
  // A quarter is positive: always saying so has entropy 1 of its own; a certain right
  // answer has 0.
  float rate = std::log(0.25f / 0.75f);
  float constant[] = {rate, rate, rate, rate}, sure[] = {-40, 40, -40, -40};
  float labels[] = {0, 1, 0, 0};
  metrics.add(0, {.count = 4, .x = constant, .label = labels});
  EXPECT_NEAR(valuesOf(metrics)["ne"], 1.0, 1e-6);
  metrics.reset();
  metrics.add(0, {.count = 4, .x = sure, .label = labels});
  EXPECT_NEAR(valuesOf(metrics)["ne"], 0.0, 1e-12);
  metrics.reset();
  metrics.add(0, {.count = 1, .x = sure, .label = labels});
  EXPECT_TRUE(std::isnan(valuesOf(metrics)["ne"]));
}

TEST(Metrics, RankingByHand) {
  Metrics metrics(tinyModel()); // at 1 and 5
  int64_t ranks[] = {1, 2, 6, 0, 3};
  uint8_t valid[] = {1, 1, 1, 1, 0};
  metrics.add(0, {.count = 5, .x = ranks, .valid = valid});
  EXPECT_EQ(metrics.rows(0), 3); // rank 0 has no target
  auto values = valuesOf(metrics);
  EXPECT_DOUBLE_EQ(values["hr@1"], 1.0 / 3);
  EXPECT_DOUBLE_EQ(values["hr@5"], 2.0 / 3);
  EXPECT_DOUBLE_EQ(values["ndcg@5"], (1 + 1 / std::log2(3.0)) / 3);
  EXPECT_DOUBLE_EQ(values["mrr"], (1 + 0.5 + 1.0 / 6) / 3);
  EXPECT_TRUE(std::isnan(values["auc"]));
  metrics.reset();
  EXPECT_TRUE(std::isnan(valuesOf(metrics)["mrr"]));
}

TEST(Metrics, ANamedRankingHasItsNameInFront) {
  genrec_model_desc model = tinyModel();
  genrec_metric_desc metric = model.metrics[0];
  metric.name = "whole_history";
  model.metrics = &metric;
  model.metric_count = 1;
  Metrics metrics(model);
  int64_t rank = 1;
  metrics.add(0, {.count = 1, .x = &rank});
  EXPECT_EQ(metrics.values()[0].first, "whole_history.hr@1");
  EXPECT_EQ(metrics.values().back().first, "whole_history.mrr");
}

TEST(Metrics, NanScoresAndNegativeRanksFail) {
  Metrics metrics(tinyModel());
  float scores[] = {1, NAN}, labels[] = {0, 1};
  int64_t rank = -1;
  EXPECT_THROW(metrics.add(1, {.count = 2, .x = scores, .label = labels}), BadRow);
  EXPECT_THROW(metrics.add(0, {.count = 1, .x = &rank}), BadRow);
  uint8_t valid[] = {1, 0};
  EXPECT_NO_THROW(metrics.add(1, {.count = 2, .x = scores, .label = labels, .valid = valid}));
}

/// What a metric of `kind` says of some rows.
double valueOf(int32_t kind, const MetricRows &rows) {
  genrec_metric_desc metric{"m", kind, nullptr, 0, nullptr, 0};
  genrec_model_desc model = modelWith(metric);
  Metrics metrics(model);
  metrics.add(0, rows);
  return valuesOf(metrics)["m"];
}

std::string problemOf(int32_t kind, const MetricRows &rows) {
  try {
    valueOf(kind, rows);
  } catch (const BadRow &bad) {
    return std::to_string(bad.row) + ": " + bad.problem;
  }
  return "none";
}

TEST(Metrics, AWeightIsThatManyRows) {
  std::mt19937 random(3);
  for (int32_t kind :
       {GENREC_METRIC_AUC, GENREC_METRIC_NE, GENREC_METRIC_RMSE, GENREC_METRIC_MAE}) {
    std::vector<float> scores, labels, weights, manyScores, manyLabels;
    for (int i = 0; i < 60; ++i) {
      scores.push_back(static_cast<float>(random() % 7) / 2);
      labels.push_back(static_cast<float>(random() % 2));
      weights.push_back(static_cast<float>(random() % 4));
      for (int copy = 0; copy < static_cast<int>(weights.back()); ++copy) {
        manyScores.push_back(scores.back());
        manyLabels.push_back(labels.back());
      }
    }
    MetricRows weighted{.count = 60, .x = scores.data(), .label = labels.data(), .weight = weights.data()};
    MetricRows many{.count = static_cast<int64_t>(manyScores.size()), .x = manyScores.data(), .label = manyLabels.data()};
    EXPECT_NEAR(valueOf(kind, weighted), valueOf(kind, many), 1e-12) << kind;
    MetricRows unweighted = weighted;
    unweighted.weight = nullptr;
    EXPECT_GT(std::abs(valueOf(kind, weighted) - valueOf(kind, unweighted)), 1e-6) << kind;
  }
}

TEST(Metrics, GroupsAreAveragedByWeight) {
  // Key 1: in order, weight 4; key 2: out of order, weight 6.
  float scores[] = {2, 1, 1, 2}, labels[] = {1, 0, 1, 0}, weights[] = {1, 3, 2, 4};
  int64_t keys[] = {1, 1, 2, 2};
  MetricRows rows{.count = 4, .x = scores, .label = labels, .key = keys, .weight = weights};
  EXPECT_DOUBLE_EQ(valueOf(GENREC_METRIC_GAUC, rows), 0.4);
}

TEST(Metrics, ErrorsByHand) {
  float values[] = {1, 2, 7}, labels[] = {2, 2, 3}, weights[] = {1, 1, 0};
  MetricRows rows{.count = 3, .x = values, .label = labels};
  EXPECT_DOUBLE_EQ(valueOf(GENREC_METRIC_RMSE, rows), std::sqrt(17.0 / 3));
  EXPECT_DOUBLE_EQ(valueOf(GENREC_METRIC_MAE, rows), 5.0 / 3);
  rows.weight = weights;
  EXPECT_DOUBLE_EQ(valueOf(GENREC_METRIC_RMSE, rows), std::sqrt(0.5));
}

TEST(Metrics, RankingOfListsByHand) {
  int64_t at[] = {1, 3};
  genrec_metric_desc metric{"ranking", GENREC_METRIC_RANKING, at, 2, nullptr, 1};
  genrec_model_desc model = modelWith(metric);
  Metrics metrics(model);
  // Two targets at 1 and 4; none; one at 2, not valid beside it; one at 3 of weight 0.
  int64_t ranks[] = {4, 0, 1, 0, 1, 2, 3}, offsets[] = {0, 3, 4, 6, 7};
  uint8_t valid[] = {1, 1, 1, 1, 0, 1, 1};
  float weights[] = {1, 5, 3, 0};
  metrics.add(0, {.count = 7, .x = ranks, .valid = valid, .weight = weights, .offsets = offsets, .lists = 4});
  EXPECT_EQ(metrics.rows(0), 2);
  auto values = valuesOf(metrics);
  EXPECT_DOUBLE_EQ(values["hr@1"], 1.0 / 4);
  EXPECT_DOUBLE_EQ(values["recall@1"], 0.5 / 4);
  EXPECT_DOUBLE_EQ(values["ndcg@1"], 1.0 / 4);
  double second = 1 / std::log2(3.0);
  EXPECT_DOUBLE_EQ(values["hr@3"], 1.0);
  EXPECT_DOUBLE_EQ(values["recall@3"], (0.5 + 3 * 1.0) / 4);
  EXPECT_DOUBLE_EQ(values["ndcg@3"], (1 / (1 + second) + 3 * second) / 4);
  EXPECT_DOUBLE_EQ(values["mrr"], (1 + 3 * 0.5) / 4);
}

TEST(Metrics, WhatCannotBeMeasuredIsNamedWithItsRow) {
  float scores[] = {1, 2}, labels[] = {0, 2}, nan[] = {0, NAN}, negative[] = {1, -1}, none[] = {1, 0};
  MetricRows rows{.count = 2, .x = scores, .label = labels};
  for (int32_t kind : {GENREC_METRIC_AUC, GENREC_METRIC_NE})
    EXPECT_EQ(problemOf(kind, rows), "1: the label is 2, but must be 0 or 1");
  EXPECT_EQ(problemOf(GENREC_METRIC_RMSE, rows), "none");
  rows.label = nan;
  EXPECT_EQ(problemOf(GENREC_METRIC_AUC, rows), "1: the label is nan, but must be 0 or 1");
  EXPECT_EQ(problemOf(GENREC_METRIC_MAE, rows), "1: the label is nan, which is not finite");
  rows.weight = none;
  EXPECT_EQ(problemOf(GENREC_METRIC_MAE, rows), "none"); // a row without weight is not looked at
  rows.weight = negative;
  EXPECT_EQ(problemOf(GENREC_METRIC_MAE, rows), "1: the weight is -1");
}

TEST(Metrics, WhatNoRowCountedForIsNamed) {
  Metrics metrics(tinyModel());
  std::vector<std::string> all = {"hr@1", "hr@5", "ndcg@1", "ndcg@5", "mrr", "auc"};
  EXPECT_EQ(metrics.namesWithoutRows(), all);
  float scores[] = {1}, labels[] = {1};
  metrics.add(1, {.count = 1, .x = scores, .label = labels});
  all.pop_back(); // of one class: undefined, but not without rows
  EXPECT_EQ(metrics.namesWithoutRows(), all);
}

} // namespace
} // namespace genrec::rt::test
