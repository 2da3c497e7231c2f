//===- metrics_test.cpp - Ranking quality and AUC -------------------------===//

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
  metrics.add(0, 7, scores, labels, nullptr, keys);
  auto values = valuesOf(metrics);
  EXPECT_DOUBLE_EQ(values["by_user"], (0.5 * 3 + 1.0 * 2) / 5);
  EXPECT_EQ(values["by_user.skipped"], 2);
  // Rows may come in several batches; one group of one class alone is undefined.
  metrics.reset();
  metrics.add(0, 3, scores, labels, nullptr, keys);
  metrics.add(0, 4, scores + 3, labels + 3, nullptr, keys + 3);
  EXPECT_DOUBLE_EQ(valuesOf(metrics)["by_user"], (0.5 * 3 + 1.0 * 2) / 5);
  metrics.reset();
  metrics.add(0, 1, scores + 3, labels + 3, nullptr, keys + 3);
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
  metrics.add(0, 4, constant, labels, nullptr);
  EXPECT_NEAR(valuesOf(metrics)["ne"], 1.0, 1e-6);
  metrics.reset();
  metrics.add(0, 4, sure, labels, nullptr);
  EXPECT_NEAR(valuesOf(metrics)["ne"], 0.0, 1e-12);
  metrics.reset();
  metrics.add(0, 1, sure, labels, nullptr);
  EXPECT_TRUE(std::isnan(valuesOf(metrics)["ne"]));
}

TEST(Metrics, RankingByHand) {
  Metrics metrics(tinyModel()); // at 1 and 5
  int64_t ranks[] = {1, 2, 6, 0, 3};
  uint8_t valid[] = {1, 1, 1, 1, 0};
  metrics.add(0, 5, ranks, nullptr, valid);
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
  metrics.add(0, 1, &rank, nullptr, nullptr);
  EXPECT_EQ(metrics.values()[0].first, "whole_history.hr@1");
  EXPECT_EQ(metrics.values().back().first, "whole_history.mrr");
}

TEST(Metrics, NanScoresAndNegativeRanksFail) {
  Metrics metrics(tinyModel());
  float scores[] = {1, NAN}, labels[] = {0, 1};
  int64_t rank = -1;
  EXPECT_THROW(metrics.add(1, 2, scores, labels, nullptr), Error);
  EXPECT_THROW(metrics.add(0, 1, &rank, nullptr, nullptr), Error);
  uint8_t valid[] = {1, 0};
  EXPECT_NO_THROW(metrics.add(1, 2, scores, labels, valid));
}

} // namespace
} // namespace genrec::rt::test
