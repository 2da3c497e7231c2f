//===- CheckpointPass.cpp - calls a function between two passes -----------===//

#include "genrec/Fuzz/CheckpointPass.h"

using namespace mlir;
using namespace genrec;

namespace {
class CheckpointPass : public PassWrapper<CheckpointPass, OperationPass<ModelOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckpointPass)
  explicit CheckpointPass(std::function<LogicalResult(ModelOp)> check) : check(std::move(check)) {}
  StringRef getArgument() const override { return "genrec-fuzz-checkpoint"; }
  void runOnOperation() override {
    if (failed(check(getOperation())))
      signalPassFailure();
    markAllAnalysesPreserved(); // so that the pass manager need not verify the level once more
  }

private:
  std::function<LogicalResult(ModelOp)> check;
};
} // namespace

std::unique_ptr<Pass> fuzz::makeCheckpoint(std::function<LogicalResult(ModelOp)> check) {
  return std::make_unique<CheckpointPass>(std::move(check));
}
