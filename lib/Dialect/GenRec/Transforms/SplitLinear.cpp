//===- SplitLinear.cpp - splits linear layers by domain -------------------===//

#include "SplitLinear.h"

using namespace mlir;
using namespace genrec;

namespace {
/// Adjacent columns with the same source: spread from rows of one domain, or not spread. The two
/// terms of a sum or difference of spread values are two runs that use the same rows of the weight,
/// `part`.
struct Run {
  Spread from;
  SmallVector<Value> columns;
  int64_t width = 0;
  unsigned part = 0;
  bool isNegative = false;
};

/// A partial sum of the result, over rows of `from`.
struct Partial {
  Spread from;
  Value sum;
  size_t order = 0;
};
} // namespace

/// The columns of `value` in order, looking through concatenations.
static void collectParts(Value value, SmallVectorImpl<Value> &parts) {
  if (auto concat = value.getDefiningOp<ConcatColumnsOp>())
    for (Value part : concat.getParts())
      collectParts(part, parts);
  else
    parts.push_back(value);
}

/// The spread that made the columns `x`, and its operand; `x` itself if it is not spread.
static std::pair<Spread, Value> findSource(Value x) {
  if (Spread from = getSpread(x))
    return {from, getSpreadSource(x)};
  return {{getRowDomain(x.getType()), false}, x};
}

/// The terms of `x` if it is a sum or difference of two different spreads of its size; otherwise
/// none.
static SmallVector<Value, 2> getCopiedTerms(Value x) {
  Operation *op = x.getDefiningOp();
  if (!op || !op->hasTrait<IsSum>())
    return {};
  Value lhs = op->getOperand(0), rhs = op->getOperand(1);
  Spread left = getSpread(lhs), right = getSpread(rhs);
  if (!left || !right || left == right || lhs.getType() != x.getType() ||
      rhs.getType() != x.getType())
    return {};
  return {lhs, rhs};
}

/// The runs of the columns of `x`; `widths` are the sizes of the weight's parts.
static SmallVector<Run> collectRuns(Value x, SmallVectorImpl<int64_t> &widths) {
  SmallVector<Value> parts;
  collectParts(x, parts);
  SmallVector<Run> runs;
  bool isClosed = true; // the next column starts a new run
  for (Value part : parts) {
    int64_t width = getRowSize(part.getType());
    SmallVector<Value, 2> terms = getCopiedTerms(part);
    for (auto [index, term] : llvm::enumerate(terms)) {
      auto [from, source] = findSource(term);
      bool isNegative = index == 1 && isa<SubOp>(part.getDefiningOp());
      runs.push_back({from, {source}, width, static_cast<unsigned>(widths.size()), isNegative});
    }
    if (!terms.empty()) {
      widths.push_back(width);
      isClosed = true;
      continue;
    }
    auto [from, source] = findSource(part);
    if (isClosed || runs.back().from != from) {
      runs.push_back({from, {}, 0, static_cast<unsigned>(widths.size())});
      widths.push_back(0);
    }
    runs.back().columns.push_back(source);
    runs.back().width += width;
    widths.back() += width;
    isClosed = false;
  }
  return runs;
}

/// The product of a run and its rows of the weight.
static Value multiplyRun(const Run &run, Value weight, Value bias, LinearOp whole,
                         OpBuilder &builder) {
  Location loc = whole.getLoc();
  auto matrix = cast<RankedTensorType>(weight.getType());
  Type element = matrix.getElementType();
  Value x = run.columns.front();
  if (run.columns.size() > 1 || getRowShape(x.getType()).empty())
    x = ConcatColumnsOp::create(builder, loc, getRowsType(run.from.domain, {run.width}, element),
                                run.columns);
  return LinearOp::create(builder, loc,
                          getRowsType(run.from.domain, {matrix.getDimSize(1)}, element), x, weight,
                          bias, /*transposed=*/false, whole.getBf16());
}

/// Adds all partial sums as rows of `own`; each addition is done in the highest possible domain.
static Value addPartials(SmallVector<Partial> partials, FlatSymbolRefAttr own, Location loc,
                         SpreadBuilder &spreads) {
  // Highest domains first. The two lists of pairs are siblings, both above the pairs.
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
  SmallVector<int64_t> widths;
  SmallVector<Run> runs = collectRuns(linear.getX(), widths);
  int64_t copied = 0;
  for (const Run &run : runs)
    copied += run.from.domain == own ? 0 : run.width;
  if (copied < static_cast<int64_t>(leastWidth) || runs.size() < 2)
    return false;

  Location loc = linear.getLoc();
  OpBuilder &builder = spreads.builder;
  builder.setInsertionPoint(linear);
  auto type = cast<RankedTensorType>(linear.getResult().getType());
  SmallVector<Value> weights{linear.getWeight()};
  if (widths.size() > 1) {
    auto types = llvm::map_to_vector(widths, [&](int64_t width) -> Type {
      return RankedTensorType::get({width, getRowSize(type)}, type.getElementType());
    });
    auto split = SplitSharedOp::create(builder, loc, types, linear.getWeight());
    weights.assign(split.getParts().begin(), split.getParts().end());
  }
  // The bias is added to the first spread product that is not subtracted, before the spread.
  const Run *biased = llvm::find_if(
      runs, [&](const Run &run) { return run.from.domain != own && !run.isNegative; });
  assert(biased != runs.end() && "what is taken away is taken from a copy");
  SmallVector<Partial> partials;
  for (const Run &run : runs) {
    Value bias = &run == biased ? linear.getBias() : Value();
    Value product = multiplyRun(run, weights[run.part], bias, linear, builder);
    auto same =
        llvm::find_if(partials, [&](const Partial &partial) { return partial.from == run.from; });
    if (same == partials.end())
      partials.push_back(
          {run.from,
           run.isNegative ? NegOp::create(builder, loc, product.getType(), product) : product,
           partials.size()});
    else if (run.isNegative)
      same->sum = SubOp::create(builder, loc, product.getType(), same->sum, product);
    else
      same->sum = AddOp::create(builder, loc, product.getType(), same->sum, product);
  }
  linear.getResult().replaceAllUsesWith(addPartials(std::move(partials), own, loc, spreads));
  linear.erase();
  return true;
}
