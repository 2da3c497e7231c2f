//===- SpecializeModes.cpp - creates a program per mode -------------------===//

#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "llvm/ADT/SetVector.h"

namespace genrec {
#define GEN_PASS_DEF_SPECIALIZEMODES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// Whether a program of `mode` does not need the sink `op`.
static bool isSuperfluous(ProgramMode mode, Operation *op) {
  auto sink = dyn_cast<SinkOpInterface>(op);
  return sink && !sink.isNeededIn(mode);
}

/// An unused name of an output of `program`: `vectors`, `vectors_2`, …
static std::string pickOutputName(ProgramOp program) {
  DenseSet<StringRef> taken;
  for (auto output : program.getBody().front().getOps<OutputOp>())
    taken.insert(output.getName());
  std::string name = "vectors";
  for (int64_t number = 2; taken.contains(name); ++number)
    name = "vectors_" + std::to_string(number);
  return name;
}

/// Adds outputs of item vectors for the catalogues that have no output in `program`. Returns their
/// number.
static unsigned addItemVectors(ProgramOp program) {
  // CSE, so that equal expressions give one output.
  IRRewriter rewriter(program.getContext());
  DominanceInfo dominance(program);
  eliminateCommonSubExpressions(rewriter, dominance, program);
  Block &body = program.getBody().front();
  llvm::SetVector<Value> items;
  DenseSet<Attribute> given;
  for (Operation &op : body) {
    if (auto scoring = dyn_cast<CatalogueOpInterface>(op))
      items.insert(scoring.getItemVectors());
    if (auto output = dyn_cast<OutputOp>(op))
      given.insert(getRowDomain(output.getX().getType()));
  }
  unsigned added = 0;
  rewriter.setInsertionPointToEnd(&body);
  for (Value vectors : items) {
    if (given.contains(getRowDomain(vectors.getType())))
      continue;
    OutputOp::create(rewriter, vectors.getLoc(), pickOutputName(program), vectors,
                     /*valid=*/Value());
    ++added;
  }
  return added;
}

/// Removes dropout from `program`. Returns the number of changed ops.
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

/// Erases the losses, metrics and outputs of other modes.
static void eraseOtherSinks(ProgramOp program) {
  Block &body = program.getBody().front();
  for (Operation &op : llvm::make_early_inc_range(body))
    if (isSuperfluous(program.getMode(), &op))
      op.erase();
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
                               ProgramMode::predict, ProgramMode::items})
        specialize(program, mode);
      program.erase();
    }
  }

  /// Clones `program` for `mode`, unless the clone would have no losses, metrics and outputs.
  void specialize(ProgramOp program, ProgramMode mode) {
    OpBuilder builder(program);
    auto clone = cast<ProgramOp>(builder.clone(*program));
    if (mode == ProgramMode::items)
      countStatistic(*this, itemVectors, "item-vectors", addItemVectors(clone));
    if (llvm::none_of(clone.getBody().front(), [&](Operation &op) {
          return isa<SinkOpInterface>(op) && !isSuperfluous(mode, &op);
        }))
      return clone.erase();
    clone.setMode(mode);
    clone.setSymName(pickName(stringifyProgramMode(mode)));
    eraseOtherSinks(clone);
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
