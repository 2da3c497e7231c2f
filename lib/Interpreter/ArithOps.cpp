//===- ArithOps.cpp - arith, math and vector ops of row kernel bodies -----===//

#include "genrec/Interpreter/Evaluator.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

template <double (*function)(double)> static Error floatUnary(Evaluator &e, Operation *op) {
  e.set(op->getResult(0), mapElements<double, double>(e.get(op->getOperand(0)), function));
  return Error::success();
}

template <double (*function)(double, double)>
static Error floatBinary(Evaluator &e, Operation *op) {
  e.set(op->getResult(0),
        zipElements<double, double>(e.get(op->getOperand(0)), e.get(op->getOperand(1)), function));
  return Error::success();
}

static unsigned widthOf(Value value) {
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(value.getType()));
  return type ? type.getWidth() : 64; // an index
}

/// Converts between a value of `width` bits and its bits, and reads bits as a signed number.
static uint64_t bitsOf(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}
static int64_t signedOf(int64_t value, unsigned width) {
  return llvm::SignExtend64(static_cast<uint64_t>(value), width);
}

using Unsigned = uint64_t (*)(uint64_t, uint64_t);
using Signed = int64_t (*)(int64_t, int64_t);

/// Applies a function of unsigned numbers: for ops where the sign makes no difference and for
/// unsigned ops.
template <Unsigned function> static Error unsignedBinary(Evaluator &e, Operation *op) {
  unsigned width = widthOf(op->getOperand(0));
  auto apply = [&](int64_t x, int64_t y) -> int64_t {
    return function(bitsOf(x, width), bitsOf(y, width));
  };
  e.set(op->getResult(0),
        zipElements<int64_t, int64_t>(e.get(op->getOperand(0)), e.get(op->getOperand(1)), apply));
  return Error::success();
}

template <Signed function> static Error signedBinary(Evaluator &e, Operation *op) {
  unsigned width = widthOf(op->getOperand(0));
  auto apply = [&](int64_t x, int64_t y) {
    return function(signedOf(x, width), signedOf(y, width));
  };
  e.set(op->getResult(0),
        zipElements<int64_t, int64_t>(e.get(op->getOperand(0)), e.get(op->getOperand(1)), apply));
  return Error::success();
}

/// Division by 0 and of the smallest integer by -1 is undefined, hence an error.
template <Signed function> static Error signedDivision(Evaluator &e, Operation *op) {
  const Tensor &divisor = e.get(op->getOperand(1));
  if (llvm::is_contained(divisor.integers(), 0))
    return fail(op, "divides by 0");
  return signedBinary<function>(e, op);
}

static int64_t divide(int64_t x, int64_t y) {
  return y == -1 ? static_cast<int64_t>(-static_cast<uint64_t>(x)) : x / y;
}
static int64_t remainder(int64_t x, int64_t y) { return y == -1 ? 0 : x % y; }

static double largerOrNan(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::max(x, y);
}
static double smallerOrNan(double x, double y) {
  return std::isnan(x) || std::isnan(y) ? NAN : std::min(x, y);
}

static Error evaluateFma(Evaluator &e, math::FmaOp op) {
  auto mul = [](double x, double y) { return x * y; };
  auto add = [](double x, double y) { return x + y; };
  Tensor product = zipElements<double, double>(e.get(op.getA()), e.get(op.getB()), mul);
  e.set(op.getResult(), zipElements<double, double>(product, e.get(op.getC()), add));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Constants, comparisons, select
//===----------------------------------------------------------------------===//

static double toDouble(const APFloat &value) {
  APFloat copy = value;
  bool losesInfo;
  copy.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
  return copy.convertToDouble();
}

static Error evaluateConstant(Evaluator &e, arith::ConstantOp op) {
  Tensor result = makeTensor(op.getType(), 1);
  result.shared = true;
  if (auto dense = dyn_cast<DenseElementsAttr>(op.getValue())) {
    if (result.isFloat())
      llvm::transform(dense.getValues<APFloat>(), result.floats().begin(), toDouble);
    else
      llvm::transform(dense.getValues<APInt>(), result.integers().begin(),
                      [](const APInt &x) { return x.getSExtValue(); });
  } else if (auto number = dyn_cast<FloatAttr>(op.getValue())) {
    result.floats().front() = number.getValueAsDouble();
  } else if (auto number = dyn_cast<IntegerAttr>(op.getValue())) {
    result.integers().front() = number.getValue().getSExtValue();
  } else {
    return fail(op, "has a value of an unknown kind");
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

/// The outcome of a comparison as one bit: 1 less, 2 equal, 4 greater, 8 unordered. A predicate is
/// a set of these bits.
static int64_t orderOf(double x, double y) { return x < y ? 1 : x == y ? 2 : x > y ? 4 : 8; }

static int64_t acceptedOrders(arith::CmpFPredicate predicate) {
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::AlwaysFalse:
    return 0;
  case P::OEQ:
    return 2;
  case P::OGT:
    return 4;
  case P::OGE:
    return 6;
  case P::OLT:
    return 1;
  case P::OLE:
    return 3;
  case P::ONE:
    return 5;
  case P::ORD:
    return 7;
  case P::UEQ:
    return 10;
  case P::UGT:
    return 12;
  case P::UGE:
    return 14;
  case P::ULT:
    return 9;
  case P::ULE:
    return 11;
  case P::UNE:
    return 13;
  case P::UNO:
    return 8;
  case P::AlwaysTrue:
    return 15;
  }
  llvm_unreachable("every predicate is handled");
}

static Error evaluateCmpF(Evaluator &e, arith::CmpFOp op) {
  int64_t accepted = acceptedOrders(op.getPredicate());
  auto compare = [&](double x, double y) -> int64_t { return (accepted & orderOf(x, y)) != 0; };
  e.set(op.getResult(),
        zipElements<int64_t, double>(e.get(op.getLhs()), e.get(op.getRhs()), compare));
  return Error::success();
}

static bool holds(arith::CmpIPredicate predicate, APInt x, APInt y) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return x == y;
  case P::ne:
    return x != y;
  case P::slt:
    return x.slt(y);
  case P::sle:
    return x.sle(y);
  case P::sgt:
    return x.sgt(y);
  case P::sge:
    return x.sge(y);
  case P::ult:
    return x.ult(y);
  case P::ule:
    return x.ule(y);
  case P::ugt:
    return x.ugt(y);
  case P::uge:
    return x.uge(y);
  }
  llvm_unreachable("every predicate is handled");
}

static Error evaluateCmpI(Evaluator &e, arith::CmpIOp op) {
  unsigned width = widthOf(op.getLhs());
  auto compare = [&](int64_t x, int64_t y) -> int64_t {
    return holds(op.getPredicate(), APInt(width, bitsOf(x, width)), APInt(width, bitsOf(y, width)));
  };
  e.set(op.getResult(),
        zipElements<int64_t, int64_t>(e.get(op.getLhs()), e.get(op.getRhs()), compare));
  return Error::success();
}

static Error evaluateArithSelect(Evaluator &e, arith::SelectOp op) {
  const Tensor &condition = e.get(op.getCondition());
  const Tensor &onTrue = e.get(op.getTrueValue()), &onFalse = e.get(op.getFalseValue());
  BroadcastShape shape({&condition, &onTrue, &onFalse});
  Tensor result = makeTensor(op.getType(), shape.rows);
  result.shared = shape.shared;
  std::visit(
      [&](auto &values) {
        using Values = std::decay_t<decltype(values)>;
        size_t next = 0;
        forEachElement(result, [&](int64_t row, int64_t column) {
          bool chosen = condition.integers()[condition.at(row, column)] != 0;
          const Tensor &from = chosen ? onTrue : onFalse;
          values[next++] = from.as<typename Values::value_type>()[from.at(row, column)];
        });
      },
      result.data);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Conversions
//===----------------------------------------------------------------------===//

/// A cast between element types that the interpreter stores alike; `set` wraps the values.
static Error evaluateCopy(Evaluator &e, Operation *op) {
  e.set(op->getResult(0), e.get(op->getOperand(0)));
  return Error::success();
}

/// To bf16 as factors are rounded: bodies have it for what products read.
static Error evaluateTruncF(Evaluator &e, arith::TruncFOp op) {
  if (!getElementTypeOrSelf(op.getType()).isBF16())
    return evaluateCopy(e, op);
  e.set(op.getResult(), mapElements<double, double>(e.get(op.getIn()),
                                                    [&](double value) { return e.toBf16(value); }));
  return Error::success();
}

template <bool isSigned> static Error extend(Evaluator &e, Operation *op) {
  unsigned width = widthOf(op->getOperand(0));
  auto convert = [&](int64_t x) -> int64_t {
    return isSigned ? signedOf(x, width) : static_cast<int64_t>(bitsOf(x, width));
  };
  e.set(op->getResult(0), mapElements<int64_t, int64_t>(e.get(op->getOperand(0)), convert));
  return Error::success();
}

template <bool isSigned> static Error toFloat(Evaluator &e, Operation *op) {
  unsigned width = widthOf(op->getOperand(0));
  auto convert = [&](int64_t x) {
    return isSigned ? static_cast<double>(signedOf(x, width))
                    : static_cast<double>(bitsOf(x, width));
  };
  e.set(op->getResult(0), mapElements<double, int64_t>(e.get(op->getOperand(0)), convert));
  return Error::success();
}

static Error evaluateFPToSI(Evaluator &e, arith::FPToSIOp op) {
  double limit = std::ldexp(1.0, static_cast<int>(widthOf(op.getResult())) - 1);
  const Tensor &x = e.get(op.getIn());
  for (double value : x.floats())
    if (!(std::trunc(value) >= -limit && std::trunc(value) < limit))
      return fail(op, "converts a number that the integer cannot hold");
  e.set(op.getResult(),
        mapElements<int64_t, double>(x, [](double value) { return static_cast<int64_t>(value); }));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Vectors
//===----------------------------------------------------------------------===//

/// A tensor for a result of `type`, shared if `like` is.
static Tensor makeLike(Type type, const Tensor &like) {
  Tensor result = makeTensor(type, like.rows);
  result.shared = like.shared;
  return result;
}

static Error evaluateBroadcast(Evaluator &e, vector::BroadcastOp op) {
  const Tensor &x = e.get(op.getSource());
  Tensor result = makeLike(op.getType(), x);
  copyColumns(x, 0, result, 0, result.width);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

template <class T> static T combine(vector::CombiningKind kind, T x, T y, bool &isKnown) {
  using K = vector::CombiningKind;
  switch (kind) {
  case K::ADD:
    return x + y;
  case K::MUL:
    return x * y;
  case K::MAXSI:
  case K::MAXIMUMF:
  case K::MAXNUMF:
    return x != x ? x : y != y ? y : std::max(x, y);
  case K::MINSI:
  case K::MINIMUMF:
  case K::MINNUMF:
    return x != x ? x : y != y ? y : std::min(x, y);
  default:
    isKnown = false;
    return x;
  }
}

template <class T>
static Tensor reduce(vector::CombiningKind kind, const Tensor &x, const Tensor *initial,
                     bool &isKnown) {
  Tensor result = Tensor::make<T>(x.rows, 1, x.shared);
  for (int64_t row = 0; row < x.rows; ++row) {
    const T *values = x.as<T>().data() + row * x.width;
    T sum = values[0];
    for (int64_t column = 1; column < x.width; ++column)
      sum = combine(kind, sum, values[column], isKnown);
    if (initial)
      sum = combine(kind, sum, initial->as<T>()[initial->at(row, 0)], isKnown);
    result.as<T>()[row] = sum;
  }
  return result;
}

static Error evaluateReduction(Evaluator &e, vector::ReductionOp op) {
  Tensor x = e.get(op.getVector());
  const Tensor *initial = op.getAcc() ? &e.get(op.getAcc()) : nullptr;
  if (initial && !initial->shared)
    x = repeatRows(x, initial->rows);
  bool isKnown = true;
  Tensor result = x.isFloat() ? reduce<double>(op.getKind(), x, initial, isKnown)
                              : reduce<int64_t>(op.getKind(), x, initial, isKnown);
  if (!isKnown)
    return fail(op, "reduces by a kind that the interpreter lacks");
  e.set(op.getDest(), std::move(result));
  return Error::success();
}

static Error evaluateExtractSlice(Evaluator &e, vector::ExtractStridedSliceOp op) {
  const Tensor &x = e.get(op.getOperand());
  Tensor result = makeLike(op.getType(), x);
  copyColumns(x, cast<IntegerAttr>(op.getOffsets()[0]).getInt(), result, 0, result.width);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

/// `into` with elements [offset, offset + width of x) of each row replaced by `x`.
static Tensor insertColumns(const Tensor &x, const Tensor &into, int64_t offset) {
  Tensor result = into.shared && !x.shared ? repeatRows(into, x.rows) : into;
  copyColumns(x, 0, result, offset, x.width);
  return result;
}

static Error evaluateInsertSlice(Evaluator &e, vector::InsertStridedSliceOp op) {
  int64_t offset = cast<IntegerAttr>(op.getOffsets()[0]).getInt();
  e.set(op.getResult(), insertColumns(e.get(op->getOperand(0)), e.get(op.getDest()), offset));
  return Error::success();
}

static Error evaluateExtract(Evaluator &e, vector::ExtractOp op) {
  if (op.hasDynamicPosition() || op.getStaticPosition().size() != 1)
    return fail(op, "extracts by other than one static position");
  const Tensor &x = e.get(op.getSource());
  Tensor result = makeLike(op.getType(), x);
  copyColumns(x, op.getStaticPosition()[0], result, 0, 1);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateInsert(Evaluator &e, vector::InsertOp op) {
  if (op.hasDynamicPosition() || op.getStaticPosition().size() != 1)
    return fail(op, "inserts by other than one static position");
  e.set(op.getResult(),
        insertColumns(e.get(op.getValueToStore()), e.get(op.getDest()), op.getStaticPosition()[0]));
  return Error::success();
}

static Error evaluateFromElements(Evaluator &e, vector::FromElementsOp op) {
  Tensor result = makeTensor(op.getType(), e.kernelRows->count);
  for (auto [column, element] : llvm::enumerate(op.getElements()))
    copyColumns(e.get(element), 0, result, static_cast<int64_t>(column), 1);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

static void addFloatOps(HandlerMap &map) {
  map.addGeneric<arith::AddFOp>(floatBinary<+[](double x, double y) { return x + y; }>);
  map.addGeneric<arith::SubFOp>(floatBinary<+[](double x, double y) { return x - y; }>);
  map.addGeneric<arith::MulFOp>(floatBinary<+[](double x, double y) { return x * y; }>);
  map.addGeneric<arith::DivFOp>(floatBinary<+[](double x, double y) { return x / y; }>);
  map.addGeneric<arith::MaximumFOp>(floatBinary<largerOrNan>);
  map.addGeneric<arith::MinimumFOp>(floatBinary<smallerOrNan>);
  map.addGeneric<arith::MaxNumFOp>(
      floatBinary<+[](double x, double y) { return std::fmax(x, y); }>);
  map.addGeneric<arith::MinNumFOp>(
      floatBinary<+[](double x, double y) { return std::fmin(x, y); }>);
  map.addGeneric<arith::NegFOp>(floatUnary<+[](double x) { return -x; }>);
  map.addGeneric<math::AbsFOp>(floatUnary<+[](double x) { return std::fabs(x); }>);
  map.addGeneric<math::ExpOp>(floatUnary<+[](double x) { return std::exp(x); }>);
  map.addGeneric<math::ExpM1Op>(floatUnary<+[](double x) { return std::expm1(x); }>);
  map.addGeneric<math::LogOp>(floatUnary<+[](double x) { return std::log(x); }>);
  map.addGeneric<math::Log1pOp>(floatUnary<+[](double x) { return std::log1p(x); }>);
  map.addGeneric<math::SqrtOp>(floatUnary<+[](double x) { return std::sqrt(x); }>);
  map.addGeneric<math::RsqrtOp>(floatUnary<+[](double x) { return 1.0 / std::sqrt(x); }>);
  map.addGeneric<math::SinOp>(floatUnary<+[](double x) { return std::sin(x); }>);
  map.addGeneric<math::CosOp>(floatUnary<+[](double x) { return std::cos(x); }>);
  map.addGeneric<math::TanhOp>(floatUnary<+[](double x) { return std::tanh(x); }>);
  map.addGeneric<math::ErfOp>(floatUnary<+[](double x) { return std::erf(x); }>);
  map.addGeneric<math::PowFOp>(floatBinary<+[](double x, double y) { return std::pow(x, y); }>);
  map.addGeneric<math::FloorOp>(floatUnary<+[](double x) { return std::floor(x); }>);
  map.addGeneric<math::CeilOp>(floatUnary<+[](double x) { return std::ceil(x); }>);
  map.addGeneric<math::TruncOp>(floatUnary<+[](double x) { return std::trunc(x); }>);
  map.addGeneric<math::CopySignOp>(
      floatBinary<+[](double x, double y) { return std::copysign(x, y); }>);
  map.add<math::FmaOp, evaluateFma>();
}

static void addIntegerOps(HandlerMap &map) {
  map.addGeneric<arith::AddIOp>(unsignedBinary<+[](uint64_t x, uint64_t y) { return x + y; }>);
  map.addGeneric<arith::SubIOp>(unsignedBinary<+[](uint64_t x, uint64_t y) { return x - y; }>);
  map.addGeneric<arith::MulIOp>(unsignedBinary<+[](uint64_t x, uint64_t y) { return x * y; }>);
  map.addGeneric<arith::AndIOp>(unsignedBinary<+[](uint64_t x, uint64_t y) { return x & y; }>);
  map.addGeneric<arith::OrIOp>(unsignedBinary<+[](uint64_t x, uint64_t y) { return x | y; }>);
  map.addGeneric<arith::XOrIOp>(unsignedBinary<+[](uint64_t x, uint64_t y) { return x ^ y; }>);
  map.addGeneric<arith::ShLIOp>(
      unsignedBinary<+[](uint64_t x, uint64_t y) { return y < 64 ? x << y : 0; }>);
  map.addGeneric<arith::ShRUIOp>(
      unsignedBinary<+[](uint64_t x, uint64_t y) { return y < 64 ? x >> y : 0; }>);
  map.addGeneric<arith::MaxUIOp>(
      unsignedBinary<+[](uint64_t x, uint64_t y) { return std::max(x, y); }>);
  map.addGeneric<arith::MinUIOp>(
      unsignedBinary<+[](uint64_t x, uint64_t y) { return std::min(x, y); }>);
  map.addGeneric<arith::ShRSIOp>(
      signedBinary<+[](int64_t x, int64_t y) { return x >> std::clamp<int64_t>(y, 0, 63); }>);
  map.addGeneric<arith::MaxSIOp>(
      signedBinary<+[](int64_t x, int64_t y) { return std::max(x, y); }>);
  map.addGeneric<arith::MinSIOp>(
      signedBinary<+[](int64_t x, int64_t y) { return std::min(x, y); }>);
  map.addGeneric<arith::DivSIOp>(signedDivision<divide>);
  map.addGeneric<arith::RemSIOp>(signedDivision<remainder>);
}

void interpreter::addArithOps(HandlerMap &map) {
  addFloatOps(map);
  addIntegerOps(map);
  map.add<arith::ConstantOp, evaluateConstant>();
  map.add<arith::CmpFOp, evaluateCmpF>();
  map.add<arith::CmpIOp, evaluateCmpI>();
  map.add<arith::SelectOp, evaluateArithSelect>();
  map.addGeneric<arith::ExtFOp>(evaluateCopy);
  map.add<arith::TruncFOp, evaluateTruncF>();
  map.addGeneric<arith::TruncIOp>(evaluateCopy);
  map.addGeneric<arith::IndexCastOp>(evaluateCopy);
  map.addGeneric<arith::ExtSIOp>(extend</*isSigned=*/true>);
  map.addGeneric<arith::ExtUIOp>(extend</*isSigned=*/false>);
  map.addGeneric<arith::SIToFPOp>(toFloat</*isSigned=*/true>);
  map.addGeneric<arith::UIToFPOp>(toFloat</*isSigned=*/false>);
  map.add<arith::FPToSIOp, evaluateFPToSI>();
  map.add<vector::BroadcastOp, evaluateBroadcast>();
  map.add<vector::ReductionOp, evaluateReduction>();
  map.add<vector::ExtractStridedSliceOp, evaluateExtractSlice>();
  map.add<vector::InsertStridedSliceOp, evaluateInsertSlice>();
  map.add<vector::ExtractOp, evaluateExtract>();
  map.add<vector::InsertOp, evaluateInsert>();
  map.add<vector::FromElementsOp, evaluateFromElements>();
}
