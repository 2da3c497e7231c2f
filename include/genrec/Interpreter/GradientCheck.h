//===- GradientCheck.h - gradients against central differences --*- C++ -*-===//

#ifndef GENREC_INTERPRETER_GRADIENTCHECK_H
#define GENREC_INTERPRETER_GRADIENTCHECK_H

#include "genrec/Interpreter/Interpreter.h"

namespace genrec::interpreter {

struct GradientCheckOptions {
  /// Allowed |gradient - difference|, relative to the larger of the two (and of
  /// 1e-3 times the largest of its parameter or table).
  double tolerance = 1e-6;
  /// The first step of the differences, relative to max(1, |value|). Where gradient and difference
  /// disagree, a larger step (for losses much larger than the derivative) and smaller ones (for
  /// values near a kink) are tried: a wrong gradient agrees with none of them.
  double step = 1e-4;
  /// The program before differentiation; its loss is differenced with the results of its `detach`
  /// ops held constant. If null, the loss of the differentiated program is, which has no `detach`.
  ProgramOp original;
};

/// One derivative that differs from its difference.
struct GradientMismatch {
  std::string name; ///< parameter or table
  int64_t row = 0;  ///< row of the parameter, or the id in the table
  int64_t column = 0;
  double gradient = 0.0;
  double difference = 0.0;
};

/// What was compared for one parameter or table.
struct GradientSummary {
  std::string name;
  int64_t checked = 0; ///< derivatives compared
  int64_t nonzero = 0; ///< how many of these differences are not 0
};

struct GradientCheck {
  std::vector<GradientSummary> summaries;
  double worst = 0.0; ///< largest relative error among those that agree
  std::vector<GradientMismatch> mismatches;
};

/// Checks every element of every parameter, and of every table row that the batch touches: the
/// gradient that `program` passes to its update is compared with the fourth-order central
/// difference of the loss, in double. `program` is a differentiated program of mode train that
/// still has its update_parameter and update_table ops. `state` is unchanged afterwards.
llvm::Expected<GradientCheck> checkGradients(ProgramOp program, const Batch &batch,
                                             const State &state,
                                             const GradientCheckOptions &options = {});

} // namespace genrec::interpreter

#endif // GENREC_INTERPRETER_GRADIENTCHECK_H
