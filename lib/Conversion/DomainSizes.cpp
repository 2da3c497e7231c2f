//===- DomainSizes.cpp - rows of every domain of a batch ------------------===//

#include "DomainSizes.h"

#include "ModelIndex.h"
#include "genrec_rt/footprint.h"

using namespace mlir;
using namespace genrec;

DomainSizes::Size DomainSizes::get(FlatSymbolRefAttr domain) {
  if (auto entry = known.find(domain); entry != known.end())
    return entry->second;
  Size size = compute(domain);
  if (auto told = options.rows.find(domain.getValue()); told != options.rows.end()) {
    size.rows = told->second;
    // A cut list's bound is not rounded up.
    int64_t capacity = rt::capacityBucket(size.rows);
    bool isDerived = lookupDomain(program, domain).getKind() == DomainKind::derived;
    size.capacity = isDerived ? std::min(size.capacity, capacity) : capacity;
  }
  known[domain] = size;
  return size;
}

DomainSizes::Size DomainSizes::computeRead(DomainOp domain) {
  Size size;
  FlatSymbolRefAttr parent = domain.getParentAttr();
  if (parent) {
    auto longest = options.longestOf.find(domain.getSymName());
    size.longest = longest == options.longestOf.end() ? options.longest : longest->second;
    size.rows = getRows(parent) * size.longest;
  } else if (domain.getKind() == DomainKind::data) {
    size.rows = options.batch;
  }
  size.capacity = rt::capacityBucket(size.rows);
  return size;
}

// As the emitted capacity function, and the runtime, which counts the rows of cut lists.
DomainSizes::Size DomainSizes::computeTruncated(TruncateOp truncate) {
  FlatSymbolRefAttr source = truncate.getSource().getType().getDomain();
  FlatSymbolRefAttr parent = lookupDomain(program, source).getParentAttr();
  auto count = static_cast<int64_t>(truncate.getCount());
  Size size;
  size.longest = std::min(getLongest(source), count);
  size.rows = std::min(getRows(source), getRows(parent) * size.longest);
  size.capacity =
      std::min({getCapacity(source), getCapacity(parent) * count, rt::capacityBucket(size.rows)});
  return size;
}

DomainSizes::Size DomainSizes::computePadded(PadOp pad) {
  FlatSymbolRefAttr source = pad.getSource().getType().getDomain();
  FlatSymbolRefAttr parent = lookupDomain(program, source).getParentAttr();
  auto count = static_cast<int64_t>(pad.getCount());
  return {std::max(getRows(source), getRows(parent) * count),
          std::max(getCapacity(source), getCapacity(parent) * count),
          std::max(getLongest(source), count)};
}

DomainSizes::Size DomainSizes::addUp(ArrayRef<FlatSymbolRefAttr> sources) {
  Size sum;
  sum.longest = 0;
  for (FlatSymbolRefAttr source : sources) {
    Size part = get(source);
    sum.rows += part.rows;
    sum.capacity += part.capacity;
    sum.longest += part.longest;
  }
  return sum;
}

DomainSizes::Size DomainSizes::compute(FlatSymbolRefAttr name) {
  Value value = lookupDomainValue(program, name);
  Operation *maker = value ? value.getDefiningOp() : nullptr;
  SmallVector<FlatSymbolRefAttr> sources;
  if (auto truncate = dyn_cast_or_null<TruncateOp>(maker))
    return computeTruncated(truncate);
  if (auto pad = dyn_cast_or_null<PadOp>(maker))
    return computePadded(pad);
  if (isa_and_nonnull<PairDomainsOp>(maker)) {
    int64_t rows = getRows(lookupDomain(program, name).getParentAttr()) * options.longest;
    return {rows, rt::capacityBucket(rows), options.longest};
  }
  if (auto fixed = dyn_cast_or_null<FixedRowsOp>(maker)) {
    auto count = static_cast<int64_t>(fixed.getCount());
    return {count, count, 1};
  }
  if (auto rows = dyn_cast_or_null<ParameterRowsOp>(maker)) {
    auto type = cast<RankedTensorType>(lookupParameter(program, rows.getParameterAttr()).getType());
    int64_t count = type.getRank() == 2 ? type.getDimSize(0) : 1;
    return {count, count, 1};
  }
  if (auto unique = dyn_cast_or_null<UniqueRowsOp>(maker)) {
    for (Value rows : unique.getRows())
      sources.push_back(getRowDomain(rows.getType()));
    return addUp(sources);
  }
  if (auto distinct = dyn_cast_or_null<DistinctRowsOp>(maker)) {
    for (Value rows : distinct.getRows())
      sources.push_back(getRowDomain(rows.getType()));
    return addUp(sources);
  }
  if (auto stack = dyn_cast_or_null<StackDomainsOp>(maker)) {
    for (Value part : stack.getParts())
      sources.push_back(cast<DomainType>(part.getType()).getDomain());
    return addUp(sources);
  }
  if (auto concat = dyn_cast_or_null<ConcatDomainsOp>(maker)) {
    for (Value source : concat.getSources())
      sources.push_back(cast<DomainType>(source.getType()).getDomain());
    return addUp(sources);
  }
  DomainOp domain = lookupDomain(program, name);
  bool isRead =
      domain && (domain.getKind() == DomainKind::data || domain.getKind() == DomainKind::catalogue);
  return isRead ? computeRead(domain) : Size();
}
