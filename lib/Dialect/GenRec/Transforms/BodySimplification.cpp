//===- BodySimplification.cpp - cleans up row kernel bodies ---------------===//

#include "BodySimplification.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace genrec;

namespace {
/// row_slice(row_concat(a, b)) of exactly one operand is that operand.
struct SliceOfConcat : OpRewritePattern<RowSliceOp> {
  explicit SliceOfConcat(MLIRContext *context) : OpRewritePattern(context) {
    setDebugName("slice-of-concat");
  }

  LogicalResult matchAndRewrite(RowSliceOp slice,
                                PatternRewriter &rewriter) const override {
    auto concat = slice.getX().getDefiningOp<RowConcatOp>();
    if (!concat)
      return failure();
    int64_t offset = 0;
    for (Value part : concat.getParts()) {
      auto type = dyn_cast<VectorType>(part.getType());
      if (offset == static_cast<int64_t>(slice.getOffset()) &&
          part.getType() == slice.getResult().getType()) {
        rewriter.replaceOp(slice, part);
        return success();
      }
      offset += type ? type.getNumElements() : 1;
    }
    return failure();
  }
};

/// A slice of all elements is the operand.
struct WholeSlice : OpRewritePattern<RowSliceOp> {
  explicit WholeSlice(MLIRContext *context) : OpRewritePattern(context) {
    setDebugName("whole-slice");
  }

  LogicalResult matchAndRewrite(RowSliceOp slice,
                                PatternRewriter &rewriter) const override {
    if (slice.getX().getType() != slice.getResult().getType())
      return failure();
    rewriter.replaceOp(slice, slice.getX());
    return success();
  }
};

/// The sum of what is negated is the negated sum: no lane keeps both.
struct SumOfNegated : OpRewritePattern<vector::ReductionOp> {
  explicit SumOfNegated(MLIRContext *context) : OpRewritePattern(context) {
    setDebugName("sum-of-negated");
  }

  LogicalResult matchAndRewrite(vector::ReductionOp sum, PatternRewriter &rewriter) const override {
    auto negated = sum.getVector().getDefiningOp<arith::NegFOp>();
    if (!negated || !negated->hasOneUse() || sum.getAcc() ||
        sum.getKind() != vector::CombiningKind::ADD)
      return failure();
    Value positive =
        vector::ReductionOp::create(rewriter, sum.getLoc(), sum.getKind(), negated.getOperand());
    rewriter.replaceOpWithNewOp<arith::NegFOp>(sum, positive);
    return success();
  }
};

/// A row_concat of one vector is that vector.
struct SingleConcat : OpRewritePattern<RowConcatOp> {
  explicit SingleConcat(MLIRContext *context) : OpRewritePattern(context) {
    setDebugName("single-concat");
  }

  LogicalResult matchAndRewrite(RowConcatOp concat,
                                PatternRewriter &rewriter) const override {
    if (concat.getParts().size() != 1 ||
        concat.getParts()[0].getType() != concat.getResult().getType())
      return failure();
    rewriter.replaceOp(concat, concat.getParts()[0]);
    return success();
  }
};
} // namespace

/// Without the canonicalizations of the vector dialect, which create ops that bodies may not have.
static FrozenRewritePatternSet collectPatterns(MLIRContext *context) {
  RewritePatternSet patterns(context);
  patterns.add<SliceOfConcat, WholeSlice, SingleConcat, SumOfNegated>(context);
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (isa<arith::ArithDialect, math::MathDialect>(name.getDialect()))
      name.getCanonicalizationPatterns(patterns, context);
  return patterns;
}

/// Removes inputs whose block argument is unused.
static void dropUnreadInputs(RowKernelOp kernel) {
  Block &body = kernel.getBody().front();
  SmallVector<Attribute> roles;
  SmallVector<Value> inputs;
  unsigned argument = 0;
  for (auto [input, role] :
       llvm::zip_equal(kernel.getInputs(), kernel.getOperandRoles())) {
    if (body.getArgument(argument).use_empty()) {
      body.eraseArgument(argument);
      continue;
    }
    ++argument;
    inputs.push_back(input);
    roles.push_back(role);
  }
  if (roles.size() == kernel.getOperandRoles().size())
    return;
  kernel.getInputsMutable().assign(inputs);
  kernel.setOperandRolesAttr(ArrayAttr::get(kernel.getContext(), roles));
}

void genrec::simplifyBodies(ProgramOp program) {
  FrozenRewritePatternSet patterns = collectPatterns(program.getContext());
  GreedyRewriteConfig config;
  config.setListener(RewriteCounter::getListener())
      .setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled);
  for (auto kernel : program.getBody().front().getOps<RowKernelOp>()) {
    (void)applyPatternsGreedily(kernel.getBody(), patterns, config);
    IRRewriter rewriter(kernel.getContext());
    DominanceInfo dominance(kernel);
    eliminateCommonSubExpressions(rewriter, dominance, kernel);
    dropUnreadInputs(kernel);
  }
}
