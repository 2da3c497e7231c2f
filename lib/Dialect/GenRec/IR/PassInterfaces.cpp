//===- PassInterfaces.cpp - implementations of the passes' interfaces -----===//
//
// GenRecInterfaces.td documents the interfaces.
//
//===----------------------------------------------------------------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Sinks
//===----------------------------------------------------------------------===//

/// Training and evaluation compute losses.
static bool evaluatesLosses(ProgramMode mode) {
  return mode == ProgramMode::all || mode == ProgramMode::train || mode == ProgramMode::evaluate;
}

bool LossOp::isNeededIn(ProgramMode mode) { return evaluatesLosses(mode); }
bool ReportLossOp::isNeededIn(ProgramMode mode) { return evaluatesLosses(mode); }
bool RequireRangeOp::isNeededIn(ProgramMode mode) { return evaluatesLosses(mode); }

bool MetricOp::isNeededIn(ProgramMode mode) {
  return mode == ProgramMode::all || mode == ProgramMode::evaluate;
}

/// Outputs with a catalogue's rows are computed once, others per batch.
bool OutputOp::isNeededIn(ProgramMode mode) {
  bool isOfItems = isOfCatalogue(*this, getRowDomain(getX().getType()));
  return mode == ProgramMode::all ||
         mode == (isOfItems ? ProgramMode::items : ProgramMode::predict);
}

//===----------------------------------------------------------------------===//
// Activations, random numbers, keys
//===----------------------------------------------------------------------===//

Activation ReluOp::getActivation() { return Activation::relu; }
Activation SiluOp::getActivation() { return Activation::silu; }
Activation GeluOp::getActivation() { return Activation::gelu; }
Activation SigmoidOp::getActivation() { return Activation::sigmoid; }
Activation TanhOp::getActivation() { return Activation::tanh; }

bool AttentionOp::drawsPerRow() { return !getDropout().isZero(); }
bool HstuBlockOp::drawsPerRow() { return !getDropout().isZero() || !getLinearDropout().isZero(); }
bool SampledSoftmaxOp::drawsPerRow() { return !getDrawn(); }
bool SampledSoftmaxGradOp::drawsPerRow() { return !getDrawn(); }
bool DrawRowsOp::drawsPerRow() { return static_cast<bool>(getDomain()); }
bool RandomIndexOp::drawsPerRow() { return !getShared(); }

Value GroupedLookupOp::getReadKeys() { return getKeys(); }

//===----------------------------------------------------------------------===//
// Slices that are read in place
//===----------------------------------------------------------------------===//

// q, k and v are the first operands.
bool AttentionOp::readsColumnsInPlace(unsigned index) { return index < 3; }
bool AttentionGradOp::readsColumnsInPlace(unsigned index) { return index < 3; }
bool FusedAttentionGradOp::readsColumnsInPlace(unsigned index) { return index < 3; }
bool CrossAttentionOp::readsColumnsInPlace(unsigned index) { return index < 3; }
bool CrossAttentionGradOp::readsColumnsInPlace(unsigned index) { return index < 3; }
bool InBatchSoftmaxOp::readsColumnsInPlace(unsigned index) { return index < 2; }
bool InBatchSoftmaxGradOp::readsColumnsInPlace(unsigned index) { return index < 2; }
bool LinearOp::readsColumnsInPlace(unsigned index) { return index == 0; }
bool DotInteractionOp::readsColumnsInPlace(unsigned index) { return index == 0; }
bool WeightGradientOp::readsColumnsInPlace(unsigned) { return true; }
bool DotInteractionGradOp::readsColumnsInPlace(unsigned) { return true; }

bool FusedLinearOp::readsColumnsInPlace(unsigned index) {
  return index == 0 || (*this)->getOperand(index) == getResidual();
}

/// Whether gradient `number` has one row per list, which all rows of the list read.
static bool isReadByLists(UniqueRowsOp unique, unsigned number) {
  return getRowDomain(unique.getRows()[number].getType()) !=
         getRowDomain(unique.getGradients()[number].getType());
}

// The first operands are the handles, then come the gradients. A slice that is read once is read in
// place. A gradient row that a whole list reads is worth a copy: rows with a stride of a power of
// two share few sets of the cache (pooled lookups of 20 ids: 36 ms in place, 33 ms copied).
bool UniqueRowsOp::readsColumnsInPlace(unsigned index) {
  unsigned handles = getRows().size();
  return index >= handles && !isReadByLists(*this, index - handles);
}

bool SegmentSumOp::readsColumnsInPlace(unsigned index) {
  auto unique = getDomain().getDefiningOp<UniqueRowsOp>();
  return unique && index > 0 && !isReadByLists(unique, index - 1);
}

//===----------------------------------------------------------------------===//
// Parts of row kernels
//===----------------------------------------------------------------------===//

static OperandRole getPlainRole(Value operand) {
  return getRowDomain(operand.getType()) ? OperandRole::aligned : OperandRole::shared;
}

FlatSymbolRefAttr RowKernelOp::getKernelDomain() { return getDomain().getType().getDomain(); }
OperandRole RowKernelOp::getKernelOperandRole(unsigned index) {
  return cast<OperandRoleAttr>(getOperandRoles()[index - 1]).getValue();
}
ResultRole RowKernelOp::getKernelResultRole(unsigned index) {
  return cast<ResultRoleAttr>(getResultRoles()[index]).getValue();
}

FlatSymbolRefAttr FanoutOp::getKernelDomain() { return getRowDomain(getResult().getType()); }
OperandRole FanoutOp::getKernelOperandRole(unsigned) { return OperandRole::ancestor; }
ResultRole FanoutOp::getKernelResultRole(unsigned) { return ResultRole::aligned; }

bool DeriveOp::isKernelPart() { return bool(getDomain().getDefiningOp<TruncateOp>()); }
FlatSymbolRefAttr DeriveOp::getKernelDomain() { return getRowDomain(getResult().getType()); }
OperandRole DeriveOp::getKernelOperandRole(unsigned) { return OperandRole::untruncated; }
ResultRole DeriveOp::getKernelResultRole(unsigned) { return ResultRole::aligned; }

FlatSymbolRefAttr PoolOp::getKernelDomain() { return getRowDomain(getX().getType()); }
OperandRole PoolOp::getKernelOperandRole(unsigned index) {
  return getPlainRole((*this)->getOperand(index));
}
ResultRole PoolOp::getKernelResultRole(unsigned) { return ResultRole::pooled; }

FlatSymbolRefAttr ReduceRowsOp::getKernelDomain() { return getRowDomain(getX().getType()); }
OperandRole ReduceRowsOp::getKernelOperandRole(unsigned index) {
  return getPlainRole((*this)->getOperand(index));
}
ResultRole ReduceRowsOp::getKernelResultRole(unsigned) { return ResultRole::reduced; }

FlatSymbolRefAttr EmbeddingGradOp::getKernelDomain() { return getRowDomain(getY().getType()); }
OperandRole EmbeddingGradOp::getKernelOperandRole(unsigned index) {
  return getPlainRole((*this)->getOperand(index));
}
ResultRole EmbeddingGradOp::getKernelResultRole(unsigned) { return ResultRole::scattered; }

FlatSymbolRefAttr ScatterRowsOp::getKernelDomain() { return getRowDomain(getX().getType()); }
OperandRole ScatterRowsOp::getKernelOperandRole(unsigned index) {
  return getPlainRole((*this)->getOperand(index));
}
ResultRole ScatterRowsOp::getKernelResultRole(unsigned) { return ResultRole::scattered; }

FlatSymbolRefAttr SampledSoftmaxGradOp::getKernelDomain() {
  return getRowDomain((*this)->getResult(0).getType());
}
OperandRole SampledSoftmaxGradOp::getKernelOperandRole(unsigned index) {
  Value operand = (*this)->getOperand(index);
  return index == 2 && operand == getItems() ? OperandRole::source : getPlainRole(operand);
}
ResultRole SampledSoftmaxGradOp::getKernelResultRole(unsigned index) {
  return index == 1 ? ResultRole::scattered : ResultRole::aligned;
}

//===----------------------------------------------------------------------===//
// Bits of ids
//===----------------------------------------------------------------------===//

using BitsOf = llvm::function_ref<int64_t(Value)>;

static int64_t bitsBelow(int64_t count) {
  return count <= 1 ? 1 : static_cast<int64_t>(llvm::Log2_64_Ceil(count));
}

int64_t FeatureOp::inferIdBits(BitsOf) {
  int64_t bits = getIdBits();
  return bits > 0 ? bits : kUnknownIdBits;
}

int64_t ModOp::inferIdBits(BitsOf) { return bitsBelow(getDivisor()); }

int64_t BucketizeOp::inferIdBits(BitsOf) {
  return bitsBelow(static_cast<int64_t>(getEdges().size()) + 1);
}

int64_t ConstantOp::inferIdBits(BitsOf) {
  auto values = dyn_cast<DenseIntElementsAttr>(getValue());
  if (!values)
    return kUnknownIdBits;
  int64_t bits = 1;
  for (const APInt &value : values) {
    if (value.isNegative() && value.getBitWidth() > 1)
      return kUnknownIdBits;
    bits = std::max<int64_t>(bits, value.getActiveBits());
  }
  return bits;
}

int64_t ConcatRowsOp::inferIdBits(BitsOf bitsOf) {
  int64_t most = 0;
  for (Value part : getParts())
    most = std::max(most, bitsOf(part));
  return most;
}

int64_t SelectOp::inferIdBits(BitsOf bitsOf) {
  return std::max(bitsOf(getOnTrue()), bitsOf(getOnFalse()));
}

int64_t CastOp::inferIdBits(BitsOf bitsOf) {
  auto from = cast<RankedTensorType>(getX().getType());
  auto to = cast<RankedTensorType>(getType()).getElementType();
  int64_t bits = isa<IntegerType>(from.getElementType()) ? bitsOf(getX()) : kUnknownIdBits;
  return bits < static_cast<int64_t>(to.getIntOrFloatBitWidth()) ? bits : kUnknownIdBits;
}

//===----------------------------------------------------------------------===//
// Forms of body ops
//===----------------------------------------------------------------------===//

/// `ofVector` if the op's result is a vector, otherwise scalar.
static BodyKind pickKind(Operation *op, BodyKind ofVector) {
  return isa<VectorType>(op->getResult(0).getType()) ? ofVector : BodyKind::scalar;
}

// Rows of f32 are read in place.
BodyKind RowLoadOp::getBodyKind() {
  bool widens = getSlot() == 0 && getRow().getType().getElement() != RowElement::f32;
  return widens ? BodyKind::element : BodyKind::address;
}
BodyKind RowStoreOp::getBodyKind() { return BodyKind::element; }
BodyKind RowRoundOp::getBodyKind() { return BodyKind::element; }
BodyKind RowHotOp::getBodyKind() { return BodyKind::scalar; }
BodyKind RowSliceOp::getBodyKind() { return BodyKind::address; }
BodyKind RowConcatOp::getBodyKind() { return BodyKind::element; }
BodyKind RowIotaOp::getBodyKind() { return BodyKind::element; }
BodyKind GatherDotOp::getBodyKind() { return BodyKind::call; }
BodyKind GatherSumOp::getBodyKind() { return BodyKind::call; }
BodyKind RowHashOp::getBodyKind() { return pickKind(*this, BodyKind::element); }
BodyKind RowBucketizeOp::getBodyKind() { return pickKind(*this, BodyKind::element); }
BodyKind RowSearchOp::getBodyKind() { return pickKind(*this, BodyKind::element); }

// A row of a source of vectors is read in place.
BodyKind RowGatherOp::getBodyKind() {
  bool picksRow = cast<RankedTensorType>(getSource().getType()).getRank() == 2;
  return picksRow ? BodyKind::address : pickKind(*this, BodyKind::element);
}

BodyKind AccumulateOp::getBodyKind() {
  if (getIndex())
    return BodyKind::call;
  return isa<VectorType>(getValue().getType()) ? BodyKind::element : BodyKind::scalar;
}

// Lanes have the elements of a row in packs; a part of a row lies elsewhere in its packs, and the
// products of gathered rows are added up by one lane.
bool RowSliceOp::readsOtherLanes() { return true; }
bool AccumulateOp::readsOtherLanes() { return static_cast<bool>(getCoefficient()); }
bool RowConcatOp::writesOtherLanes() { return true; }
bool GatherDotOp::writesOtherLanes() { return true; }

// Draws have no operands, so they come before the loops that use them.
BodyKind KeepMaskOp::getBodyKind() { return pickKind(*this, BodyKind::address); }
BodyKind RowUniformOp::getBodyKind() { return pickKind(*this, BodyKind::address); }
BodyKind RowBitsOp::getBodyKind() { return BodyKind::address; }
BodyKind RandomIndexOp::getBodyKind() { return pickKind(*this, BodyKind::address); }
