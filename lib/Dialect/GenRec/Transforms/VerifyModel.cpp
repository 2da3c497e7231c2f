//===- VerifyModel.cpp - rejects what later passes could not compile ------===//

#include "Trained.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_VERIFYMODEL
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// The model's only program; reports an error if there is none or several.
static FailureOr<ProgramOp> findProgram(ModelOp model) {
  SmallVector<ProgramOp> programs(
      model.getBody().front().getOps<ProgramOp>());
  if (programs.size() != 1)
    return model.emitOpError()
           << "must have exactly one program, but has " << programs.size();
  ProgramOp program = programs.front();
  if (program.getMode() != ProgramMode::all)
    return program.emitOpError()
           << "must have mode 'all' before modes are specialised, but has '"
           << stringifyProgramMode(program.getMode()) << "'";
  return program;
}

static LogicalResult verifyPurpose(ProgramOp program) {
  Block &body = program.getBody().front();
  if (!body.getOps<LossOp>().empty() || !body.getOps<MetricOp>().empty() ||
      !body.getOps<OutputOp>().empty())
    return success();
  return program.emitOpError()
         << "has no loss, metric or output: there is nothing to compute; add "
            "one";
}

/// The values that depend on a parameter or a table.
static DenseSet<Value> collectTrained(ProgramOp program) {
  DenseSet<Value> trained;
  for (Operation &op : program.getBody().front()) {
    bool isTrained = readsTrained(&op) ||
                     (!isa<DetachOp>(op) &&
                      llvm::any_of(op.getOperands(), [&](Value operand) {
                        return trained.contains(operand);
                      }));
    if (isTrained)
      trained.insert(op.result_begin(), op.result_end());
  }
  return trained;
}

static LogicalResult verifyLosses(ProgramOp program) {
  DenseSet<Value> trained = collectTrained(program);
  for (auto loss : program.getBody().front().getOps<LossOp>())
    if (!trained.contains(loss.getX()))
      return loss.emitOpError()
             << "'" << loss.getName()
             << "' depends on no parameter and no table that is trained: there is nothing to "
                "train; use a metric to measure data";
  return success();
}

static LogicalResult verifyNoStepRows(ProgramOp program) {
  for (Operation &op : program.getBody().front())
    for (Value result : op.getResults())
      if (DomainOp domain = lookupDomain(program, getRowDomain(result.getType())))
        if (domain.getKind() == DomainKind::step)
          return op.emitOpError()
                 << "makes rows of the step domain '" << domain.getSymName()
                 << "', which only passes may do";
  return success();
}

namespace {
struct VerifyModel : genrec::impl::VerifyModelBase<VerifyModel> {
  void runOnOperation() override {
    FailureOr<ProgramOp> program = findProgram(getOperation());
    if (failed(program) || failed(verifyPurpose(*program)) ||
        failed(verifyLosses(*program)) || failed(verifyNoStepRows(*program)))
      return signalPassFailure();
    countStatistic(*this, ops, "ops",
                   llvm::range_size(program->getBody().front()));
    markAllAnalysesPreserved();
  }
};
} // namespace
