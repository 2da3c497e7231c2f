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
