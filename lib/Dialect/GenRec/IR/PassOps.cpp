//===- PassOps.cpp - verifiers of the ops that only passes make -----------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

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

/// Checks that `parts` are matrices whose concatenation along rows is `whole`.
static LogicalResult expectStacked(Operation *op, TypeRange parts, Type whole) {
  int64_t rows = 0;
  if (parts.empty())
    return op->emitOpError() << "needs at least one part";
  for (auto [index, part] : llvm::enumerate(parts)) {
    std::string name = ("part " + Twine(index)).str();
    if (failed(expect(op, {name, part}, Form::shared().shape({kFree, kFree}).element(floats))))
      return failure();
    rows += cast<RankedTensorType>(part).getDimSize(0);
  }
  auto first = cast<RankedTensorType>(parts.front());
  int64_t columns = first.getDimSize(1);
  for (auto [index, part] : llvm::enumerate(parts)) {
    std::string name = ("part " + Twine(index)).str();
    if (failed(expect(op, {name, part}, Form::shared().shape({kFree, columns}).elementOf(first),
                      "as wide as part 0")))
      return failure();
  }
  return expect(op, {"whole", whole}, Form::shared().shape({rows, columns}).elementOf(first),
                "the rows of all parts");
}

LogicalResult SplitSharedOp::verify() {
  return expectStacked(*this, getParts().getTypes(), getX().getType());
}

LogicalResult ConcatSharedOp::verify() {
  return expectStacked(*this, getParts().getTypes(), getType());
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

LogicalResult FusedLinearOp::verify() {
  Type x = unroundedType(*this, getX()), weight = getWeight().getType(),
       result = getResult().getType();
  FailureOr<int64_t> width = expectProduct(*this, x, weight, getTransposed(), getBias());
  if (failed(width) || failed(expect(*this, {"result", result},
                                     Form::alike(x).shape({*width}).elementOf(x), "x times weight")))
    return failure();
  if (getResidual() &&
      failed(expectType(*this, {"residual", getResidual().getType()}, result, "the type of 'result'")))
    return failure();
  if (!getPre())
    return success();
  return expectType(*this, {"pre", getPre().getType()}, result, "the type of 'result'");
}

LogicalResult LogSumExpOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().vector().element(floats))) ||
      failed(expect(*this, {"result", getType()}, Form::alike(x).scalar().elementOf(x),
                    "a value per row of 'x'")))
    return failure();
  if (!getBefore())
    return success();
  return expectType(*this, {"before", getBefore().getType()}, getType(), "the type of 'result'");
}

LogicalResult PickColumnOp::verify() {
  Named x{"x", getX().getType()}, index{"index", getIndex().getType()};
  if (failed(expect(*this, x, Form::rows().vector().element(floats))) ||
      failed(expectSameDomain(*this, {x, index})) ||
      failed(expect(*this, index, Form::alike(x.type).scalar().element(i64), "a column per row")))
    return failure();
  return expect(*this, {"result", getType()}, Form::alike(x.type).scalar().elementOf(x.type),
                "a value per row of 'x'");
}

LogicalResult AfterOp::verify() {
  if (getOthers().empty())
    return emitOpError() << "waits for nothing: name at least one value after 'on'";
  return expectType(*this, {"result", getType()}, getX().getType(), "the type of 'x'");
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

template <typename OpT> static LogicalResult verifySampledCrossEntropy(OpT op) {
  Named dot{"dot", op.getDot().getType()}, dots{"dots", op.getDots().getType()},
      positive{"positive", op.getPositive().getType()};
  Type drawn = op.getDrawn().getType();
  if (failed(expect(op, dot, Form::rows().scalar().element(f32))) ||
      failed(expectSameDomain(op, {dot, dots})) || failed(expectSameDomain(op, {dot, positive})) ||
      failed(expect(op, dots, Form::alike(dot.type).vector().element(f32), "one per negative")) ||
      failed(expect(op, positive, Form::alike(dot.type).scalar().element(i64),
                    "a catalogue row each")))
    return failure();
  Form form = getRowDomain(drawn) ? Form::alike(dot.type) : Form::shared();
  if (failed(expect(op, {"drawn", drawn}, form.shape(getRowShape(dots.type)).element(i64),
                    "a number per negative")))
    return failure();
  return expectPositive(op, "temperature", op.getTemperature().convertToDouble());
}

LogicalResult SampledCrossEntropyOp::verify() {
  if (failed(verifySampledCrossEntropy(*this)))
    return failure();
  return expectType(*this, {"result", getType()}, getDot().getType(), "the type of 'dot'");
}

LogicalResult SampledCrossEntropyGradOp::verify() {
  if (failed(verifySampledCrossEntropy(*this)) ||
      failed(expectType(*this, {"gradient", getGradient().getType()}, getDot().getType(),
                        "the type of 'dot'")) ||
      failed(expectType(*this, {"ddot", getDdot().getType()}, getDot().getType(),
                        "the type of 'dot'")))
    return failure();
  return expectType(*this, {"ddots", getDdots().getType()}, getDots().getType(),
                    "the type of 'dots'");
}
