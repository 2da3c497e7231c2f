//===- RandomGroups.cpp - patterns that graph passes rewrite --------------===//
//
// Random ops rarely form two tables with equal attributes, or concatenate a large row of a parent
// with one of its children.
//
//===----------------------------------------------------------------------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// A table like `table` except for name and id bits.
static FlatSymbolRefAttr declareTwin(ModelBuilder &m, TableOp table) {
  std::string name = "table" + std::to_string(m.nextName++);
  OpBuilder::InsertionGuard guard(m.builder);
  m.builder.setInsertionPoint(m.program);
  auto twin = cast<TableOp>(m.builder.clone(*table));
  twin.setSymName(name);
  twin.setIdBits(m.chance(20) ? 62 : m.integer(20, 52));
  return FlatSymbolRefAttr::get(m.builder.getContext(), name);
}

/// Lookups in tables with equal attributes, after chains of transforms with different constants.
static void makeTwinTables(ModelBuilder &m) {
  SmallVector<TableOp> tables(m.model.getOps<TableOp>());
  if (tables.empty())
    return;
  TableOp table = m.pick(tables);
  int64_t dim = table.getDim();
  for (int64_t i = 0, count = m.integer(1, 3); i < count; ++i) {
    DomainEntry *domain =
        m.findDomain([](const DomainEntry &d) { return d.kind == DomainKind::data; });
    std::string prefix = m.columnOf(domain->name, "");
    Type ids = m.rows(domain->name, {}, m.integerType());
    bool isNullable = m.chance(20);
    SmallVector<NamedAttribute> attributes;
    if (isNullable)
      attributes.push_back(m.unit("nullable"));
    std::string column = prefix + "twin" + std::to_string(i);
    Value id = m.feature(*domain, column, m.integerType(), attributes);
    if (m.chance(60)) {
      auto kind = m.named("kind", HashKindAttr::get(m.builder.getContext(), HashKind::xxh3));
      id = m.value("hash", ids, id, {kind, m.i64("bits", 50), m.i64("seed", 5)});
    }
    id = m.value("mod", ids, id, m.i64("divisor", m.integer(2, 9)));
    SmallVector<Value> operands{id};
    if (isNullable)
      operands.push_back(m.value("feature_valid", m.rows(domain->name, {}, m.boolean()),
                                 domain->value, m.text("column", column)));
    m.offer(m.value("lookup", m.rows(domain->name, {dim}, m.f32()), operands,
                    m.named("table", declareTwin(m, table))),
            /*mayBeEqual=*/true);
  }
}

/// A linear layer over the concatenation of a parent's and a child's rows.
static void makeFannedLinear(ModelBuilder &m) {
  Value y = m.find(m.f32(), {}, 1);
  if (!y)
    return;
  FlatSymbolRefAttr domain = getRowDomain(y.getType());
  DomainEntry *above =
      m.findDomain([&](const DomainEntry &d) { return isAncestor(m.model, d.name, domain); });
  Value x = above ? m.find(m.f32(), above->name, -1) : Value();
  if (!x)
    return;
  x = m.bounded(m.resize(x, 8));
  Value below = m.entry(domain).value;
  Value fanned = m.value("fanout", m.rows(domain, {8}, m.f32()), {x, below});
  int64_t size = 8 + getRowSize(y.getType()), columns = m.rowSize();
  SmallVector<Value> parts{fanned, m.bounded(y)};
  if (m.chance(50))
    std::swap(parts[0], parts[1]);
  Value joined = m.value("concat_columns", m.rows(domain, {size}, m.f32()), parts);
  SmallVector<Value> operands{joined, m.parameter({size, columns})};
  if (m.chance(50))
    operands.push_back(m.parameter({columns}));
  m.offer(m.bounded(m.value("linear", m.rows(domain, {columns}, m.f32()), operands)));
}

/// A linear layer's rows, pooled per parent.
static void makePooledLinear(ModelBuilder &m) {
  Value x = m.find(m.f32(), {}, 1);
  if (!x)
    return;
  FlatSymbolRefAttr domain = getRowDomain(x.getType());
  DomainEntry *above =
      m.findDomain([&](const DomainEntry &d) { return isAncestor(m.model, d.name, domain); });
  if (!above)
    return;
  int64_t columns = m.rowSize();
  Value y = m.value("linear", m.rows(domain, {columns}, m.f32()),
                    {m.bounded(x), m.parameter({getRowSize(x.getType()), columns})});
  // sink-fanout moves a sum before the product. A mean (into the parent only) is not moved, but its
  // gradient is a fan-out.
  bool isParent = lookupDomain(m.model, domain).getParentAttr() == above->name;
  PoolKind choice = isParent && m.chance(70) ? PoolKind::mean : PoolKind::sum;
  Value sum = m.pool(y, choice, *above);
  m.offer(m.bounded(sum));
  // A loss of its own, as values that are offered may not reach a loss and then have no gradient.
  m.losses.push_back(m.resize(m.bounded(sum), 0));
}

/// A linear layer over a number and several lookups of few ids; one of them may use a twin table.
void fuzz::makeJoinedLookups(ModelBuilder &m) {
  SmallVector<TableOp> tables;
  for (auto table : m.model.getOps<TableOp>())
    if (table.getDim() >= 2)
      tables.push_back(table);
  if (tables.empty())
    return;
  TableOp table = m.pick(tables);
  int64_t dim = table.getDim(), size = 0, columns = m.integer(4, 20), name = m.nextName++;
  DomainEntry *domain =
      m.findDomain([](const DomainEntry &d) { return d.kind == DomainKind::data; });
  std::string prefix = m.columnOf(domain->name, "");
  Type ids = m.rows(domain->name, {}, m.integerType());
  SmallVector<Value> parts;
  while (size < 16) {
    std::string column =
        prefix + "joined" + std::to_string(name) + "_" + std::to_string(parts.size());
    Value id = m.feature(*domain, column, m.integerType(), {});
    id = m.value("mod", ids, id, m.i64("divisor", m.integer(2, 5)));
    auto symbol =
        m.chance(30) ? declareTwin(m, table) : FlatSymbolRefAttr::get(table.getSymNameAttr());
    parts.push_back(
        m.value("lookup", m.rows(domain->name, {dim}, m.f32()), id, m.named("table", symbol)));
    size += dim;
  }
  if (m.chance(50)) {
    parts.insert(parts.begin() + m.integer(0, parts.size() - 1),
                 m.feature(*domain, prefix + "number" + std::to_string(name), m.f32(), {}));
    ++size;
  }
  Value joined = m.value("concat_columns", m.rows(domain->name, {size}, m.f32()), parts);
  SmallVector<Value> operands{joined, m.parameter({size, columns})};
  if (m.chance(50))
    operands.push_back(m.parameter({columns}));
  m.offer(m.bounded(m.value("linear", m.rows(domain->name, {columns}, m.f32()), operands)));
}

void fuzz::makeGroups(ModelBuilder &m) {
  if (m.chance(50))
    makeTwinTables(m);
  if (m.chance(40))
    makeFannedLinear(m);
  if (m.chance(20))
    makePooledLinear(m);
}
