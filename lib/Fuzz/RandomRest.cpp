//===- RandomRest.cpp - losses over what nothing reads --------------------===//
//
// What nothing reads is no part of a model: passes drop it, and a fault in it shows nowhere. Here
// everything that is left reaches a loss, which gives it a gradient as well.
//
//===----------------------------------------------------------------------===//

#include "ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// A value of any element type as numbers near 1.
static Value toFloats(ModelBuilder &m, Value x) {
  Type element = getElementTypeOrSelf(x.getType());
  Type floats = m.rows(getRowDomain(x.getType()), getRowShape(x.getType()), m.f32());
  if (element.isF32())
    return x;
  if (element.isInteger(1))
    return m.value("cast", floats, x);
  if (!element.isInteger(64))
    return {};
  Value number = m.value("cast", floats, m.value("mod", x.getType(), x, m.i64("divisor", 13)));
  return m.value("mul", floats, {number, m.parameter({})});
}

/// What nothing reads of the values of `domain`, as floats.
static SmallVector<Value> takeUnread(ModelBuilder &m, FlatSymbolRefAttr domain) {
  SmallVector<Value> unread;
  for (Value x : SmallVector<Value>(m.values))
    if (getRowDomain(x.getType()) == domain && x.use_empty())
      if (Value floats = toFloats(m, x))
        unread.push_back(floats);
  return unread;
}

/// A logit of all of `parts`, each element with a weight of its own, held against a label of each
/// row: rows that change places show.
static void makeHead(ModelBuilder &m, const DomainEntry &domain, ArrayRef<Value> parts) {
  int64_t size = 0;
  for (Value part : parts)
    size += getRowSize(part.getType());
  Value joined = m.value("concat_columns", m.rows(domain.name, {size}, m.f32()), parts);
  Value logit =
      m.value("linear", m.rows(domain.name, {1}, m.f32()), {joined, m.parameter({size, 1})});
  logit = m.value("row_reduce", m.rows(domain.name, {}, m.f32()), logit,
                  m.named("kind", ReduceKindAttr::get(m.builder.getContext(), ReduceKind::sum)));
  DomainOp declaration = lookupDomain(m.model, domain.name);
  std::string prefix = declaration.getColumn() ? declaration.getColumn()->str() + "." : "";
  Value label = m.feature(domain, prefix + "label", m.f32());
  m.losses.push_back(m.value("bce_with_logits", logit.getType(), {logit, label}));
}

void fuzz::readRest(ModelBuilder &m) {
  // Parents are declared before their children: what a derived list has goes up first.
  for (size_t number = m.domains.size(); number-- > 0;) {
    DomainEntry domain = m.domains[number];
    SmallVector<Value> unread = takeUnread(m, domain.name);
    if (domain.kind == DomainKind::data) {
      // Wide rows of many parts would be one loss that shows little of each.
      constexpr size_t kMostParts = 8;
      for (ArrayRef<Value> rest = unread; !rest.empty();) {
        ArrayRef<Value> parts = rest.take_front(kMostParts);
        makeHead(m, domain, parts);
        rest = rest.drop_front(parts.size());
      }
      continue;
    }
    if (!domain.parent)
      continue;
    Value parent = m.entry(domain.parent).value;
    for (Value x : unread) {
      auto kind = m.chance(50) ? PoolKind::sum : PoolKind::mean;
      m.offer(m.value("pool", m.rows(domain.parent, getRowShape(x.getType()), m.f32()), {x, parent},
                      m.named("kind", PoolKindAttr::get(m.builder.getContext(), kind))));
    }
  }
}
