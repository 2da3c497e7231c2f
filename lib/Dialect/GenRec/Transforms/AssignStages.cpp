//===- AssignStages.cpp - assigns ops to stages of a step -----------------===//

#include "Decisions.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

namespace genrec {
#define GEN_PASS_DEF_ASSIGNSTAGES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// Ops that read weights, table rows or step values, and ops that report to the trainer.
static bool belongsToStep(Operation *op) {
  return op->getNumResults() == 0 || op->hasTrait<NeedsRunningStep>() ||
         op->hasTrait<ReadsStepNumber>() ||
         (op->getNumRegions() != 0 && !isa<TransformColumnsOp>(op));
}

/// Float results are computed in the stage of their users.
static bool makesFloats(Operation *op) {
  if (isa<FeatureOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return false;
  return llvm::any_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && isa<FloatType>(tensor.getElementType());
  });
}

namespace {
/// The stages of one program's ops.
class Stages {
public:
  explicit Stages(ProgramOp program) : program(program), body(program.getBody().front()) {}

  void findCopy();
  /// Stages that a program with sums over portions has besides.
  void findUpdate();
  void findDispatch();
  Stage of(Operation *op) const;
  /// A sum over portions that some portion would have to wait for while it computes, or null.
  Operation *findSumWithinCompute();

private:
  bool isReady(Value value) const { return ofCopy.contains(value); }
  bool isOfCopy(Operation *op) const {
    return op->getNumResults() != 0 && isReady(op->getResult(0));
  }
  bool findSlice(Operation *op, llvm::SetVector<Operation *> &slice) const;
  void dispatchSlice(ArrayRef<Operation *> slice);

  ProgramOp program;
  Block &body;
  DenseSet<Value> ofCopy;
  DenseSet<Operation *> update, dispatch;
};
} // namespace

void Stages::findCopy() {
  // Floats of derived rows are moved to the copy stage if keys are computed from them.
  auto canMove = [&](Value value) {
    auto derive = value.getDefiningOp<DeriveOp>();
    return derive &&
           llvm::all_of(derive->getOperands(), [&](Value operand) { return isReady(operand); });
  };
  for (Operation &op : body) {
    if (belongsToStep(&op) || makesFloats(&op) ||
        !llvm::all_of(op.getOperands(),
                      [&](Value operand) { return isReady(operand) || canMove(operand); }))
      continue;
    ofCopy.insert(op.operand_begin(), op.operand_end());
    ofCopy.insert(op.result_begin(), op.result_end());
  }
}

/// Kernels without results write parameters and table rows. What only the update stage reads is of
/// it, back to the sums over portions.
void Stages::findUpdate() {
  if (!isDistributed(program))
    return;
  for (Operation &op : llvm::reverse(body)) {
    bool isOnlyRead =
        op.getNumResults() != 0 && !op.use_empty() &&
        llvm::all_of(op.getUsers(), [&](Operation *user) { return update.contains(user); });
    bool writesRows = isa<RowKernelOp>(op) && op.getNumResults() == 0;
    if (writesRows || (isOnlyRead && !isOfCopy(&op) && !op.hasTrait<GivesToSums>()))
      update.insert(&op);
  }
}

/// Adds `op` and what it depends on, up to the copy stage, to `slice`, operands first. False if it
/// depends on parameters, table rows, or random numbers other than numbers of rows.
bool Stages::findSlice(Operation *op, llvm::SetVector<Operation *> &slice) const {
  if (isOfCopy(op) || isa<FeatureOp>(op) || op->hasTrait<OpTrait::ConstantLike>() ||
      slice.contains(op) || dispatch.contains(op))
    return true;
  bool mayDispatch = isa<ContributeOp>(op) || isa<StepValueOp>(op);
  if (!mayDispatch && (op->hasTrait<NeedsRunningStep>() || op->getNumRegions() != 0))
    return false;
  for (Value operand : op->getOperands())
    if (!findSlice(operand.getDefiningOp(), slice))
      return false;
  slice.insert(op);
  return true;
}

/// Whether a later stage can compute the results of `op` once more: not handles of rows, and a
/// domain has one maker.
static bool mayRepeat(Operation *op) {
  return !isa<TableReadOpInterface>(op) && !op->hasTrait<ReadsStepNumber>() &&
         llvm::none_of(op->getResultTypes(), [](Type type) { return isa<DomainType>(type); });
}

/// Rows that a later stage reads as well are computed there once more, where they can be fused: no
/// buffer holds them between the stages.
void Stages::dispatchSlice(ArrayRef<Operation *> slice) {
  OpBuilder builder(slice.back()->getContext());
  IRMapping clones;
  for (Operation *op : slice) {
    bool hasRows = llvm::any_of(op->getResultTypes(), [](Type type) { return getRowDomain(type); });
    bool isReadLater = llvm::any_of(
        op->getUsers(), [&](Operation *user) { return !llvm::is_contained(slice, user); });
    if (hasRows && isReadLater && mayRepeat(op)) {
      builder.setInsertionPointAfter(op);
      dispatch.insert(builder.clone(*op, clones));
      continue;
    }
    for (OpOperand &operand : op->getOpOperands())
      operand.set(clones.lookupOrDefault(operand.get()));
    dispatch.insert(op);
  }
}

void Stages::findDispatch() {
  // Lookups whose ids need no other lookup: all ranks exchange their rows at once.
  for (auto rows : llvm::make_early_inc_range(body.getOps<TableRowsOp>())) {
    llvm::SetVector<Operation *> slice;
    if (!llvm::all_of(rows->getOperands(),
                      [&](Value operand) { return findSlice(operand.getDefiningOp(), slice); }))
      continue;
    slice.insert(rows);
    dispatchSlice(slice.getArrayRef());
  }
  for (auto given : llvm::make_early_inc_range(body.getOps<ContributeOp>())) {
    llvm::SetVector<Operation *> slice;
    if (findSlice(given, slice))
      dispatchSlice(slice.getArrayRef());
  }
}

Stage Stages::of(Operation *op) const {
  return isOfCopy(op)            ? Stage::copy
         : update.contains(op)   ? Stage::update
         : dispatch.contains(op) ? Stage::dispatch
                                 : Stage::compute;
}

Operation *Stages::findSumWithinCompute() {
  for (auto sum : body.getOps<CollectOp>())
    if (!update.contains(sum) && !dispatch.contains(sum.getValues().front().getDefiningOp()))
      return sum;
  for (auto rows : body.getOps<TableRowsOp>())
    if (!dispatch.contains(rows))
      return rows;
  return nullptr;
}

/// Makes one op, where the first is, of those that count the rows of lists of one domain in one
/// stage and whose lists are there: a call each would be a launch for each list column.
static void joinLengths(ProgramOp program) {
  const StringRef stage = GenRecDialect::StageAttrHelper::getNameStr();
  SmallVector<SmallVector<LengthOp>> groups;
  for (auto length : program.getBody().front().getOps<LengthOp>()) {
    auto joins = [&](ArrayRef<LengthOp> group) {
      LengthOp first = group.front();
      return first->getAttr(stage) == length->getAttr(stage) &&
             getRowDomain(first.getLengths().front().getType()) ==
                 getRowDomain(length.getLengths().front().getType()) &&
             llvm::all_of(length.getChildren(),
                          [&](Value list) { return list.getDefiningOp()->isBeforeInBlock(first); });
    };
    auto *group = llvm::find_if(groups, joins);
    (group == groups.end() ? groups.emplace_back() : *group).push_back(length);
  }
  for (ArrayRef<LengthOp> group : groups) {
    if (group.size() == 1)
      continue;
    LengthOp first = group.front();
    SmallVector<Value> children, lengths;
    SmallVector<Location> locs;
    for (LengthOp length : group) {
      llvm::append_range(children, length.getChildren());
      llvm::append_range(lengths, length.getLengths());
      locs.push_back(length.getLoc());
    }
    OpBuilder builder(first);
    auto joined = LengthOp::create(builder, FusedLoc::get(first.getContext(), locs),
                                   ValueRange(lengths).getTypes(), children);
    joined->setAttrs(first->getAttrs());
    for (auto [length, counted] : llvm::zip_equal(lengths, joined.getLengths()))
      length.replaceAllUsesWith(counted);
    for (LengthOp length : group)
      length->erase();
  }
}

namespace {
struct AssignStages : genrec::impl::AssignStagesBase<AssignStages> {
  void runOnOperation() override {
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      assign(program);
  }

  void assign(ProgramOp program) {
    Stages stages(program);
    stages.findCopy();
    stages.findUpdate();
    stages.findDispatch();
    for (Operation &op : program.getBody().front()) {
      Stage stage = stages.of(&op);
      op.setAttr(GenRecDialect::StageAttrHelper::getNameStr(),
                 StageAttr::get(&getContext(), stage));
      count(stage);
    }
    joinLengths(program);
    if (Operation *waits = stages.findSumWithinCompute())
      program->setAttr(GenRecDialect::MeetingAttrHelper::getNameStr(),
                       StringAttr::get(&getContext(), describeWait(waits)));
  }

  static std::string describeWait(Operation *op) {
    std::string name = nameForUser(op) + placeForUser(op);
    if (isa<TableRowsOp>(op))
      return name + " looks up ids that the step computes";
    return name +
           " is a sum over all rows of the batch that the rest of the step depends on, and that "
           "depends on parameters";
  }

  void count(Stage stage) {
    switch (stage) {
    case Stage::copy:
      return countStatistic(*this, copyOps, "copy-ops", 1);
    case Stage::dispatch:
      return countStatistic(*this, dispatchOps, "dispatch-ops", 1);
    case Stage::compute:
      return countStatistic(*this, computeOps, "compute-ops", 1);
    case Stage::update:
      return countStatistic(*this, updateOps, "update-ops", 1);
    }
  }
};
} // namespace
