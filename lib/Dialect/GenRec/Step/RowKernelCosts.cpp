//===- RowKernelCosts.cpp - lower bounds on kernels' work -----------------===//

#include "RowKernelCosts.h"

#include "StepCalls.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Analysis/Operations.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace genrec;

namespace {
double getWidth(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements();
  return 1;
}

/// Elements of a row that a kernel reads: where it reads slices alone, those in any of them.
int64_t getReadElements(BlockArgument row) {
  auto vector = dyn_cast<VectorType>(row.getType());
  if (!vector || !llvm::all_of(row.getUsers(), llvm::IsaPred<RowSliceOp>))
    return vector ? vector.getNumElements() : 1;
  SmallVector<std::pair<int64_t, int64_t>> slices;
  for (Operation *user : row.getUsers()) {
    auto slice = cast<RowSliceOp>(user);
    int64_t offset = slice.getOffset();
    slices.emplace_back(offset, offset + cast<VectorType>(slice.getType()).getNumElements());
  }
  llvm::sort(slices);
  int64_t elements = 0, end = 0;
  for (auto [first, last] : slices) {
    elements += std::max<int64_t>(last - std::max(first, end), 0);
    end = std::max(end, last);
  }
  return elements;
}

/// Bytes of the part of `source` that one index gathers.
double getPickedBytes(Type source) {
  auto tensor = cast<RankedTensorType>(source);
  int64_t elements = getRowDomain(tensor)    ? getRowSize(tensor)
                     : tensor.getRank() == 2 ? tensor.getDimSize(1)
                                             : 1;
  return elements * getElementBytes(tensor.getElementType());
}

/// Whether `value` was rounded to bfloat16, or is a multiple of what was: that may be left instead.
bool isRounded(Value value) {
  auto isWidened = [](Value factor) {
    auto widened = factor.getDefiningOp<arith::ExtFOp>();
    return widened && getElementTypeOrSelf(widened.getIn()).isBF16();
  };
  auto product = value.getDefiningOp<arith::MulFOp>();
  return isWidened(value) || (product && llvm::any_of(product.getOperands(), isWidened));
}

/// The work of the body for one row of the kernel's domain.
class BodyCost {
public:
  BodyCost(RowKernelOp kernel, OpCost &row) : kernel(kernel), row(row) {
    for (Operation &op : kernel.getBody().front())
      visit(&op);
    row.gatheredBytes += tableBytes;
  }
  bool draws = false;

private:
  void visit(Operation *op);
  void addAccess(Value handle, int64_t slot, Type type, bool isStore);
  void addAccumulate(AccumulateOp op);
  void addGather(Value source, Value index);

  RowKernelOp kernel;
  OpCost &row;
  double tableBytes = 0;
  SmallVector<std::tuple<Value, int64_t, bool>> accesses;
  SmallVector<std::pair<Value, Value>> gathers;
};

// The rows of a parameter are contiguous; those of a table are scattered in memory.
void BodyCost::addAccess(Value handle, int64_t slot, Type type, bool isStore) {
  if (llvm::is_contained(accesses, std::tuple(handle, slot, isStore)))
    return;
  accesses.emplace_back(handle, slot, isStore);
  auto argument = dyn_cast<BlockArgument>(handle);
  bool isParameter =
      argument && argument.getArgNumber() < kernel.getInputs().size() &&
      isa_and_nonnull<ParameterRowsOp>(kernel.getInputs()[argument.getArgNumber()].getDefiningOp());
  double bytes = 4 * getWidth(type);
  if (slot == 0)
    bytes = static_cast<double>(cast<RowType>(handle.getType()).getValueBytes());
  (isParameter ? row.bytes : tableBytes) += bytes;
}

void BodyCost::addAccumulate(AccumulateOp op) {
  double added = getWidth(op.getValue().getType());
  double times = op.getIndex() ? getWidth(op.getIndex().getType()) : 1;
  row.flops += added * times * (op.getCoefficient() ? 2 : 1);
  if (!op.getIndex())
    return;
  if (Target::of(kernel).hasDevice && leavesTerms(op.getAccumulator().getType().getTensor()))
    row.gatheredBytes += (isRounded(op.getValue()) ? 2 : 4) * added * times;
  else
    row.gatheredBytes += 2 * 4 * added * times;
}

/// Rows that a softmax gathers for its logits and again for its gradient may be in a cache.
void BodyCost::addGather(Value source, Value index) {
  if (llvm::is_contained(gathers, std::pair(source, index)))
    return;
  gathers.emplace_back(source, index);
  row.gatheredBytes += getPickedBytes(source.getType()) * getWidth(index.getType());
}

void BodyCost::visit(Operation *op) {
  if (auto load = dyn_cast<RowLoadOp>(op))
    return addAccess(load.getRow(), load.getSlot(), load.getResult().getType(), false);
  if (auto store = dyn_cast<RowStoreOp>(op))
    return addAccess(store.getRow(), store.getSlot(), store.getValue().getType(), true);
  if (auto gather = dyn_cast<RowGatherOp>(op))
    return addGather(gather.getSource(), gather.getIndex());
  if (auto dot = dyn_cast<GatherDotOp>(op)) {
    row.flops += 2 * getWidth(dot.getIndex().getType()) * getWidth(dot.getRow().getType());
    return addGather(dot.getSource(), dot.getIndex());
  }
  if (auto sum = dyn_cast<GatherSumOp>(op)) {
    row.flops += 2 * getWidth(sum.getIndex().getType()) * getWidth(sum.getResult().getType());
    return addGather(sum.getSource(), sum.getIndex());
  }
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return addAccumulate(accumulate);
  if (auto draw = dyn_cast<DrawOpInterface>(op))
    draws |= draw.drawsPerRow();
  if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return;
  row.flops += getOperations(op);
}

bool hasRole(RowKernelOp kernel, OperandRole wanted) {
  return llvm::any_of(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(),
                      [&](OperandRoleAttr role) { return role.getValue() == wanted; });
}

/// Adds the arrays of domains that a kernel reads: offsets of the lists that it pools, parents of
/// the rows that it broadcasts from, identities.
void addDomainArrays(RowKernelOp kernel, bool draws, StepCosts &costs) {
  FlatSymbolRefAttr own = kernel.getDomain().getType().getDomain();
  SmallVector<DomainOp> path = getDomainPath(kernel, own);
  auto getSymbol = [&](size_t height) {
    return FlatSymbolRefAttr::get(path[height].getSymNameAttr());
  };
  size_t top = 0;
  for (auto [role, result] :
       llvm::zip(kernel.getResultRoles().getAsRange<ResultRoleAttr>(), kernel.getResults()))
    if (role.getValue() == ResultRole::pooled)
      top = std::max(top, getHeight(path, getRowDomain(result.getType())));
  // One loop per domain from the uppermost down; it reads the offsets of each list.
  for (size_t height = 0; height < top; ++height)
    costs.get(getSymbol(height + 1)).bytes += kIndexBytes;
  llvm::SmallDenseSet<size_t> fetched;
  for (auto [role, input] :
       llvm::zip(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), kernel.getInputs())) {
    if (role.getValue() != OperandRole::ancestor)
      continue;
    size_t ancestor = getHeight(path, getRowDomain(input.getType()));
    // A loop of the nest knows its row; parents are read only above the nest.
    for (size_t height = top; height < ancestor; ++height)
      if (ancestor > top && fetched.insert(height).second)
        costs.get(getSymbol(height)).bytes += kIndexBytes;
  }
  if (hasRole(kernel, OperandRole::untruncated)) { // the offsets of both lists
    if (top == 0 && fetched.insert(0).second)
      costs.get(own).bytes += kIndexBytes;
    costs.get(getSymbol(1)).bytes += 2 * kIndexBytes;
  }
  if (draws)
    costs.get(own).bytes += kIndexBytes;
}

/// Adds the gradients that a kernel sums per table row, gathered by their numbers.
void addSegments(SegmentSumOp sum, StepCosts &costs) {
  costs.get(sum.getDomain().getType().getDomain()).bytes += 2 * kIndexBytes;
  auto unique = sum.getDomain().getDefiningOp<UniqueRowsOp>();
  for (Value rows : unique.getRows()) {
    OpCost &cost = costs.get(getRowDomain(rows.getType()));
    cost.gatheredBytes += kIndexBytes + 4 * getRowSize(sum.getType());
    cost.flops += getRowSize(sum.getType());
  }
}

} // namespace

void genrec::addKernelCosts(RowKernelOp kernel, StepCosts &costs) {
  llvm::SmallPtrSet<Value, 8> seen;
  for (auto [role, input, argument] :
       llvm::zip(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), kernel.getInputs(),
                 kernel.getBody().getArguments())) {
    // Sources count by what is gathered from them; parameter rows have no handles.
    bool isSource = role.getValue() == OperandRole::source;
    if (isAddedByReader(input)) {
      addSegments(findSegmentSum(input), costs);
      continue;
    }
    if (isSource && seen.insert(input).second)
      costs.addSource(input.getType());
    if (isSource || argument.use_empty() || !seen.insert(input).second ||
        isa_and_nonnull<ParameterRowsOp>(input.getDefiningOp()))
      continue;
    // A part that was stored where it is joined is neither read nor written.
    if (role.getValue() == OperandRole::untruncated)
      costs.addRowOf(kernel.getDomain().getType().getDomain(), input.getType(),
                     isa<VectorType>(argument.getType()) ? getReadElements(argument) : 1);
    else if (isJoinedInPlace(kernel, input))
      costs.addRow(input.getType(), -getRowSize(input.getType()));
    else if (isa<VectorType>(argument.getType()) && getRowDomain(input.getType()))
      costs.addRow(input.getType(), getReadElements(argument));
    else
      costs.addTensor(input.getType());
  }
  OpCost row;
  for (auto [role, result] :
       llvm::zip(kernel.getResultRoles().getAsRange<ResultRoleAttr>(), kernel.getResults())) {
    costs.addTensor(result.getType());
    if (role.getValue() == ResultRole::pooled)
      row.flops += getRowSize(result.getType());
  }
  bool draws = BodyCost(kernel, row).draws;
  OpCost &total = costs.getOwn();
  total.bytes += row.bytes;
  total.gatheredBytes += row.gatheredBytes;
  total.flops += row.flops;
  addDomainArrays(kernel, draws, costs);
}
