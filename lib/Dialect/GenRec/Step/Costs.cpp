//===- Costs.cpp - what an op of a step has to do at least ----------------===//

#include "genrec/Dialect/GenRec/Step/Costs.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Analysis/Names.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

using namespace mlir;
using namespace genrec;

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

OpCost &StepCosts::get(FlatSymbolRefAttr domain) {
  for (OpCost &cost : costs)
    if (cost.domain == domain)
      return cost;
  costs.push_back({});
  costs.back().domain = domain;
  return costs.back();
}

static int64_t getElements(RankedTensorType tensor) {
  return getRowDomain(tensor) ? getRowSize(tensor) : tensor.getNumElements();
}

void StepCosts::addTensor(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (tensor)
    get(getRowDomain(tensor)).bytes += getElements(tensor) * getElementBytes(tensor.getElementType());
}

void StepCosts::addSource(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  get(getRowDomain(tensor)).sourceBytes +=
      getElements(tensor) * getElementBytes(tensor.getElementType());
}

void StepCosts::addOperandsAndResults(Operation *op) {
  for (Value operand : op->getOperands())
    addTensor(operand.getType());
  for (Value result : op->getResults())
    addTensor(result.getType());
}

SmallVector<OpCost> StepCosts::take() {
  llvm::erase_if(costs, [&](const OpCost &cost) {
    bool isNothing = cost.bytes + cost.gatheredBytes + cost.flops + cost.productFlops +
                         cost.pairFlops + cost.sourceBytes ==
                     0;
    return isNothing && &cost != costs.begin();
  });
  return std::move(costs);
}

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
  auto step = dyn_cast<StepOpInterface>(op);
  if (!step)
    return {};
  StepCosts costs(step.getStepDomain());
  step.addCosts(costs);
  return costs.take();
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
