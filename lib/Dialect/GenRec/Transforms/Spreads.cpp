//===- Spreads.cpp - broadcasts to descendants and to pairs ---------------===//

#include "Spreads.h"

using namespace mlir;
using namespace genrec;

Value genrec::getSpreadSource(Value value) {
  if (auto fanout = value.getDefiningOp<FanoutOp>())
    return fanout.getX();
  if (auto beside = value.getDefiningOp<PairRowsOp>())
    return beside.getX();
  return Value();
}

Spread genrec::getSpread(Value value) {
  Value source = getSpreadSource(value);
  return source ? Spread{getRowDomain(source.getType()), isa<PairRowsOp>(value.getDefiningOp())}
                : Spread();
}

static RankedTensorType withDomain(Value x, FlatSymbolRefAttr domain) {
  auto type = cast<RankedTensorType>(x.getType());
  return getRowsType(domain, getRowShape(type), type.getElementType());
}

Value SpreadBuilder::spread(Value x, FlatSymbolRefAttr domain, Location loc, bool isBeside) {
  Value to = tree.getValue(domain);
  if (isBeside)
    return PairRowsOp::create(builder, loc, withDomain(x, domain), x, to);
  if (getRowDomain(x.getType()) == domain)
    return x;
  return FanoutOp::create(builder, loc, withDomain(x, domain), x, to);
}

Value SpreadBuilder::collect(Value x, Spread to, Location loc) {
  if (!to.isBeside)
    return poolTo(x, to.domain, loc);
  return PairSumOp::create(builder, loc, withDomain(x, to.domain), x, tree.getValue(to.domain));
}

Value SpreadBuilder::poolTo(Value x, FlatSymbolRefAttr domain, Location loc, PoolKind kind) {
  return PoolOp::create(builder, loc, withDomain(x, domain), x, tree.getValue(domain), kind);
}

Spread SpreadBuilder::getCommonSpread(ArrayRef<Spread> spreads) const {
  Spread common;
  for (const Spread &spread : spreads) {
    if (!spread)
      return Spread();
    if (!common || (spread.isBeside && !common.isBeside) ||
        (!common.isBeside && tree.isAbove(common.domain, spread.domain)))
      common = spread;
  }
  for (const Spread &spread : spreads)
    if (spread != common && !tree.isAbove(spread.domain, common.domain))
      return Spread();
  return common;
}
