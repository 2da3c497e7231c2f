//===- BodyOps.cpp - verifiers of the ops in a row kernel's body ----------===//
//
// Messages print a vector<dxf32> as "v[d] x f32" and a scalar as "f32".
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

/// The size of a 1-D vector; nothing for another type.
static std::optional<int64_t> vectorSize(Type type) {
  auto vector = dyn_cast<VectorType>(type);
  if (!vector || vector.getRank() != 1 || vector.isScalable())
    return std::nullopt;
  return vector.getShape()[0];
}

static bool isScalarOrVector(Type type) { return !isa<ShapedType>(type) || vectorSize(type); }

/// Reports that the type of value `name` violates `rule`.
static LogicalResult complain(Operation *op, StringRef name, Type type, const Twine &rule) {
  return op->emitOpError() << "'" << name << "' must be " << rule << ", but is " << typeText(type);
}

static LogicalResult expectExactly(Operation *op, StringRef name, Type type, Type expected,
                                   const Twine &reason) {
  if (type == expected)
    return success();
  return op->emitOpError() << "'" << name << "' must be " << typeText(expected) << " (" << reason
                           << "), but is " << typeText(type);
}

static Type i64Type(Operation *op) { return IntegerType::get(op->getContext(), 64); }

/// Checks that `type` is a 1-D vector with elements `element`.
static LogicalResult expectVector(Operation *op, StringRef name, Type type, Type element) {
  if (vectorSize(type) && getElementTypeOrSelf(type) == element)
    return success();
  return complain(op, name, type, "a vector of " + typeText(element));
}

/// A scalar or vector with the shape of `shape` and elements `element`.
static Type withElement(Type shape, Type element) {
  if (std::optional<int64_t> size = vectorSize(shape))
    return VectorType::get({*size}, element);
  return element;
}

//===----------------------------------------------------------------------===//
// Table and parameter rows
//===----------------------------------------------------------------------===//

template <typename OpT> static LogicalResult verifyRowAccess(OpT op, StringRef name, Type value) {
  int64_t width = op.getRow().getType().getWidth();
  Type once = VectorType::get({1}, Float32Type::get(op.getContext()));
  if (op.getSlot() > 0 && value == once)
    return success();
  if (failed(expectExactly(
          op, name, value, VectorType::get({width}, Float32Type::get(op.getContext())),
          op.getSlot() > 0 ? "the width of the row, or 1 for a state that the row has once"
                           : "the width of the row")))
    return failure();
  return expectRange(op, "slot", op.getSlot(), 0);
}

LogicalResult RowLoadOp::verify() {
  RowType row = getRow().getType();
  if (getWhole() && (getSlot() != 0 || !row.getHot()))
    return emitOpError()
           << "loads 'whole' values, which slot 0 of rows of a table with hot rows has, "
              "but reads slot "
           << getSlot() << " of " << row;
  return verifyRowAccess(*this, "result", getType());
}

LogicalResult RowStoreOp::verify() { return verifyRowAccess(*this, "value", getValue().getType()); }

//===----------------------------------------------------------------------===//
// Gathering
//===----------------------------------------------------------------------===//

LogicalResult RowGatherOp::verify() {
  auto source = cast<RankedTensorType>(getSource().getType());
  Type index = getIndex().getType();
  if (source.getRank() != 1 && source.getRank() != 2)
    return complain(*this, "source", source, "of rank 1 or 2");
  bool isRow = source.getRank() == 2;
  if (getElementTypeOrSelf(index) != i64Type(*this) || !isScalarOrVector(index) ||
      (isRow && vectorSize(index)))
    return complain(*this, "index", index,
                    isRow ? "i64, for a source of rank 2" : "i64 or a vector of i64");
  Type element = source.getElementType();
  Type expected =
      isRow ? Type(VectorType::get({source.getDimSize(1)}, element)) : withElement(index, element);
  return expectExactly(*this, "result", getType(), expected, "what 'index' picks from 'source'");
}

/// Checks a source of rows and a vector of indices. Returns the element type of products with rows:
/// that of the source, but f32 for bf16.
template <typename OpT> static FailureOr<Type> verifyGather(OpT op) {
  auto source = cast<RankedTensorType>(op.getSource().getType());
  Type element = source.getElementType();
  if (source.getRank() != 2 || !isa<FloatType>(element)) {
    (void)complain(op, "source", source, "of rank 2, of floats");
    return failure();
  }
  if (failed(expectVector(op, "index", op.getIndex().getType(), i64Type(op))))
    return failure();
  return element.isBF16() ? Type(Float32Type::get(op.getContext())) : element;
}

LogicalResult GatherDotOp::verify() {
  FailureOr<Type> element = verifyGather(*this);
  if (failed(element))
    return failure();
  int64_t width = cast<RankedTensorType>(getSource().getType()).getDimSize(1);
  if (failed(expectExactly(*this, "row", getRow().getType(), VectorType::get({width}, *element),
                           "a row of 'source'")))
    return failure();
  return expectExactly(*this, "result", getType(), withElement(getIndex().getType(), *element),
                       "a dot product per index");
}

LogicalResult GatherSumOp::verify() {
  FailureOr<Type> element = verifyGather(*this);
  if (failed(element))
    return failure();
  if (failed(expectExactly(*this, "coefficient", getCoefficient().getType(),
                           withElement(getIndex().getType(), *element), "one per index")))
    return failure();
  int64_t width = cast<RankedTensorType>(getSource().getType()).getDimSize(1);
  return expectExactly(*this, "result", getType(), VectorType::get({width}, *element),
                       "a row of 'source'");
}

LogicalResult AccumulateOp::verify() {
  RankedTensorType tensor = getAccumulator().getType().getTensor();
  bool isIndexed = static_cast<bool>(getIndex());
  if (isIndexed && tensor.getRank() == 0)
    return emitOpError() << "has an 'index', but 'accumulator' is of rank 0";
  ArrayRef<int64_t> shape = tensor.getShape().drop_front(isIndexed ? 1 : 0);
  if (!isIndexed && !tensor.hasStaticShape())
    return emitOpError() << "needs an 'index' for 'accumulator' " << describe(tensor);
  if (shape.size() > 1)
    return emitOpError() << "adds scalars and vectors, but 'accumulator' is " << describe(tensor)
                         << "; give an 'index'";
  Type expected = shape.empty() ? tensor.getElementType()
                                : Type(VectorType::get(shape, tensor.getElementType()));
  if (failed(expectExactly(*this, "value", getValue().getType(), expected,
                           isIndexed ? "a row of 'accumulator'" : "all of 'accumulator'")))
    return failure();
  if (!isIndexed)
    return getCoefficient() ? emitOpError("has a 'coefficient', but no 'index'") : success();
  Type index = getIndex().getType();
  if (getElementTypeOrSelf(index) != i64Type(*this) || !isScalarOrVector(index))
    return complain(*this, "index", index, "i64 or a vector of i64");
  if (!vectorSize(index) != !getCoefficient())
    return emitOpError() << "takes a 'coefficient' per element of a vector 'index', and none for "
                            "a scalar one";
  if (!getCoefficient())
    return success();
  return expectExactly(*this, "coefficient", getCoefficient().getType(),
                       withElement(index, tensor.getElementType()), "one per index");
}

//===----------------------------------------------------------------------===//
// Random draws
//===----------------------------------------------------------------------===//

LogicalResult KeepMaskOp::verify() {
  if (!getElementTypeOrSelf(getType()).isInteger(1) || !isScalarOrVector(getType()))
    return complain(*this, "result", getType(), "i1 or a vector of i1");
  if (failed(expectRate(*this, "rate", getRate().convertToDouble())))
    return failure();
  return expectStream(*this, getStream());
}

LogicalResult RowUniformOp::verify() {
  if (!getElementTypeOrSelf(getType()).isF32() || !isScalarOrVector(getType()))
    return complain(*this, "result", getType(), "f32 or a vector of f32");
  return expectStream(*this, getStream());
}

LogicalResult RowBitsOp::verify() {
  if (!getElementTypeOrSelf(getType()).isInteger(16) || !vectorSize(getType()))
    return complain(*this, "result", getType(), "a vector of i16");
  return expectStream(*this, getStream());
}

LogicalResult RowRoundOp::verify() {
  if (!getElementTypeOrSelf(getType()).isF32() || !vectorSize(getType()))
    return complain(*this, "x", getX().getType(), "a vector of f32");
  Type bits = cast<VectorType>(getType()).clone(IntegerType::get(getContext(), 16));
  return expectExactly(*this, "bits", getBits().getType(), bits, "16 random bits per element");
}

LogicalResult RowHotOp::verify() {
  if (!getRow().getType().getHot())
    return complain(*this, "row", getRow().getType(), "a row of a table with hot rows");
  return success();
}

LogicalResult RandomIndexOp::verify() {
  if (cast<RankedTensorType>(getSource().getType()).getRank() == 0)
    return complain(*this, "source", getSource().getType(), "of rank 1 or 2");
  if (failed(expectVector(*this, "result", getType(), i64Type(*this))))
    return failure();
  return expectStream(*this, getStream());
}

//===----------------------------------------------------------------------===//
// Transforms and shapes
//===----------------------------------------------------------------------===//

LogicalResult RowHashOp::verify() {
  Type x = getX().getType(), element = getElementTypeOrSelf(x);
  if (!isScalarOrVector(x) || !(element.isSignlessInteger(64) || isa<StringType>(element)))
    return complain(*this, "x", x, "i64, a vector of i64 or !genrec.string");
  if (failed(expectExactly(*this, "result", getType(), withElement(x, i64Type(*this)),
                           "a hash per element of 'x'")))
    return failure();
  return expectRange(*this, "bits", getBits(), 1, 63);
}

LogicalResult RowBucketizeOp::verify() {
  Type x = getX().getType(), element = getElementTypeOrSelf(x);
  if (!isScalarOrVector(x) ||
      !(element.isF32() || element.isF64() || element.isSignlessInteger(64)))
    return complain(*this, "x", x, "f32, f64, i64 or a vector of them");
  if (failed(expectExactly(*this, "result", getType(), withElement(x, i64Type(*this)),
                           "a bucket per element of 'x'")))
    return failure();
  return expectEdges(*this, getEdges());
}

LogicalResult RowSearchOp::verify() {
  Type x = getX().getType();
  if (!x.isF32() && !x.isF64() && !x.isSignlessInteger(64))
    return complain(*this, "x", x, "f32, f64 or i64");
  auto edges = dyn_cast<RankedTensorType>(getEdges().getType());
  if (!edges || getRowDomain(edges) || edges.getRank() != 1 || !edges.getElementType().isF64())
    return complain(*this, "edges", getEdges().getType(), "a shared tensor of rank 1, of f64");
  return expectExactly(*this, "result", getType(), i64Type(*this), "a bucket");
}

LogicalResult RowIotaOp::verify() {
  return expectVector(*this, "result", getType(), i64Type(*this));
}

LogicalResult RowConcatOp::verify() {
  if (getParts().empty())
    return emitOpError() << "needs at least one part";
  Type element = getElementTypeOrSelf(getParts().front().getType());
  int64_t size = 0;
  for (auto [index, part] : llvm::enumerate(getParts())) {
    if (!isScalarOrVector(part.getType()) || getElementTypeOrSelf(part.getType()) != element) {
      std::string name = ("part " + Twine(index)).str();
      return complain(*this, name, part.getType(),
                      typeText(element) + " or a vector of it, as part 0");
    }
    size += vectorSize(part.getType()).value_or(1);
  }
  if (!VectorType::isValidElementType(element))
    return complain(*this, "part 0", element, "of an element type that vectors may have");
  return expectExactly(*this, "result", getType(), VectorType::get({size}, element),
                       "the parts end to end");
}

LogicalResult RowSliceOp::verify() {
  Type x = getX().getType();
  std::optional<int64_t> from = vectorSize(x), size = vectorSize(getType());
  if (!from)
    return complain(*this, "x", x, "a vector");
  if (!size || getElementTypeOrSelf(x) != getElementTypeOrSelf(getType()))
    return complain(*this, "result", getType(), "a vector of " + typeText(getElementTypeOrSelf(x)));
  int64_t begin = getOffset();
  if (begin >= 0 && begin + *size <= *from)
    return success();
  return emitOpError() << "takes elements [" << begin << ", " << begin + *size
                       << ") of 'x', which has " << *from;
}
