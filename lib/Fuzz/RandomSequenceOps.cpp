//===- RandomSequenceOps.cpp - ops on lists, attention, HSTU blocks -------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

bool fuzz::makeFanout(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  FlatSymbolRefAttr from = getRowDomain(x.getType());
  DomainEntry *to =
      m.findDomain([&](const DomainEntry &d) { return isAncestor(m.model, from, d.name); });
  if (!to)
    return false;
  m.offer(m.value("fanout", m.rows(to->name, getRowShape(x.getType()), m.f32()), {x, to->value}));
  return true;
}

static bool makePool(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  FlatSymbolRefAttr from = getRowDomain(x.getType());
  bool direct = m.chance(70);
  DomainEntry *to = m.findDomain([&](const DomainEntry &d) {
    return direct ? m.entry(from).parent == d.name : isAncestor(m.model, d.name, from);
  });
  if (!to)
    return false;
  bool far = m.entry(from).parent != to->name;
  auto kind = far ? PoolKind::sum : static_cast<PoolKind>(m.integer(0, 4));
  m.offer(m.pool(x, kind, *to));
  return true;
}

static bool makeShift(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x)
    return false;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  Operation *op =
      m.make(m.chance(50) ? "lead" : "lag", {x.getType(), m.rows(domain, {}, m.boolean())}, x,
             m.i64("distance", m.integer(1, 2)));
  m.offer(op->getResult(0));
  m.offer(op->getResult(1));
  return true;
}

static bool makePosition(ModelBuilder &m) {
  DomainEntry *domain = m.findDomain([](const DomainEntry &d) { return bool(d.parent); });
  if (!domain)
    return false;
  SmallVector<NamedAttribute> attributes;
  if (m.chance(50))
    attributes.push_back(m.unit("from_end"));
  Value position =
      m.value("position", m.rows(domain->name, {}, m.integerType()), domain->value, attributes);
  m.offer(position);
  int64_t size = m.rowSize();
  m.offer(m.value("embedding", m.rows(domain->name, {size}, m.f32()),
                  {position, m.parameter({m.integer(2, 8), size})}));
  return true;
}

static bool makeLength(ModelBuilder &m) {
  DomainEntry *domain = m.findDomain([](const DomainEntry &d) { return bool(d.parent); });
  if (!domain)
    return false;
  Value length = m.value("length", m.rows(domain->parent, {}, m.integerType()), domain->value);
  m.offer(length);
  Value scale = m.value("cast", m.rows(domain->parent, {}, m.f32()), length);
  m.offer(scale);
  return true;
}

static bool makeSplit(ModelBuilder &m) {
  DomainEntry *joined =
      m.findDomain([](const DomainEntry &d) { return d.sources.size() > 1 && !d.isPairs; });
  if (!joined)
    return false;
  Value x = m.find(m.f32(), joined->name, -1);
  if (!x)
    return false;
  int64_t part = m.integer(0, static_cast<int64_t>(joined->sources.size()) - 1);
  DomainEntry &target = m.entry(joined->sources[part]);
  m.offer(m.value("split_rows", m.rows(target.name, getRowShape(x.getType()), m.f32()),
                  {x, target.value}, m.i64("part", part)));
  return true;
}

/// Biases, times and options of attention and of the HSTU block.
struct AttentionParts {
  SmallVector<Value> biases;
  SmallVector<NamedAttribute> attributes;
  bool position, time, target;
};

static AttentionParts makeAttentionParts(ModelBuilder &m, DomainEntry &domain, int64_t heads,
                                         bool silu) {
  AttentionParts parts;
  parts.position = m.chance(50);
  if (parts.position)
    parts.biases.push_back(m.parameter({2 * m.integer(0, 4) + 1}));
  parts.time = domain.kind == DomainKind::data && m.chance(40);
  if (parts.time) {
    parts.biases.push_back(m.parameter({m.integer(1, 40)}));
    DomainOp op = lookupDomain(m.model, domain.name);
    parts.biases.push_back(m.feature(domain, (*op.getColumn() + ".time").str(), m.integerType()));
    if (m.chance(40))
      parts.attributes.push_back(m.unit("next_event_time"));
  }
  // The length of another list of the same parent, which may be shorter or longer.
  DomainEntry *counted =
      m.findDomain([&](const DomainEntry &d) { return d.parent == domain.parent; });
  parts.target = counted && m.chance(30);
  if (parts.target)
    parts.biases.push_back(
        m.value("length", m.rows(domain.parent, {}, m.integerType()), counted->value));
  if (m.chance(25))
    parts.attributes.push_back(m.i64("contextual", m.integer(1, 3)));
  auto score = silu ? ScoreKind::silu : ScoreKind::softmax;
  parts.attributes.push_back(m.named("score", ScoreKindAttr::get(m.builder.getContext(), score)));
  parts.attributes.push_back(m.i64("heads", heads));
  parts.attributes.push_back(m.stream());
  if (m.chance(60))
    parts.attributes.push_back(m.unit("causal"));
  if (m.chance(30))
    parts.attributes.push_back(m.i64("window", m.integer(1, 4)));
  if (m.chance(40))
    parts.attributes.push_back(m.f64("scale", m.real(0.2, 0.8)));
  if (silu && m.chance(60))
    parts.attributes.push_back(m.f64("fixed_length", m.real(2.0, 9.0)));
  if (m.chance(40))
    parts.attributes.push_back(m.f64("dropout", m.real(0.1, 0.5)));
  return parts;
}

static bool makeAttention(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  DomainEntry &domain = m.entry(getRowDomain(x.getType()));
  if (!domain.parent)
    return false;
  FlatSymbolRefAttr name = domain.name;
  int64_t heads = m.integer(1, 3), qk = m.integer(1, 5), dv = m.integer(1, 5);
  x = m.bounded(x);
  SmallVector<Value> operands;
  for (int64_t size : {qk, qk, dv}) {
    Value y = m.value("linear", m.rows(name, {heads * size}, m.f32()),
                      {x, m.parameter({getRowSize(x.getType()), heads * size})});
    operands.push_back(y);
  }
  AttentionParts parts = makeAttentionParts(m, m.entry(name), heads, m.chance(50));
  llvm::append_range(operands, parts.biases);
  m.offer(m.value("attention", operands[2].getType(), operands, parts.attributes,
                  {1, 1, 1, parts.position, parts.time, parts.time, parts.target}));
  return true;
}

/// `isWide`: 32 columns, and heads of whole multiples of 8.
static bool makeBlock(ModelBuilder &m, bool isWide) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return false;
  DomainEntry &domain = m.entry(getRowDomain(x.getType()));
  if (!domain.parent)
    return false;
  int64_t heads = m.integer(1, 2), qk = m.integer(1, 4), dv = m.integer(2, 4);
  int64_t size = getRowSize(x.getType());
  if (isWide) {
    qk = 8 * m.integer(1, 2), dv = 8;
    x = m.value("linear", m.rows(domain.name, {32}, m.f32()),
                {m.bounded(x), m.parameter({size, 32})});
    size = 32;
  }
  if (size < 2)
    return false; // see makeNorm
  SmallVector<Value> operands{x, m.parameter({size, 2 * heads * (qk + dv)}),
                              m.parameter({heads * dv, size}), m.parameter({size})};
  AttentionParts parts = makeAttentionParts(m, domain, heads, /*silu=*/true);
  llvm::append_range(operands, parts.biases);
  parts.attributes.append({m.i64("qk", qk), m.i64("dv", dv), m.f64("eps", 0.01)});
  if (m.chance(50))
    parts.attributes.push_back(m.f64("linear_dropout", 0.3));
  m.nextStream += 1; // the block uses two streams
  m.offer(m.value("hstu_block", x.getType(), operands, parts.attributes,
                  {1, 1, 1, 1, parts.position, parts.time, parts.time, parts.target}));
  return true;
}

static bool makeTile(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, -1);
  if (!x || !m.entry(getRowDomain(x.getType())).parent)
    return false;
  DomainEntry &parent = m.entry(m.entry(getRowDomain(x.getType())).parent);
  int64_t count = m.integer(1, 3);
  if (count * getRowSize(x.getType()) > 4 * m.options.longestRow)
    return false;
  auto keep = static_cast<KeepKind>(m.integer(0, 1));
  m.offer(m.value(
      "tile", m.rows(parent.name, {count * getRowSize(x.getType())}, m.f32()), {x, parent.value},
      {m.i64("count", count), m.named("keep", KeepKindAttr::get(m.builder.getContext(), keep))}));
  return true;
}

static bool makeCrossAttention(ModelBuilder &m) {
  // Keys are rows of the second list or the pairs themselves; queries are rows of the first list.
  DomainEntry *pairs = m.findDomain([](const DomainEntry &d) { return d.isPairs; });
  if (!pairs)
    return false;
  Value query = m.find(m.f32(), pairs->sources[0], 1),
        other = m.find(m.f32(), m.chance(50) ? pairs->name : pairs->sources[1], 1);
  if (!query || !other)
    return false;
  int64_t heads = m.integer(1, 2), qk = heads * m.integer(1, 4), dv = heads * m.integer(1, 4);
  auto project = [&](Value x, int64_t size) {
    x = m.bounded(x);
    return m.value("linear", m.rows(getRowDomain(x.getType()), {size}, m.f32()),
                   {x, m.parameter({getRowSize(x.getType()), size})});
  };
  m.offer(m.value("cross_attention", m.rows(getRowDomain(query.getType()), {dv}, m.f32()),
                  {project(query, qk), project(other, qk), project(other, dv)},
                  {m.i64("heads", heads), m.f64("scale", m.real(0.2, 0.9))}));
  return true;
}

/// The product of both rows of every pair, which depends on the pair as a whole.
static bool makePairProduct(ModelBuilder &m) {
  DomainEntry *pairs = m.findDomain([](const DomainEntry &d) { return d.isPairs; });
  if (!pairs)
    return false;
  Value first = m.find(m.f32(), pairs->sources[0], 1),
        second = m.find(m.f32(), pairs->sources[1], 1);
  if (!first || !second)
    return false;
  int64_t size = m.rowSize();
  Type type = m.rows(pairs->name, {size}, m.f32());
  Value above = m.bounded(m.resize(first, size)), beside = m.bounded(m.resize(second, size));
  m.offer(m.value("mul", type,
                  {m.value("fanout", type, {above, pairs->value}),
                   m.value("pair_rows", type, {beside, pairs->value})}));
  return true;
}

static bool makeHstuBlock(ModelBuilder &m) { return makeBlock(m, /*isWide=*/false); }
bool fuzz::makeWideBlock(ModelBuilder &m) { return makeBlock(m, /*isWide=*/true); }

ArrayRef<Theme> fuzz::getSequenceThemes() {
  static constexpr Theme themes[] = {
      makeFanout,    makeFanout,         makePool,       makePool, makeShift,
      makeLength,    makePosition,       makeSplit,      makeTile, makeAttention,
      makeHstuBlock, makeCrossAttention, makePairProduct};
  return themes;
}
