//===- ElementwiseOps.cpp - transforms and elementwise arithmetic ---------===//

#include "genrec/Interpreter/Evaluator.h"
#include "Random.h"

#include <cmath>
#include <limits>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Unary functions
//===----------------------------------------------------------------------===//

// Both forms avoid exp of a large positive number.
double interpreter::sigmoid(double x) {
  if (x >= 0)
    return 1.0 / (1.0 + std::exp(-x));
  double e = std::exp(x);
  return e / (1.0 + e);
}
double interpreter::silu(double x) { return x * sigmoid(x); }
double interpreter::siluSlope(double x) {
  double s = sigmoid(x);
  return s + x * s * (1.0 - s);
}
double interpreter::logSumExp(ArrayRef<double> values) {
  double largest = *llvm::max_element(values), sum = 0;
  for (double value : values)
    sum += std::exp(value - largest);
  return largest + std::log(sum);
}

double interpreter::softplus(double x) {
  return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)));
}
double interpreter::gelu(double x) { return x * (1.0 + std::erf(x * M_SQRT1_2)) / 2.0; }

static double negate(double x) { return -x; }
static double absolute(double x) { return std::abs(x); }
static double square(double x) { return x * x; }
static double squareRoot(double x) { return std::sqrt(x); }
static double reciprocalRoot(double x) { return 1.0 / std::sqrt(x); }
static double exponential(double x) { return std::exp(x); }
static double logarithm(double x) { return std::log(x); }
static double logarithmOfSuccessor(double x) { return std::log1p(x); }
static double sine(double x) { return std::sin(x); }
static double cosine(double x) { return std::cos(x); }
static double hyperbolicTangent(double x) { return std::tanh(x); }
static double errorFunction(double x) { return std::erf(x); }
static double relu(double x) { return x > 0 || x != x ? x : 0.0; }

template <class OpT, double (*function)(double)> static Error evaluateUnary(Evaluator &e, OpT op) {
  e.set(op.getResult(), mapElements<double, double>(e.get(op.getX()), function));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Binary functions
//===----------------------------------------------------------------------===//

// Integers wrap. The sum is unsigned, as signed overflow is undefined in C++.
template <class T> static T plus(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
  else
    return x + y;
}
template <class T> static T minus(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) - static_cast<uint64_t>(y));
  else
    return x - y;
}
template <class T> static T times(T x, T y) {
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
  else
    return x * y;
}
template <class T> static T larger(T x, T y) { return x != x ? x : y != y ? y : std::max(x, y); }
template <class T> static T smaller(T x, T y) { return x != x ? x : y != y ? y : std::min(x, y); }

template <class OpT, auto onFloats, auto onIntegers>
static Error evaluateBinary(Evaluator &e, OpT op) {
  const Tensor &lhs = e.get(op.getLhs()), &rhs = e.get(op.getRhs());
  e.set(op.getResult(), lhs.isFloat() ? zipElements<double, double>(lhs, rhs, onFloats)
                                      : zipElements<int64_t, int64_t>(lhs, rhs, onIntegers));
  return Error::success();
}

static Error evaluateDiv(Evaluator &e, DivOp op) {
  e.set(op.getResult(), zipElements<double, double>(e.get(op.getLhs()), e.get(op.getRhs()),
                                                    [](double x, double y) { return x / y; }));
  return Error::success();
}

template <class T> static bool holds(CompareKind kind, T x, T y) {
  switch (kind) {
  case CompareKind::eq:
    return x == y;
  case CompareKind::ne:
    return x != y;
  case CompareKind::lt:
    return x < y;
  case CompareKind::le:
    return x <= y;
  case CompareKind::gt:
    return x > y;
  case CompareKind::ge:
    return x >= y;
  }
  llvm_unreachable("every comparison is handled");
}

static Error evaluateCompare(Evaluator &e, CompareOp op) {
  const Tensor &lhs = e.get(op.getLhs()), &rhs = e.get(op.getRhs());
  CompareKind kind = op.getKind();
  auto compare = [&](auto x, auto y) -> int64_t { return holds(kind, x, y); };
  e.set(op.getResult(), lhs.isFloat() ? zipElements<int64_t, double>(lhs, rhs, compare)
                                      : zipElements<int64_t, int64_t>(lhs, rhs, compare));
  return Error::success();
}

template <class T>
static void select(const Tensor &condition, const Tensor &onTrue, const Tensor &onFalse,
                   Tensor &result) {
  size_t next = 0;
  forEachElement(result, [&](int64_t row, int64_t column) {
    const Tensor &chosen = condition.integers()[condition.at(row, column)] != 0 ? onTrue : onFalse;
    result.as<T>()[next++] = chosen.as<T>()[chosen.at(row, column)];
  });
}

static Error evaluateSelect(Evaluator &e, SelectOp op) {
  const Tensor &condition = e.get(op.getCondition());
  const Tensor &onTrue = e.get(op.getOnTrue()), &onFalse = e.get(op.getOnFalse());
  BroadcastShape shape({&condition, &onTrue, &onFalse});
  Tensor result = makeTensor(op.getType(), shape.rows);
  if (result.isFloat())
    select<double>(condition, onTrue, onFalse, result);
  else
    select<int64_t>(condition, onTrue, onFalse, result);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

int64_t interpreter::bucketOf(double x, ArrayRef<double> edges) {
  return llvm::count_if(edges, [&](double edge) { return edge <= x; });
}

int64_t interpreter::euclideanRemainder(int64_t x, int64_t divisor) {
  int64_t remainder = x % divisor;
  return remainder < 0 ? remainder + divisor : remainder;
}

template <class OpT> static Error evaluateHash(Evaluator &e, OpT op) {
  const Tensor &x = e.get(op.getX());
  uint64_t mask = llvm::maskTrailingOnes<uint64_t>(op.getBits()), seed = op.getSeed();
  HashKind kind = op.getKind();
  auto ofInteger = [&](int64_t value) -> int64_t { return hashInteger(kind, value, seed) & mask; };
  auto ofString = [&](StringRef value) -> int64_t { return hashBytes(kind, value, seed) & mask; };
  e.set(op.getResult(), x.isString() ? mapElements<int64_t, std::string>(x, ofString)
                                     : mapElements<int64_t, int64_t>(x, ofInteger));
  return Error::success();
}

static Error evaluateMultiHash(Evaluator &e, MultiHashOp op) {
  const Tensor &x = e.get(op.getX());
  uint64_t mask = llvm::maskTrailingOnes<uint64_t>(op.getBits());
  Tensor result = makeTensor(op.getType(), x.rows);
  size_t next = 0;
  forEachElement(result, [&](int64_t row, int64_t column) {
    uint64_t seed = static_cast<uint64_t>(op.getSeed()) + column;
    uint64_t hash = x.isString() ? hashBytes(op.getKind(), x.strings()[row], seed)
                                 : hashInteger(op.getKind(), x.integers()[row], seed);
    result.integers()[next++] = static_cast<int64_t>(hash & mask);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateCross(Evaluator &e, CrossOp op) {
  auto hash = [&](int64_t value, int64_t bits) {
    return static_cast<int64_t>(hashInteger(op.getKind(), value, op.getSeed()) &
                                llvm::maskTrailingOnes<uint64_t>(bits));
  };
  auto first = [&](int64_t value) { return hash(value, 63); };
  Tensor result = mapElements<int64_t, int64_t>(e.get(op.getColumns().front()), first);
  for (auto [index, column] : llvm::enumerate(op.getColumns().drop_front())) {
    int64_t bits = index + 2 == op.getColumns().size() ? op.getBits() : 63;
    result = zipElements<int64_t, int64_t>(
        result, e.get(column), [&](int64_t x, int64_t y) { return hash(plus(x, y), bits); });
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateMod(Evaluator &e, ModOp op) {
  int64_t divisor = op.getDivisor();
  e.set(op.getResult(), mapElements<int64_t, int64_t>(e.get(op.getX()), [&](int64_t value) {
          return euclideanRemainder(value, divisor);
        }));
  return Error::success();
}

template <class OpT> static Error evaluateBucketize(Evaluator &e, OpT op) {
  const Tensor &x = e.get(op.getX());
  auto bucket = [&](double value) { return bucketOf(value, op.getEdges()); };
  e.set(op.getResult(), x.isFloat() ? mapElements<int64_t, double>(x, bucket)
                                    : mapElements<int64_t, int64_t>(x, bucket));
  return Error::success();
}

/// Truncates towards 0 and saturates; NaN gives 0. i1 saturates at 0 and 1.
static int64_t saturate(double x, unsigned width) {
  if (std::isnan(x))
    return 0;
  if (width == 1)
    return x >= 1.0;
  double limit = std::ldexp(1.0, static_cast<int>(width) - 1);
  if (x >= limit)
    return llvm::maxIntN(width);
  return x < -limit ? llvm::minIntN(width) : static_cast<int64_t>(x);
}

static Error evaluateRoundFactor(Evaluator &e, RoundFactorOp op) {
  e.set(op.getResult(), mapElements<double, double>(e.get(op.getX()),
                                                    [&](double value) { return e.toBf16(value); }));
  return Error::success();
}

static Error evaluateCast(Evaluator &e, CastOp op) {
  const Tensor &x = e.get(op.getX());
  Type to = getElementTypeOrSelf(op.getType());
  bool toFloat = isa<FloatType>(to);
  unsigned width = to.getIntOrFloatBitWidth();
  Tensor result;
  if (x.isFloat() && to.isBF16())
    result = mapElements<double, double>(x, [&](double value) { return e.toBf16(value); });
  else if (x.isFloat() && toFloat)
    result = x;
  else if (x.isFloat())
    result = mapElements<int64_t, double>(x, [&](double value) { return saturate(value, width); });
  else if (toFloat)
    result = mapElements<double, int64_t>(x, [](int64_t value) { return double(value); });
  else if (width == 1)
    result = mapElements<int64_t, int64_t>(x, [](int64_t value) { return value != 0; });
  else
    result = x;
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static Error evaluateDropout(Evaluator &e, DropoutOp op) {
  Tensor result = e.get(op.getX());
  const DomainRows &rows = e.rowsOf(op.getType());
  double rate = op.getRate().convertToDouble();
  if (e.isTraining())
    forEachElement(result, [&](int64_t row, int64_t column) {
      double &value = result.row(row)[column];
      bool kept = e.keeps(rate, op.getStream(), rows.identity[row], column);
      value = kept ? value / (1.0 - rate) : 0.0;
    });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRandomUniform(Evaluator &e, RandomUniformOp op) {
  const DomainRows &rows = e.rowsOf(op.getType());
  Tensor result = makeTensor(op.getType(), rows.count);
  forEachElement(result, [&](int64_t row, int64_t column) {
    result.row(row)[column] = e.uniform(op.getStream(), rows.identity[row], column);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Registration
//===----------------------------------------------------------------------===//

template <class OpT, double (*function)(double)> static void addUnary(HandlerMap &map) {
  map.add<OpT, evaluateUnary<OpT, function>>();
}

template <class OpT, double (*onFloats)(double, double), int64_t (*onIntegers)(int64_t, int64_t)>
static void addBinary(HandlerMap &map) {
  map.add<OpT, evaluateBinary<OpT, onFloats, onIntegers>>();
}

void interpreter::addElementwiseOps(HandlerMap &map) {
  addUnary<NegOp, negate>(map);
  addUnary<AbsOp, absolute>(map);
  addUnary<SquareOp, square>(map);
  addUnary<SqrtOp, squareRoot>(map);
  addUnary<RsqrtOp, reciprocalRoot>(map);
  addUnary<ExpOp, exponential>(map);
  addUnary<LogOp, logarithm>(map);
  addUnary<Log1pOp, logarithmOfSuccessor>(map);
  addUnary<SinOp, sine>(map);
  addUnary<CosOp, cosine>(map);
  addUnary<TanhOp, hyperbolicTangent>(map);
  addUnary<ErfOp, errorFunction>(map);
  addUnary<SigmoidOp, sigmoid>(map);
  addUnary<SiluOp, silu>(map);
  addUnary<ReluOp, relu>(map);
  addUnary<GeluOp, gelu>(map);
  addUnary<SoftplusOp, softplus>(map);
  addBinary<AddOp, plus<double>, plus<int64_t>>(map);
  addBinary<SubOp, minus<double>, minus<int64_t>>(map);
  addBinary<MulOp, times<double>, times<int64_t>>(map);
  addBinary<MaximumOp, larger<double>, larger<int64_t>>(map);
  addBinary<MinimumOp, smaller<double>, smaller<int64_t>>(map);
  map.add<DivOp, evaluateDiv>();
  map.add<CompareOp, evaluateCompare>();
  map.add<SelectOp, evaluateSelect>();
  map.add<HashOp, evaluateHash<HashOp>>();
  map.add<RowHashOp, evaluateHash<RowHashOp>>();
  map.add<MultiHashOp, evaluateMultiHash>();
  map.add<CrossOp, evaluateCross>();
  map.add<ModOp, evaluateMod>();
  map.add<BucketizeOp, evaluateBucketize<BucketizeOp>>();
  map.add<RowBucketizeOp, evaluateBucketize<RowBucketizeOp>>();
  map.add<RoundFactorOp, evaluateRoundFactor>();
  map.add<CastOp, evaluateCast>();
  map.add<DropoutOp, evaluateDropout>();
  map.add<RandomUniformOp, evaluateRandomUniform>();
}
