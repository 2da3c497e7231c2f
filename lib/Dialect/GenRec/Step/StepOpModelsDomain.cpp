//===- StepOpModelsDomain.cpp - domains and moves between them ------------===//

#include "StepOpModels.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

namespace {

/// The domain of the lists that `domain`'s rows belong to.
FlatSymbolRefAttr getParent(Operation *op, FlatSymbolRefAttr domain) {
  return lookupDomain(op, domain).getParentAttr();
}

//===----------------------------------------------------------------------===//
// Ops that derive a domain of lists
//===----------------------------------------------------------------------===//

/// Adds the slots for offsets (one per parent row and one more), parent rows and identities, in the
/// order of DomainSlot.
/// DomainSlot.
void addDomainSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) {
  FlatSymbolRefAttr domain = domainOf(op->getResult(0));
  std::string name = domain.getValue().str();
  slots.push_back({getParent(op, domain), 8, 8, name + "_offsets", true, true});
  slots.push_back({domain, 8, 0, name + "_parent", true, true});
  slots.push_back({domain, 8, 0, name + "_identity", true, true});
}

struct TruncateStep : StepModel<TruncateStep, TruncateOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    addDomainSlots(op, slots);
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    FlatSymbolRefAttr source = domainOf(op->getOperand(0));
    SizeTerm lists = sizes.rowsOf(getParent(op, source));
    return sizes.min(sizes.rowsOf(source), sizes.mul(lists, getCount(op, sizes)));
  }
  std::optional<SizeTerm> getLongestList(Operation *op, SizeBuilder &sizes) const {
    return sizes.min(sizes.longestOf(domainOf(op->getOperand(0))), getCount(op, sizes));
  }

private:
  static SizeTerm getCount(Operation *op, SizeBuilder &sizes) {
    return sizes.constant(cast<TruncateOp>(op).getCount());
  }
};

/// Lists shorter than `count` are padded to it, longer ones keep their length.
struct PadStep : StepModel<PadStep, PadOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    addDomainSlots(op, slots);
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    FlatSymbolRefAttr source = domainOf(op->getOperand(0));
    SizeTerm lists = sizes.rowsOf(getParent(op, source));
    return sizes.add(sizes.rowsOf(source),
                     sizes.mul(lists, sizes.constant(cast<PadOp>(op).getCount())));
  }
  std::optional<SizeTerm> getLongestList(Operation *op, SizeBuilder &sizes) const {
    return sizes.max(sizes.longestOf(domainOf(op->getOperand(0))),
                     sizes.constant(cast<PadOp>(op).getCount()));
  }
};

/// All pairs of a row of `first` and a row of `second` below the same parent row.
struct PairDomainsStep : StepModel<PairDomainsStep, PairDomainsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    addDomainSlots(op, slots);
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    auto pairs = cast<PairDomainsOp>(op);
    return sizes.mul(sizes.rowsOf(domainOf(pairs.getFirst())),
                     sizes.longestOf(domainOf(pairs.getSecond())));
  }
  std::optional<SizeTerm> getLongestList(Operation *op, SizeBuilder &sizes) const {
    return sizes.longestOf(domainOf(cast<PairDomainsOp>(op).getSecond()));
  }
};

struct ConcatDomainsStep : StepModel<ConcatDomainsStep, ConcatDomainsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    addDomainSlots(op, slots);
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    return sizes.addRowsOf(cast<ConcatDomainsOp>(op).getSources());
  }
  // A part whose domain is the parent adds one row to each list.
  std::optional<SizeTerm> getLongestList(Operation *op, SizeBuilder &sizes) const {
    FlatSymbolRefAttr parent = getParent(op, domainOf(op->getResult(0)));
    std::optional<SizeTerm> total;
    for (Value source : cast<ConcatDomainsOp>(op).getSources()) {
      FlatSymbolRefAttr domain = domainOf(source);
      SizeTerm part = domain == parent ? sizes.constant(1) : sizes.longestOf(domain);
      total = total ? sizes.add(*total, part) : part;
    }
    return total;
  }
};

//===----------------------------------------------------------------------===//
// Other domains
//===----------------------------------------------------------------------===//

struct StackDomainsStep : StepModel<StackDomainsStep, StackDomainsOp> {
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    auto stack = cast<StackDomainsOp>(op);
    int64_t bytes = 8 * (static_cast<int64_t>(stack.getParts().size()) + 1);
    slots.push_back(
        {{}, 0, bytes, domainOf(stack.getResult()).getValue().str() + "_offsets", true, true});
  }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    return sizes.addRowsOf(cast<StackDomainsOp>(op).getParts());
  }
};

struct FixedRowsStep : StepModel<FixedRowsStep, FixedRowsOp> {
  StepKind getStepKind(Operation *) const { return StepKind::setup; }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    return sizes.constant(cast<FixedRowsOp>(op).getCount());
  }
};

/// The rows of a parameter alias the parameter.
struct ParameterRowsStep : StepModel<ParameterRowsStep, ParameterRowsOp> {
  StepKind getStepKind(Operation *) const { return StepKind::setup; }
  bool ownsResult(Operation *, unsigned) const { return false; }
  std::optional<SizeTerm> getDomainRows(Operation *op, FlatSymbolRefAttr,
                                        SizeBuilder &sizes) const {
    ParameterOp parameter = lookupParameter(op, cast<ParameterRowsOp>(op).getParameterAttr());
    auto type = cast<RankedTensorType>(parameter.getType());
    return sizes.constant(type.getRank() == 2 ? type.getDimSize(0) : 1);
  }
};

//===----------------------------------------------------------------------===//
// Columns, parameters, constants
//===----------------------------------------------------------------------===//

/// A builder that names its next value like `value`.
EmitCBuilder getNamed(Value value, StageBuilder &stage) {
  return stage.at(value.getLoc()).named(getValueName(value));
}

/// What ops read of a column lies in the batch.
template <typename OpT> struct ColumnStep : DeclarationModel<ColumnStep<OpT>, OpT> {
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    auto feature = cast<OpT>(op);
    EmitCBuilder b = getNamed(feature.getResult(), stage);
    auto type = cast<RankedTensorType>(feature.getType());
    FlatSymbolRefAttr domain = domainOf(feature.getDomain());
    Value values = stage.getColumnMember(stage.index.getFeature(domain, feature.getColumnAttr()),
                                         isa<FeatureValidOp>(op) ? "valid" : "values",
                                         getBufferElement(b, type.getElementType()));
    values = stage.getBlockRows(b, values, domain,
                                getElementBytes(type.getElementType()) * getRowSize(type));
    values.getDefiningOp()->setLoc(b.loc);
    return EmitCBuilder::kept(values);
  }
};

struct ParamStep : DeclarationModel<ParamStep, ParamOp> {
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    auto parameter = cast<ParamOp>(op);
    int64_t number = stage.index.getParameter(parameter.getParameterAttr());
    Value value = stage.getParameterMember(number, "value");
    EmitCBuilder b = stage.at(op->getLoc()).named(makeIdentifier(parameter.getParameter()));
    value.getDefiningOp()->setLoc(b.loc);
    return EmitCBuilder::kept(value);
  }
};

struct ConstantStep : DeclarationModel<ConstantStep, ConstantOp> {
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    auto constant = cast<ConstantOp>(op);
    EmitCBuilder b = getNamed(constant.getResult(), stage);
    Value table = b.constantTable(cast<DenseElementsAttr>(constant.getValue()),
                                  getValueName(constant.getResult()));
    return stage.target.hasDevice ? EmitCBuilder::constant(EmitCBuilder::kept(
                                        b.call("kernels::deviceAddress", table.getType(), {table})))
                                  : table;
  }
};

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

template <typename ModelT, typename OpT> struct ViewModel : StepModel<ModelT, OpT> {
  StepKind getStepKind(Operation *) const { return StepKind::view; }
};

struct RowsAsSharedStep : ViewModel<RowsAsSharedStep, RowsAsSharedOp> {
  std::optional<AliasedRows> getAliasedRows(Operation *, unsigned) const {
    return AliasedRows{0, /*keepsStride=*/false};
  }
};

/// Of a parameter's gradient, the rows that this rank updates: they begin where its rows do.
struct SharedRowsStep : ViewModel<SharedRowsStep, SharedRowsOp> {
  std::optional<AliasedRows> getAliasedRows(Operation *op, unsigned) const {
    if (getRowsParameter(op))
      return std::nullopt;
    return AliasedRows{0, /*keepsStride=*/false};
  }
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    auto rows = cast<SharedRowsOp>(op);
    ParameterRowsOp of = getRowsParameter(op);
    if (!of)
      return {};
    EmitCBuilder b = getNamed(rows.getResult(), stage);
    Value x = stage.getPointer(rows.getX());
    return EmitCBuilder::kept(b.call(
        "kernels::ownRows", x.getType(),
        {stage.getStep(), b.integer(stage.index.getParameter(of.getParameterAttr()), b.i32()),
         b.integer(getRowSize(rows.getType())), x}));
  }

private:
  static ParameterRowsOp getRowsParameter(Operation *op) {
    return cast<SharedRowsOp>(op).getDomain().getDefiningOp<ParameterRowsOp>();
  }
};

struct AfterStep : ViewModel<AfterStep, AfterOp> {
  std::optional<AliasedRows> getAliasedRows(Operation *, unsigned) const { return AliasedRows(); }
};

struct SliceColumnsStep : ViewModel<SliceColumnsStep, SliceColumnsOp> {
  std::optional<AliasedRows> getAliasedRows(Operation *op, unsigned) const {
    return AliasedRows{static_cast<int64_t>(cast<SliceColumnsOp>(op).getOffset())};
  }
};

/// The parts are contiguous, one after another.
struct SplitSharedStep : ViewModel<SplitSharedStep, SplitSharedOp> {
  std::optional<AliasedRows> getAliasedRows(Operation *op, unsigned number) const {
    AliasedRows place;
    for (Value part : cast<SplitSharedOp>(op).getParts().take_front(number))
      place.offset += cast<RankedTensorType>(part.getType()).getNumElements();
    return place;
  }
};

/// The offset of a part of a stack is known only at run time.
struct UnstackRowsStep : ViewModel<UnstackRowsStep, UnstackRowsOp> {
  Value getAddress(Operation *op, StageBuilder &stage, unsigned) const {
    auto part = cast<UnstackRowsOp>(op);
    Value pointer = stage.getPartPointer(part.getX(), part.getStack(), part.getPart());
    pointer.getDefiningOp()->setLoc(getNamed(part.getResult(), stage).loc);
    return part.getPart() ? EmitCBuilder::kept(pointer) : pointer;
  }
};

} // namespace

void genrec::attachDomainModels(MLIRContext *context) {
  attachModels<Declaration, BatchOp, CatalogueOp>(context);
  SharedRowsOp::attachInterface<SharedRowsStep>(*context);
  RowsAsSharedOp::attachInterface<RowsAsSharedStep>(*context);
  attachModels<PlainCall, DeriveOp, DeriveGradOp, PairRowsOp, PairSumOp, TileOp, TileGradOp,
               ConcatRowsOp, SplitRowsOp, LeadOp, LagOp, PositionOp, LengthOp, PoolGradOp,
               ConcatSharedOp>(context);
  attachModels<ColumnStep, FeatureOp, FeatureValidOp>(context);
  ParamOp::attachInterface<ParamStep>(*context);
  ConstantOp::attachInterface<ConstantStep>(*context);
  TruncateOp::attachInterface<TruncateStep>(*context);
  PadOp::attachInterface<PadStep>(*context);
  PairDomainsOp::attachInterface<PairDomainsStep>(*context);
  ConcatDomainsOp::attachInterface<ConcatDomainsStep>(*context);
  StackDomainsOp::attachInterface<StackDomainsStep>(*context);
  FixedRowsOp::attachInterface<FixedRowsStep>(*context);
  ParameterRowsOp::attachInterface<ParameterRowsStep>(*context);
  AfterOp::attachInterface<AfterStep>(*context);
  SliceColumnsOp::attachInterface<SliceColumnsStep>(*context);
  SplitSharedOp::attachInterface<SplitSharedStep>(*context);
  UnstackRowsOp::attachInterface<UnstackRowsStep>(*context);
}
