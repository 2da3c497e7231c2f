//===- CheckPasses.h - the interpreter judges every pass --------*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKPASSES_H
#define GENREC_FUZZ_CHECKPASSES_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Interpreter/Interpreter.h"

#include "mlir/IR/BuiltinOps.h"

#include <optional>
#include <string>

namespace genrec::fuzz {

/// Everything a model shows to its user on some batches: losses of training steps
/// (step by step, with updates where the model is differentiated), losses and
/// metrics of evaluation, outputs of prediction, and what is trained afterwards.
/// Names to values, so that two levels of one model can be compared.
struct Observations {
  std::map<std::string, std::vector<double>> forward; ///< every level has these
  std::map<std::string, std::vector<double>> trained; ///< differentiated levels only
};

/// Runs `model`, at any level the interpreter evaluates, on `batches`: one training step per batch, with the
/// evaluation and prediction of the first batch before them.
llvm::Expected<Observations> observe(ModelOp model, llvm::ArrayRef<interpreter::Batch> batches, uint64_t seed,
                                     interpreter::Precision precision = interpreter::Precision::exact);

/// The random batches on which the model of `seed` is tried. All have the catalogues of the first.
std::vector<interpreter::Batch> makeBatches(ModelOp model, uint64_t seed, int64_t count);

/// Where two observations first differ by more than `tolerance` relative to
/// max(1, |expected|); empty when they agree. Values of the second that the first lacks are not compared.
std::string compare(const std::map<std::string, std::vector<double>> &expected,
                    const std::map<std::string, std::vector<double>> &actual, double tolerance);

struct CheckOptions {
  int64_t batches = 2;
  /// Compare the gradients that `differentiate` built with central differences.
  bool gradients = false;
  /// Levels of `form-row-kernels` to try.
  llvm::ArrayRef<unsigned> levels = defaultLevels;
  static constexpr unsigned defaultLevels[] = {0, 2};
};

/// Rounding that a pass may cause: it reorders sums and products of at most `ops`
/// ops, whose errors of 2^-53 the random graph may magnify 10^5 times (an
/// optimizer divides by a root of about 1e-3, norms by one of 0.05).
double getTolerance(ModelOp model);

/// Runs the pipeline on a copy of `module` and compares with the interpreter's
/// view of the model after every step. Returns what is wrong, with the step
/// after which it is; nothing when all agree.
std::optional<std::string> checkPasses(mlir::ModuleOp module, uint64_t seed, const CheckOptions &options);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKPASSES_H
