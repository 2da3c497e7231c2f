//===- rank_work.h - What each rank does of a training -----------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_RANK_WORK_H
#define GENREC_RT_TRAINER_RANK_WORK_H

#include "commands.h"

#include <vector>

namespace genrec::rt {

/// Counts root rows and entries of lists that this rank trains, step by step.
class RankWork {
public:
  /// `comm`: null alone. Of lists that the model truncates, what is left is counted, too.
  RankWork(const genrec_model_desc &model, Communicator *comm);

  /// Adds a step. Nothing is allocated in most of them.
  void add(std::span<const Batch *const> portions);

  /// Per rank: rows, tokens by list, what it decoded, seconds in exchanges; and the imbalance of
  /// rows and tokens: over the steps, the sum of the most that a rank had over the sum of the mean,
  /// minus 1. Collective.
  Json toJson(const DecodedData &decoded) const;

private:
  /// One per list; the last one is of root rows.
  struct Counted {
    int32_t domain;
    int64_t sum = 0;
    std::vector<int64_t> steps; ///< of several ranks: the first kMostSteps
  };

  int64_t countIn(const Batch &batch, int32_t domain) const;
  double imbalance(const std::vector<int64_t> &steps) const;
  /// The value of every rank.
  std::vector<int64_t> gathered(int64_t value) const;

  const genrec_model_desc &model;
  Communicator *comm;
  std::vector<Counted> counts;
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_RANK_WORK_H
