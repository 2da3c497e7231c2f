//===- SpecializeModes.cpp - a program per mode ---------------------------===//

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

/// A sink that a program of `mode` has no need of.
static bool isSuperfluous(ProgramMode mode, Operation *op) {
  auto sink = dyn_cast<SinkOpInterface>(op);
  return sink && !sink.isNeededIn(mode);
}

/// An output's name that no other output of `program` has: `vectors`, `vectors_2`, …
static std::string pickOutputName(ProgramOp program) {
  DenseSet<StringRef> taken;
  for (auto output : program.getBody().front().getOps<OutputOp>())
    taken.insert(output.getName());
  std::string name = "vectors";
  for (int64_t number = 2; taken.contains(name); ++number)
    name = "vectors_" + std::to_string(number);
  return name;
}

/// Gives out the item vectors of the catalogues that `program` has no output of. Returns
/// how many there are.
static unsigned addItemVectors(ProgramOp program) {
  // The same expression written twice is one kind of vector.
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

  /// Clones `program` for `mode`, unless that mode has nothing to do.
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
