//===- FormRowKernels.cpp - row-wise ops into row kernels -----------------===//

#include "Batch.h"
#include "KernelEmitter.h"
#include "RowOps.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_FORMROWKERNELS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// True when a column slice is only read in place: it stays, as a view.
static bool isView(Operation *op) {
  return isa<SliceColumnsOp>(op) &&
         llvm::all_of(op->getUses(), readsColumnsInPlace);
}

/// One plan per op.
static KernelPlan planAlone(Operation *op) {
  KernelPlan plan;
  plan.domain = getRowOpDomain(op);
  if (!plan.domain)
    plan.sharedRows = getSharedRowCount(op->getResult(0).getType());
  plan.ops.insert(op);
  plan.outputs.insert(op->result_begin(), op->result_end());
  plan.name = op->getName().stripDialect().str();
  plan.stage = op->getDiscardableAttr("genrec.stage");
  return plan;
}

namespace {
struct FormRowKernels : genrec::impl::FormRowKernelsBase<FormRowKernels> {
  using FormRowKernelsBase::FormRowKernelsBase;

  void runOnOperation() override {
    SmallVector<ProgramOp> programs(
        getOperation().getBody().front().getOps<ProgramOp>());
    for (ProgramOp program : programs)
      if (failed(formOneEach(program)))
        return signalPassFailure();
  }

  LogicalResult formOneEach(ProgramOp program) {
    Block &body = program.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (!isRowOp(&op) || isa<RowKernelOp>(op) || isView(&op))
        continue;
      OpBuilder builder(&op);
      DenseMap<Value, Value> replacements;
      if (failed(emitKernel(builder, planAlone(&op), replacements)))
        return failure();
      for (auto [from, to] : replacements)
        from.replaceAllUsesWith(to);
      op.erase();
      ++wrapped;
      RewriteCounter::count("wrap-row-kernel");
    }
    eraseDeadOps(program);
    kernels += llvm::range_size(body.getOps<RowKernelOp>());
    return success();
  }
};
} // namespace
