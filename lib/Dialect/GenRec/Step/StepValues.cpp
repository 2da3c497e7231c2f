//===- StepValues.cpp - values of a step in emitted C++ -------------------===//

#include "genrec/Dialect/GenRec/Step/StepValues.h"
#include "genrec/Dialect/GenRec/Step/Target.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

using namespace mlir;
using namespace genrec;

Type genrec::getBufferElement(const EmitCBuilder &b, Type element) {
  if (isa<RowType>(element))
    return b.pointer(b.f32());
  if (isa<StringType>(element))
    return b.opaque("genrec_string");
  if (element.isBF16())
    return b.opaque("kernels::Bf16");
  return element;
}

ParameterOp genrec::getRowsParameter(Value value) {
  auto rows = value.getDefiningOp<ParameterRowsOp>();
  return rows ? lookupParameter(rows, rows.getParameterAttr()) : ParameterOp();
}

ParameterRowsOp genrec::getRowsUpdatedBy(Value given) {
  ParameterRowsOp updated;
  for (OpOperand &use : given.getUses()) // of one collect
    for (Operation *user : use.getOwner()->getResult(use.getOperandNumber()).getUsers()) {
      auto rows = dyn_cast<SharedRowsOp>(user);
      auto of = rows ? rows.getDomain().getDefiningOp<ParameterRowsOp>() : ParameterRowsOp();
      if (!of || (updated && updated != of))
        return {};
      updated = of;
    }
  return updated;
}

Value genrec::getDomainPointer(const EmitCBuilder &b, Value step, int64_t number) {
  Value domains = b.load(b.memberOf(step, "domains", b.pointer(b.opaque("genrec_domain"))));
  return b.addressOf(b.element(domains, b.integer(number)));
}

Value genrec::getAccumulatorSize(const EmitCBuilder &b, Value step, const ModelIndex &index,
                                 Value result) {
  auto type = cast<RankedTensorType>(result.getType());
  FlatSymbolRefAttr domain = getRowDomain(type);
  if (!domain)
    return b.integer(type.getNumElements());
  // A launch on a device knows how many rows there can be, not how many there are.
  StringRef member =
      Target::of(result.getParentBlock()->getParentOp()).hasDevice ? "capacity" : "count";
  Value rows =
      b.load(b.memberOf(getDomainPointer(b, step, index.getDomain(domain)), member, b.i64()));
  return b.mul(rows, b.integer(getRowAddress(result).stride));
}
