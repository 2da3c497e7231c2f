//===- RowOps.cpp - transforms, arithmetic, norms, dense layers -----------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"

#include "llvm/ADT/STLExtras.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// Transforms of ids and raw values
//===----------------------------------------------------------------------===//

/// Checks that the result has x's domain and row shape.
static LogicalResult expectSameRows(Operation *op, Type x, Type result, unsigned elements) {
  return expect(op, {"result", result}, Form::alike(x).shape(getRowShape(x)).element(elements),
                "a value per value of 'x'");
}

LogicalResult HashOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::any().element(i64 | string))) ||
      failed(expectSameRows(*this, x, getType(), i64)))
    return failure();
  return expectRange(*this, "bits", getBits(), 1, 63);
}

LogicalResult MultiHashOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().scalar().element(i64 | string))) ||
      failed(expect(*this, {"result", getType()}, Form::alike(x).vector().element(i64),
                    "some hashes per row of 'x'")))
    return failure();
  return expectRange(*this, "bits", getBits(), 1, 63);
}

LogicalResult CrossOp::verify() {
  if (getColumns().size() < 2)
    return emitOpError() << "crosses two or more columns, but has " << getColumns().size();
  SmallVector<std::string> names;
  SmallVector<Named> columns;
  for (size_t index = 0; index < getColumns().size(); ++index)
    names.push_back("column " + std::to_string(index));
  for (auto [name, column] : llvm::zip(names, getColumns())) {
    columns.push_back({name, column.getType()});
    if (failed(expect(*this, columns.back(),
                      Form::any().shape(getRowShape(getColumns()[0].getType())).element(i64),
                      "the row shape of column 0")))
      return failure();
  }
  if (failed(expectElementwise(*this, columns, {"result", getType()},
                               IntegerType::get(getContext(), 64))))
    return failure();
  return expectRange(*this, "bits", getBits(), 1, 63);
}

LogicalResult ModOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::any().element(i64))))
    return failure();
  return expectSameRows(*this, x, getType(), i64);
}

LogicalResult BucketizeOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::any().element(floats | i64))) ||
      failed(expectSameRows(*this, x, getType(), i64)))
    return failure();
  return expectEdges(*this, getEdges());
}

LogicalResult CastOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::any().element(values))))
    return failure();
  if (getElementTypeOrSelf(getType()).isBF16() && getElementTypeOrSelf(x).isF32())
    return expect(*this, {"result", getType()},
                  Form::alike(x).shape(getRowShape(x)).element(getElementTypeOrSelf(getType())),
                  "the rows of 'x'");
  return expectSameRows(*this, x, getType(), values);
}

//===----------------------------------------------------------------------===//
// Elementwise arithmetic
//===----------------------------------------------------------------------===//

/// Checks that the two operands of an elementwise op have the same element type, out of `elements`.
static LogicalResult expectOperandPair(Operation *op, Named lhs, Named rhs, unsigned elements) {
  if (failed(expect(op, lhs, Form::any().element(elements))))
    return failure();
  return expect(op, rhs, Form::any().elementOf(lhs.type), "the element type of '" + lhs.name + "'");
}

template <typename OpT> static LogicalResult verifyBinary(OpT op, unsigned elements) {
  Named lhs{"lhs", op.getLhs().getType()}, rhs{"rhs", op.getRhs().getType()};
  if (failed(expectOperandPair(op, lhs, rhs, elements)))
    return failure();
  return expectElementwise(op, {lhs, rhs}, {"result", op.getType()},
                           getElementTypeOrSelf(lhs.type));
}

LogicalResult AddOp::verify() { return verifyBinary(*this, numbers); }
LogicalResult SubOp::verify() { return verifyBinary(*this, numbers); }
LogicalResult MulOp::verify() { return verifyBinary(*this, numbers); }
LogicalResult DivOp::verify() { return verifyBinary(*this, floats); }
LogicalResult MaximumOp::verify() { return verifyBinary(*this, numbers); }
LogicalResult MinimumOp::verify() { return verifyBinary(*this, numbers); }

LogicalResult CompareOp::verify() {
  Named lhs{"lhs", getLhs().getType()}, rhs{"rhs", getRhs().getType()};
  bool isOrder = getKind() != CompareKind::eq && getKind() != CompareKind::ne;
  if (failed(expectOperandPair(*this, lhs, rhs, isOrder ? numbers : values)))
    return failure();
  return expectElementwise(*this, {lhs, rhs}, {"result", getType()},
                           IntegerType::get(getContext(), 1));
}

LogicalResult SelectOp::verify() {
  Named condition{"condition", getCondition().getType()};
  Named onTrue{"on_true", getOnTrue().getType()}, onFalse{"on_false", getOnFalse().getType()};
  if (failed(expect(*this, condition, Form::any().element(i1))) ||
      failed(expectOperandPair(*this, onTrue, onFalse, values)))
    return failure();
  return expectElementwise(*this, {condition, onTrue, onFalse}, {"result", getType()},
                           getElementTypeOrSelf(onTrue.type));
}

//===----------------------------------------------------------------------===//
// Along a row
//===----------------------------------------------------------------------===//

LogicalResult RowReduceOp::verify() {
  Type x = getX().getType();
  unsigned elements = getKind() == ReduceKind::mean ? floats : numbers;
  if (failed(expect(*this, {"x", x}, Form::any().vector().element(elements),
                    "kind " + stringifyReduceKind(getKind()))))
    return failure();
  return expect(*this, {"result", getType()}, Form::alike(x).scalar().elementOf(x),
                "a value per row of 'x'");
}

LogicalResult ConcatColumnsOp::verify() {
  if (getParts().empty())
    return emitOpError() << "needs at least one part";
  Type first = getParts().front().getType();
  Form any = Form::any();
  if (Type element = getElementTypeOrSelf(first); element.isBF16())
    any.element(element); // parts of a factor, rounded one by one
  else
    any.element(values);
  if (failed(expect(*this, {"part 0", first}, any)))
    return failure();
  SmallVector<std::string> names;
  SmallVector<Named> parts;
  for (size_t index = 0; index < getParts().size(); ++index)
    names.push_back("part " + std::to_string(index));
  for (auto [name, part] : llvm::zip(names, getParts()))
    parts.push_back({name, part.getType()});
  if (failed(expectSameDomain(*this, parts)))
    return failure();
  int64_t width = 0;
  for (const Named &part : parts) {
    Form form = Form::alike(first);
    if (getRowShape(part.type).empty())
      form.scalar();
    else
      form.vector();
    if (failed(expect(*this, part, form.elementOf(first), "as part 0")))
      return failure();
    width += getRowSize(part.type);
  }
  return expect(*this, {"result", getType()}, Form::alike(first).shape({width}).elementOf(first),
                "the parts end to end");
}

LogicalResult SliceColumnsOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::any().vector().element(values))) ||
      failed(expect(*this, {"result", getType()}, Form::alike(x).vector().elementOf(x),
                    "a range of the columns of 'x'")))
    return failure();
  int64_t begin = getOffset(), size = getRowSize(getType());
  if (begin >= 0 && begin + size <= getRowSize(x))
    return success();
  return emitOpError() << "takes columns [" << begin << ", " << begin + size
                       << ") of 'x', which has " << getRowSize(x);
}

/// Checks that x has float rows [d], that the result has x's type, and that `weights` are shared
/// [d].
static LogicalResult verifyNorm(Operation *op, Type x, Type result, ArrayRef<Named> weights) {
  if (failed(expect(op, {"x", x}, Form::any().vector().element(floats))))
    return failure();
  for (const Named &weight : weights)
    if (weight.type && failed(expect(op, weight, Form::shared().shape(getRowShape(x)).elementOf(x),
                                     "an element per column of 'x'")))
      return failure();
  return expectType(op, {"result", result}, x, "the type of 'x'");
}

static Type typeOrNull(Value value) { return value ? value.getType() : Type(); }

LogicalResult LayerNormOp::verify() {
  if (failed(verifyNorm(*this, getX().getType(), getType(),
                        {{"scale", typeOrNull(getScale())}, {"bias", typeOrNull(getBias())}})))
    return failure();
  return expectNotNegative(*this, "eps", getEps().convertToDouble());
}

LogicalResult RmsNormOp::verify() {
  if (failed(verifyNorm(*this, getX().getType(), getType(), {{"scale", typeOrNull(getScale())}})))
    return failure();
  return expectNotNegative(*this, "eps", getEps().convertToDouble());
}

LogicalResult L2NormalizeOp::verify() {
  if (failed(verifyNorm(*this, getX().getType(), getType(), {})))
    return failure();
  return expectNotNegative(*this, "eps", getEps().convertToDouble());
}

LogicalResult SoftmaxOp::verify() { return verifyNorm(*this, getX().getType(), getType(), {}); }

LogicalResult DropoutOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().element(floats))) ||
      failed(expectType(*this, {"result", getType()}, x, "the type of 'x'")) ||
      failed(expectRate(*this, "rate", getRate().convertToDouble())))
    return failure();
  return expectStream(*this, getStream());
}

LogicalResult RandomUniformOp::verify() {
  if (failed(expect(*this, {"result", getType()}, Form::rows(domainOf(getDomain())).element(f32))))
    return failure();
  return expectStream(*this, getStream());
}

//===----------------------------------------------------------------------===//
// Dense layers
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  Type x = unroundedType(*this, getX());
  FailureOr<int64_t> width =
      expectProduct(*this, x, getWeight().getType(), getTransposed(), getBias());
  if (failed(width))
    return failure();
  return expect(*this, {"result", getType()}, Form::alike(x).shape({*width}).elementOf(x),
                "x times weight");
}

LogicalResult WeightGradientOp::verify() {
  Named x{"x", unroundedType(*this, getX())}, y{"y", unroundedType(*this, getY())};
  if (failed(expect(*this, x, Form::rows().vector().element(floats))) ||
      failed(expectSameDomain(*this, {x, y})) ||
      failed(expect(*this, y, Form::alike(x.type).vector().elementOf(x.type))))
    return failure();
  return expect(*this, {"result", getType()},
                Form::shared().shape({getRowSize(x.type), getRowSize(y.type)}).elementOf(x.type),
                "columns of 'x' by columns of 'y'");
}

LogicalResult ReduceRowsOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().element(numbers))))
    return failure();
  return expect(*this, {"result", getType()}, Form::shared().shape(getRowShape(x)).elementOf(x),
                "the sum of the rows of 'x'");
}

//===----------------------------------------------------------------------===//
// Embeddings
//===----------------------------------------------------------------------===//

LogicalResult LookupOp::verify() {
  if (failed(expectIds(*this, getIds(), getValid())))
    return failure();
  return expect(*this, {"result", getType()},
                Form::rows(getRowDomain(getIds().getType())).vector().element(f32),
                "a table row per id");
}

LogicalResult LookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  TableOp table = lookupTable(*this, getTableAttr(), &symbols);
  if (!table)
    return emitOpError() << "reads " << getTableAttr()
                         << ", which the model does not declare as a table";
  int64_t dim = table.getDim();
  return expect(*this, {"result", getType()}, Form::alike(getType()).shape({dim}).element(f32),
                "the dimension of table @" + getTable());
}

LogicalResult EmbeddingOp::verify() {
  Type index = getIndex().getType(), weight = getWeight().getType();
  if (failed(expect(*this, {"index", index}, Form::rows().scalar().element(i64))) ||
      failed(expect(*this, {"weight", weight}, Form::shared().shape({kFree, kFree}).element(f32))))
    return failure();
  return expect(*this, {"result", getType()},
                Form::alike(index).shape({getRowShape(weight)[1]}).element(f32),
                "a row of 'weight' per index");
}

LogicalResult EmbeddingGradOp::verify() {
  Named index{"index", getIndex().getType()}, y{"y", getY().getType()};
  if (failed(expect(*this, index, Form::rows().scalar().element(i64))) ||
      failed(expectSameDomain(*this, {index, y})) ||
      failed(expect(*this, y, Form::alike(index.type).vector().element(f32))))
    return failure();
  return expect(*this, {"result", getType()},
                Form::shared().shape({kFree, getRowSize(y.type)}).element(f32),
                "the embedding's weight");
}
