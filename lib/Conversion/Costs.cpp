//===- Costs.cpp - what an op of a step has to do at least ----------------===//

#include "genrec/Conversion/Costs.h"

#include "ModelIndex.h"
#include "genrec/Conversion/EmitCBuilder.h"
#include "genrec/Conversion/MemoryPlan.h"

using namespace mlir;
using namespace genrec;

/// Bytes of an index, an offset, an identity or a handle.
static constexpr double kIndexBytes = 8;
/// Operations that a function as exp counts for: a polynomial and what reduces its argument.
static constexpr double kFunctionFlops = 16;
/// A lookup reads a bucket of keys.
static constexpr double kProbeBytes = 64;

DictionaryAttr OpCost::toAttribute(MLIRContext *context) const {
  Builder builder(context);
  SmallVector<NamedAttribute> entries;
  if (domain)
    entries.push_back(builder.getNamedAttr("domain", domain));
  auto add = [&](StringRef key, double value) {
    if (value != 0)
      entries.push_back(builder.getNamedAttr(key, builder.getF64FloatAttr(value)));
  };
  add("bytes", bytes);
  add("gathered_bytes", gatheredBytes);
  add("flops", flops);
  add("product_flops", productFlops);
  add("pair_flops", pairFlops);
  add("source_bytes", sourceBytes);
  return builder.getDictionaryAttr(entries);
}

OpCost OpCost::fromAttribute(DictionaryAttr attribute) {
  auto number = [&](StringRef key) {
    auto value = attribute.getAs<FloatAttr>(key);
    return value ? value.getValueAsDouble() : 0.0;
  };
  OpCost cost;
  cost.domain = attribute.getAs<FlatSymbolRefAttr>("domain");
  cost.bytes = number("bytes");
  cost.gatheredBytes = number("gathered_bytes");
  cost.flops = number("flops");
  cost.productFlops = number("product_flops");
  cost.pairFlops = number("pair_flops");
  cost.sourceBytes = number("source_bytes");
  return cost;
}

namespace {
/// Costs by domain; the first one asked for stays the first.
class CostTable {
public:
  explicit CostTable(FlatSymbolRefAttr over) { get(over); }

  OpCost &get(FlatSymbolRefAttr domain) {
    for (OpCost &cost : costs)
      if (cost.domain == domain)
        return cost;
    costs.push_back({});
    costs.back().domain = domain;
    return costs.back();
  }

  /// All of a tensor, read or written once.
  void addTensor(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor)
      return;
    int64_t elements = getRowDomain(tensor) ? getRowSize(tensor) : tensor.getNumElements();
    get(getRowDomain(tensor)).bytes += elements * getElementBytes(tensor.getElementType());
  }

  /// A tensor that rows are picked from.
  void addSource(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    int64_t elements = getRowDomain(tensor) ? getRowSize(tensor) : tensor.getNumElements();
    get(getRowDomain(tensor)).sourceBytes += elements * getElementBytes(tensor.getElementType());
  }

  /// The gradients that a kernel adds up: picked by the numbers of a row's members.
  void addSegments(SegmentSumOp sum) {
    get(sum.getDomain().getType().getDomain()).bytes += 2 * kIndexBytes;
    auto unique = sum.getDomain().getDefiningOp<UniqueRowsOp>();
    for (Value rows : unique.getRows()) {
      OpCost &cost = get(getRowDomain(rows.getType()));
      cost.gatheredBytes += kIndexBytes + 4 * getRowSize(sum.getType());
      cost.flops += getRowSize(sum.getType());
    }
  }

  SmallVector<OpCost> take() {
    llvm::erase_if(costs, [&](const OpCost &cost) {
      bool isNothing = cost.bytes + cost.gatheredBytes + cost.flops + cost.productFlops +
                           cost.pairFlops + cost.sourceBytes ==
                       0;
      return isNothing && &cost != costs.begin();
    });
    return costs;
  }

private:
  SmallVector<OpCost> costs;
};

double getWidth(Type type) {
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements();
  return 1;
}

/// Bytes of the part of `source` that one index picks.
double getPickedBytes(Type source) {
  auto tensor = cast<RankedTensorType>(source);
  int64_t elements = getRowDomain(tensor)    ? getRowSize(tensor)
                     : tensor.getRank() == 2 ? tensor.getDimSize(1)
                                             : 1;
  return elements * getElementBytes(tensor.getElementType());
}

//===----------------------------------------------------------------------===//
// Row kernels
//===----------------------------------------------------------------------===//

/// What the body does for one row of the kernel's domain.
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

  RowKernelOp kernel;
  OpCost &row;
  double tableBytes = 0;
  SmallVector<std::tuple<Value, int64_t, bool>> accesses;
};

// The rows of a parameter lie one after another, those of a table anywhere.
void BodyCost::addAccess(Value handle, int64_t slot, Type type, bool isStore) {
  if (llvm::is_contained(accesses, std::tuple(handle, slot, isStore)))
    return;
  accesses.emplace_back(handle, slot, isStore);
  auto argument = dyn_cast<BlockArgument>(handle);
  bool isParameter =
      argument && argument.getArgNumber() < kernel.getInputs().size() &&
      isa_and_nonnull<ParameterRowsOp>(kernel.getInputs()[argument.getArgNumber()].getDefiningOp());
  (isParameter ? row.bytes : tableBytes) += 4 * getWidth(type);
}

void BodyCost::addAccumulate(AccumulateOp op) {
  double added = getWidth(op.getValue().getType());
  double times = op.getIndex() ? getWidth(op.getIndex().getType()) : 1;
  row.flops += added * times * (op.getCoefficient() ? 2 : 1);
  if (op.getIndex())
    row.gatheredBytes += 2 * 4 * added * times;
}

void BodyCost::visit(Operation *op) {
  if (auto load = dyn_cast<RowLoadOp>(op))
    return addAccess(load.getRow(), load.getSlot(), load.getResult().getType(), false);
  if (auto store = dyn_cast<RowStoreOp>(op))
    return addAccess(store.getRow(), store.getSlot(), store.getValue().getType(), true);
  if (auto gather = dyn_cast<RowGatherOp>(op)) {
    row.gatheredBytes +=
        getPickedBytes(gather.getSource().getType()) * getWidth(gather.getIndex().getType());
    return;
  }
  if (auto dot = dyn_cast<GatherDotOp>(op)) {
    double count = getWidth(dot.getIndex().getType());
    row.gatheredBytes += getPickedBytes(dot.getSource().getType()) * count;
    row.flops += 2 * count * getWidth(dot.getRow().getType());
    return;
  }
  if (auto sum = dyn_cast<GatherSumOp>(op)) {
    double count = getWidth(sum.getIndex().getType());
    row.gatheredBytes += getPickedBytes(sum.getSource().getType()) * count;
    row.flops += 2 * count * getWidth(sum.getResult().getType());
    return;
  }
  if (auto accumulate = dyn_cast<AccumulateOp>(op))
    return addAccumulate(accumulate);
  if (auto draw = dyn_cast<RandomIndexOp>(op))
    draws |= !draw.getShared();
  draws |= isa<KeepMaskOp, RowUniformOp>(op);
  if (op->getNumResults() != 1 || !getElementTypeOrSelf(op->getResult(0).getType()).isF32())
    return;
  if (auto reduction = dyn_cast<vector::ReductionOp>(op))
    row.flops += getWidth(reduction.getVector().getType());
  else if (isa<math::AbsFOp>(op))
    row.flops += getWidth(op->getResult(0).getType());
  else if (isa<math::MathDialect>(op->getDialect()))
    row.flops += kFunctionFlops * getWidth(op->getResult(0).getType());
  else if (isa<arith::ArithDialect>(op->getDialect()) && !isa<arith::ConstantOp>(op))
    row.flops += getWidth(op->getResult(0).getType());
}

/// Offsets of the lists that a kernel pools, parents of the rows that it fans out, identities.
void addDomainArrays(RowKernelOp kernel, bool draws, CostTable &costs) {
  FlatSymbolRefAttr own = kernel.getDomain().getType().getDomain();
  SmallVector<DomainOp> path = getDomainPath(kernel, own);
  auto getHeight = [&](FlatSymbolRefAttr domain) -> size_t {
    return llvm::find_if(path, [&](DomainOp op) { return op.getSymName() == domain.getValue(); }) -
           path.begin();
  };
  auto getSymbol = [&](size_t height) {
    return FlatSymbolRefAttr::get(path[height].getSymNameAttr());
  };
  size_t top = 0;
  for (auto [role, result] :
       llvm::zip(kernel.getResultRoles().getAsRange<ResultRoleAttr>(), kernel.getResults()))
    if (role.getValue() == ResultRole::pooled)
      top = std::max(top, getHeight(getRowDomain(result.getType())));
  // One loop per domain from the uppermost down: the offsets of each list, by the row above it.
  for (size_t height = 0; height < top; ++height)
    costs.get(getSymbol(height + 1)).bytes += kIndexBytes;
  llvm::SmallDenseSet<size_t> fetched;
  for (auto [role, input] :
       llvm::zip(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), kernel.getInputs())) {
    if (role.getValue() != OperandRole::ancestor)
      continue;
    size_t ancestor = getHeight(getRowDomain(input.getType()));
    // Within the nest of loops the row above is at hand.
    for (size_t height = top; height < ancestor; ++height)
      if (ancestor > top && fetched.insert(height).second)
        costs.get(getSymbol(height)).bytes += kIndexBytes;
  }
  if (draws)
    costs.get(own).bytes += kIndexBytes;
}

SmallVector<OpCost> getKernelCosts(RowKernelOp kernel) {
  FlatSymbolRefAttr own = kernel.getDomain().getType().getDomain();
  CostTable costs(own);
  llvm::SmallPtrSet<Value, 8> seen;
  for (auto [role, input, argument] :
       llvm::zip(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), kernel.getInputs(),
                 kernel.getBody().getArguments())) {
    // Sources count by what is gathered of them; parameter rows have no handles.
    bool isSource = role.getValue() == OperandRole::source;
    if (isAddedByReader(input)) {
      costs.addSegments(input.getDefiningOp<SegmentSumOp>());
      continue;
    }
    if (isSource && seen.insert(input).second)
      costs.addSource(input.getType());
    if (!isSource && !argument.use_empty() && seen.insert(input).second &&
        !isa_and_nonnull<ParameterRowsOp>(input.getDefiningOp()))
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
  OpCost &total = costs.get(own);
  total.bytes += row.bytes;
  total.gatheredBytes += row.gatheredBytes;
  total.flops += row.flops;
  addDomainArrays(kernel, draws, costs);
  return costs.take();
}

//===----------------------------------------------------------------------===//
// Library calls
//===----------------------------------------------------------------------===//

/// Every operand read once, every result written once.
void addOperandsAndResults(Operation *op, CostTable &costs) {
  for (Value operand : op->getOperands())
    costs.addTensor(operand.getType());
  for (Value result : op->getResults())
    costs.addTensor(result.getType());
}

// Forward: scores and their product with v. Backward: scores again, and four products.
template <typename Op> double getFlopsPerPair(Op attention, bool isGradient) {
  double qk = getRowSize(attention.getQ().getType()), v = getRowSize(attention.getV().getType());
  return isGradient ? 2 * (3 * qk + 2 * v) : 2 * (qk + v);
}

template <typename Op> double getPairFlops(Op attention, bool isGradient) {
  double perPair = getFlopsPerPair(attention, isGradient);
  return attention.getCausal() ? perPair : 2 * perPair;
}

/// A product (backward: two) per distinct row, and per row of the batch a sum of those that it
/// found.
void addFactors(Operation *op, CostTable &costs) {
  auto forward = dyn_cast<DistinctLinearOp>(op);
  auto backward = dyn_cast<DistinctLinearGradOp>(op);
  Type values = op->getOperand(1).getType();
  Type sums = forward ? Type(forward.getType()) : backward.getGradient().getType();
  double lookups = forward ? forward.getColumns().size() : backward.getColumns().size();
  costs.get(getRowDomain(values)).productFlops +=
      (forward ? 2.0 : 4.0) * getRowSize(values) * getRowSize(sums);
  OpCost &row = costs.get(getRowDomain(sums));
  row.bytes += 4 * lookups;
  row.gatheredBytes += 4 * lookups * getRowSize(sums);
  row.flops += lookups * getRowSize(sums);
}

/// Of queries of one list with keys of another. Lists of one parent are counted as if they
/// were as long as that of the keys: what is known of a domain are its own rows and lists.
template <typename Op> void addCrossCosts(Op attention, bool isGradient, CostTable &costs) {
  FlatSymbolRefAttr keys = getRowDomain(attention.getK().getType());
  double flops = getFlopsPerPair(attention, isGradient);
  bool isBelow =
      lookupDomain(attention, keys).getParentAttr() == getRowDomain(attention.getQ().getType());
  if (isBelow)
    costs.get(keys).productFlops += flops;
  else
    costs.get(keys).pairFlops += 2 * flops;
}

SmallVector<OpCost> getCallCosts(Operation *op) {
  FlatSymbolRefAttr own = getFirstDomain(op);
  CostTable costs(own);
  auto unique = dyn_cast<UniqueRowsOp>(op);
  if (unique && unique.getAll()) { // gradients are not looked at
    for (Value rows : unique.getRows())
      costs.addTensor(rows.getType());
    costs.addTensor(unique.getResult().getType());
    return costs.take();
  }
  addOperandsAndResults(op, costs);
  if (auto linear = dyn_cast<LinearOp>(op)) {
    costs.get(own).productFlops +=
        2.0 * getRowSize(linear.getX().getType()) * getRowSize(linear.getResult().getType());
  } else if (auto linear = dyn_cast<FusedLinearOp>(op)) {
    costs.get(own).productFlops += 2.0 * getRowSize(linear.getX().getType()) *
                                   getRowSize(linear->getResult(0).getType());
  } else if (auto gradient = dyn_cast<WeightGradientOp>(op)) {
    costs.get(own).productFlops +=
        2.0 * getRowSize(gradient.getX().getType()) * getRowSize(gradient.getY().getType());
  } else if (auto scores = dyn_cast<ScoresOp>(op)) {
    costs.get(own).productFlops +=
        2.0 * getRowSize(scores.getQuery().getType()) * getRowSize(scores.getType());
  } else if (auto gradient = dyn_cast<ScoresGradOp>(op)) {
    costs.get(own).productFlops += 4.0 * getRowSize(gradient.getQuery().getType()) *
                                   getRowSize(gradient.getGradient().getType());
  } else if (isa<DistinctLinearOp, DistinctLinearGradOp>(op)) {
    addFactors(op, costs);
  } else if (auto attention = dyn_cast<AttentionOp>(op)) {
    costs.get(own).pairFlops += getPairFlops(attention, false);
  } else if (auto gradient = dyn_cast<AttentionGradOp>(op)) {
    costs.get(own).pairFlops += getPairFlops(gradient, true);
  } else if (auto attention = dyn_cast<CrossAttentionOp>(op)) {
    addCrossCosts(attention, /*isGradient=*/false, costs);
  } else if (auto gradient = dyn_cast<CrossAttentionGradOp>(op)) {
    addCrossCosts(gradient, /*isGradient=*/true, costs);
  } else if (isa<TableRowsOp, ResolveOp>(op)) {
    costs.get(own).gatheredBytes += kProbeBytes;
  }
  return costs.take();
}
} // namespace

FlatSymbolRefAttr genrec::getFirstDomain(Operation *op) {
  auto of = [](Value value) -> FlatSymbolRefAttr {
    if (auto domain = dyn_cast<DomainType>(value.getType()))
      return domain.getDomain();
    return isa<RankedTensorType>(value.getType()) ? getRowDomain(value.getType())
                                                  : FlatSymbolRefAttr();
  };
  for (Value result : op->getResults())
    if (FlatSymbolRefAttr domain = of(result))
      return domain;
  for (Value operand : op->getOperands())
    if (FlatSymbolRefAttr domain = of(operand))
      return domain;
  return {};
}

SmallVector<OpCost> genrec::getCosts(Operation *op) {
  if (auto costs = op->getAttrOfType<ArrayAttr>(kCostsAttrName))
    return llvm::map_to_vector(costs.getAsRange<DictionaryAttr>(), OpCost::fromAttribute);
  if (auto kernel = dyn_cast<RowKernelOp>(op))
    return getKernelCosts(kernel);
  return getCallCosts(op);
}

bool genrec::isStepOp(Operation *op) {
  return !isView(op) && !isa<BatchOp, CatalogueOp, FeatureOp, FeatureValidOp, ParamOp, ConstantOp,
                             FixedRowsOp, ParameterRowsOp, StepValueOp, LossOp, ReportLossOp>(op);
}

//===----------------------------------------------------------------------===//
// Origins
//===----------------------------------------------------------------------===//

std::string genrec::getStepOpName(Operation *op) {
  if (auto launch = dyn_cast<LaunchOp>(op))
    return launch.getKernel().str();
  auto kernel = dyn_cast<RowKernelOp>(op);
  if (!kernel)
    return op->getName().stripDialect().str();
  StringRef name;
  if (std::optional<StringRef> own = kernel.getName())
    name = *own;
  if (name.empty())
    name = getUserName(kernel.getLoc());
  for (Operation &inner : kernel.getBody().front().without_terminator())
    if (name.empty())
      name = getUserName(inner.getLoc());
  return "row_" + (name.empty() ? "kernel" : makeIdentifier(name));
}

std::string genrec::describeOrigin(Operation *op) {
  if (auto origin = op->getAttrOfType<StringAttr>(kOriginAttrName))
    return origin.getValue().str();
  // A kernel of hundreds of columns has thousands of names: one more than are shown is enough.
  constexpr size_t kMostShown = 8;
  SmallVector<std::string> names, lines;
  auto add = [](SmallVector<std::string> &list, auto describe) {
    if (list.size() > kMostShown)
      return;
    std::string text = describe();
    if (!text.empty() && !llvm::is_contained(list, text))
      list.push_back(std::move(text));
  };
  auto visit = [&](Location loc) {
    add(names, [&] { return getUserName(loc).str(); });
    add(lines, [&] { return describeLocation(loc); });
  };
  auto visitParts = [&](Location loc) {
    if (auto fused = dyn_cast<FusedLoc>(loc))
      llvm::for_each(fused.getLocations(), visit);
    else
      visit(loc);
  };
  visitParts(op->getLoc());
  if (auto kernel = dyn_cast<RowKernelOp>(op))
    for (Operation &inner : kernel.getBody().front().without_terminator())
      visitParts(inner.getLoc());
  auto join = [](ArrayRef<std::string> parts) {
    std::string text = llvm::join(parts.take_front(kMostShown), ", ");
    return parts.size() > kMostShown ? text + ", …" : text;
  };
  std::string text = op->getName().stripDialect().str();
  if (auto kernel = dyn_cast<RowKernelOp>(op)) {
    auto ops = kernel->getAttrOfType<StringAttr>("genrec.ops");
    text = ops ? ops.getValue().str() : "";
  }
  if (!names.empty())
    text += (text.empty() ? "of " : "; of ") + join(names);
  if (!lines.empty())
    text += (text.empty() ? "(" : " (") + join(lines) + ")";
  return text;
}
