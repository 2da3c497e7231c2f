//===- RandomDomains.cpp - domain trees, features and lookups -------------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// A random tree of data domains under @request.
static void declareDataDomains(ModelBuilder &m) {
  m.declareDomain("request", {}, DomainKind::data, "");
  int64_t count = m.options.deep ? m.options.lists : m.integer(1, m.options.lists);
  for (int64_t i = 0; i < count; ++i) {
    std::string name = "list" + std::to_string(i);
    FlatSymbolRefAttr parent =
        m.options.deep && m.chance(80) ? m.domains.back().name : m.pick(m.domains).name;
    std::string column = name;
    if (parent.getValue() != "request")
      column = lookupDomain(m.model, parent).getColumn()->str() + "." + name;
    m.declareDomain(name, parent, DomainKind::data, column);
  }
  SmallVector<Type> types;
  for (const DomainEntry &domain : m.domains)
    types.push_back(DomainType::get(m.builder.getContext(), domain.name));
  Operation *batch = m.make("batch", types, {});
  for (auto [domain, result] : llvm::zip_equal(m.domains, batch->getResults()))
    domain.value = result;
}

/// A vector per row: the lookup of an id in a new table or in that of an earlier feature.
static void makeLookup(ModelBuilder &m, const DomainEntry &domain, Value ids, Value valid,
                       FlatSymbolRefAttr table, int64_t dim) {
  SmallVector<Value> operands{ids};
  if (valid)
    operands.push_back(valid);
  m.offer(m.value("lookup", m.rows(domain.name, {dim}, m.f32()), operands, m.named("table", table)),
          /*mayBeEqual=*/true);
}

/// Ids: a column as it is, hashed into fewer bits, or hashed from a string.
static Value makeIds(ModelBuilder &m, const DomainEntry &domain, bool nullable, StringRef suffix) {
  SmallVector<NamedAttribute> attributes;
  if (nullable)
    attributes.push_back(m.unit("nullable"));
  auto kind = m.named(
      "kind", HashKindAttr::get(m.builder.getContext(), static_cast<HashKind>(m.integer(0, 2))));
  Type ids = m.rows(domain.name, {}, m.integerType());
  if (!nullable && m.chance(15)) {
    Value name = m.feature(domain, m.columnOf(domain.name, ("name" + suffix).str()),
                           StringType::get(m.builder.getContext()));
    return m.value("hash", ids, name, {kind, m.i64("bits", 30), m.i64("seed", m.integer(0, 9))});
  }
  Value id =
      m.feature(domain, m.columnOf(domain.name, (Twine(nullable ? "maybe" : "id") + suffix).str()),
                m.integerType(), attributes);
  m.offer(id);
  // A chain of transforms, longer in models for long chains.
  for (int64_t step = m.integer(1, m.options.transforms); step > 1; --step)
    id = m.chance(20)
             ? m.value("hash", ids, id,
                       {kind, m.i64("bits", m.integer(3, 50)), m.i64("seed", m.integer(0, 9))})
             : m.value("mod", ids, id, m.i64("divisor", m.integer(step + 1, 9 * step)));
  if (m.chance(20))
    return m.value("hash", ids, id, {kind, m.i64("bits", m.integer(3, 50)), m.i64("seed", 7)});
  if (m.chance(20))
    return m.value("mod", ids, id, m.i64("divisor", m.integer(2, 9)));
  if (m.chance(15)) {
    Value other = m.value("mod", ids, id, m.i64("divisor", 3));
    SmallVector<Value> columns{id, other};
    if (m.chance(50))
      columns.push_back(id);
    return m.value("cross", ids, columns,
                   {kind, m.i64("bits", m.integer(3, 50)), m.i64("seed", 5)});
  }
  if (m.chance(15)) {
    int64_t count = m.integer(2, 3);
    Value hashes = m.value("multi_hash", m.rows(domain.name, {count}, m.integerType()), id,
                           {kind, m.i64("bits", m.integer(3, 50)), m.i64("seed", m.integer(0, 9))});
    Value one = m.value("slice_columns", m.rows(domain.name, {1}, m.integerType()), hashes,
                        m.i64("offset", count - 1));
    return m.value("row_reduce", ids, one,
                   m.named("kind", ReduceKindAttr::get(m.builder.getContext(), ReduceKind::sum)));
  }
  return id;
}

/// One set of columns and their tables. Later sets have their own columns, except a few shared
/// ones.
static void makeFeatures(ModelBuilder &m, const DomainEntry &domain, int64_t set) {
  std::string suffix = set == 0 || m.chance(20) ? "" : std::to_string(set);
  int64_t dim = m.rowSize();
  FlatSymbolRefAttr table = m.declareTable(dim, 52);
  makeLookup(m, domain, makeIds(m, domain, false, suffix), {}, table, dim);
  if (m.chance(30)) {
    Value ids = makeIds(m, domain, true, suffix);
    Value valid = m.value("feature_valid", m.rows(domain.name, {}, m.boolean()), domain.value,
                          m.text("column", m.columnOf(domain.name, "maybe" + suffix)));
    m.offer(valid);
    // Half of the time the same table again, whose update then has two lists of gradients.
    bool shared = m.chance(50);
    makeLookup(m, domain, ids, valid, shared ? table : m.declareTable(dim, 52), dim);
  }
  Value dense = m.feature(domain, m.columnOf(domain.name, "dense" + suffix), m.f32());
  m.offer(dense);
  if (m.chance(40)) {
    SmallVector<double> edges;
    for (int64_t edge = -2, count = m.integer(1, 5); edge < count; ++edge)
      edges.push_back(0.4 * static_cast<double>(edge) + 0.013);
    Value bucket = m.value("bucketize", m.rows(domain.name, {}, m.integerType()), dense,
                           m.named("edges", m.builder.getDenseF64ArrayAttr(edges)));
    m.offer(bucket);
    if (m.chance(50))
      m.offer(m.value("cast", m.rows(domain.name, {}, m.f32()), bucket));
    else
      m.offer(m.value("embedding", m.rows(domain.name, {dim}, m.f32()),
                      {bucket, m.parameter({m.integer(2, 6), dim})}));
  }
}

/// Derived domains: truncated lists, and lists concatenated per parent row.
static void deriveDomains(ModelBuilder &m) {
  MLIRContext *context = m.builder.getContext();
  auto add = [&](StringRef name, FlatSymbolRefAttr parent, StringRef op,
                 ArrayRef<DomainEntry *> from, ArrayRef<NamedAttribute> attributes) {
    SmallVector<Value> sources;
    SmallVector<FlatSymbolRefAttr> names;
    for (DomainEntry *source : from) {
      sources.push_back(source->value);
      names.push_back(source->name);
    }
    FlatSymbolRefAttr symbol = m.declareDomain(name, parent, DomainKind::derived, "");
    Value result = m.value(op, DomainType::get(context, symbol), sources, attributes);
    m.entry(symbol).value = result;
    m.entry(symbol).sources = names;
  };
  auto isList = [](const DomainEntry &d) { return d.parent && d.kind == DomainKind::data; };
  if (m.chance(50))
    if (DomainEntry *source = m.findDomain(isList))
      add("short", source->parent, "truncate", source,
          {m.i64("count", m.integer(1, 4)),
           m.named("keep", KeepKindAttr::get(context, static_cast<KeepKind>(m.integer(0, 1))))});
  if (m.chance(30))
    if (DomainEntry *source = m.findDomain(isList))
      add("padded", source->parent, "pad", source,
          {m.i64("count", m.integer(1, 4)),
           m.named("side", PadSideAttr::get(context, static_cast<PadSide>(m.integer(0, 1))))});
  if (m.chance(30))
    if (DomainEntry *first = m.findDomain([](const DomainEntry &d) { return bool(d.parent); })) {
      FlatSymbolRefAttr parent = first->parent, firstName = first->name;
      DomainEntry *second = m.findDomain([&](const DomainEntry &d) { return d.parent == parent; });
      FlatSymbolRefAttr secondName = second->name;
      add("pairs", firstName, "pair_domains", {&m.entry(firstName), &m.entry(secondName)}, {});
      m.entry(FlatSymbolRefAttr::get(context, "pairs")).isPairs = true;
    }
  if (m.chance(50))
    if (DomainEntry *first = m.findDomain([](const DomainEntry &d) { return bool(d.parent); })) {
      FlatSymbolRefAttr parent = first->parent;
      FlatSymbolRefAttr firstName = first->name;
      DomainEntry *second = m.findDomain([&](const DomainEntry &d) {
        return (d.parent == parent || d.name == parent) && d.name != firstName;
      });
      // `declareDomain` may reallocate the entries: find them again by name.
      FlatSymbolRefAttr secondName = second ? second->name : firstName;
      if (second)
        add("joined", parent, "concat_domains", {&m.entry(secondName), &m.entry(firstName)}, {});
    }
}

static bool bringIntoDerived(ModelBuilder &m) {
  DomainEntry *target =
      m.findDomain([](const DomainEntry &d) { return d.kind == DomainKind::derived; });
  if (!target)
    return false;
  if (target->isPairs) {
    Value x = m.find(m.f32(), target->sources[1], -1);
    if (!x)
      return false;
    m.offer(m.value("pair_rows", m.rows(target->name, getRowShape(x.getType()), m.f32()),
                    {x, target->value}));
    return true;
  }
  if (target->sources.size() == 1) {
    Value x = m.find(m.f32(), target->sources[0], -1);
    if (!x)
      return false;
    m.offer(m.value("derive", m.rows(target->name, getRowShape(x.getType()), m.f32()),
                    {x, target->value}));
    return true;
  }
  SmallVector<Value> operands;
  int64_t size = m.rowSize();
  for (FlatSymbolRefAttr source : target->sources) {
    Value x = m.find(m.f32(), source, -1);
    if (!x)
      return false;
    operands.push_back(m.resize(x, size));
  }
  operands.push_back(target->value);
  m.offer(m.value("concat_rows", m.rows(target->name, {size}, m.f32()), operands));
  return true;
}

void fuzz::makeDomainsAndFeatures(ModelBuilder &m) {
  declareDataDomains(m);
  for (const DomainEntry &domain : SmallVector<DomainEntry>(m.domains))
    for (int64_t set = 0; set < m.options.features; ++set)
      makeFeatures(m, domain, set);
  deriveDomains(m);
  for (int attempt = 0; attempt < 3; ++attempt)
    bringIntoDerived(m);
}
