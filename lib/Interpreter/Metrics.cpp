//===- Metrics.cpp - ranking quality, areas under curves, errors ----------===//

#include "genrec/Interpreter/Metrics.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>
#include <map>

using namespace genrec;
using namespace genrec::interpreter;
using llvm::StringRef;

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

/// Σ weight · value / Σ weight over rows with weight; NaN if the weights add up to 0.
template <class Rows, class ValueOf> static double meanOf(const Rows &rows, ValueOf valueOf) {
  double sum = 0, weight = 0;
  for (const auto &row : rows) {
    sum += row.weight * valueOf(row);
    weight += row.weight;
  }
  return weight > 0 ? sum / weight : kUndefined;
}

//===----------------------------------------------------------------------===//
// Ranking metrics
//===----------------------------------------------------------------------===//

static std::string prefixOf(MetricOp op) {
  return op.getName() == "ranking" ? "" : op.getName().str() + ".";
}

static double gainOf(int64_t rank) { return 1.0 / std::log2(static_cast<double>(rank) + 1.0); }

static std::string atCutoff(StringRef name, int64_t cutoff) {
  return (name + "@" + std::to_string(cutoff)).str();
}

void MetricAccumulator::addRanks(MetricOp op, llvm::ArrayRef<WeighedRank> ranks) {
  std::string prefix = prefixOf(op);
  for (int64_t cutoff : op.getAt().value_or(llvm::ArrayRef<int64_t>())) {
    auto isHit = [&](const WeighedRank &row) { return row.rank <= cutoff; };
    values.emplace_back(prefix + atCutoff("hr", cutoff),
                        meanOf(ranks, [&](auto &row) { return isHit(row) ? 1.0 : 0.0; }));
    values.emplace_back(prefix + atCutoff("ndcg", cutoff),
                        meanOf(ranks, [&](auto &row) { return isHit(row) ? gainOf(row.rank) : 0.0; }));
  }
  values.emplace_back(prefix + "mrr", meanOf(ranks, [](auto &row) {
                        return 1.0 / static_cast<double>(row.rank);
                      }));
}

void MetricAccumulator::addLists(MetricOp op, llvm::ArrayRef<RankedList> lists) {
  std::string prefix = prefixOf(op);
  for (int64_t cutoff : op.getAt().value_or(llvm::ArrayRef<int64_t>())) {
    auto countHits = [&](const RankedList &list) {
      return static_cast<double>(
          llvm::count_if(list.ranks, [&](int64_t rank) { return rank <= cutoff; }));
    };
    auto gainOfList = [&](const RankedList &list) {
      double gain = 0, best = 0;
      for (int64_t rank : list.ranks)
        gain += rank <= cutoff ? gainOf(rank) : 0.0;
      for (int64_t rank = 1; rank <= std::min<int64_t>(cutoff, list.ranks.size()); ++rank)
        best += gainOf(rank);
      return gain / best;
    };
    values.emplace_back(prefix + atCutoff("hr", cutoff), meanOf(lists, [&](auto &list) {
                          return countHits(list) > 0 ? 1.0 : 0.0;
                        }));
    values.emplace_back(prefix + atCutoff("recall", cutoff), meanOf(lists, [&](auto &list) {
                          return countHits(list) / static_cast<double>(list.ranks.size());
                        }));
    values.emplace_back(prefix + atCutoff("ndcg", cutoff), meanOf(lists, gainOfList));
  }
  values.emplace_back(prefix + "mrr", meanOf(lists, [](auto &list) {
                        return 1.0 / static_cast<double>(*llvm::min_element(list.ranks));
                      }));
}

//===----------------------------------------------------------------------===//
// Metrics of scores
//===----------------------------------------------------------------------===//

static double areaUnderCurve(llvm::ArrayRef<WeighedScore> rows) {
  double pairs = 0, ordered = 0;
  for (const WeighedScore &row : rows)
    for (const WeighedScore &other : rows)
      if (row.label == 1 && other.label == 0) {
        double weight = row.weight * other.weight;
        pairs += weight;
        ordered += weight * (row.score > other.score ? 1.0 : row.score == other.score ? 0.5 : 0.0);
      }
  return pairs > 0 ? ordered / pairs : kUndefined;
}

static double normalizedEntropy(llvm::ArrayRef<WeighedScore> rows) {
  double loss = meanOf(rows, [](const WeighedScore &row) {
    return std::log1p(std::exp(-std::abs(row.score))) + std::max(row.score, 0.0) -
           row.label * row.score;
  });
  double p = meanOf(rows, [](const WeighedScore &row) { return row.label; });
  return p > 0 && p < 1 ? loss / (-p * std::log(p) - (1 - p) * std::log(1 - p)) : kUndefined;
}

void MetricAccumulator::addScores(MetricOp op, llvm::ArrayRef<WeighedScore> rows) {
  std::string name = op.getName().str();
  auto difference = [](const WeighedScore &row) { return row.score - row.label; };
  switch (op.getKind()) {
  case MetricKind::auc:
    values.emplace_back(name, areaUnderCurve(rows));
    return;
  case MetricKind::ne:
    values.emplace_back(name, normalizedEntropy(rows));
    return;
  case MetricKind::rmse:
    values.emplace_back(name, std::sqrt(meanOf(rows, [&](const WeighedScore &row) {
                          return difference(row) * difference(row);
                        })));
    return;
  case MetricKind::mae:
    values.emplace_back(
        name, meanOf(rows, [&](const WeighedScore &row) { return std::abs(difference(row)); }));
    return;
  case MetricKind::gauc:
    break;
  case MetricKind::ranking:
    llvm_unreachable("ranks have no labels");
  }
  std::map<int64_t, std::vector<WeighedScore>> groups;
  for (const WeighedScore &row : rows)
    groups[row.key].push_back(row);
  struct Area {
    double value, weight;
  };
  std::vector<Area> areas;
  for (const auto &[key, group] : groups) {
    double weight = 0;
    for (const WeighedScore &row : group)
      weight += row.weight;
    if (double area = areaUnderCurve(group); !std::isnan(area))
      areas.push_back({area, weight});
  }
  values.emplace_back(name, meanOf(areas, [](const Area &area) { return area.value; }));
  values.emplace_back(name + ".skipped", static_cast<double>(groups.size() - areas.size()));
}
