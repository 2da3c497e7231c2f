//===- RandomRowOps.cpp - arithmetic, norms, dense layers -----------------===//

#include "genrec/Fuzz/ModelBuilder.h"

#include <algorithm>

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// A shared number.
static Value makeNumber(ModelBuilder &m, float value) {
  auto type = RankedTensorType::get({}, m.f32());
  return m.value("constant", type, {}, m.named("value", DenseElementsAttr::get(type, {value})));
}

/// A unary op. Its operand is first brought into the op's range.
static bool makeUnary(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  static constexpr StringLiteral anywhere[] = {"neg",  "abs",  "square", "tanh", "sigmoid",
                                               "silu", "relu", "gelu",   "erf",  "softplus"};
  static constexpr StringLiteral positive[] = {"sqrt", "rsqrt", "log", "log1p"};
  Type type = x.getType();
  if (m.chance(25)) {
    // softplus(x) + constant: positive and not near 0, where these functions are steep.
    x = m.value("add", type, {m.value("softplus", type, x), makeNumber(m, 0.5f)});
    m.offer(m.value(m.pick(positive), type, x));
  } else if (m.chance(15)) {
    m.offer(m.value("exp", type, m.bounded(x)));
  } else {
    m.offer(m.value(m.pick(anywhere), type, x));
  }
  return true;
}

/// A second operand for x: rows of its domain, or a shared tensor.
static Value makeSecond(ModelBuilder &m, Value x) {
  ArrayRef<int64_t> shape = getRowShape(x.getType());
  if (m.chance(30))
    return m.parameter(m.chance(50) ? ArrayRef<int64_t>() : shape);
  Value other = m.find(m.f32(), getRowDomain(x.getType()), -1);
  if (getRowShape(other.getType()) != shape && !getRowShape(other.getType()).empty())
    return m.resize(other, shape.empty() ? 0 : shape[0]);
  return other;
}

static bool makeBinary(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  static constexpr StringLiteral names[] = {"add", "sub", "mul", "maximum", "minimum"};
  Value y = makeSecond(m, x);
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  ArrayRef<int64_t> shape = getRowShape(x.getType());
  Type type = m.rows(domain, shape, m.f32());
  if (m.chance(15)) {
    // A divisor between 1 and e.
    Value divisor = m.value("exp", y.getType(), m.value("sigmoid", y.getType(), y));
    m.offer(m.value("div", type, {x, divisor}));
    return true;
  }
  m.offer(m.value(m.pick(names), type, {x, y}));
  return true;
}

static bool makeSelect(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  ArrayRef<int64_t> shape = getRowShape(x.getType());
  auto kind = m.named("kind", CompareKindAttr::get(m.builder.getContext(),
                                                   static_cast<CompareKind>(m.integer(0, 5))));
  Value condition = m.find(m.boolean(), domain, 0);
  if (!condition || m.chance(60)) {
    // Compares integers: with computed floats, rounding could change the result.
    Value left = m.find(m.integerType(), domain, 0);
    Value right = m.find(m.integerType(), domain, 0);
    if (!left)
      return false;
    condition = m.value("compare", m.rows(domain, {}, m.boolean()), {left, right}, kind);
    if (!m.offer(condition))
      return false;
  }
  Value other = makeSecond(m, x);
  m.offer(m.value("select", m.rows(domain, shape, m.f32()), {condition, x, other}));
  return true;
}

static bool makeRowReduce(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  m.offer(m.value("row_reduce", m.rows(getRowDomain(x.getType()), {}, m.f32()), x,
                  m.named("kind", ReduceKindAttr::get(m.builder.getContext(),
                                                      static_cast<ReduceKind>(m.integer(0, 2))))));
  return true;
}

static bool makeColumns(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  int64_t size = getRowSize(x.getType());
  if (m.chance(50)) {
    int64_t offset = m.integer(0, size - 1);
    m.offer(m.value("slice_columns", m.rows(domain, {m.integer(1, size - offset)}, m.f32()), x,
                    m.i64("offset", offset)));
    return true;
  }
  SmallVector<Value> parts{x};
  for (int64_t i = m.integer(0, 2); i > 0; --i) {
    parts.push_back(m.find(m.f32(), domain, -1));
    size += getRowSize(parts.back().getType());
  }
  if (size > 4 * m.options.longestRow)
    return false;
  Value joined = m.value("concat_columns", m.rows(domain, {size}, m.f32()), parts);
  m.offer(joined);
  // Slices a concatenation at its joint, which a rewrite undoes.
  if (m.chance(40))
    m.offer(m.value("slice_columns", x.getType(), joined, m.i64("offset", 0)));
  return true;
}

bool fuzz::makeJoinedScalars(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  SmallVector<Value> parts{m.resize(x, 0)};
  for (int64_t i = m.integer(1, 5); i > 0; --i)
    parts.push_back(m.resize(m.find(m.f32(), domain, -1), 0));
  auto size = static_cast<int64_t>(parts.size());
  Value joined = m.value("concat_columns", m.rows(domain, {size}, m.f32()), parts);
  m.offer(joined);
  m.offer(m.resize(m.chance(50) ? m.value("silu", joined.getType(), joined) : joined, 0));
  return true;
}

/// A part of a wide join: as it is, or made of its number, of a constant of its own, or of what
/// other parts are made of.
static Value makePart(ModelBuilder &m, Value x, Value shared) {
  x = m.bounded(x);
  const int64_t kind = m.integer(0, 3);
  if (kind == 0)
    return x;
  x = m.resize(x, 0);
  if (kind == 1)
    return m.value("add", x.getType(), {x, makeNumber(m, 0.125f * m.integer(-8, 8))});
  return kind == 2 ? m.value("mul", x.getType(), {x, shared}) : m.value("relu", x.getType(), x);
}

bool fuzz::makeWideJoin(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  Value shared = m.bounded(m.resize(x, 0));
  SmallVector<Value> parts;
  for (int64_t i = m.integer(16, 22); i > 0; --i)
    parts.push_back(makePart(m, m.find(m.f32(), domain, -1), shared));
  Value joined = m.concat(parts, domain);
  // A kernel that makes nothing else.
  const int64_t columns = m.rowSize();
  m.offer(m.value("linear", m.rows(domain, {columns}, m.f32()),
                  {joined, m.parameter({getRowSize(joined.getType()), columns})}));
  if (m.chance(30))
    m.offer(joined);
  return true;
}

/// Whether all rows of `x` come from a table of equal initial values.
static bool hasEqualElements(Value x) {
  auto lookup = x.getDefiningOp<LookupOp>();
  if (!lookup)
    return false;
  auto table = SymbolTable::lookupNearestSymbolFrom<TableOp>(lookup, lookup.getTableAttr());
  return table && table.getInit().getKind() == InitKind::constant;
}

static bool makeNorm(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  // Normalised rows of one element are constant. Their gradients would be 0 but for rounding, which
  // would decide whether a table row is updated.
  if (!x || getRowSize(x.getType()) < 2)
    return false;
  Type type = x.getType();
  int64_t size = getRowSize(type);
  // With a small eps, rounding errors would be magnified for rows that are nearly constant.
  static constexpr double choices[] = {0.05, 0.3, 1.5};
  auto eps = m.f64("eps", m.pick(choices));
  bool scale = m.chance(50), bias = m.chance(50);
  SmallVector<Value> operands{x};
  switch (m.integer(0, 2)) {
  case 0:
    // The result would be 0 but for rounding, which would decide the order of a ranking.
    if (hasEqualElements(x))
      return false;
    if (scale)
      operands.push_back(m.parameter({size}));
    if (bias)
      operands.push_back(m.parameter({size}));
    // Without a scale the mean of the result is 0: a parameter keeps sums over it away from 0.
    m.offer(m.value(
        "mul", type,
        {m.value("layer_norm", type, operands, eps, {1, scale, bias}), m.parameter({size})}));
    return true;
  case 1:
    if (scale)
      operands.push_back(m.parameter({size}));
    m.offer(m.value("rms_norm", type, operands, eps));
    return true;
  default:
    m.offer(m.value("l2_normalize", type, operands, eps));
    return true;
  }
}

static bool makeDropout(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  m.offer(m.value("dropout", x.getType(), x, {m.f64("rate", m.real(0.1, 0.6)), m.stream()}));
  return true;
}

static bool makeLinear(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  int64_t in = getRowSize(x.getType()), out = m.rowSize();
  bool transposed = m.chance(30);
  SmallVector<Value> operands{x, transposed ? m.parameter({out, in}) : m.parameter({in, out})};
  if (m.chance(60))
    operands.push_back(m.parameter({out}));
  SmallVector<NamedAttribute> attributes;
  if (transposed)
    attributes.push_back(m.unit("transposed"));
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  Type type = m.rows(domain, {out}, m.f32());
  Value y = m.value("linear", type, operands, attributes);
  // Activations that fold into the product.
  static constexpr StringLiteral activations[] = {"relu", "silu", "gelu", "sigmoid", "tanh"};
  if (m.chance(40))
    y = m.value(m.pick(activations), type, y);
  if (m.chance(30)) {
    Value other = m.find(m.f32(), domain, 1);
    y = m.value("add", type,
                {getRowSize(other.getType()) == out ? other : m.resize(other, out), y});
  }
  m.offer(y);
  return true;
}

/// x mapped to rows of shape [size] by a linear layer.
static Value project(ModelBuilder &m, Value x, int64_t size) {
  return m.value("linear", m.rows(getRowDomain(x.getType()), {size}, m.f32()),
                 {x, m.parameter({getRowSize(x.getType()), size})});
}

/// Dot products of all pairs of `count` vectors of x, one by one, as a loop in Python has them: in
/// the order of the op or in another one.
static Value makePairs(ModelBuilder &m, Value x, int64_t count, bool self, bool isUpper) {
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  const int64_t size = getRowSize(x.getType()) / count;
  Type vector = m.rows(domain, {size}, m.f32()), scalar = m.rows(domain, {}, m.f32());
  SmallVector<Value> vectors, dots;
  for (int64_t i = 0; i < count; ++i)
    vectors.push_back(m.value("slice_columns", vector, x, m.i64("offset", i * size)));
  auto sum = m.named("kind", ReduceKindAttr::get(m.builder.getContext(), ReduceKind::sum));
  for (int64_t i = 0; i < count; ++i)
    for (int64_t j = isUpper ? i : 0; j < (isUpper ? count : i + 1); ++j)
      if (i != j || self)
        dots.push_back(
            m.value("row_reduce", scalar, m.value("mul", vector, {vectors[i], vectors[j]}), sum));
  const auto pairs = static_cast<int64_t>(dots.size());
  return m.value("concat_columns", m.rows(domain, {pairs}, m.f32()), dots);
}

static bool makeInteraction(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  int64_t count = m.integer(2, 4), size = m.integer(1, 5);
  bool self = m.chance(40);
  if (count == 4 && size > 3) {
    // By these draws, so that models without pairs stay what they were before there were pairs.
    m.offer(makePairs(m, project(m, m.bounded(x), 16), 8, self, /*isUpper=*/size == 5));
    return true;
  }
  SmallVector<NamedAttribute> attributes{m.i64("count", count)};
  if (self)
    attributes.push_back(m.unit("self"));
  Value vectors = project(m, m.bounded(x), count * size);
  int64_t pairs = count * (self ? count + 1 : count - 1) / 2;
  m.offer(m.value("dot_interaction", m.rows(domain, {pairs}, m.f32()), vectors, attributes));
  return true;
}

static bool makeCrossLayer(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  x = m.bounded(x);
  int64_t size = getRowSize(x.getType());
  bool isLowRank = m.chance(50);
  int64_t rank = isLowRank ? m.integer(1, size) : size;
  SmallVector<Value> operands{x, m.chance(50) ? x : project(m, x, size), m.parameter({rank, size}),
                              m.parameter({size})};
  if (isLowRank)
    operands.push_back(m.parameter({size, rank}));
  m.offer(m.value("cross_layer", x.getType(), operands));
  return true;
}

static bool makeMixture(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  if (m.chance(30)) {
    m.offer(m.value("softmax", x.getType(), m.bounded(x)));
    return true;
  }
  int64_t count = m.integer(2, 4), size = m.integer(1, 4);
  // Adds constants to the logits, so that rounding cannot decide which of them are the largest.
  Value logits = project(m, m.bounded(x), count);
  SmallVector<NamedAttribute> attributes;
  if (m.chance(50)) {
    SmallVector<float> steps;
    for (int64_t i = 0; i < count; ++i)
      steps.push_back(static_cast<float>(3 * i));
    std::shuffle(steps.begin(), steps.end(), m.random);
    auto type = RankedTensorType::get({count}, m.f32());
    Value apart =
        m.value("constant", type, {}, m.named("value", DenseElementsAttr::get<float>(type, steps)));
    logits = m.value("add", logits.getType(), {m.bounded(logits), apart});
    attributes.push_back(m.i64("top_k", m.integer(1, count)));
  }
  m.offer(m.value("mixture", m.rows(domain, {size}, m.f32()), {project(m, x, count * size), logits},
                  attributes));
  return true;
}

ArrayRef<Theme> fuzz::getRowThemes() {
  static constexpr Theme themes[] = {makeUnary,   makeUnary,   makeBinary,      makeBinary,
                                     makeSelect,  makeColumns, makeRowReduce,   makeNorm,
                                     makeDropout, makeLinear,  makeInteraction, makeCrossLayer,
                                     makeMixture};
  return themes;
}
