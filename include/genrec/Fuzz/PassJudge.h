//===- PassJudge.h - compares a model before and after passes ---*- C++ -*-===//

#ifndef GENREC_FUZZ_PASSJUDGE_H
#define GENREC_FUZZ_PASSJUDGE_H

#include "genrec/Fuzz/RoundingBound.h"

namespace genrec::fuzz {

/// Compares each level of a model with a reference: the forward values with those of the first
/// level, the trained values with those of the first level that trains.
class PassJudge {
public:
  /// For levels of `model`, each of which is run on every series of batches.
  PassJudge(ModelOp model, std::vector<BatchSeries> series, uint64_t seed);

  /// Runs training steps of levels after `distribute` on so many ranks, and on as many portions or a
  /// few more. Unless told, both numbers depend on the seed: 1 to 5 ranks, 2 to 5 portions.
  void setRanks(int64_t ranks);

  /// How levels after `distribute` are run.
  const interpreter::RunOptions &getRun() const { return run; }
  /// Makes ranks exchange rows wrongly from now on.
  void setFault(interpreter::RankFault fault) { run.rankFault = fault; }

  /// Compares a level with the reference; the first call records the reference. Returns the first
  /// difference and the batches that show it.
  std::optional<Difference> look(ModelOp model);

  llvm::ArrayRef<BatchSeries> getSeries() const { return series; }

  /// Whether a fault injected into `op`, an op of the level that was looked at first, changes an
  /// observed value by more than compiled code may differ.
  bool showsFault(ModelOp model, mlir::Operation *op);

  /// Adds the bounds of all compared values.
  void addWidths(BoundWidths &widths) const;

private:
  std::optional<Difference> look(ModelOp model, const interpreter::State &initial, size_t number,
                                 bool mayTrain, Allowance allowance);
  void keepValues(ModelOp model);

  uint64_t seed;
  interpreter::RunOptions run;
  std::vector<BatchSeries> series;
  std::vector<std::optional<RoundedObservations>> expected; ///< one per series
  std::vector<ShownBefore> before;                          ///< one per series
  /// The first level without a fault.
  struct Sound {
    interpreter::State initial;
    std::vector<RunValues> values; ///< one per series
  };
  std::optional<Sound> sound;
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_PASSJUDGE_H
