//===- Costs.cpp - lower bounds on the work of step ops -------------------===//

#include "genrec/Dialect/GenRec/Step/Costs.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Analysis/Names.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

using namespace mlir;
using namespace genrec;

CostAttr OpCost::toAttribute(MLIRContext *context) const {
  auto number = [&](double value) {
    return value != 0 ? Builder(context).getF64FloatAttr(value) : FloatAttr();
  };
  return CostAttr::get(context, domain, number(bytes), number(gatheredBytes), number(flops),
                       number(productFlops), number(pairFlops), number(sourceBytes));
}

OpCost OpCost::fromAttribute(CostAttr attribute) {
  auto number = [](FloatAttr value) { return value ? value.getValueAsDouble() : 0.0; };
  return {attribute.getDomain(),
          number(attribute.getBytes()),
          number(attribute.getGatheredBytes()),
          number(attribute.getFlops()),
          number(attribute.getProductFlops()),
          number(attribute.getPairFlops()),
          number(attribute.getSourceBytes())};
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
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    addRowOf(getRowDomain(tensor), tensor, getElements(tensor));
}

void StepCosts::addRowOf(FlatSymbolRefAttr domain, Type type, int64_t elements) {
  get(domain).bytes += elements * getElementBytes(cast<RankedTensorType>(type).getElementType());
}

void StepCosts::addRow(Type type, int64_t elements) {
  addRowOf(getRowDomain(type), type, elements);
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
  if (auto costs = op->getAttrOfType<ArrayAttr>(GenRecDialect::CostsAttrHelper::getNameStr()))
    return llvm::map_to_vector(costs.getAsRange<CostAttr>(), OpCost::fromAttribute);
  auto step = dyn_cast<StepOpInterface>(op);
  if (!step)
    return {};
  StepCosts costs(step.getStepDomain());
  step.addCosts(costs);
  return costs.take();
}

bool genrec::multipliesRounded(Operation *op) {
  auto product = dyn_cast<ProductOpInterface>(op);
  return product && product.getBf16();
}

//===----------------------------------------------------------------------===//
// Origins
//===----------------------------------------------------------------------===//

std::string genrec::getStepOpName(Operation *op) {
  if (auto launch = dyn_cast<LaunchOp>(op))
    return launch.getName().value_or(launch.getKernel()).str();
  if (auto columns = dyn_cast<LaunchColumnsOp>(op); columns && columns.getName())
    return columns.getName()->str();
  if (auto launched = dyn_cast<LaunchedKernelOp>(op))
    return launched.getName().str();
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

namespace {
/// What the user's program says of an op: names and lines, each of them once. A kernel of hundreds
/// of columns has thousands: one more than are shown.
class Origin {
public:
  explicit Origin(Operation *op) {
    visitParts(op->getLoc());
    if (auto kernel = dyn_cast<RowKernelOp>(op))
      for (Operation &inner : kernel.getBody().front().without_terminator())
        visitParts(inner.getLoc());
  }

  SmallVector<std::string> names, lines;
  SmallVector<Location> places; ///< of `lines`

  static std::string join(ArrayRef<std::string> parts) {
    std::string text = llvm::join(parts.take_front(kMostShown), ", ");
    return parts.size() > kMostShown ? text + ", …" : text;
  }

private:
  static constexpr size_t kMostShown = 8;

  void visitParts(Location loc) {
    if (auto fused = dyn_cast<FusedLoc>(loc))
      llvm::for_each(fused.getLocations(), [&](Location part) { visit(part); });
    else
      visit(loc);
  }
  void visit(Location loc) {
    if (names.size() <= kMostShown)
      (void)add(names, getUserName(loc).str());
    if (lines.size() <= kMostShown && add(lines, describeLocation(loc)))
      places.push_back(getUserLocation(loc));
  }
  static bool add(SmallVector<std::string> &list, std::string text) {
    if (text.empty() || llvm::is_contained(list, text))
      return false;
    list.push_back(std::move(text));
    return true;
  }
};
} // namespace

bool genrec::isOfSeveralLines(Operation *op) { return Origin(op).lines.size() > 1; }

Location genrec::getLocOfLines(Operation *op) {
  SmallVector<Location> locs{op->getLoc()};
  llvm::append_range(locs, Origin(op).places);
  return FusedLoc::get(op->getContext(), locs);
}

std::string genrec::describeOrigin(Operation *op) {
  if (auto origin = op->getAttrOfType<StringAttr>(GenRecDialect::OriginAttrHelper::getNameStr()))
    return origin.getValue().str();
  const Origin origin(op);
  std::string text = op->getName().stripDialect().str();
  if (auto kernel = dyn_cast<RowKernelOp>(op)) {
    auto ops = kernel->getAttrOfType<StringAttr>(GenRecDialect::OpsAttrHelper::getNameStr());
    text = ops ? ops.getValue().str() : "";
  }
  if (!origin.names.empty())
    text += (text.empty() ? "of " : " of ") + Origin::join(origin.names);
  if (!origin.lines.empty())
    text += (text.empty() ? "(" : " (") + Origin::join(origin.lines) + ")";
  return text;
}
