//===- LowerToEmitC.cpp - converts scalar arithmetic to EmitC -------------===//

#include "genrec/Conversion/Passes.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Target/EmitC/Callees.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

#include "mlir/Transforms/DialectConversion.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

namespace genrec {
#define GEN_PASS_DEF_LOWERTOEMITC
#include "genrec/Conversion/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// One-to-one patterns
//===----------------------------------------------------------------------===//

namespace {

/// An op with an EmitC equivalent that has the same operands and result.
template <typename From, typename To> struct SameForm : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<To>(op, op->getResult(0).getType(), op->getOperands());
    return success();
  }
};

/// A conversion that is a cast in C++.
template <typename From> struct AsCast : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<emitc::CastOp>(op, op->getResult(0).getType(), op->getOperand(0));
    return success();
  }
};

Type getUnsigned(Type type) {
  return IntegerType::get(type.getContext(), type.getIntOrFloatBitWidth(), IntegerType::Unsigned);
}

/// An op that is computed on unsigned integers of the same width.
template <typename From, typename To> struct OnUnsigned : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    EmitCBuilder b(rewriter, op.getLoc());
    Type type = op->getResult(0).getType();
    if (type.isInteger(1))
      return failure();
    Type bits = getUnsigned(type);
    Value result = To::create(rewriter, op.getLoc(), bits, b.cast(op->getOperand(0), bits),
                              b.cast(op->getOperand(1), bits));
    rewriter.replaceOp(op, b.cast(result, type));
    return success();
  }
};

/// A conversion that reads its operand as unsigned.
template <typename From> struct FromUnsigned : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    EmitCBuilder b(rewriter, op.getLoc());
    Value x = op->getOperand(0);
    if (!x.getType().isInteger(1))
      x = b.cast(x, getUnsigned(x.getType()));
    rewriter.replaceOp(op, b.cast(x, op->getResult(0).getType()));
    return success();
  }
};

/// An op that becomes a call of an inline function, which has an overload per type.
template <typename From> struct AsCall : OpRewritePattern<From> {
  AsCall(MLIRContext *context, StringRef callee)
      : OpRewritePattern<From>(context), callee(callee) {}
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    EmitCBuilder b(rewriter, op->getLoc());
    rewriter.replaceOp(op, b.call(callee, op->getResult(0).getType(), op->getOperands()));
    return success();
  }
  std::string callee;
};

/// The same for a function template. The type is explicit: a constant would deduce int.
template <typename From> struct AsTemplateCall : OpRewritePattern<From> {
  AsTemplateCall(MLIRContext *context, StringRef callee)
      : OpRewritePattern<From>(context), callee(callee) {}
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    EmitCBuilder b(rewriter, op->getLoc());
    Type type = op->getResult(0).getType();
    rewriter.replaceOp(op, b.call(callee, type, op->getOperands(), {b.templateType(type)}));
    return success();
  }
  std::string callee;
};

//===----------------------------------------------------------------------===//
// Constants, select, comparisons
//===----------------------------------------------------------------------===//

struct ConstantPattern : OpRewritePattern<arith::ConstantOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::ConstantOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isIntOrFloat())
      return failure();
    rewriter.replaceOpWithNewOp<emitc::ConstantOp>(op, op.getType(), op.getValue());
    return success();
  }
};

struct SelectPattern : OpRewritePattern<arith::SelectOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::SelectOp op, PatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<emitc::ConditionalOp>(op, op.getType(), op.getCondition(),
                                                      op.getTrueValue(), op.getFalseValue());
    return success();
  }
};

struct CompareIntegersPattern : OpRewritePattern<arith::CmpIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::CmpIOp op, PatternRewriter &rewriter) const override {
    using From = arith::CmpIPredicate;
    using To = emitc::CmpPredicate;
    To predicate = To::eq;
    bool isUnsigned = false;
    switch (op.getPredicate()) {
    case From::eq:
      break;
    case From::ne:
      predicate = To::ne;
      break;
    case From::ult:
      isUnsigned = true;
      [[fallthrough]];
    case From::slt:
      predicate = To::lt;
      break;
    case From::ule:
      isUnsigned = true;
      [[fallthrough]];
    case From::sle:
      predicate = To::le;
      break;
    case From::ugt:
      isUnsigned = true;
      [[fallthrough]];
    case From::sgt:
      predicate = To::gt;
      break;
    case From::uge:
      isUnsigned = true;
      [[fallthrough]];
    case From::sge:
      predicate = To::ge;
      break;
    }
    EmitCBuilder b(rewriter, op.getLoc());
    Value lhs = op.getLhs(), rhs = op.getRhs();
    if (isUnsigned && !lhs.getType().isInteger(1)) {
      lhs = b.cast(lhs, getUnsigned(lhs.getType()));
      rhs = b.cast(rhs, getUnsigned(rhs.getType()));
    }
    rewriter.replaceOp(op, b.compare(predicate, lhs, rhs));
    return success();
  }
};

// C++ comparisons are ordered, except that != is unordered. The other predicates are negations of
// these.
struct CompareFloatsPattern : OpRewritePattern<arith::CmpFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::CmpFOp op, PatternRewriter &rewriter) const override {
    using From = arith::CmpFPredicate;
    using To = emitc::CmpPredicate;
    struct Form {
      From from;
      To to;
      bool isNegated;
    };
    static constexpr Form forms[] = {
        {From::OEQ, To::eq, false}, {From::UNE, To::ne, false}, {From::OLT, To::lt, false},
        {From::OLE, To::le, false}, {From::OGT, To::gt, false}, {From::OGE, To::ge, false},
        {From::ULT, To::ge, true},  {From::ULE, To::gt, true},  {From::UGT, To::le, true},
        {From::UGE, To::lt, true}};
    EmitCBuilder b(rewriter, op.getLoc());
    for (const Form &form : forms) {
      if (form.from != op.getPredicate())
        continue;
      Value result = b.compare(form.to, op.getLhs(), op.getRhs());
      if (form.isNegated)
        result = emitc::LogicalNotOp::create(rewriter, op.getLoc(), b.i1(), result);
      rewriter.replaceOp(op, result);
      return success();
    }
    return failure();
  }
};

/// and, or, xor on i1 are the logical operators.
template <typename From, typename Logical, typename Bits>
struct BitsPattern : OpRewritePattern<From> {
  using OpRewritePattern<From>::OpRewritePattern;
  LogicalResult matchAndRewrite(From op, PatternRewriter &rewriter) const override {
    if (op.getType().isInteger(1)) {
      rewriter.replaceOpWithNewOp<Logical>(op, op.getType(), op.getLhs(), op.getRhs());
      return success();
    }
    return OnUnsigned<From, Bits>(op.getContext()).matchAndRewrite(op, rewriter);
  }
};

struct ExclusiveOrPattern : OpRewritePattern<arith::XOrIOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::XOrIOp op, PatternRewriter &rewriter) const override {
    if (!op.getType().isInteger(1))
      return OnUnsigned<arith::XOrIOp, emitc::BitwiseXorOp>(op.getContext())
          .matchAndRewrite(op, rewriter);
    EmitCBuilder b(rewriter, op.getLoc());
    rewriter.replaceOp(op, b.compare(emitc::CmpPredicate::ne, op.getLhs(), op.getRhs()));
    return success();
  }
};

/// A sigmoid is one call, whose exponential is at most 1 and whose division needs no branch.
struct SigmoidPattern : OpRewritePattern<arith::DivFOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(arith::DivFOp op, PatternRewriter &rewriter) const override {
    std::optional<SigmoidParts> parts = matchSigmoid(op);
    if (!parts)
      return failure();
    EmitCBuilder b(rewriter, op.getLoc());
    rewriter.replaceOp(op, b.call("kernels::sigmoid", op.getType(), {parts->negated.getOperand()}));
    for (Operation *part :
         {parts->sum.getOperation(), parts->exp.getOperation(), parts->negated.getOperation()})
      if (part->use_empty())
        rewriter.eraseOp(part);
    return success();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

static void addArithPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<ConstantPattern, SelectPattern, CompareIntegersPattern, CompareFloatsPattern,
               SameForm<arith::AddFOp, emitc::AddOp>, SameForm<arith::SubFOp, emitc::SubOp>,
               SameForm<arith::MulFOp, emitc::MulOp>, SameForm<arith::DivFOp, emitc::DivOp>,
               SameForm<arith::NegFOp, emitc::UnaryMinusOp>,
               SameForm<arith::DivSIOp, emitc::DivOp>, SameForm<arith::RemSIOp, emitc::RemOp>,
               OnUnsigned<arith::AddIOp, emitc::AddOp>, OnUnsigned<arith::SubIOp, emitc::SubOp>,
               OnUnsigned<arith::MulIOp, emitc::MulOp>, OnUnsigned<arith::DivUIOp, emitc::DivOp>,
               OnUnsigned<arith::RemUIOp, emitc::RemOp>,
               OnUnsigned<arith::ShLIOp, emitc::BitwiseLeftShiftOp>,
               OnUnsigned<arith::ShRUIOp, emitc::BitwiseRightShiftOp>,
               BitsPattern<arith::AndIOp, emitc::LogicalAndOp, emitc::BitwiseAndOp>,
               BitsPattern<arith::OrIOp, emitc::LogicalOrOp, emitc::BitwiseOrOp>,
               ExclusiveOrPattern, AsCast<arith::ExtFOp>, AsCast<arith::TruncFOp>,
               AsCast<arith::SIToFPOp>, AsCast<arith::FPToSIOp>, AsCast<arith::ExtSIOp>,
               AsCast<arith::TruncIOp>, FromUnsigned<arith::UIToFPOp>,
               FromUnsigned<arith::ExtUIOp>>(context);
  patterns.add<AsCall<arith::MaximumFOp>>(context, "kernels::maximum");
  patterns.add<AsCall<arith::MinimumFOp>>(context, "kernels::minimum");
  patterns.add<AsTemplateCall<arith::MaxSIOp>>(context, "kernels::maximum");
  patterns.add<AsTemplateCall<arith::MinSIOp>>(context, "kernels::minimum");
}

static void addMathPatterns(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  patterns.add<AsCall<math::ExpOp>>(context, "kernels::exp");
  patterns.add<AsCall<math::ExpM1Op>>(context, "kernels::expm1");
  patterns.add<AsCall<math::LogOp>>(context, "kernels::log");
  patterns.add<AsCall<math::Log1pOp>>(context, "kernels::log1p");
  patterns.add<AsCall<math::SinOp>>(context, "kernels::sin");
  patterns.add<AsCall<math::CosOp>>(context, "kernels::cos");
  patterns.add<AsCall<math::TanhOp>>(context, "kernels::tanh");
  patterns.add<AsCall<math::ErfOp>>(context, "kernels::erf");
  patterns.add<AsCall<math::SqrtOp>>(context, "kernels::sqrt");
  patterns.add<AsCall<math::RsqrtOp>>(context, "kernels::rsqrt");
  patterns.add<AsCall<math::AbsFOp>>(context, "kernels::absolute");
  patterns.add<AsCall<math::AbsIOp>>(context, "kernels::absolute");
}

static void callSigmoids(ModuleOp module) {
  RewritePatternSet patterns(module.getContext());
  patterns.add<SigmoidPattern>(module.getContext());
  walkAndApplyPatterns(module, std::move(patterns));
}

namespace {
struct LowerToEmitCPass : genrec::impl::LowerToEmitCBase<LowerToEmitCPass> {
  void runOnOperation() override {
    callSigmoids(getOperation());
    RewritePatternSet patterns(&getContext());
    addArithPatterns(patterns);
    addMathPatterns(patterns);
    ConversionTarget target(getContext());
    target.addLegalDialect<emitc::EmitCDialect>();
    target.addLegalOp<ModuleOp>();
    if (failed(applyFullConversion(getOperation(), target, std::move(patterns))) ||
        failed(checkCallees(getOperation(), Target::of(getOperation()).kind)))
      signalPassFailure();
  }
};
} // namespace
