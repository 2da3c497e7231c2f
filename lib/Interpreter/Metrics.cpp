//===- Metrics.cpp - ranking quality and area under the curve -------------===//

#include "Metrics.h"

#include <cmath>
#include <limits>

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

void MetricAccumulator::addScores(llvm::StringRef name,
                                  llvm::ArrayRef<std::pair<double, bool>> scored) {
  double pairs = 0, ordered = 0;
  for (const auto &[score, isPositive] : scored)
    for (const auto &[other, otherIsPositive] : scored)
      if (isPositive && !otherIsPositive) {
        pairs += 1;
        ordered += score > other ? 1.0 : score == other ? 0.5 : 0.0;
      }
  values.emplace_back(name.str(), pairs > 0 ? ordered / pairs : kUndefined);
}
