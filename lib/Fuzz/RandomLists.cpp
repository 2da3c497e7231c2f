//===- RandomLists.cpp - the same for several lists -----------------------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

namespace {
/// What is made of each list, with its own columns and a table of its own.
struct ListShape {
  PoolKind ofRows, ofNumbers;
  bool reduces;   ///< rows are normalized
  bool reads;     ///< numbers are multiplied by one of their parent row
  bool comesBack; ///< numbers are less than their mean
};
} // namespace

/// The lists of one parent that has the most, two at least; the entries themselves may move.
static SmallVector<FlatSymbolRefAttr> findSiblings(ModelBuilder &m) {
  SmallVector<FlatSymbolRefAttr> most;
  for (const DomainEntry &parent : m.domains) {
    SmallVector<FlatSymbolRefAttr> lists;
    for (const DomainEntry &list : m.domains)
      if (list.kind == DomainKind::data && list.parent == parent.name)
        lists.push_back(list.name);
    if (lists.size() > std::max<size_t>(most.size(), 1))
      most = lists;
  }
  return most;
}

/// What is pooled of a list.
static void makeList(ModelBuilder &m, const ListShape &shape, FlatSymbolRefAttr name,
                     FlatSymbolRefAttr table, int64_t dim, Value factor,
                     SmallVectorImpl<Value> &pooled) {
  const DomainEntry list = m.entry(name), parent = m.entry(list.parent);
  Type ids = m.rows(name, {}, m.integerType()), numbers = m.rows(name, {}, m.f32());
  Value id = m.feature(list, m.columnOf(name, "alike_id"), m.integerType());
  id = m.value("mod", ids, id, m.i64("divisor", 5));
  Value rows = m.value("lookup", m.rows(name, {dim}, m.f32()), id, m.named("table", table));
  if (shape.reduces)
    rows = m.value("l2_normalize", rows.getType(), rows, m.f64("eps", 0.05));
  pooled.push_back(m.pool(rows, shape.ofRows, parent));
  Value x = m.bounded(m.feature(list, m.columnOf(name, "alike"), m.f32()));
  if (shape.reads)
    x = m.value("mul", numbers, {x, m.value("fanout", numbers, {factor, list.value})});
  if (shape.comesBack) {
    Value mean = m.pool(x, PoolKind::mean, parent);
    x = m.value("sub", numbers, {x, m.value("fanout", numbers, {mean, list.value})});
    x = m.value("mul", numbers, {x, x});
  }
  pooled.push_back(m.pool(x, shape.ofNumbers, parent));
}

bool fuzz::makeAlikeLists(ModelBuilder &m) {
  SmallVector<FlatSymbolRefAttr> lists = findSiblings(m);
  if (lists.empty())
    return false;
  const FlatSymbolRefAttr parent = m.entry(lists.front()).parent;
  auto anyKind = [&] { return static_cast<PoolKind>(m.integer(0, 4)); };
  const PoolKind ofRows = anyKind(), ofNumbers = anyKind();
  const ListShape shape{ofRows, ofNumbers, m.chance(40), m.chance(50), m.chance(50)};
  const int64_t dim = m.integer(1, 12);
  FlatSymbolRefAttr table = m.declareTable(dim, /*idBits=*/20);
  Value factor =
      m.bounded(m.feature(m.entry(parent), m.columnOf(parent, "alike_factor"), m.f32()));
  SmallVector<Value> pooled;
  for (FlatSymbolRefAttr list : lists)
    makeList(m, shape, list, table, dim, factor, pooled);
  m.offer(m.concat(pooled, parent), /*mayBeEqual=*/true);
  return true;
}
