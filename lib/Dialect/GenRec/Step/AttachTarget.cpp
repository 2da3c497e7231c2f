//===- AttachTarget.cpp - sets the target of a module ---------------------===//

#include "genrec/Dialect/GenRec/Step/Passes.h"

#include "mlir/IR/BuiltinOps.h"

namespace genrec {
#define GEN_PASS_DEF_ATTACHTARGET
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
struct AttachTargetPass : genrec::impl::AttachTargetBase<AttachTargetPass> {
  using AttachTargetBase::AttachTargetBase;

  void runOnOperation() override {
    std::optional<TargetKind> kind = symbolizeTargetKind(target);
    if (!kind) {
      getOperation().emitError() << "target must be cpu or cuda, but is '" << target << "'";
      return signalPassFailure();
    }
    getContext().getLoadedDialect<GenRecDialect>()->getTargetAttrHelper().setAttr(
        getOperation(), TargetKindAttr::get(&getContext(), *kind));
  }
};
} // namespace
