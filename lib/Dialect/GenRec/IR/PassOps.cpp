//===- PassOps.cpp - verifiers of the ops that only passes make -----------===//

#include "VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

LogicalResult PadColumnsOp::verify() {
  Type x = getX().getType(), result = getResult().getType();
  if (failed(expect(*this, {"x", x}, Form::any().vector().element(floats))))
    return failure();
  if (failed(expect(*this, {"result", result}, Form::alike(x).vector().elementOf(x))))
    return failure();
  int64_t offset = getOffset(), size = getRowSize(x), wide = getRowSize(result);
  if (offset >= 0 && offset + size <= wide)
    return success();
  return emitOpError() << "puts elements [" << offset << ", " << offset + size << ") into rows of "
                       << wide;
}

LogicalResult BroadcastRowsOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::shared().element(values))))
    return failure();
  if (getRowShape(x).size() > 1)
    return emitOpError() << "'x' must be shared [] or [d], but is " << describe(x);
  Form form = Form::rows(domainOf(getDomain()));
  return expect(*this, {"result", getResult().getType()}, form.shape(getRowShape(x)).elementOf(x),
                "the shape of 'x', in the given domain");
}

LogicalResult RowsAsSharedOp::verify() {
  Type x = getX().getType(), result = getResult().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().element(values))))
    return failure();
  if (failed(expect(*this, {"result", result}, Form::shared().elementOf(x))))
    return failure();
  ArrayRef<int64_t> own = getRowShape(x), shape = getRowShape(result);
  if (shape == own || (shape.size() == 2 && shape.drop_front() == own))
    return success();
  return emitOpError() << "'result' must have the shape of a row of 'x', or of "
                          "several, but is "
                       << describe(result) << " and 'x' is " << describe(x);
}

LogicalResult RowsAsSharedOp::verifySymbolUses(SymbolTableCollection &) {
  return expectKind(*this, "x", getRowDomain(getX().getType()), {DomainKind::step});
}
