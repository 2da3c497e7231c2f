// Every op that can be in a step says what it is; the compiler has no second list of ops.

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"
#include "genrec/InitAllDialects.h"

#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

#include <set>

using namespace mlir;
using namespace genrec;

namespace {

/// Ops that passes before `plan-memory` rewrite, by what rewrites them.
const std::set<StringRef> rewritten = {
    // expand-updates
    "update_parameter", "update_table", "lookup", "grouped_lookup",
    // differentiate and lowering of losses
    "loss_grad",
    // form-row-kernels: moves and sums over rows that are no row-wise ops
    "fanout", "pool", "gather_rows", "scatter_rows", "reduce_rows", "embedding_grad",
    "sampled_softmax", "sampled_softmax_grad"};

/// What only the body of a row kernel, or a model itself, holds.
bool isPartOfAnother(OperationName name) {
  StringRef op = name.stripDialect();
  return op.starts_with("row_") || op.starts_with("gather_") || op == "accumulate" ||
         op == "keep_mask" || op == "random_index" || name.hasTrait<OpTrait::IsTerminator>() ||
         name.hasInterface<SymbolOpInterface>();
}

TEST(StepOpModels, EveryOpOfTheDialectHasADescriptionOrBecomesOneThatHas) {
  DialectRegistry registry;
  registerAllDialects(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  int described = 0;
  for (RegisteredOperationName name : context.getRegisteredOperationsByDialect("genrec")) {
    bool isDescribed = name.hasInterface<StepOpInterface>();
    described += isDescribed;
    bool isRewritten = name.hasInterface<RowwiseOpInterface>() ||
                       name.hasInterface<CompositeOpInterface>() ||
                       rewritten.count(name.stripDialect()) || isPartOfAnother(name);
    EXPECT_TRUE(isDescribed || isRewritten)
        << name.getStringRef().str()
        << " has no StepOpInterface: describe it in lib/Dialect/GenRec/Step/StepOpModels*.cpp";
  }
  EXPECT_GT(described, 50);
}

} // namespace
