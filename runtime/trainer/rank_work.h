//===- rank_work.h - What each rank does of a training -----------*- C++ -*-===//

#ifndef GENREC_RT_TRAINER_RANK_WORK_H
#define GENREC_RT_TRAINER_RANK_WORK_H

#include "commands.h"

#include <chrono>
#include <vector>

namespace genrec::rt {

/// Counts root rows and entries of lists that this rank trains, step by step.
class RankWork {
public:
  /// `comm`: null alone. Of lists that the model truncates, what is left is counted, too.
  RankWork(const genrec_model_desc &model, Communicator *comm);

  /// A step begins, once what lies between steps is done.
  void beginStep();
  /// Adds the step. Nothing is allocated in most of them.
  void add(std::span<const Batch *const> portions);

  /// Seconds that each rank has waited for others: of every step, its time in exchanges beyond that
  /// of the rank which had least, and so waited for nobody. Collective.
  std::vector<double> idleSeconds() const;

  /// Per rank: rows, tokens by list, what it decoded, rows of tables that it has, bytes of
  /// optimizer states of dense parameters, seconds in
  /// exchanges and idle, its device; and the imbalance of rows and tokens: over the steps, the sum
  /// of the most that a rank had over the sum of the mean, minus 1. Collective.
  Json toJson(const DecodedData &decoded, Session &session) const;

private:
  /// One per list; the last one is of root rows.
  struct Counted {
    int32_t domain;
    int64_t sum = 0;
    std::vector<int64_t> steps; ///< of several ranks: the first kMostSteps
  };

  int64_t countIn(const Batch &batch, int32_t domain) const;
  template <class Body> void forSteps(const std::vector<int64_t> &steps, const Body &body) const;
  double imbalance(const std::vector<int64_t> &steps) const;
  /// By rank; empty on the host.
  Json devicesOf(const Session &session) const;
  /// The values of every rank.
  std::vector<std::vector<int64_t>> gathered(const std::vector<int64_t> &values) const;

  const genrec_model_desc &model;
  Communicator *comm;
  std::vector<Counted> counts;
  std::chrono::nanoseconds inExchanges{0};  ///< before this step
  std::vector<int64_t> exchangeNanoseconds; ///< by step, of several ranks: the first kMostSteps
};

} // namespace genrec::rt

#endif // GENREC_RT_TRAINER_RANK_WORK_H
