//===- Metrics.cpp - ranking quality and area under the curve -------------===//

#include "Metrics.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>
#include <limits>
#include <map>

using namespace genrec::interpreter;

constexpr double kUndefined = std::numeric_limits<double>::quiet_NaN();

void MetricAccumulator::addRanks(llvm::StringRef name, llvm::ArrayRef<int64_t> ranks,
                                 llvm::ArrayRef<int64_t> at) {
  std::string prefix = name == "ranking" ? "" : name.str() + ".";
  double count = 0, reciprocals = 0;
  for (int64_t rank : ranks)
    if (rank > 0) {
      count += 1;
      reciprocals += 1.0 / static_cast<double>(rank);
    }
  auto mean = [&](double sum) { return count > 0 ? sum / count : kUndefined; };
  for (int64_t cutoff : at) {
    double hits = 0, gains = 0;
    for (int64_t rank : ranks)
      if (rank > 0 && rank <= cutoff) {
        hits += 1;
        gains += 1.0 / std::log2(static_cast<double>(rank) + 1.0);
      }
    values.emplace_back(prefix + "hr@" + std::to_string(cutoff), mean(hits));
    values.emplace_back(prefix + "ndcg@" + std::to_string(cutoff), mean(gains));
  }
  values.emplace_back(prefix + "mrr", mean(reciprocals));
}

static double areaUnderCurve(llvm::ArrayRef<std::pair<double, bool>> scored) {
  double pairs = 0, ordered = 0;
  for (const auto &[score, isPositive] : scored)
    for (const auto &[other, otherIsPositive] : scored)
      if (isPositive && !otherIsPositive) {
        pairs += 1;
        ordered += score > other ? 1.0 : score == other ? 0.5 : 0.0;
      }
  return pairs > 0 ? ordered / pairs : kUndefined;
}

void MetricAccumulator::addScores(llvm::StringRef name,
                                  llvm::ArrayRef<std::pair<double, bool>> scored) {
  values.emplace_back(name.str(), areaUnderCurve(scored));
}

void MetricAccumulator::addGroups(llvm::StringRef name,
                                  llvm::ArrayRef<std::pair<double, bool>> scored,
                                  llvm::ArrayRef<int64_t> keys) {
  std::map<int64_t, std::vector<std::pair<double, bool>>> groups;
  for (auto [key, one] : llvm::zip_equal(keys, scored))
    groups[key].push_back(one);
  double sum = 0, rows = 0, skipped = 0;
  for (const auto &[key, group] : groups) {
    double area = areaUnderCurve(group);
    if (std::isnan(area)) {
      skipped += 1;
      continue;
    }
    sum += area * static_cast<double>(group.size());
    rows += static_cast<double>(group.size());
  }
  values.emplace_back(name.str(), rows > 0 ? sum / rows : kUndefined);
  values.emplace_back(name.str() + ".skipped", skipped);
}

void MetricAccumulator::addLogits(llvm::StringRef name,
                                  llvm::ArrayRef<std::pair<double, bool>> scored) {
  double count = static_cast<double>(scored.size()), positives = 0, loss = 0;
  for (const auto &[logit, isPositive] : scored) {
    positives += isPositive;
    loss += std::log1p(std::exp(-std::abs(logit))) + std::max(logit, 0.0) - isPositive * logit;
  }
  double p = positives / count;
  double entropy = -p * std::log(p) - (1 - p) * std::log(1 - p);
  bool isDefined = positives > 0 && positives < count;
  values.emplace_back(name.str(), isDefined ? loss / count / entropy : kUndefined);
}
