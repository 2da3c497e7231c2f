//===- VerifyEach.cpp - interprets the model after every pass -------------===//

#include "genrec/Fuzz/VerifyEach.h"

#include "mlir/Pass/Pass.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// Whether the interpreter evaluates every op of the model.
static bool isEvaluated(ModelOp model) {
  bool hasPrograms = !model.getOps<ProgramOp>().empty();
  return hasPrograms && !model
                             .walk([](Operation *op) {
                               return interpreter::canEvaluate(op->getName())
                                          ? WalkResult::advance()
                                          : WalkResult::interrupt();
                             })
                             .wasInterrupted();
}

static void forEachModel(Operation *op, function_ref<void(ModelOp)> body) {
  if (auto model = dyn_cast<ModelOp>(op))
    return body(model);
  if (auto module = dyn_cast<ModuleOp>(op))
    for (ModelOp model : module.getOps<ModelOp>())
      body(model);
}

/// An adaptor that runs passes on nested models; it has no flag of its own.
static bool isHolder(Pass *pass) { return pass->getArgument().empty(); }

void VerifyEach::look(ModelOp model, StringRef when) {
  if (failed || !isEvaluated(model))
    return;
  std::unique_ptr<PassJudge> &judge = judges[model.getSymName().str()];
  bool isFirst = !judge;
  if (isFirst)
    judge = std::make_unique<PassJudge>(model, makeAdversarialBatches(model, seed), seed);
  std::optional<Difference> difference = judge->look(model);
  if (isFirst && difference) {
    // The model itself may reject the data: a logarithm or root of a negative number, for example.
    judge = std::make_unique<PassJudge>(
        model, makeAdversarialBatches(model, seed, /*positive=*/true), seed);
    difference = judge->look(model);
  }
  if (!difference)
    return;
  failed = true;
  onFailure();
  Operation *shown = findObserved(model, difference->name);
  InFlightDiagnostic error = emitError(shown->getLoc());
  if (difference->name.empty()) // the interpreter failed
    error << when << ": " << difference->text;
  else
    error << when << ", the meaning of the model has changed: " << difference->name << " "
          << difference->text;
}

void VerifyEach::runBeforePass(Pass *pass, Operation *op) {
  if (!isHolder(pass))
    forEachModel(op, [&](ModelOp model) {
      if (!judges.count(model.getSymName().str()))
        look(model, ("before pass '" + pass->getArgument() + "'").str());
    });
}

void VerifyEach::runAfterPass(Pass *pass, Operation *op) {
  if (!isHolder(pass))
    forEachModel(op, [&](ModelOp model) {
      look(model, ("after pass '" + pass->getArgument() + "'").str());
    });
}
