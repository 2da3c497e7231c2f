//===- SplitLinear.cpp - a linear layer by the domains of its columns -----===//

#include "SplitLinear.h"

using namespace mlir;
using namespace genrec;

namespace {
/// Neighbouring columns that are copies of rows of one domain, or its own rows.
struct Run {
  Spread from;
  SmallVector<Value> parts;
  int64_t width = 0;
};

/// What is known of the result so far: a sum over rows of a domain.
struct Partial {
  Spread from;
  Value sum;
  size_t order = 0;
};
} // namespace

/// The columns of `value` in order: those of joined columns for themselves.
static void collectParts(Value value, SmallVectorImpl<Value> &parts) {
  if (auto concat = value.getDefiningOp<ConcatColumnsOp>())
    for (Value part : concat.getParts())
      collectParts(part, parts);
  else
    parts.push_back(value);
}

static SmallVector<Run> collectRuns(Value x) {
  SmallVector<Value> parts;
  collectParts(x, parts);
  SmallVector<Run> runs;
  for (Value part : parts) {
    int64_t width = getRowSize(part.getType());
    Spread from = getSpread(part);
    if (from)
      part = getSpreadSource(part);
    else
      from = {getRowDomain(part.getType()), false};
    if (runs.empty() || runs.back().from != from)
      runs.push_back({from, {}, 0});
    runs.back().parts.push_back(part);
    runs.back().width += width;
  }
  return runs;
}

/// The product of a run with its rows of the weight.
static Value multiplyRun(const Run &run, Value weight, Value bias, Location loc,
                         OpBuilder &builder) {
  auto matrix = cast<RankedTensorType>(weight.getType());
  Type element = matrix.getElementType();
  Value x = run.parts.front();
  if (run.parts.size() > 1 || getRowShape(x.getType()).empty())
    x = ConcatColumnsOp::create(builder, loc, getRowsType(run.from.domain, {run.width}, element),
                                run.parts);
  return LinearOp::create(builder, loc,
                          getRowsType(run.from.domain, {matrix.getDimSize(1)}, element), x, weight,
                          bias, false);
}

/// All sums together as rows of `own`, each added as far up as can be.
static Value addPartials(SmallVector<Partial> partials, FlatSymbolRefAttr own, Location loc,
                         SpreadBuilder &spreads) {
  // The uppermost first; the two halves of pairs lie beside each other, above the pairs.
  llvm::sort(partials, [&](const Partial &a, const Partial &b) {
    return std::tuple(spreads.tree.getDepth(a.from.domain), a.order) <
           std::tuple(spreads.tree.getDepth(b.from.domain), b.order);
  });
  Partial total = partials.front();
  for (const Partial &next : ArrayRef(partials).drop_front()) {
    Spread from = next.from;
    Value above = total.sum, sum = next.sum;
    if (spreads.tree.isAbove(total.from.domain, from.domain) && !total.from.isBeside) {
      above = spreads.spread(above, from.domain, loc);
    } else {
      above = spreads.spread(above, own, loc, total.from.isBeside);
      if (from.domain != own)
        sum = spreads.spread(sum, own, loc, from.isBeside);
      from = {own, false};
    }
    total = {from, AddOp::create(spreads.builder, loc, sum.getType(), above, sum)};
  }
  return spreads.spread(total.sum, own, loc, total.from.isBeside);
}

bool genrec::splitLinear(LinearOp linear, SpreadBuilder &spreads, unsigned leastWidth) {
  if (linear.getTransposed() || !linear.getX().getDefiningOp<ConcatColumnsOp>())
    return false;
  FlatSymbolRefAttr own = getRowDomain(linear.getX().getType());
  SmallVector<Run> runs = collectRuns(linear.getX());
  int64_t copied = 0;
  for (const Run &run : runs)
    copied += run.from.domain == own ? 0 : run.width;
  if (copied < static_cast<int64_t>(leastWidth) || runs.size() < 2)
    return false;

  Location loc = linear.getLoc();
  OpBuilder &builder = spreads.builder;
  builder.setInsertionPoint(linear);
  auto type = cast<RankedTensorType>(linear.getResult().getType());
  SmallVector<Type> types;
  for (const Run &run : runs)
    types.push_back(RankedTensorType::get({run.width, getRowSize(type)}, type.getElementType()));
  auto weights = SplitSharedOp::create(builder, loc, types, linear.getWeight());
  SmallVector<Partial> partials;
  Value bias = linear.getBias();
  for (auto [run, weight] : llvm::zip_equal(runs, weights.getParts())) {
    bool takesBias = bias && run.from.domain != own;
    Value product = multiplyRun(run, weight, takesBias ? bias : Value(), loc, builder);
    if (takesBias)
      bias = Value();
    auto same = llvm::find_if(
        partials, [&, from = run.from](const Partial &partial) { return partial.from == from; });
    if (same == partials.end())
      partials.push_back({run.from, product, partials.size()});
    else
      same->sum = AddOp::create(builder, loc, product.getType(), same->sum, product);
  }
  linear.getResult().replaceAllUsesWith(addPartials(std::move(partials), own, loc, spreads));
  linear.erase();
  return true;
}
