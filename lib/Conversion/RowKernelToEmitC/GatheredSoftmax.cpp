//===- GatheredSoftmax.cpp - gathers that read the same rows --------------===//

#include "GatheredSoftmax.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace genrec;

/// The scalar of a broadcast; null for other values.
static Value getScalar(Value value) {
  auto broadcast = value.getDefiningOp<vector::BroadcastOp>();
  return broadcast && !isa<VectorType>(broadcast.getSourceType()) ? broadcast.getSource() : Value();
}

static std::optional<double> getSplat(Value value) {
  DenseFPElementsAttr constant;
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat())
    return std::nullopt;
  return constant.getSplatValue<llvm::APFloat>().convertToDouble();
}

/// The factor of a product beside one that `isOther` holds for; null for other values.
static Value matchProduct(Value value, llvm::function_ref<bool(Value)> isOther) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  if (!product)
    return {};
  if (isOther(product.getRhs()))
    return product.getLhs();
  return isOther(product.getLhs()) ? product.getRhs() : Value();
}

/// Sets factor and valid; returns the exps, or null.
static Value matchCoefficients(Value value, GatheredSoftmax &found) {
  if (auto select = value.getDefiningOp<arith::SelectOp>()) {
    found.valid = getScalar(select.getCondition());
    if (!found.valid || getSplat(select.getFalseValue()) != 0.0)
      return {};
    value = select.getTrueValue();
  }
  return matchProduct(value, [&](Value other) {
    found.factor = getScalar(other);
    return static_cast<bool>(found.factor);
  });
}

/// Sets most and largest; returns the logits, or null.
static Value matchExps(Value value, GatheredSoftmax &found) {
  auto exp = value.getDefiningOp<math::ExpOp>();
  auto apart = exp ? exp.getOperand().getDefiningOp<arith::SubFOp>() : arith::SubFOp();
  found.largest = apart ? getScalar(apart.getRhs()) : Value();
  if (!found.largest)
    return {};
  for (Operation *user : apart.getLhs().getUsers()) {
    auto most = dyn_cast<vector::ReductionOp>(user);
    if (!most || most.getKind() != vector::CombiningKind::MAXIMUMF || most.getAcc())
      continue;
    auto larger = found.largest.getDefiningOp<arith::MaximumFOp>();
    if (found.largest != most.getResult() &&
        (!larger || !llvm::is_contained(larger->getOperands(), most.getResult())))
      continue;
    found.most = most.getResult();
    return apart.getLhs();
  }
  return {};
}

/// Sets dots, hit, scale and masked; returns whether `value` is the logits of `found.sum`.
static bool matchLogits(Value value, GatheredSoftmax &found) {
  auto select = value.getDefiningOp<arith::SelectOp>();
  auto isHit = select ? select.getCondition().getDefiningOp<arith::CmpIOp>() : arith::CmpIOp();
  std::optional<double> masked = select ? getSplat(select.getTrueValue()) : std::nullopt;
  if (!isHit || isHit.getPredicate() != arith::CmpIPredicate::eq || !masked)
    return false;
  std::optional<double> scale;
  Value dots = matchProduct(select.getFalseValue(), [&](Value other) {
    scale = getSplat(other);
    return scale.has_value();
  });
  found.dots = dots ? dots.getDefiningOp<GatherDotOp>() : GatherDotOp();
  found.hit = getScalar(isHit.getRhs());
  if (!found.dots || !found.hit || !isa<BlockArgument>(found.hit))
    return false;
  found.scale = *scale;
  found.masked = *masked;
  return isHit.getLhs() == found.dots.getIndex() && found.sum.getIndex() == found.dots.getIndex() &&
         found.sum.getSource() == found.dots.getSource();
}

SmallVector<GatheredSoftmax, 1> genrec::findGatheredSoftmaxes(RowKernelOp kernel) {
  SmallVector<GatheredSoftmax, 1> all;
  for (auto sum : kernel.getBody().front().getOps<GatherSumOp>()) {
    GatheredSoftmax found;
    found.sum = sum;
    Value exps = matchCoefficients(sum.getCoefficient(), found);
    Value logits = exps ? matchExps(exps, found) : Value();
    if (!logits || !matchLogits(logits, found))
      continue;
    auto isTaken = [&](const GatheredSoftmax &other) { return other.dots == found.dots; };
    if (llvm::none_of(all, isTaken))
      all.push_back(found);
  }
  return all;
}
