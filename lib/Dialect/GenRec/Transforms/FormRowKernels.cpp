//===- FormRowKernels.cpp - fuses row-wise ops into row kernels -----------===//

#include "Batch.h"
#include "BodySimplification.h"
#include "KernelEmitter.h"
#include "KernelPlanner.h"
#include "ProgramOrder.h"
#include "RowOps.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

namespace genrec {
#define GEN_PASS_DEF_FORMROWKERNELS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// Whether a slice is only read in place, and so remains as a view.
static bool isView(Operation *op) {
  return isa<SliceColumnsOp>(op) &&
         llvm::all_of(op->getUses(), readsColumnsInPlace);
}

/// The plan of a kernel for one op.
static KernelPlan planAlone(Operation *op) {
  KernelPlan plan;
  plan.domain = getRowOpDomain(op);
  if (!plan.domain)
    plan.sharedRows = getSharedRowCount(op->getResult(0).getType());
  plan.ops.insert(op);
  for (Value result : op->getResults())
    if (!result.use_empty())
      plan.outputs.insert(result);
  plan.name = op->getName().stripDialect().str();
  plan.stage = op->getDiscardableAttr(GenRecDialect::StageAttrHelper::getNameStr());
  return plan;
}

/// "lookup, mul, add": the ops of a kernel. One of hundreds of columns has thousands, of which each
/// kind is told once: "400 maximum, 200 log1p".
static std::string listOps(const KernelPlan &plan) {
  constexpr size_t kMostInOrder = 24;
  SmallVector<std::string> names;
  llvm::MapVector<StringRef, size_t> counts;
  for (Operation *op : plan.ops) {
    StringRef name = op->getName().stripDialect();
    if (auto kernel = dyn_cast<RowKernelOp>(op))
      name = kernel.getName().value_or("kernel");
    names.push_back(name.str());
    ++counts[name];
  }
  if (names.size() <= kMostInOrder)
    return llvm::join(names, ", ");
  return llvm::join(llvm::map_range(counts,
                                    [](const auto &kind) {
                                      return std::to_string(kind.second) + " " + kind.first.str();
                                    }),
                    ", ");
}

namespace {
struct FormRowKernels : genrec::impl::FormRowKernelsBase<FormRowKernels> {
  using FormRowKernelsBase::FormRowKernelsBase;

  void runOnOperation() override {
    if (opt > 2) {
      getOperation().emitError()
          << "option 'opt' must be 0, 1 or 2, but is " << opt.getValue();
      return signalPassFailure();
    }
    SmallVector<ProgramOp> programs(
        getOperation().getBody().front().getOps<ProgramOp>());
    for (ProgramOp program : programs) {
      eraseDeadOps(program);
      if (failed(opt == 0 ? formOneEach(program) : formFused(program)))
        return signalPassFailure();
      eraseDeadOps(program);
      simplifyBodies(program);
      countStatistic(*this, kernels, "kernels",
                     llvm::range_size(
                         program.getBody().front().getOps<RowKernelOp>()));
    }
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
      countStatistic(*this, wrapped, "wrapped", 1);
      RewriteCounter::count("wrap-row-kernel");
    }
    return success();
  }

  LogicalResult formFused(ProgramOp program) {
    KernelPlanner planner(program, /*recompute=*/opt >= 2, wideJoins);
    std::vector<KernelPlan> plans = planner.run();
    noteKept(program, planner);
    DenseMap<Operation *, unsigned> positions;
    DenseMap<Value, Value> replacements;
    SmallVector<Operation *> replaced;
    for (Operation &op : program.getBody().front()) {
      positions[&op] = planner.getPosition(&op);
      if (isRowOp(&op))
        replaced.push_back(&op);
    }
    for (const KernelPlan &plan : plans)
      if (failed(emitPlan(program, plan, planner, positions, replacements)))
        return failure();
    for (auto [from, to] : replacements)
      from.replaceAllUsesWith(to);
    eraseReplaced(replaced);
    orderProgram(program, positions);
    return success();
  }

  /// Emits a kernel at the end of the program. It and the views that it needs get a position in the
  /// program: that of the kernel's first op with an output, or the end for updates.
  LogicalResult emitPlan(ProgramOp program, const KernelPlan &plan,
                         const KernelPlanner &planner,
                         DenseMap<Operation *, unsigned> &positions,
                         DenseMap<Value, Value> &replacements) {
    Block &body = program.getBody().front();
    Operation *before = &body.back();
    OpBuilder builder = OpBuilder::atBlockEnd(&body);
    if (failed(emitKernel(builder, plan, replacements)))
      return failure();
    // Updates come last: no op reads their results, and any op may read the rows that they
    // overwrite.
    unsigned position = positions.size() + planner.getPosition(plan.ops.back());
    for (Value output : plan.outputs)
      position = std::min(position, planner.getPosition(output.getDefiningOp()));
    for (Operation *op = before->getNextNode(); op; op = op->getNextNode()) {
      positions[op] = position;
      if (plan.ops.size() > 1 && isa<RowKernelOp>(op))
        op->setDiscardableAttr(GenRecDialect::OpsAttrHelper::getNameStr(),
                               builder.getStringAttr(listOps(plan)));
    }
    countStatistic(*this, wrapped, "wrapped", plan.ops.size());
    RewriteCounter::count("wrap-row-kernel", plan.ops.size());
    RewriteCounter::count("fuse-row-kernels", plan.ops.size() - 1);
    return success();
  }

  /// Erases the ops that kernels now compute, except views.
  static void eraseReplaced(ArrayRef<Operation *> replaced) {
    for (Operation *op : llvm::reverse(replaced)) {
      if (isa<SliceColumnsOp>(op) && !op->use_empty())
        continue;
      assert(op->use_empty() && "what is read outside of kernels is an output");
      op->erase();
    }
  }

  /// Records the values stored between kernels for `--explain`.
  void noteKept(ProgramOp program, const KernelPlanner &planner) {
    countStatistic(*this, recomputed, "recomputed", planner.getRecomputed());
    RewriteCounter::count("recompute-row-op", planner.getRecomputed());
    OpBuilder builder(program.getContext());
    SmallVector<Attribute> notes;
    for (const KernelPlanner::Kept &kept : planner.getKept()) {
      Operation *op = kept.value.getDefiningOp();
      notes.push_back(builder.getStringAttr(
          kept.maker + " keeps " + op->getName().stripDialect() + " (" +
          describe(kept.value.getType()) + ") for " + kept.reader + ": " +
          kept.reason));
    }
    countStatistic(*this, keptBuffers, "kept-buffers", notes.size());
    if (!notes.empty())
      program->setDiscardableAttr(GenRecDialect::NotesAttrHelper::getNameStr(), builder.getArrayAttr(notes));
  }
};
} // namespace
