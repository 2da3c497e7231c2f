//===- MultiplyNegatives.cpp - shared negatives as a matrix product -------===//

#include "Decisions.h"
#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_MULTIPLYNEGATIVES
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// What a sampled softmax with shared negatives, or its gradient, multiplies.
struct SharedNegatives {
  template <typename OpT> SharedNegatives(OpBuilder &builder, OpT op);

  GradientBuilder b;
  Value query, positive, items;
  FloatAttr temperature;
  bool bf16;       ///< query and items were rounded before
  Value drawn;     ///< shared i64 [n]
  Value domain;    ///< a step domain with n rows
  Value numbers;   ///< `drawn` as its rows
  Value own;       ///< the positive items, rows [d]
  Value negatives; ///< the others, shared [n, d]
  Value dot, dots; ///< of query with both
};
} // namespace

static bool isRounded(Value factor) { return factor.getDefiningOp<RoundFactorOp>() != nullptr; }

template <typename OpT>
SharedNegatives::SharedNegatives(OpBuilder &builder, OpT op)
    : b(builder, op.getLoc()), query(op.getQuery()), positive(op.getPositive()),
      items(op.getItems()), temperature(op.getTemperatureAttr()),
      bf16(isRounded(query) && isRounded(items)), drawn(op.buildDrawn(builder)) {
  const auto count = static_cast<int64_t>(op.getNegatives());
  domain = getFixedRows(op->template getParentOfType<ProgramOp>(), count);
  FlatSymbolRefAttr step = cast<DomainType>(domain.getType()).getDomain();
  Type element = cast<RankedTensorType>(items.getType()).getElementType();
  const int64_t width = getRowSize(query.getType());
  numbers = SharedRowsOp::create(builder, b.loc, getRowsType(step, {}, builder.getI64Type()), drawn,
                                 domain);
  own = GatherRowsOp::create(builder, b.loc, query.getType(), items, positive);
  Value rows =
      GatherRowsOp::create(builder, b.loc, getRowsType(step, {width}, element), items, numbers);
  negatives =
      RowsAsSharedOp::create(builder, b.loc, RankedTensorType::get({count, width}, element), rows);
  dot = b.rowReduce(ReduceKind::sum, b.mul(query, own));
  dots = LinearOp::create(builder, b.loc, withRowShape(query.getType(), {count}), query, negatives,
                          /*bias=*/Value(), /*transposed=*/true, bf16);
}

static void replace(OpBuilder &builder, SampledSoftmaxOp op) {
  SharedNegatives s(builder, op);
  op.replaceAllUsesWith(SampledCrossEntropyOp::create(builder, op.getLoc(), op.getType(), s.dot,
                                                      s.dots, s.positive, s.drawn, s.temperature)
                            .getResult());
}

static void replace(OpBuilder &builder, SampledSoftmaxGradOp op) {
  SharedNegatives s(builder, op);
  const GradientBuilder &b = s.b;
  auto gradients = SampledCrossEntropyGradOp::create(builder, op.getLoc(), s.dot.getType(),
                                                     s.dots.getType(), s.dot, s.dots, s.positive,
                                                     s.drawn, op.getGradient(), s.temperature);
  auto scatter = [&](Value x, Value index) -> Value {
    return ScatterRowsOp::create(builder, b.loc, op.getDitems().getType(), x, index);
  };
  Value ofNegatives =
      LinearOp::create(builder, b.loc, s.query.getType(), gradients.getDdots(), s.negatives,
                       /*bias=*/Value(), /*transposed=*/false, s.bf16);
  Value dnegatives = WeightGradientOp::create(builder, b.loc, s.negatives.getType(),
                                              gradients.getDdots(), s.query, s.bf16);
  op.getDquery().replaceAllUsesWith(b.add(ofNegatives, b.mul(s.own, gradients.getDdot())));
  op.getDitems().replaceAllUsesWith(
      b.add(scatter(b.mul(s.query, gradients.getDdot()), s.positive),
            scatter(viewSharedAsRows(builder, b.loc, dnegatives, s.domain), s.numbers)));
}

namespace {
struct MultiplyNegatives : genrec::impl::MultiplyNegativesBase<MultiplyNegatives> {
  void runOnOperation() override {
    Decisions decisions("multiply-negatives");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      multiplyIn<SampledSoftmaxOp>(program, &decisions);
      multiplyIn<SampledSoftmaxGradOp>(program, nullptr);
    }
    decisions.attachTo(getOperation());
  }

private:
  template <typename OpT> void multiplyIn(ProgramOp program, Decisions *decisions) {
    for (auto op : llvm::make_early_inc_range(program.getBody().front().getOps<OpT>())) {
      if (!op.getShared())
        continue;
      if (decisions)
        decisions->add("@" + program.getSymName() + ": " + Twine(op.getNegatives()) +
                       " negatives that all rows share" + placeForUser(op) + " are a matrix");
      OpBuilder builder(op);
      replace(builder, op);
      op.erase();
      countStatistic(*this, multiplied, "multiplied", 1);
      RewriteCounter::count("multiply-negatives");
    }
  }
};
} // namespace
