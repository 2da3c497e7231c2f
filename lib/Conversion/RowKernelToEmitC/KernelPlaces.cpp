//===- KernelPlaces.cpp - rows of other domains in a kernel's loops -------===//
//
// Where rows of ancestors, and of the list that a domain was truncated from, are: arrays of domains
// are loaded before the loops, and looked up for a row within them.
//
//===----------------------------------------------------------------------===//

#include "KernelOutliner.h"

using namespace mlir;
using namespace genrec;

Value KernelOutliner::getDomainMember(DomainOp domain, StringRef member, Type element) {
  Value pointer = getDomain(b, FlatSymbolRefAttr::get(domain.getSymNameAttr()));
  EmitCBuilder named = b.named(domain.getSymName() + "_" + member);
  Value value = named.load(named.memberOf(pointer, member, b.pointer(element)));
  return EmitCBuilder::restricted(EmitCBuilder::constant(value));
}

// Loads the arrays of domains before the loop over rows.
void KernelOutliner::preparePlaces() {
  for (size_t level = 1; level < nest.size() && !isSplit; ++level)
    offsets[nest[level].domain] = getDomainMember(nest[level].domain, "offsets", b.i64());
  auto addParents = [&](FlatSymbolRefAttr ancestor) {
    for (size_t height = getParentsBegin(ancestor); height < path.size(); ++height) {
      if (path[height].getSymName() == ancestor.getValue())
        return;
      if (!parents.count(path[height]))
        parents[path[height]] = getDomainMember(path[height], "parent", b.i64());
    }
  };
  auto addAncestor = [&](FlatSymbolRefAttr ancestor) {
    bool isInNest = llvm::any_of(
        nest, [&](NestLoop &loop) { return loop.domain.getSymName() == ancestor.getValue(); });
    if (!isInNest)
      addParents(ancestor);
  };
  for (auto [role, input] :
       llvm::zip(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), kernel.getInputs())) {
    FlatSymbolRefAttr domain = getRowDomain(input.getType());
    if (role.getValue() == OperandRole::ancestor)
      addAncestor(domain);
    if (role.getValue() != OperandRole::untruncated || untruncated)
      continue;
    addAncestor(path[0].getParentAttr());
    untruncated = getDomainMember(lookupDomain(kernel, domain), "offsets", b.i64());
    if (!offsets.count(path[0]))
      offsets[path[0]] = getDomainMember(path[0], "offsets", b.i64());
  }
  bool draws = false;
  for (Operation &op : kernel.getBody().front()) {
    auto draw = dyn_cast<DrawOpInterface>(op);
    draws |= draw && draw.drawsPerRow();
  }
  for (unsigned input = 0; input < kernel.getInputs().size() && !tableRowCount; ++input)
    if (target.prefetchesRows() && hasTableRows(input)) {
      EmitCBuilder named = b.named(path[0].getSymName() + "_rows");
      Value domain = getDomain(b, FlatSymbolRefAttr::get(path[0].getSymNameAttr()));
      tableRowCount = named.load(named.memberOf(domain, "count", b.i64()));
    }
  for (unsigned input = 0; input < kernel.getInputs().size(); ++input)
    if (isSegmentSum(input)) {
      auto type = cast<RankedTensorType>(kernel.getInputs()[input].getType());
      sums[input] = target.createArray(b.named(getValueName(kernel.getInputs()[input]) + "_sum"),
                                       type.getElementType(), getRowSize(type),
                                       target.isShared(kernel.getBody().getArgument(input)));
    }
  if (draws)
    identities = getDomainMember(path[0], "identity", b.u64());
}

size_t KernelOutliner::getParentsBegin(FlatSymbolRefAttr ancestor) const {
  if (!isSplit)
    return nest.size() - 1;
  // A split nest has the first and the last loop alone.
  auto isTop = [&](DomainOp op) { return op == nest.front().domain; };
  size_t top = llvm::find_if(path, isTop) - path.begin();
  for (size_t height = 0; height < top; ++height)
    if (DomainOp(path[height]).getSymName() == ancestor.getValue())
      return 0;
  return top;
}

Value KernelOutliner::getRowIndex(DomainOp domain) {
  for (NestLoop &loop : nest)
    if (loop.domain == domain)
      return loop.row;
  size_t height = getParentsBegin(FlatSymbolRefAttr::get(domain.getSymNameAttr()));
  Value row = height == 0 ? nest.back().row : nest.front().row;
  for (; path[height] != domain; ++height)
    row = b.named(path[height + 1].getSymName() + "_row").loadElement(parents[path[height]], row);
  return row;
}

// Both lists begin, or end, with the same row, so that their offsets there are as far apart as all
// rows that are kept.
Value KernelOutliner::getUntruncatedRow() {
  if (untruncatedRow)
    return untruncatedRow;
  const bool keepsLast = kernel.getDomain().getDefiningOp<TruncateOp>().getKeep() == KeepKind::last;
  Value at = getRowIndex(lookupDomain(kernel, path[0].getParentAttr()));
  if (keepsLast)
    at = b.named("list_end").add(at, b.integer(1));
  Value distance = b.sub(b.loadElement(untruncated, at), b.loadElement(offsets[path[0]], at));
  untruncatedRow = EmitCBuilder::kept(b.named("untruncated_row").add(nest.back().row, distance));
  return untruncatedRow;
}
