//===- VerifyEach.h - the interpreter after every pass ----------*- C++ -*-===//

#ifndef GENREC_FUZZ_VERIFYEACH_H
#define GENREC_FUZZ_VERIFYEACH_H

#include "genrec/Fuzz/PassJudge.h"

#include "mlir/Pass/PassInstrumentation.h"

namespace genrec::fuzz {

/// Compares every model with itself before the first pass, after every pass: interpreter against
/// interpreter, on random and adversarial batches. The first difference is an error at the loss,
/// metric, output, parameter or table that shows it, naming the pass, the value and the batch.
/// Levels that the interpreter does not evaluate, after form-row-kernels, are not looked at.
class VerifyEach : public mlir::PassInstrumentation {
public:
  /// Calls `onFailure` once, when a pass has changed a model's meaning.
  explicit VerifyEach(std::function<void()> onFailure, uint64_t seed = 1)
      : onFailure(std::move(onFailure)), seed(seed) {}

  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  void look(ModelOp model, llvm::StringRef when);

  std::function<void()> onFailure;
  uint64_t seed;
  bool failed = false;
  std::map<std::string, std::unique_ptr<PassJudge>> judges; ///< by the model's name
};

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_VERIFYEACH_H
