//===- Mutation.cpp - changes ops, as mutation tests do -------------------===//

#include "genrec/Fuzz/Mutation.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static Attribute changeFloat(FloatAttr number) {
  double value = number.getValueAsDouble();
  return FloatAttr::get(number.getType(), value == 0.0 ? 0.5 : 1.5 * value);
}

/// Another value of an attribute that affects what an op computes; null for names, types and
/// layouts.
static Attribute change(Attribute attribute) {
  MLIRContext *context = attribute.getContext();
  if (auto number = dyn_cast<FloatAttr>(attribute))
    return changeFloat(number);
  if (auto flag = dyn_cast<BoolAttr>(attribute))
    return BoolAttr::get(context, !flag.getValue());
  if (auto number = dyn_cast<IntegerAttr>(attribute))
    return number.getType().isInteger(64)
               ? IntegerAttr::get(number.getType(), number.getValue() + 1)
               : Attribute();
  if (auto kind = dyn_cast<PoolKindAttr>(attribute))
    return PoolKindAttr::get(context,
                             kind.getValue() == PoolKind::sum ? PoolKind::mean : PoolKind::sum);
  if (auto kind = dyn_cast<ReduceKindAttr>(attribute))
    return ReduceKindAttr::get(context, kind.getValue() == ReduceKind::sum ? ReduceKind::mean
                                                                           : ReduceKind::sum);
  if (auto kind = dyn_cast<KeepKindAttr>(attribute))
    return KeepKindAttr::get(context,
                             kind.getValue() == KeepKind::first ? KeepKind::last : KeepKind::first);
  if (auto kind = dyn_cast<CompareKindAttr>(attribute))
    return CompareKindAttr::get(
        context, static_cast<CompareKind>((static_cast<int>(kind.getValue()) + 1) % 6));
  if (auto dense = dyn_cast<DenseFPElementsAttr>(attribute); dense && dense.isSplat())
    return DenseElementsAttr::get(dense.getType(),
                                  cast<Attribute>(changeFloat(dense.getSplatValue<FloatAttr>())));
  return {};
}

static std::string changeConstant(Operation *op, unsigned index) {
  NamedAttribute attribute = op->getAttrDictionary().getValue()[index];
  Attribute changed = change(attribute.getValue());
  op->setAttr(attribute.getName(), changed);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << attribute.getName().getValue() << " changed to ";
  changed.print(os, /*elideType=*/true);
  return text;
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

static std::string describe(Value value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (Operation *op = value.getDefiningOp())
    os << op->getName();
  else
    os << "argument " << cast<BlockArgument>(value).getArgNumber();
  return text;
}

/// Replaces an operand by the nearest earlier value of the same type.
static std::string replaceOperand(Operation *op, unsigned index) {
  OpOperand &operand = op->getOpOperand(index);
  SmallVector<Value> candidates(op->getBlock()->getArguments());
  for (Operation &earlier : *op->getBlock()) {
    if (&earlier == op)
      break;
    llvm::append_range(candidates, earlier.getResults());
  }
  for (Value candidate : llvm::reverse(candidates))
    if (candidate != operand.get() && candidate.getType() == operand.get().getType()) {
      operand.set(candidate);
      return "operand " + std::to_string(index) + " replaced by " + describe(candidate);
    }
  return "";
}

//===----------------------------------------------------------------------===//
// Reductions, fan-outs, ids, gradients
//===----------------------------------------------------------------------===//

/// Replaces a list's sum by its first row, or removes an accumulation.
static std::string dropReduction(Operation *op) {
  if (auto pool = dyn_cast<PoolOp>(op)) {
    if (pool.getKind() == PoolKind::first)
      return "";
    pool.setKind(PoolKind::first);
    return "pools the first row alone";
  }
  if (isa<AccumulateOp>(op)) {
    op->erase();
    return "adds nothing";
  }
  auto sum = cast<SegmentSumOp>(op);
  OpBuilder b(op);
  b.setInsertionPointAfter(op);
  Value none = SubOp::create(b, op->getLoc(), sum.getType(), sum.getResult(), sum.getResult());
  sum.getResult().replaceAllUsesExcept(none, none.getDefiningOp());
  return "sums nothing";
}

static std::string doubleFanout(FanoutOp op) {
  if (!getElementTypeOrSelf(op.getType()).isF32())
    return "";
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Value twice = AddOp::create(b, op.getLoc(), op.getType(), op.getResult(), op.getResult());
  op.getResult().replaceAllUsesExcept(twice, twice.getDefiningOp());
  return "counts twice";
}

static std::string loseTableBits(Operation *op, OpOperand &ids) {
  OpBuilder b(op);
  constexpr int64_t kLowest = 4;
  ids.set(ModOp::create(b, op->getLoc(), ids.get().getType(), ids.get(), kLowest));
  return "ids modulo 4";
}

/// Zeroes the gradient of each row whose id equals that of the row before it in its list.
static std::string loseDuplicates(UpdateTableOp op, unsigned index) {
  Value ids = op.getIds()[index], gradient = op.getGradients()[index];
  auto type = cast<RankedTensorType>(ids.getType());
  FlatSymbolRefAttr domain = getRowDomain(type);
  if (!lookupDomain(op, domain).getParentAttr())
    return ""; // rows of a root have no preceding row in a list
  OpBuilder b(op);
  Type flags = getRowsType(domain, {}, b.getI1Type());
  auto before = LagOp::create(b, op.getLoc(), TypeRange{type, flags}, ids, /*distance=*/1);
  Value isSame = CompareOp::create(b, op.getLoc(), flags, CompareKind::eq, ids, before.getResult());
  Value none = SubOp::create(b, op.getLoc(), gradient.getType(), gradient, gradient);
  Value kept = SelectOp::create(b, op.getLoc(), gradient.getType(), isSame, none, gradient);
  op.getGradientsMutable()[index].set(kept);
  return "gradient of duplicates lost";
}

/// Zeroes all gradients of one of the update's lists.
static std::string loseList(UpdateTableOp op, unsigned index) {
  OpBuilder b(op);
  OpOperand &gradient = op.getGradientsMutable()[index];
  gradient.set(
      SubOp::create(b, op.getLoc(), gradient.get().getType(), gradient.get(), gradient.get()));
  return "gradients of list " + std::to_string(index) + " lost";
}

//===----------------------------------------------------------------------===//
// What ranks exchange
//===----------------------------------------------------------------------===//

/// Leaves out the sum over portions of one value, or adds all up once more.
static std::string changePortionSum(CollectOp op, unsigned index) {
  if (index < op.getNumResults()) {
    op.getResult(index).replaceAllUsesWith(op.getOperand(index));
    return "sum " + std::to_string(index) + " over portions left out";
  }
  OpBuilder b(op->getContext());
  b.setInsertionPointAfter(op);
  Operation *again = b.clone(*op);
  op->replaceAllUsesWith(again->getResults());
  again->setOperands(op->getResults());
  return "added up over portions twice";
}

static std::string changeRowSums(ContributeRowsOp op, bool areTwice) {
  OpBuilder b(op);
  OpOperand &sums = op.getSumsMutable();
  Value old = sums.get();
  if (areTwice)
    sums.set(AddOp::create(b, op.getLoc(), old.getType(), old, old));
  else
    sums.set(SubOp::create(b, op.getLoc(), old.getType(), old, old));
  return areTwice ? "sums of rows count twice" : "sums of rows lost";
}

//===----------------------------------------------------------------------===//
// All mutations
//===----------------------------------------------------------------------===//

SmallVector<Mutation> fuzz::getMutations(Operation *op) {
  using Kind = Mutation::Kind;
  SmallVector<Mutation> mutations;
  if (isa<RequireRangeOp>(op)) // checks data and computes nothing
    return mutations;
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    // Domain operands only repeat what the types say.
    if (!isa<DomainType>(op->getOperand(index).getType()))
      mutations.push_back({Kind::operand, index});
  for (auto [index, attribute] : llvm::enumerate(op->getAttrs()))
    if (change(attribute.getValue()))
      mutations.push_back({Kind::constant, static_cast<unsigned>(index)});
  if (isa<PoolOp, AccumulateOp, SegmentSumOp>(op))
    mutations.push_back({Kind::reduction});
  if (isa<FanoutOp>(op))
    mutations.push_back({Kind::fanout});
  if (isa<LookupOp, TableRowsOp>(op))
    mutations.push_back({Kind::tableBits});
  if (isa<CollectOp>(op))
    for (unsigned index = 0; index <= op->getNumResults(); ++index)
      mutations.push_back({Kind::portionSum, index});
  if (isa<ContributeRowsOp>(op))
    mutations.append({{Kind::rowSums, 0}, {Kind::rowSums, 1}});
  if (auto update = dyn_cast<UpdateTableOp>(op)) {
    unsigned lists = update.getIds().size();
    for (unsigned index = 0; index < 2 * lists; ++index)
      mutations.push_back({Kind::lostGradient, index});
  }
  return mutations;
}

std::string fuzz::applyMutation(Operation *op, const Mutation &mutation) {
  switch (mutation.kind) {
  case Mutation::Kind::operand:
    return replaceOperand(op, mutation.index);
  case Mutation::Kind::constant:
    return changeConstant(op, mutation.index);
  case Mutation::Kind::reduction:
    return dropReduction(op);
  case Mutation::Kind::fanout:
    return doubleFanout(cast<FanoutOp>(op));
  case Mutation::Kind::tableBits:
    return loseTableBits(op, op->getOpOperand(0));
  case Mutation::Kind::portionSum:
    return changePortionSum(cast<CollectOp>(op), mutation.index);
  case Mutation::Kind::rowSums:
    return changeRowSums(cast<ContributeRowsOp>(op), mutation.index != 0);
  case Mutation::Kind::lostGradient: {
    auto update = cast<UpdateTableOp>(op);
    unsigned lists = update.getIds().size();
    return mutation.index < lists ? loseDuplicates(update, mutation.index)
                                  : loseList(update, mutation.index - lists);
  }
  }
  llvm_unreachable("every kind is handled");
}
