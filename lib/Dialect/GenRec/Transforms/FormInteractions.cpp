//===- FormInteractions.cpp - dot products of all pairs as one product ----===//

#include "Decisions.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/ADT/EquivalenceClasses.h"

namespace genrec {
#define GEN_PASS_DEF_FORMINTERACTIONS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {
/// A dot product of two vectors of a row, as an operand of a concatenation.
struct Dot {
  unsigned operand; ///< its number
  Value lhs, rhs;
};

/// Vectors of which a concatenation has the dot products of all pairs.
struct Interaction {
  SmallVector<Dot> dots;
  SmallVector<Value> vectors;   ///< in the order that the op gets them
  SmallVector<int64_t> columns; ///< of the dots in its result; empty if a pair is missing or twice
  bool self = false;            ///< of each vector with itself, too
};
} // namespace

/// The factors of `value` if it is a dot product that only the concatenation reads.
static std::optional<Dot> matchDot(OpOperand &use) {
  auto sum = use.get().getDefiningOp<RowReduceOp>();
  if (!sum || sum.getKind() != ReduceKind::sum || !sum->hasOneUse() ||
      !getRowDomain(sum.getType()) || !getElementTypeOrSelf(sum.getType()).isF32())
    return std::nullopt;
  auto product = sum.getX().getDefiningOp<MulOp>();
  if (!product || !product->hasOneUse() || product.getLhs().getType() != product.getRhs().getType())
    return std::nullopt;
  return Dot{use.getOperandNumber(), product.getLhs(), product.getRhs()};
}

/// The column that the op gives to the pair of vectors `i` and `j`.
static int64_t getColumn(int64_t i, int64_t j, bool self) {
  if (i < j)
    std::swap(i, j);
  return (self ? i * (i + 1) / 2 : i * (i - 1) / 2) + j;
}

/// The columns of the dot products where the op gets the vectors in their order.
static SmallVector<int64_t> findColumns(const Interaction &all) {
  llvm::DenseMap<Value, int64_t> numbers;
  for (Value vector : all.vectors)
    numbers.try_emplace(vector, numbers.size());
  const int64_t count = all.vectors.size();
  if (static_cast<int64_t>(all.dots.size()) != count * (all.self ? count + 1 : count - 1) / 2)
    return {};
  SmallVector<int64_t> columns;
  llvm::DenseSet<int64_t> seen;
  for (const Dot &dot : all.dots) {
    columns.push_back(getColumn(numbers.lookup(dot.lhs), numbers.lookup(dot.rhs), all.self));
    if (!seen.insert(columns.back()).second || (dot.lhs == dot.rhs && !all.self))
      return {};
  }
  return columns;
}

/// Whether the columns are 0, 1, 2, …, of operands one behind another.
static bool isInOrder(const Interaction &all) {
  for (auto [index, column] : llvm::enumerate(all.columns))
    if (column != static_cast<int64_t>(index) ||
        all.dots[index].operand != all.dots.front().operand + index)
      return false;
  return true;
}

/// Orders the vectors as they first appear, with the first or the second factor first: so that the
/// columns are those of the loop that wrote them, if one of these does that.
static void orderVectors(Interaction &all) {
  for (bool isSecondFirst : {false, true}) {
    llvm::SetVector<Value> vectors;
    for (const Dot &dot : all.dots) {
      vectors.insert(isSecondFirst ? dot.rhs : dot.lhs);
      vectors.insert(isSecondFirst ? dot.lhs : dot.rhs);
    }
    all.vectors.assign(vectors.begin(), vectors.end());
    all.columns = findColumns(all);
    if (isInOrder(all))
      return;
  }
}

/// The interactions among the operands of a concatenation.
static std::vector<Interaction> findInteractions(ConcatColumnsOp concat, int64_t leastVectors) {
  SmallVector<Dot> dots;
  llvm::EquivalenceClasses<void *> connected;
  for (OpOperand &use : concat->getOpOperands())
    if (std::optional<Dot> dot = matchDot(use)) {
      dots.push_back(*dot);
      connected.unionSets(dot->lhs.getAsOpaquePointer(), dot->rhs.getAsOpaquePointer());
    }
  llvm::MapVector<void *, Interaction> found;
  for (const Dot &dot : dots) {
    Interaction &all = found[connected.getLeaderValue(dot.lhs.getAsOpaquePointer())];
    all.dots.push_back(dot);
    all.self |= dot.lhs == dot.rhs;
  }
  std::vector<Interaction> interactions;
  for (auto &[leader, all] : found) {
    orderVectors(all);
    if (static_cast<int64_t>(all.vectors.size()) >= leastVectors && !all.columns.empty())
      interactions.push_back(std::move(all));
  }
  return interactions;
}

/// Computes the dot products by one op. `replacements`: what takes the place of the operands of the
/// concatenation; null for one that the operand before brings along.
static void buildInteraction(ConcatColumnsOp concat, const Interaction &all,
                             MutableArrayRef<Value> replacements) {
  OpBuilder builder(concat);
  SmallVector<Location> places;
  for (const Dot &dot : all.dots)
    places.push_back(concat.getOperand(dot.operand).getLoc());
  Location loc = builder.getFusedLoc(places);
  auto type = cast<RankedTensorType>(all.vectors.front().getType());
  FlatSymbolRefAttr domain = getRowDomain(type);
  Type element = type.getElementType();
  const int64_t count = all.vectors.size(), pairs = all.dots.size();
  auto joined = ConcatColumnsOp::create(
      builder, loc, getRowsType(domain, {count * getRowSize(type)}, element), all.vectors);
  auto products = DotInteractionOp::create(builder, loc, getRowsType(domain, {pairs}, element),
                                           joined, count, all.self, /*bf16=*/false);
  if (isInOrder(all)) {
    for (const Dot &dot : all.dots)
      replacements[dot.operand] = Value();
    replacements[all.dots.front().operand] = products;
    return;
  }
  for (auto [dot, column] : llvm::zip_equal(all.dots, all.columns))
    replacements[dot.operand] =
        SliceColumnsOp::create(builder, loc, getRowsType(domain, {1}, element), products, column);
}

namespace {
struct FormInteractions : genrec::impl::FormInteractionsBase<FormInteractions> {
  using FormInteractionsBase::FormInteractionsBase;

  void runOnOperation() override {
    Decisions decisions("form-interactions");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      for (auto concat :
           llvm::make_early_inc_range(program.getBody().front().getOps<ConcatColumnsOp>()))
        formIn(program, concat, decisions);
    decisions.attachTo(getOperation());
  }

  void formIn(ProgramOp program, ConcatColumnsOp concat, Decisions &decisions) {
    std::vector<Interaction> interactions = findInteractions(concat, leastVectors);
    if (interactions.empty())
      return;
    SmallVector<Value> operands(concat.getOperands());
    for (const Interaction &all : interactions) {
      buildInteraction(concat, all, operands);
      decisions.add("@" + program.getSymName() + ": " + Twine(all.dots.size()) +
                    " dot products of " + Twine(all.vectors.size()) + " vectors" +
                    placeForUser(concat) + " are one product of all pairs");
      countStatistic(*this, formed, "interactions", 1);
      countStatistic(*this, dots, "dots", all.dots.size());
      RewriteCounter::count("form-interaction");
    }
    SmallVector<Value> old(concat.getOperands());
    llvm::erase(operands, Value());
    concat->setOperands(operands);
    if (operands.front().getType() == concat.getType()) {
      concat.replaceAllUsesWith(operands.front());
      concat.erase();
    }
    for (Value value : old)
      if (Operation *maker = value.getDefiningOp(); maker && maker->use_empty()) {
        Operation *product = maker->getOperand(0).getDefiningOp();
        maker->erase();
        product->erase();
      }
  }
};
} // namespace
