//===- RandomRest.cpp - losses over unused values -------------------------===//
//
// Passes remove unused values, and a fault in them is invisible. Here every unused value becomes
// part of a loss, which also gives it a gradient.
//
//===----------------------------------------------------------------------===//

#include "genrec/Fuzz/ModelBuilder.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::fuzz;

/// A value of any element type as floats near 1.
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

/// The unused values of `domain` as floats.
static SmallVector<Value> takeUnread(ModelBuilder &m, FlatSymbolRefAttr domain) {
  SmallVector<Value> unread;
  for (Value x : SmallVector<Value>(m.values))
    if (getRowDomain(x.getType()) == domain && x.use_empty())
      if (Value floats = toFloats(m, x))
        unread.push_back(floats);
  return unread;
}

/// A binary cross entropy of a logit over all `parts`, with a weight per element and a label per
/// row, so that swapped rows are visible.
static void makeHead(ModelBuilder &m, const DomainEntry &domain, ArrayRef<Value> parts) {
  Value joined = m.concat(parts, domain.name);
  Value logit = m.value("linear", m.rows(domain.name, {1}, m.f32()),
                        {joined, m.parameter({getRowSize(joined.getType()), 1})});
  logit = m.value("row_reduce", m.rows(domain.name, {}, m.f32()), logit,
                  m.named("kind", ReduceKindAttr::get(m.builder.getContext(), ReduceKind::sum)));
  Value label = m.feature(domain, m.columnOf(domain.name, "label"), m.f32());
  m.losses.push_back(m.value("bce_with_logits", logit.getType(), {logit, label}));
}

void fuzz::readRest(ModelBuilder &m) {
  // Children before parents (which are declared first): a derived list is pooled into its parent.
  for (size_t number = m.domains.size(); number-- > 0;) {
    DomainEntry domain = m.domains[number];
    SmallVector<Value> unread = takeUnread(m, domain.name);
    if (domain.kind == DomainKind::data) {
      // A loss over too many values would hardly depend on any one of them.
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
    for (Value x : unread) {
      auto kind = m.chance(50) ? PoolKind::sum : PoolKind::mean;
      m.offer(m.pool(x, kind, m.entry(domain.parent)));
    }
  }
}
