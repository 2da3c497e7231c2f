//===- PassJudge.h - the interpreter judges what passes make ----*- C++ -*-===//

#ifndef GENREC_FUZZ_PASSJUDGE_H
#define GENREC_FUZZ_PASSJUDGE_H

#include "genrec/Fuzz/RoundingBound.h"

namespace genrec::fuzz {

/// Compares each level of one model with the level that fixed its meaning: the first one for what
/// goes forward, the first that trains for what is trained.
class PassJudge {
public:
  /// For levels of `model`, of which looks are taken on every series.
  PassJudge(ModelOp model, std::vector<BatchSeries> series, uint64_t seed);

  /// Looks at a level; the first look gives the meaning. What differs, with the batches it differs
  /// on.
  std::optional<Difference> look(ModelOp model);

  llvm::ArrayRef<BatchSeries> getSeries() const { return series; }

  /// Whether a fault of `op`, of the level looked at first, moves anything that is shown of `model`
  /// by more than compiled code may differ by.
  bool showsFault(ModelOp model, mlir::Operation *op) const;

  /// Counts the bounds of all that is compared.
  void addWidths(BoundWidths &widths) const;

private:
  std::optional<Difference> look(ModelOp model, size_t number, bool mayTrain, Allowance allowance);

  uint64_t seed;
  std::vector<BatchSeries> series;
  std::vector<std::optional<RoundedObservations>> expected; ///< by series
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_PASSJUDGE_H
