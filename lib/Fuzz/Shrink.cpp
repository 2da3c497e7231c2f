//===- Shrink.cpp - reduces a failing model -------------------------------===//

#include "genrec/Fuzz/Shrink.h"

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// The ops of the model's program, in order.
static SmallVector<Operation *> getProgramOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  module.walk([&](ProgramOp program) {
    for (Operation &op : program.getBody().front())
      ops.push_back(&op);
  });
  return ops;
}

void fuzz::removeUnused(ModuleOp module) {
  SmallVector<Operation *> ops = getProgramOps(module);
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty() && isPure(op))
      op->erase();
  module.walk([&](ModelOp model) {
    for (Operation &op : llvm::make_early_inc_range(model.getBody().front())) {
      auto symbol = dyn_cast<SymbolOpInterface>(op);
      // Types refer to domains in a way that symbol uses do not list, so domains are kept.
      if (symbol && op.hasTrait<DeclaresWeights>() &&
          SymbolTable::symbolKnownUseEmpty(symbol, model))
        op.erase();
    }
  });
}

/// Applies `change` to op number `index` of a copy, and keeps the copy if it still fails.
static bool attempt(OwningOpRef<ModuleOp> &module, size_t index,
                    llvm::function_ref<bool(Operation *)> change,
                    const std::function<bool(ModuleOp)> &fails) {
  OwningOpRef<ModuleOp> copy = module->clone();
  SmallVector<Operation *> ops = getProgramOps(*copy);
  if (index >= ops.size() || !change(ops[index]))
    return false;
  removeUnused(*copy);
  ScopedDiagnosticHandler quiet(copy->getContext(), [](Diagnostic &) { return success(); });
  if (failed(verify(*copy)) || !fails(*copy))
    return false;
  module = std::move(copy);
  return true;
}

/// Replaces the results of `op` by earlier value number `choice` of the same type.
static bool bypass(Operation *op, size_t choice) {
  if (op->getNumResults() == 0 || op->hasTrait<ReadsDomains>())
    return false;
  for (Value result : op->getResults()) {
    SmallVector<Value> candidates;
    for (Operation &earlier : *op->getBlock()) {
      if (&earlier == op)
        break;
      for (Value value : earlier.getResults())
        if (value.getType() == result.getType())
          candidates.push_back(value);
    }
    if (result.use_empty())
      continue;
    if (choice >= candidates.size())
      return false;
    result.replaceAllUsesWith(candidates[choice]);
  }
  return true;
}

OwningOpRef<ModuleOp> fuzz::shrink(ModuleOp module, const std::function<bool(ModuleOp)> &fails,
                                   int64_t attempts) {
  OwningOpRef<ModuleOp> best = module.clone();
  bool smaller = true;
  while (smaller && attempts > 0) {
    smaller = false;
    for (size_t index = getProgramOps(*best).size(); index-- > 0 && attempts > 0;) {
      auto erase = [](Operation *op) {
        if (op->getNumResults() != 0)
          return false;
        op->erase();
        return true;
      };
      --attempts;
      if (attempt(best, index, erase, fails)) {
        smaller = true;
        continue;
      }
      for (size_t choice = 0; choice < 3 && attempts > 0; ++choice) {
        --attempts;
        if (attempt(best, index, [&](Operation *op) { return bypass(op, choice); }, fails)) {
          smaller = true;
          break;
        }
      }
    }
  }
  return best;
}
