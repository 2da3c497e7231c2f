//===- StepOpModelsPick.cpp - rows picked from a catalogue ----------------===//

#include "StepOpModels.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

using namespace mlir;
using namespace genrec;

namespace {

/// A bit per row of the source, and a count per 64 bits.
struct PickRowsStep : StepModel<PickRowsStep, PickRowsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    auto pick = cast<PickRowsOp>(op);
    FlatSymbolRefAttr domain = domainOf(pick.getDomain());
    std::string name = domain.getValue().str();
    slots.push_back({domain, 8, 0, name + "_identity", true, true});
    slots.push_back({domainOf(pick.getSource()), 1, 64, name + "_bits"});
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    auto pick = cast<PickRowsOp>(op);
    std::optional<SizeTerm> total;
    for (Value numbers : pick.getNumbers()) {
      FlatSymbolRefAttr domain = getRowDomain(numbers.getType());
      SizeTerm count = sizes.constant(getRowSize(numbers.getType()));
      if (domain)
        count = sizes.mul(sizes.rowsOf(domain), count);
      total = total ? sizes.add(*total, count) : count;
    }
    return sizes.min(sizes.rowsOf(domainOf(pick.getSource())), *total);
  }
  FlatSymbolRefAttr getStepDomain(Operation *op) const {
    return domainOf(cast<PickRowsOp>(op).getDomain());
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    auto pick = cast<PickRowsOp>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().bytes += kIndexBytes; // identities
    costs.get(domainOf(pick.getSource())).bytes += 16.0 / 64;
  }
};

struct PickListsStep : StepModel<PickListsStep, PickListsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    auto pick = cast<PickListsOp>(op);
    FlatSymbolRefAttr domain = domainOf(pick.getDomain());
    std::string name = domain.getValue().str();
    slots.push_back(
        {getRowDomain(pick.getParents().getType()), 8, 8, name + "_offsets", true, true});
    slots.push_back({domain, 8, 0, name + "_parent", true, true});
    slots.push_back({domain, 8, 0, name + "_identity", true, true});
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    auto pick = cast<PickListsOp>(op);
    FlatSymbolRefAttr source = domainOf(pick.getSource());
    SizeTerm parents = sizes.rowsOf(getRowDomain(pick.getParents().getType()));
    return sizes.min(sizes.rowsOf(source), sizes.mul(parents, sizes.longestOf(source)));
  }
  std::optional<SizeTerm> getLongestList(Operation *op, SizeBuilder &sizes) const {
    return sizes.longestOf(domainOf(cast<PickListsOp>(op).getSource()));
  }
};

} // namespace

void genrec::attachPickModels(MLIRContext *context) {
  attachModels<PlainCall, DrawRowsOp>(context);
  PickRowsOp::attachInterface<PickRowsStep>(*context);
  PickListsOp::attachInterface<PickListsStep>(*context);
}
