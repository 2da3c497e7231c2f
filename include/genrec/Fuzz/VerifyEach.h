//===- VerifyEach.h - interprets the model after every pass -----*- C++ -*-===//

#ifndef GENREC_FUZZ_VERIFYEACH_H
#define GENREC_FUZZ_VERIFYEACH_H

#include "genrec/Fuzz/PassJudge.h"

#include "mlir/Pass/PassInstrumentation.h"

namespace genrec::fuzz {

/// Interprets every model before the first pass and after every pass, on random and adversarial
/// batches, and compares the results. The first difference is reported at the loss, metric, output,
/// parameter or table that shows it, with the pass, the value and the batch. Levels after
/// form-row-kernels, which the interpreter cannot evaluate, are skipped.
class VerifyEach : public mlir::PassInstrumentation {
public:
  /// `onFailure` is called once, when a pass has changed a model's results.
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
