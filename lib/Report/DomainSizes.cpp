//===- DomainSizes.cpp - rows of every domain in a batch ------------------===//

#include "DomainSizes.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec_rt/footprint.h"

using namespace mlir;
using namespace genrec;

namespace {
/// Evaluates the formulas of sizes, for rows or for capacities.
class SizeEvaluator : public SizeBuilder {
public:
  using Lookup = llvm::function_ref<int64_t(FlatSymbolRefAttr)>;
  SizeEvaluator(Lookup rows, Lookup longest) : rows(rows), longest(longest) {}

  SizeTerm constant(int64_t number) override { return {number, {}}; }
  SizeTerm rowsOf(FlatSymbolRefAttr domain) override { return {rows(domain), {}}; }
  SizeTerm longestOf(FlatSymbolRefAttr domain) override { return {longest(domain), {}}; }
  SizeTerm add(SizeTerm a, SizeTerm b) override { return {a.number + b.number, {}}; }
  SizeTerm mul(SizeTerm a, SizeTerm b) override { return {a.number * b.number, {}}; }
  SizeTerm min(SizeTerm a, SizeTerm b) override { return {std::min(a.number, b.number), {}}; }
  SizeTerm max(SizeTerm a, SizeTerm b) override { return {std::max(a.number, b.number), {}}; }

private:
  Lookup rows, longest;
};
} // namespace

DomainSizes::Size DomainSizes::get(FlatSymbolRefAttr domain) const {
  if (auto entry = known.find(domain); entry != known.end())
    return entry->second;
  Size size = compute(domain);
  if (auto told = options.rows.find(domain.getValue()); told != options.rows.end()) {
    size.rows = told->second;
    // The capacity of a truncated list is not rounded up to a bucket.
    int64_t capacity = rt::rowCapacity(size.rows);
    bool isDerived = lookupDomain(program, domain).getKind() == DomainKind::derived;
    size.capacity = isDerived ? std::min(size.capacity, capacity) : capacity;
  }
  known[domain] = size;
  return size;
}

DomainSizes::Size DomainSizes::computeRead(DomainOp domain) const {
  Size size;
  FlatSymbolRefAttr parent = domain.getParentAttr();
  if (parent) {
    auto longest = options.longestOf.find(domain.getSymName());
    size.longest = longest == options.longestOf.end() ? options.longest : longest->second;
    size.rows = getRows(parent) * size.longest;
  } else if (domain.getKind() == DomainKind::data) {
    size.rows = options.batch;
  }
  size.capacity = rt::rowCapacity(size.rows);
  return size;
}

DomainSizes::Size DomainSizes::computeMade(StepOpInterface maker, FlatSymbolRefAttr domain) const {
  auto rowsOf = [&](FlatSymbolRefAttr domain) { return getRows(domain); };
  auto capacityOf = [&](FlatSymbolRefAttr domain) { return getCapacity(domain); };
  auto longestOf = [&](FlatSymbolRefAttr domain) { return getLongest(domain); };
  SizeEvaluator rows(rowsOf, longestOf), capacities(capacityOf, longestOf);
  Size size;
  size.rows = maker.getDomainRows(domain, rows).value_or(SizeTerm()).number;
  size.capacity = maker.getDomainRows(domain, capacities).value_or(SizeTerm()).number;
  size.longest = maker.getLongestList(rows).value_or(SizeTerm{1, {}}).number;
  // The runtime counts the rows of truncated lists before it allocates.
  if (isa<TruncateOp>(maker))
    size.capacity = std::min(size.capacity, rt::rowCapacity(size.rows));
  return size;
}

DomainSizes::Size DomainSizes::compute(FlatSymbolRefAttr name) const {
  Value value = lookupDomainValue(program, name);
  auto maker = value ? dyn_cast<StepOpInterface>(value.getDefiningOp()) : StepOpInterface();
  DomainOp domain = lookupDomain(program, name);
  bool isRead =
      domain && (domain.getKind() == DomainKind::data || domain.getKind() == DomainKind::catalogue);
  if (isRead)
    return computeRead(domain);
  return maker ? computeMade(maker, name) : Size();
}
