//===- RowMapping.cpp - threads of a row on a device ----------------------===//

#include "RowMapping.h"

#include "RowBodySchedule.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"
#include "genrec_rt/device_limits.h"
#include "genrec_rt/scattered_limits.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace genrec;

namespace {

/// Which packs all that a kernel reads and writes can be accessed in.
class Alignment {
public:
  void add(int64_t elements) {
    while (elements % aligned != 0)
      aligned /= 2;
  }
  /// Rows of `value`, which lie a stride apart, behind an offset.
  void addRows(Value value) {
    RowAddress address = getRowAddress(value);
    add(address.stride);
    add(address.offset);
  }

  int64_t aligned = 4;
};

} // namespace

/// Whether `value` is a row of an input of which the body reads slices alone, in the memory of the
/// input: no lane has all of its elements.
static bool isReadInSlices(RowKernelOp kernel, Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getArgNumber() >= kernel.getInputs().size() ||
      isAddedByReader(kernel.getInputs()[argument.getArgNumber()]))
    return false;
  return llvm::all_of(argument.getUsers(), llvm::IsaPred<RowSliceOp>);
}

/// Whether the joined row is built in the memory of a result and read nowhere else.
static bool isOnlyYielded(RowKernelOp kernel, RowConcatOp concat) {
  if (!concat->hasOneUse() || !isa<RowYieldOp>(*concat->user_begin()))
    return false;
  unsigned result = getYieldedResult(kernel, concat->use_begin()->getOperandNumber());
  return kernel.getKernelResultRole(result) == ResultRole::aligned;
}

/// Whether `value` is such a row: lanes have elements of its parts, not of the row.
static bool isJoinedInParts(RowKernelOp kernel, Value value) {
  auto concat = value.getDefiningOp<RowConcatOp>();
  return concat && isOnlyYielded(kernel, concat);
}

/// Whether a body reads or writes optimizer states of a row.
static bool usesStates(BlockArgument row) {
  return llvm::any_of(row.getUsers(), [](Operation *user) {
    auto load = dyn_cast<RowLoadOp>(user);
    auto store = dyn_cast<RowStoreOp>(user);
    return (load && load.getSlot() > 0) || (store && store.getSlot() > 0);
  });
}

static void addInput(Value input, BlockArgument argument, Alignment &alignment) {
  auto type = cast<RankedTensorType>(input.getType());
  if (auto row = dyn_cast<RowType>(type.getElementType())) {
    alignment.add(row.getWidth());
    if (usesStates(argument))
      alignment.add(row.getStateOffset()); // where they begin
  } else if (isVector(argument) ||
             (isa<RankedTensorType>(argument.getType()) && type.getRank() == 2))
    alignment.addRows(input);
}

/// Places within a vector at which packs of another begin.
static void addOffsets(Operation *op, Alignment &alignment) {
  if (auto slice = dyn_cast<RowSliceOp>(op))
    alignment.add(slice.getOffset());
  else if (auto slice = dyn_cast<vector::ExtractStridedSliceOp>(op))
    alignment.add(cast<IntegerAttr>(slice.getOffsets()[0]).getInt());
  int64_t offset = 0;
  if (auto concat = dyn_cast<RowConcatOp>(op))
    for (Value part : concat.getParts()) {
      if (isVector(part))
        alignment.add(offset);
      offset += isVector(part) ? getExtent(part) : 1;
    }
}

/// Whether rows of a chunk can be worked on at the same time (see getRowMapping): what they add
/// takes no more room than lets a multiprocessor have as many threads as it can, and is one value
/// for each sum.
static bool canSpread(RowKernelOp kernel, const RowMapping &mapping) {
  constexpr int64_t kMostBytes = 24 << 10, kWarp = 32;
  if (mapping.lanes > kWarp)
    return false;
  int64_t bytes = 0;
  BlockArgument *accumulator = kernel.getBody().front().getArguments().begin();
  std::advance(accumulator, kernel.getInputs().size());
  for (auto [result, role] :
       llvm::enumerate(kernel.getResultRoles().getAsRange<ResultRoleAttr>())) {
    if (role.getValue() == ResultRole::pooled)
      return false;
    if (!isAccumulated(role.getValue()))
      continue;
    BlockArgument sums = *accumulator++;
    if (getRowTerms(kernel, result))
      continue;
    if (role.getValue() == ResultRole::scattered || !sums.hasOneUse())
      return false;
    auto type = cast<RankedTensorType>(kernel.getResult(result).getType());
    const int64_t size = type.getNumElements();
    bytes = llvm::alignTo(bytes, RowMapping::alignAddends(size)) + size * 4;
  }
  RowMapping spread = mapping;
  spread.isSpread = true;
  bytes = llvm::alignTo(bytes, 16);
  return bytes > 0 && bytes * spread.getBlockThreads() / mapping.lanes <= kMostBytes;
}

/// The threads of a row and their elements.
static RowMapping getLanes(RowKernelOp kernel) {
  constexpr int64_t kAlone = 8, kEach = 16, kWarp = 32, kBlock = 256, kMostThreads = 1024;
  static_assert(kBlock == rt::kColumnThreads && kBlock * 2 * kEach == rt::kMostColumnWidth);
  RowMapping mapping;
  Alignment alignment;
  Block &body = kernel.getBody().front();
  auto addVector = [&](Value value) {
    if (!isVector(value))
      return;
    if (!isReadInSlices(kernel, value) && !isJoinedInParts(kernel, value))
      mapping.widest = std::max(mapping.widest, getExtent(value));
    // A single element needs no pack.
    if (getExtent(value) > 1)
      alignment.add(getExtent(value));
  };
  for (auto [input, argument] : llvm::zip(kernel.getInputs(), body.getArguments())) {
    addInput(input, argument, alignment);
    addVector(argument);
  }
  for (Value result : kernel.getResults())
    if (!getRowShape(cast<RankedTensorType>(result.getType())).empty() &&
        getRowDomain(result.getType()))
      alignment.addRows(result);
  for (Operation &op : body) {
    addOffsets(&op, alignment);
    for (Value value : llvm::concat<Value>(op.getOperands(), op.getResults()))
      addVector(value);
  }
  if (mapping.widest == 0)
    return mapping;
  mapping.aligned = alignment.aligned;
  if (mapping.widest <= kAlone) {
    mapping.pack = mapping.widest;
    return mapping;
  }
  mapping.pack = alignment.aligned;
  auto most = static_cast<uint64_t>((mapping.widest + kEach - 1) / kEach);
  mapping.lanes = std::max<int64_t>(16 / mapping.pack, llvm::PowerOf2Ceil(most));
  if (mapping.lanes > kWarp)
    mapping.lanes = mapping.widest <= kWarp * 2 * kEach    ? kWarp
                    : mapping.widest <= kBlock * 2 * kEach ? kBlock
                                                           : kMostThreads;
  return mapping;
}

RowMapping genrec::getRowMapping(RowKernelOp kernel) {
  RowMapping mapping = getLanes(kernel);
  mapping.isSpread = canSpread(kernel, mapping);
  return mapping;
}

/// The scalar that `value` is the product of with `vector`; null for other values.
static Value getScale(Value value, Value vector) {
  auto product = value.getDefiningOp<arith::MulFOp>();
  for (bool isLeft : {false, true}) {
    if (!product || product->getOperand(isLeft) != vector)
      continue;
    auto broadcast = product->getOperand(!isLeft).getDefiningOp<vector::BroadcastOp>();
    if (broadcast && !isa<VectorType>(broadcast.getSourceType()))
      return broadcast.getSource();
  }
  return {};
}

/// Sets what is to be known where all terms are multiples of one vector that was rounded: it is
/// left once, as bfloat16. Vectors of whole multiples of 8 are read 16 bytes at a time.
static void shareRounded(RowTerms &terms) {
  auto widened = terms.adds[0].getValue().getDefiningOp<arith::ExtFOp>();
  if (!widened || !getElementTypeOrSelf(widened.getIn()).isBF16() || !terms.isScaled ||
      terms.width % 8 != 0)
    return;
  for (AccumulateOp add : terms.adds) {
    Value scale = add.getCoefficient() ? Value() : getScale(add.getValue(), widened);
    if (add.getCoefficient() ? add.getValue() != widened.getResult() : !scale)
      return;
    terms.scales.push_back(scale);
  }
  terms.isRounded = true;
}

SmallVector<Attribute> RowTerms::getTemplate(const EmitCBuilder &b) const {
  return {b.templateInteger(count), b.templateInteger(countVectors()), b.templateInteger(width),
          b.templateBool(isScaled), b.templateBool(isRounded)};
}

std::optional<RowTerms> genrec::getRowTerms(RowKernelOp kernel, unsigned result) {
  auto roles = llvm::to_vector(kernel.getResultRoles().getAsRange<ResultRoleAttr>());
  if (roles[result].getValue() != ResultRole::scattered)
    return std::nullopt;
  if (!leavesTerms(cast<RankedTensorType>(kernel.getResult(result).getType())))
    return std::nullopt;
  unsigned argument = kernel.getInputs().size();
  for (ResultRoleAttr role : ArrayRef(roles).take_front(result))
    argument += isAccumulated(role.getValue());
  RowTerms terms;
  Value accumulator = kernel.getBody().getArgument(argument);
  for (auto add : kernel.getBody().front().getOps<AccumulateOp>()) {
    if (add.getAccumulator() != accumulator)
      continue;
    terms.adds.push_back(add);
    terms.firstTerms.push_back(terms.count);
    terms.count += add.getCoefficient() ? getExtent(add.getIndex()) : 1;
    terms.width = isVector(add.getValue()) ? getExtent(add.getValue()) : 1;
    terms.isScaled |= static_cast<bool>(add.getCoefficient());
  }
  if (terms.adds.empty() || terms.adds.size() > rt::kernels::kMostTermVectors)
    return std::nullopt;
  shareRounded(terms);
  return terms;
}

bool genrec::isReadByOtherLanes(Value vector, const RowMapping &mapping) {
  if (mapping.lanes == 1)
    return false;
  if (auto writer = vector.getDefiningOp<BodyOpInterface>(); writer && writer.writesOtherLanes())
    return true;
  return llvm::any_of(vector.getUsers(), [&](Operation *user) {
    // The sum of a single element is that element, which a lane of another warp cannot hand over.
    if (isa<vector::ReductionOp>(user) && getExtent(vector) == 1 && mapping.lanes > 32)
      return true;
    auto body = dyn_cast<BodyOpInterface>(user);
    // Lanes of a warp hand single elements over.
    const bool isHandedOver = body && body.getBodyKind() == BodyKind::scalar && mapping.lanes <= 32;
    return body && body.readsOtherLanes() && !isHandedOver;
  });
}

bool genrec::lanesMeet(RowKernelOp kernel, const RowMapping &mapping) {
  Block &body = kernel.getBody().front();
  auto isShared = [&](Value value) {
    if (!isVector(value) || isReadInSlices(kernel, value) || !isReadByOtherLanes(value, mapping))
      return false;
    auto concat = value.getDefiningOp<RowConcatOp>();
    return !concat || !isOnlyYielded(kernel, concat);
  };
  return llvm::any_of(body.getArguments(), isShared) ||
         llvm::any_of(body, [&](Operation &op) { return llvm::any_of(op.getResults(), isShared); });
}
