//===- DecomposeBlocks.cpp - rewrites composite blocks into simpler ops ---===//

#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace genrec {
#define GEN_PASS_DEF_DECOMPOSEBLOCKS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// Replaces a composite op by its decomposition.
struct DecomposeComposite : OpInterfaceRewritePattern<CompositeOpInterface> {
  DecomposeComposite(MLIRContext *context, unsigned &blocks)
      : OpInterfaceRewritePattern(context), blocks(blocks) {
    setDebugName("decompose-composite");
  }

  LogicalResult matchAndRewrite(CompositeOpInterface op, PatternRewriter &rewriter) const override {
    SmallVector<Value> results;
    Operation *before = op->getPrevNode();
    if (failed(op.decompose(rewriter, results)))
      return failure();
    inheritPrecision(op, before ? std::next(before->getIterator()) : op->getBlock()->begin(),
                     op->getIterator());
    rewriter.replaceOp(op, results);
    ++blocks;
    return success();
  }

  unsigned &blocks;
};

/// Rounds factors by ops of their own where the product becomes part of row kernels.
unsigned roundFactors(ModelOp model) {
  unsigned rounded = 0;
  llvm::DenseMap<Value, Value> factors;
  model.walk([&](ProductOpInterface product) {
    SmallVector<unsigned> operands = product.getFactorsRoundedByOps();
    if (!product.getBf16() || operands.empty())
      return;
    for (unsigned index : operands) {
      OpOperand &factor = product->getOpOperand(index);
      Value &made = factors[factor.get()];
      if (!made) {
        OpBuilder builder(product);
        builder.setInsertionPointAfterValue(factor.get());
        made =
            RoundFactorOp::create(builder, product.getLoc(), factor.get().getType(), factor.get());
      }
      factor.set(made);
    }
    product.setBf16(false);
    ++rounded;
  });
  if (rounded)
    RewriteCounter::count("round-factors-of-rows", rounded);
  return rounded;
}

struct DecomposeBlocks : genrec::impl::DecomposeBlocksBase<DecomposeBlocks> {
  void runOnOperation() override {
    unsigned rewritten = 0;
    RewritePatternSet patterns(&getContext());
    patterns.add<DecomposeComposite>(&getContext(), rewritten);
    GreedyRewriteConfig config;
    config.setListener(RewriteCounter::getListener())
        .enableFolding(false)
        .enableConstantCSE(false)
        .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns), config)))
      return signalPassFailure();
    countStatistic(*this, blocks, "blocks", rewritten);
    countStatistic(*this, products, "products", roundFactors(getOperation()));
    // A block that could not be decomposed has already reported an error.
    WalkResult left = getOperation().walk([](CompositeOpInterface op) {
      op.emitOpError() << "could not be decomposed";
      return WalkResult::interrupt();
    });
    if (left.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace
