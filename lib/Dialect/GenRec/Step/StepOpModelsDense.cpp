//===- StepOpModelsDense.cpp - matrix products and attention --------------===//

#include "StepOpModels.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec_rt/library_size.h"
#include "genrec_rt/scratch_sizes.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace genrec;

namespace {

/// Factors that were rounded before are for devices (`round-factors`).
LogicalResult expectFloats(Operation *op) {
  const bool takesRounded = Target::of(op).hasDevice;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes())) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    Type element = tensor ? tensor.getElementType() : Type();
    if (!isa_and_nonnull<FloatType>(element) || element.isF32() ||
        (element.isBF16() && takesRounded))
      continue;
    return op->emitOpError() << "is compiled for f32 only, but has " << describe(type);
  }
  return success();
}

/// Dense calls are compiled for f32 only.
template <typename ModelT, typename OpT> struct DenseModel : StepModel<ModelT, OpT> {
  LogicalResult lower(Operation *op, StageBuilder &stage) const {
    return failed(expectFloats(op)) ? failure() : StepModel<ModelT, OpT>::lower(op, stage);
  }
};

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

/// Whether rows that consist of `parts` equal parts have whole multiples of 16 bytes of bf16 in
/// each.
bool hasWholeParts(Value rows, int64_t parts = 1) {
  return getRowSize(rows.getType()) % (parts * 8) == 0;
}

/// Whether a device's library takes products of these sizes.
bool isLibrarySize(Value x, Value y) {
  return getRowSize(x.getType()) >= rt::kLeastLibrarySize &&
         getRowSize(y.getType()) >= rt::kLeastLibrarySize;
}

template <typename OpT> struct LinearStep : DenseModel<LinearStep<OpT>, OpT> {
  bool takesPaddedRows(Operation *, unsigned number) const { return number == 0; }
  bool takesRounded(Operation *op, unsigned number) const {
    return number == 0 && hasWholeParts(op->getOperand(0)) &&
           isLibrarySize(op->getOperand(0), op->getResult(0));
  }
  FlatSymbolRefAttr getBlockDomain(Operation *op) const {
    return getRowDomain(cast<OpT>(op).getX().getType());
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    costs.addOperandsAndResults(op);
    costs.getOwn().productFlops +=
        2 * getRowWidth(cast<OpT>(op).getX()) * getRowWidth(op->getResult(0));
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &) const {
    return rt::matmulScratchBound(getRowSize(cast<OpT>(op).getX().getType()),
                                  getRowSize(op->getResult(0).getType()));
  }
  BlockScratch getBlockScratch(Operation *op, const StepSizes &sizes) const {
    return {getScratchBytes(op, sizes), 0, 0};
  }
};

struct WeightGradientStep : DenseModel<WeightGradientStep, WeightGradientOp> {
  bool takesPaddedRows(Operation *, unsigned) const { return true; }
  bool takesRounded(Operation *op, unsigned number) const {
    return hasWholeParts(op->getOperand(number)) &&
           isLibrarySize(op->getOperand(0), op->getOperand(1));
  }
  FlatSymbolRefAttr getBlockDomain(Operation *op) const {
    return getRowDomain(cast<WeightGradientOp>(op).getX().getType());
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    auto gradient = cast<WeightGradientOp>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().productFlops += 2 * getRowWidth(gradient.getX()) * getRowWidth(gradient.getY());
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &) const {
    auto gradient = cast<WeightGradientOp>(op);
    return rt::matmulRowsScratchBound(getRowSize(gradient.getX().getType()),
                                      getRowSize(gradient.getY().getType()));
  }
  BlockScratch getBlockScratch(Operation *op, const StepSizes &) const {
    auto gradient = cast<WeightGradientOp>(op);
    return {0,
            4 * getRowSize(gradient.getX().getType()) *
                rt::wholeVectors(getRowSize(gradient.getY().getType())),
            0};
  }
};

/// The buffer with the number of the distinct row of each row of each lookup.
KeptBuffer getPlaces(Operation *op) { return {op->getOperand(0).getDefiningOp(), kPlacesSlot}; }

/// Adds `products` matrix products per distinct row of `values`, and per row of the batch a sum of
/// `lookups` rows of the size of `sums`.
void addFactorCosts(ValueRange values, Value sums, size_t lookups, double products,
                    StepCosts &costs) {
  for (Value of : values)
    costs.get(getRowDomain(of.getType())).productFlops +=
        2 * products * getRowWidth(of) * getRowWidth(sums);
  OpCost &row = costs.get(getRowDomain(sums.getType()));
  auto count = static_cast<double>(lookups);
  row.bytes += 4 * count;
  row.gatheredBytes += 4 * count * getRowWidth(sums);
  row.flops += count * getRowWidth(sums);
}

/// The most bytes that a group of lookups needs, whose calls follow each other.
int64_t largestOf(ValueRange values, llvm::function_ref<int64_t(int64_t width)> bytesOf) {
  int64_t most = 0;
  for (Value of : values)
    most = std::max(most, bytesOf(getRowSize(of.getType())));
  return most;
}

struct DistinctLinearStep : DenseModel<DistinctLinearStep, DistinctLinearOp> {
  KeptBuffer getKeptBuffer(Operation *op) const { return getPlaces(op); }
  void addCosts(Operation *op, StepCosts &costs) const {
    auto linear = cast<DistinctLinearOp>(op);
    costs.addOperandsAndResults(op);
    addFactorCosts(linear.getValues(), linear.getResult(), linear.getColumns().size(), 1, costs);
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    auto linear = cast<DistinctLinearOp>(op);
    return largestOf(linear.getValues(), [&](int64_t width) {
      return rt::distinctLinearScratchBound(sizes.getRows(getRowDomain(linear.getType())), width,
                                            getRowSize(linear.getType()), sizes.getThreads());
    });
  }
};

struct DistinctLinearGradStep : DenseModel<DistinctLinearGradStep, DistinctLinearGradOp> {
  KeptBuffer getKeptBuffer(Operation *op) const { return getPlaces(op); }
  void addCosts(Operation *op, StepCosts &costs) const {
    auto linear = cast<DistinctLinearGradOp>(op);
    costs.addOperandsAndResults(op);
    addFactorCosts(linear.getValues(), linear.getGradient(), linear.getColumns().size(), 2, costs);
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    auto linear = cast<DistinctLinearGradOp>(op);
    Type gradient = linear.getGradient().getType();
    return largestOf(linear.getValues(), [&](int64_t width) {
      return rt::distinctLinearGradScratchBound(sizes.getRows(getRowDomain(gradient)), width,
                                                getRowSize(gradient), sizes.getThreads());
    });
  }
};

/// A dot product per pair of the vectors in a row.
struct DotInteractionStep : DenseModel<DotInteractionStep, DotInteractionOp> {
  void addCosts(Operation *op, StepCosts &costs) const {
    auto interaction = cast<DotInteractionOp>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().productFlops += 2 * getRowWidth(interaction.getX()) /
                                   static_cast<double>(interaction.getCount()) *
                                   getRowWidth(interaction.getResult());
  }
};

struct DotInteractionGradStep : DenseModel<DotInteractionGradStep, DotInteractionGradOp> {
  void addCosts(Operation *op, StepCosts &costs) const {
    auto interaction = cast<DotInteractionGradOp>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().productFlops += 4 * getRowWidth(interaction.getX()) /
                                   static_cast<double>(interaction.getCount()) *
                                   getRowWidth(interaction.getGradient());
  }
};

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

// Forward: scores and their product with v. Backward: scores again, and four products.
template <typename OpT> double getFlopsPerPair(OpT attention, bool isGradient) {
  double qk = getRowWidth(attention.getQ()), v = getRowWidth(attention.getV());
  return isGradient ? 2 * (3 * qk + 2 * v) : 2 * (qk + v);
}

/// The interface of attention and of its gradient.
template <typename ModelT, typename OpT, bool isGradient>
struct AttentionModel : DenseModel<ModelT, OpT> {
  FlatSymbolRefAttr getBlockDomain(Operation *op) const {
    auto attention = cast<OpT>(op);
    return attention.getTarget() ? FlatSymbolRefAttr() : getRowDomain(attention.getQ().getType());
  }
  /// All factors or none: q, k and v, which are the first operands, and the gradient of the result.
  bool takesRounded(Operation *op, unsigned number) const {
    auto attention = cast<OpT>(op);
    bool isFactor = number < 3;
    if constexpr (isGradient)
      isFactor |= op->getOperand(number) == attention.getGradient();
    return isFactor && hasWholeParts(attention.getQ(), attention.getHeads()) &&
           hasWholeParts(attention.getV(), attention.getHeads());
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    auto attention = cast<OpT>(op);
    costs.addOperandsAndResults(op);
    costs.getOwn().pairFlops +=
        (attention.getCausal() ? 1 : 2) * getFlopsPerPair(attention, isGradient);
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    return getScratch(op, sizes, sizes.getThreads());
  }
  BlockScratch getBlockScratch(Operation *op, const StepSizes &sizes) const {
    return {getScratch(op, sizes, 0), 0, getScratch(op, sizes, 1)};
  }

private:
  static int64_t getScratch(Operation *op, const StepSizes &sizes, int64_t threads) {
    auto attention = cast<OpT>(op);
    int64_t heads = attention.getHeads();
    auto buckets = [](Value bias) { return bias ? getRowSize(bias.getType()) : 0; };
    rt::AttentionSizes shape = {getRowSize(attention.getQ().getType()) / heads,
                                getRowSize(attention.getV().getType()) / heads,
                                sizes.getLongest(getRowDomain(attention.getQ().getType())),
                                buckets(attention.getPositionBias()),
                                buckets(attention.getTimeBias())};
    return rt::attentionScratchBound(shape, threads, isGradient);
  }
};

struct AttentionStep : AttentionModel<AttentionStep, AttentionOp, /*isGradient=*/false> {
  /// With softmax scores, the forward op keeps log Σ exp of each row and head for the gradient.
  void addOwnSlots(Operation *op, SmallVectorImpl<BufferSlot> &slots) const {
    auto attention = cast<AttentionOp>(op);
    if (attention.getScore() == ScoreKind::softmax)
      slots.push_back({getRowDomain(attention.getResult().getType()),
                       4 * static_cast<int64_t>(attention.getHeads()), 0,
                       getValueName(op->getResult(0)) + "_log_sum_exp"});
  }
};

struct AttentionGradStep : AttentionModel<AttentionGradStep, AttentionGradOp, /*isGradient=*/true> {
  KeptBuffer getKeptBuffer(Operation *op) const {
    return {cast<AttentionGradOp>(op).getOut().getDefiningOp(), kLogSumExpSlot};
  }
};

/// Of x the columns of q, k and v are read; the rest is neither read nor written where it is in dx.
struct FusedAttentionGradStep
    : AttentionModel<FusedAttentionGradStep, FusedAttentionGradOp, /*isGradient=*/true> {
  KeptBuffer getKeptBuffer(Operation *op) const {
    return {cast<FusedAttentionGradOp>(op).getOut().getDefiningOp(), kLogSumExpSlot};
  }
  OpResult getJoinedResult(Operation *op, unsigned number) const {
    auto gradient = cast<FusedAttentionGradOp>(op);
    return op->getOperand(number) == gradient.getRest() ? cast<OpResult>(gradient.getDx())
                                                        : OpResult();
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    AttentionModel::addCosts(op, costs);
    auto gradient = cast<FusedAttentionGradOp>(op);
    Value rest = gradient.getRest();
    if (!rest)
      return;
    int64_t width = getRowSize(rest.getType());
    costs.addRow(gradient.getX().getType(), -width);
    if (isJoinedInPlace(op, rest))
      costs.addRow(rest.getType(), -2 * width);
  }
};

/// Queries of one list attend to keys of another list of the same parent. The lists of the queries
/// are assumed to be as long as those of the keys, as costs are per row and list of one domain.
template <typename OpT, bool isGradient>
struct CrossAttentionStep : DenseModel<CrossAttentionStep<OpT, isGradient>, OpT> {
  void addCosts(Operation *op, StepCosts &costs) const {
    auto attention = cast<OpT>(op);
    costs.addOperandsAndResults(op);
    FlatSymbolRefAttr keys = getRowDomain(attention.getK().getType());
    double flops = getFlopsPerPair(attention, isGradient);
    bool isBelow =
        lookupDomain(op, keys).getParentAttr() == getRowDomain(attention.getQ().getType());
    if (isBelow)
      costs.get(keys).productFlops += flops;
    else
      costs.get(keys).pairFlops += 2 * flops;
  }
  /// Scores of one query and their gradients, per thread, rounded up to the widest vectors.
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    int64_t longest = sizes.getLongest(getRowDomain(cast<OpT>(op).getK().getType()));
    return sizes.getThreads() * 2 * 4 * static_cast<int64_t>(llvm::alignTo(longest, 16));
  }
};

} // namespace

void genrec::attachDenseModels(MLIRContext *context) {
  attachModels<LinearStep, LinearOp, FusedLinearOp>(context);
  WeightGradientOp::attachInterface<WeightGradientStep>(*context);
  DistinctLinearOp::attachInterface<DistinctLinearStep>(*context);
  DistinctLinearGradOp::attachInterface<DistinctLinearGradStep>(*context);
  DotInteractionOp::attachInterface<DotInteractionStep>(*context);
  DotInteractionGradOp::attachInterface<DotInteractionGradStep>(*context);
  AttentionOp::attachInterface<AttentionStep>(*context);
  AttentionGradOp::attachInterface<AttentionGradStep>(*context);
  FusedAttentionGradOp::attachInterface<FusedAttentionGradStep>(*context);
  CrossAttentionOp::attachInterface<CrossAttentionStep<CrossAttentionOp, false>>(*context);
  CrossAttentionGradOp::attachInterface<CrossAttentionStep<CrossAttentionGradOp, true>>(*context);
}
