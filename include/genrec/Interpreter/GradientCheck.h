//===- GradientCheck.h - gradients against central differences --*- C++ -*-===//

#ifndef GENREC_INTERPRETER_GRADIENTCHECK_H
#define GENREC_INTERPRETER_GRADIENTCHECK_H

#include "genrec/Interpreter/Interpreter.h"

namespace genrec::interpreter {

struct GradientCheckOptions {
  /// Allowed |gradient - difference|, relative to the larger of the two (and of
  /// 1e-3 times the largest of its parameter or table).
  double tolerance = 1e-6;
  /// First step of the differences, relative to max(1, |value|). Where the two
  /// disagree, a larger step (for losses much larger than the derivative) and
  /// smaller ones (for values near a kink) are tried: a wrong gradient agrees
  /// with none.
  double step = 1e-4;
  /// The program whose loss is differenced: one from before differentiation, whose `detach` ops tell what is
  /// taken for a constant; null for the differentiated one, which has none.
  ProgramOp original;
};

/// One derivative that differs.
struct GradientMismatch {
  std::string name; ///< parameter or table
  int64_t row = 0;  ///< row of the parameter, or id
  int64_t column = 0;
  double gradient = 0.0;
  double difference = 0.0;
};

/// What was compared for one parameter or table.
struct GradientSummary {
  std::string name;
  int64_t checked = 0; ///< derivatives compared
  int64_t nonzero = 0; ///< of these, how many differences are not 0
};

struct GradientCheck {
  std::vector<GradientSummary> summaries;
  double worst = 0.0; ///< largest relative difference among those that agree
  std::vector<GradientMismatch> mismatches;
};

/// Compares, for every element of every parameter and of every table row that
/// the batch touches, the gradient that `program` (differentiated, mode train,
/// with update_parameter and update_table still in it) hands to its update with
/// the fourth-order central difference of the model's loss in double. What is detached
/// keeps its value meanwhile, if `options.original` says what is. `state` is left as it was.
llvm::Expected<GradientCheck> checkGradients(ProgramOp program, const Batch &batch,
                                             const State &state,
                                             const GradientCheckOptions &options = {});

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_GRADIENTCHECK_H
