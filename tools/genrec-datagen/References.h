//===- References.h - rankings to hold a model against ----------*- C++ -*-===//

#ifndef GENREC_TOOLS_DATAGEN_REFERENCES_H
#define GENREC_TOOLS_DATAGEN_REFERENCES_H

#include <cstdint>
#include <string>
#include <vector>

namespace genrec::datagen {

/// HR, NDCG and MRR over one target per user, as genrec's ranking metric
/// defines them: the rank counts ties against the ranker.
class RankingReference {
public:
  explicit RankingReference(std::string name) : name(std::move(name)) {}

  /// Adds the rank of `target` among the items that `excluded` leaves.
  void add(const std::vector<double> &scores, const std::vector<bool> &excluded,
           int64_t target);
  /// One JSON object: {"hr@10": …, "ndcg@10": …, …, "mrr": …}.
  std::string toJson() const;
  const std::string &getName() const { return name; }

private:
  std::string name;
  std::vector<int64_t> ranks;
};

/// The area under the ROC curve of `scores` for labels 0 and 1; ties count half.
double computeAuc(const std::vector<double> &scores,
                  const std::vector<float> &labels);

} // namespace genrec::datagen

#endif // GENREC_TOOLS_DATAGEN_REFERENCES_H
