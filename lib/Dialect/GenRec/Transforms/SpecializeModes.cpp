//===- SpecializeModes.cpp - programs to train, evaluate and predict ------===//

#include "Batch.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_SPECIALIZEMODES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// True when a program of `mode` needs `op`, an op without results.
static bool isSinkOf(ProgramMode mode, Operation *op) {
  switch (mode) {
  case ProgramMode::train:
    return isa<LossOp>(op);
  case ProgramMode::evaluate:
    return isa<LossOp, MetricOp>(op);
  case ProgramMode::predict:
    return isa<OutputOp>(op);
  case ProgramMode::all:
    return true;
  }
  llvm_unreachable("every mode is handled");
}

static bool isSink(Operation *op) {
  return isa<LossOp, MetricOp, OutputOp>(op);
}

/// Takes dropout out of `program`. Returns how many ops that changed.
static unsigned removeDropout(ProgramOp program) {
  unsigned removed = 0;
  FloatAttr none = FloatAttr::get(Float64Type::get(program.getContext()), 0.0);
  program.walk([&](Operation *op) {
    if (auto dropout = dyn_cast<DropoutOp>(op)) {
      dropout.getResult().replaceAllUsesWith(dropout.getX());
      dropout.erase();
      ++removed;
    } else if (auto attention = dyn_cast<AttentionOp>(op)) {
      removed += !attention.getDropout().isZero();
      attention.setDropoutAttr(none);
    } else if (auto block = dyn_cast<HstuBlockOp>(op)) {
      removed += !block.getDropout().isZero() +
                 !block.getLinearDropout().isZero();
      block.setDropoutAttr(none);
      block.setLinearDropoutAttr(none);
    }
  });
  return removed;
}

/// Keeps of `program` what its mode needs.
static void keepNeeded(ProgramOp program) {
  Block &body = program.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body))
    if (isSink(&op) && !isSinkOf(program.getMode(), &op))
      op.erase();
  eraseDeadOps(program);
  completeBatch(program);
}

namespace {
struct SpecializeModes : genrec::impl::SpecializeModesBase<SpecializeModes> {
  void runOnOperation() override {
    ModelOp model = getOperation();
    SmallVector<ProgramOp> imported;
    for (auto program : model.getBody().front().getOps<ProgramOp>())
      if (program.getMode() == ProgramMode::all)
        imported.push_back(program);
    if (imported.empty())
      return markAllAnalysesPreserved();
    for (ProgramOp program : imported) {
      for (ProgramMode mode : {ProgramMode::train, ProgramMode::evaluate,
                               ProgramMode::predict})
        specialize(program, mode);
      program.erase();
    }
  }

  /// Clones `program` for `mode`, unless that mode has nothing to do.
  void specialize(ProgramOp program, ProgramMode mode) {
    Block &body = program.getBody().front();
    if (llvm::none_of(body, [&](Operation &op) {
          return isSink(&op) && isSinkOf(mode, &op);
        }))
      return;
    OpBuilder builder(program);
    auto clone = cast<ProgramOp>(builder.clone(*program));
    clone.setMode(mode);
    clone.setSymName(pickName(stringifyProgramMode(mode)));
    keepNeeded(clone);
    if (mode != ProgramMode::train)
      countStatistic(*this, dropoutsRemoved, "dropouts-removed", removeDropout(clone));
    countStatistic(*this, programs, "programs", 1);
  }

  std::string pickName(StringRef wanted) {
    std::string name = wanted.str();
    while (SymbolTable::lookupSymbolIn(getOperation(), name))
      name += '_';
    return name;
  }
};
} // namespace
