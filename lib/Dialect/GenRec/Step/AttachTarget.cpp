//===- AttachTarget.cpp - sets the target of a module ---------------------===//

#include "genrec/Dialect/GenRec/Step/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace genrec {
#define GEN_PASS_DEF_ATTACHTARGET
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// Stores of a device keep no lower halves.
static LogicalResult refuseHotRows(Operation *module) {
  LogicalResult result = success();
  module->walk([&](TableOp table) {
    if (!table.getHotAfter() || table.getMembersAttr())
      return;
    table.emitOpError()
        << "has 'hot_after' = " << *table.getHotAfter()
        << ", but tables on a device cannot have hot rows yet; leave it out, so that "
           "all rows are bf16, or compile with --target=cpu";
    result = failure();
  });
  return result;
}

namespace {
struct AttachTargetPass : genrec::impl::AttachTargetBase<AttachTargetPass> {
  using AttachTargetBase::AttachTargetBase;

  void runOnOperation() override {
    std::optional<TargetKind> kind = symbolizeTargetKind(target);
    if (!kind) {
      getOperation().emitError() << "target must be cpu or cuda, but is '" << target << "'";
      return signalPassFailure();
    }
    if (*kind == TargetKind::cuda && failed(refuseHotRows(getOperation())))
      return signalPassFailure();
    getContext().getLoadedDialect<GenRecDialect>()->getTargetAttrHelper().setAttr(
        getOperation(), TargetKindAttr::get(&getContext(), *kind));
  }
};
} // namespace
