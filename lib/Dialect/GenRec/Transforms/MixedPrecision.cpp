//===- MixedPrecision.cpp - rounds the factors of products to bfloat16 ----===//

#include "Decisions.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_MIXEDPRECISION
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
struct MixedPrecision : genrec::impl::MixedPrecisionBase<MixedPrecision> {
  void runOnOperation() override {
    unsigned changed = 0;
    getOperation().walk([&](ProductOpInterface product) {
      if (product.getBf16() || !isF32(product))
        return;
      product.setBf16(true);
      ++changed;
    });
    countStatistic(*this, products, "products", changed);
    if (changed == 0)
      return markAllAnalysesPreserved();
    RewriteCounter::count("round-product", changed);
    Decisions decisions("mixed-precision");
    decisions.add("the factors of " + Twine(changed) +
                  " products are rounded to bfloat16: asked for the whole model");
    decisions.attachTo(getOperation());
  }

  /// Products of f64, which only the interpreter has, stay as they are.
  static bool isF32(Operation *op) {
    return llvm::none_of(op->getOperandTypes(),
                         [](Type type) { return getElementTypeOrSelf(type).isF64(); });
  }
};
} // namespace
