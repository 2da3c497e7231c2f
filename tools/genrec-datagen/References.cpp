//===- References.cpp - rankings to hold a model against ------------------===//

#include "References.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

using namespace genrec::datagen;

void RankingReference::add(const std::vector<double> &scores,
                           const std::vector<bool> &excluded, int64_t target) {
  int64_t rank = 1;
  for (size_t item = 0; item < scores.size(); ++item)
    if (int64_t(item) != target && !excluded[item] &&
        scores[item] >= scores[target])
      ++rank;
  ranks.push_back(rank);
}

std::string RankingReference::toJson() const {
  std::string json = "{";
  char text[96];
  double users = double(std::max<size_t>(ranks.size(), 1));
  for (int64_t cut : {10, 50, 200}) {
    double hits = 0, gain = 0;
    for (int64_t rank : ranks)
      if (rank <= cut) {
        hits += 1;
        gain += 1.0 / std::log2(double(rank) + 1.0);
      }
    std::snprintf(text, sizeof(text), "\"hr@%d\": %.6f, \"ndcg@%d\": %.6f, ",
                  int(cut), hits / users, int(cut), gain / users);
    json += text;
  }
  double reciprocal = 0;
  for (int64_t rank : ranks)
    reciprocal += 1.0 / double(rank);
  std::snprintf(text, sizeof(text), "\"mrr\": %.6f}", reciprocal / users);
  return json + text;
}

double genrec::datagen::computeAuc(const std::vector<double> &scores,
                                   const std::vector<float> &labels) {
  std::vector<size_t> order(scores.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return scores[a] < scores[b]; });
  double positives = 0, rankSum = 0;
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin;
    while (end < order.size() && scores[order[end]] == scores[order[begin]])
      ++end;
    double meanRank = 0.5 * double(begin + 1 + end);
    for (; begin < end; ++begin)
      if (labels[order[begin]] > 0.5f) {
        positives += 1;
        rankSum += meanRank;
      }
  }
  double negatives = double(labels.size()) - positives;
  if (positives == 0 || negatives == 0)
    return 0.5;
  return (rankSum - positives * (positives + 1) / 2) / (positives * negatives);
}
