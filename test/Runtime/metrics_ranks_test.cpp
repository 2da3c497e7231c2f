//===- metrics_ranks_test.cpp - Metrics of rows that ranks share ----------===//

#include "genrec_rt/metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <random>

namespace genrec::rt::test {
namespace {

/// Rows of a metric of any kind.
struct DrawnRows {
  std::vector<int64_t> ranks, keys;
  std::vector<float> scores, labels, weights;
};

/// `isTied`: most scores are the same as others, and classes of a group alike.
DrawnRows makeRows(uint32_t seed, size_t count, bool isTied) {
  std::mt19937 random(seed);
  DrawnRows rows;
  for (size_t i = 0; i < count; ++i) {
    rows.ranks.push_back(static_cast<int64_t>(random() % 30));
    rows.keys.push_back(static_cast<int64_t>(random() % 20) - 5);
    rows.scores.push_back(isTied ? static_cast<float>(random() % 5)
                                 : std::ldexp(static_cast<float>(random() % 2001) - 1000,
                                              static_cast<int>(random() % 20) - 10));
    rows.labels.push_back(static_cast<float>(random() % 2));
    rows.weights.push_back(
        std::ldexp(static_cast<float>(random() % 1000), static_cast<int>(random() % 20) - 10));
  }
  return rows;
}

constexpr int64_t kCutoffs[] = {1, 3, 10};

/// A metric of every kind, one per list among them.
constexpr genrec_metric_desc kMetrics[] = {
    {"ranking", GENREC_METRIC_RANKING, kCutoffs, 3, nullptr, 0},
    {"lists", GENREC_METRIC_RANKING, kCutoffs, 3, nullptr, 1},
    {"auc", GENREC_METRIC_AUC, nullptr, 0, nullptr, 0},
    {"gauc", GENREC_METRIC_GAUC, nullptr, 0, nullptr, 0},
    {"ne", GENREC_METRIC_NE, nullptr, 0, nullptr, 0},
    {"rmse", GENREC_METRIC_RMSE, nullptr, 0, nullptr, 0},
    {"mae", GENREC_METRIC_MAE, nullptr, 0, nullptr, 0}};
constexpr int32_t kMetricCount = 7;

genrec_model_desc makeModel() {
  genrec_model_desc model{};
  model.metrics = kMetrics;
  model.metric_count = kMetricCount;
  return model;
}

/// Adds rows [first, first + count) to all metrics; of the one per list they are a list.
void addRows(Metrics &metrics, const DrawnRows &rows, int64_t first, int64_t count,
             bool isWeighted) {
  for (int32_t i = 0; i < kMetricCount; ++i) {
    int64_t offsets[] = {0, count};
    MetricRows added{
        .count = count, .x = rows.scores.data() + first, .label = rows.labels.data() + first};
    if (kMetrics[i].kind == GENREC_METRIC_RANKING)
      added.x = rows.ranks.data() + first;
    if (kMetrics[i].kind == GENREC_METRIC_GAUC)
      added.key = rows.keys.data() + first;
    if (isWeighted)
      added.weight = rows.weights.data() + first;
    added.offsets = offsets;
    added.lists = 1;
    metrics.add(i, added);
  }
}

/// Values to the bit, and the numbers of rows.
std::vector<std::pair<std::string, uint64_t>> bitsOf(const Metrics &metrics) {
  std::vector<std::pair<std::string, uint64_t>> bits;
  for (const auto &[name, value] : metrics.values())
    bits.emplace_back(name, std::isnan(value) ? 0 : std::bit_cast<uint64_t>(value));
  for (int32_t i = 0; i < kMetricCount; ++i)
    bits.emplace_back("rows", static_cast<uint64_t>(metrics.rows(i)));
  for (const std::string &name : metrics.namesWithoutRows())
    bits.emplace_back(name, 0);
  return bits;
}

constexpr int64_t kPieces = 40, kPieceRows = 25;

TEST(MetricsOfRanks, AreTheSameBitsOnAnyNumberOfThem) {
  genrec_model_desc model = makeModel();
  for (uint32_t seed = 0; seed < 8; ++seed)
    for (bool isWeighted : {false, true}) {
      DrawnRows rows = makeRows(seed, kPieces * kPieceRows, seed % 2);
      Metrics alone(model);
      for (int64_t piece = 0; piece < kPieces; ++piece)
        addRows(alone, rows, piece * kPieceRows, kPieceRows, isWeighted);
      auto expected = bitsOf(alone);
      for (int32_t ranks = 1; ranks <= 4; ++ranks) {
        // Who has a piece: by portions, at random, or the last rank all of them.
        std::mt19937 random(seed);
        std::vector<int32_t> owners(kPieces);
        for (int64_t piece = 0; piece < kPieces; ++piece)
          owners[piece] = seed % 3 == 0   ? static_cast<int32_t>(piece % 8 * ranks / 8)
                          : seed % 3 == 1 ? static_cast<int32_t>(random() % ranks)
                                          : ranks - 1;
        runThreadRanks(ranks, [&](Communicator &comm) {
          Metrics metrics(model);
          for (int64_t piece = kPieces; piece-- > 0;) // in another order
            if (owners[piece] == comm.getRank())
              addRows(metrics, rows, piece * kPieceRows, kPieceRows, isWeighted);
          metrics.gather(comm);
          EXPECT_EQ(bitsOf(metrics), expected) << ranks << " ranks, seed " << seed;
        });
      }
    }
}

TEST(MetricsOfRanks, WithoutRowsAreUndefinedOnAll) {
  genrec_model_desc model = makeModel();
  auto expected = bitsOf(Metrics(model));
  runThreadRanks(3, [&](Communicator &comm) {
    Metrics metrics(model);
    metrics.gather(comm);
    EXPECT_EQ(bitsOf(metrics), expected);
    EXPECT_EQ(metrics.namesWithoutRows().size(), metrics.values().size() - 1); // not gauc.skipped
  });
}

} // namespace
} // namespace genrec::rt::test
