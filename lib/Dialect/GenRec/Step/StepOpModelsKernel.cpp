//===- StepOpModelsKernel.cpp - generated kernels -------------------------===//

#include "RowKernelCosts.h"
#include "StepOpModels.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec_rt/device_limits.h"
#include "genrec_rt/scattered_limits.h"
#include "genrec_rt/scratch_sizes.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;

namespace {

/// Whether the kernel uses `domain` only row by row: it gathers, broadcasts, pools and stores none
/// of its rows.
bool readsOwnRows(RowKernelOp kernel, FlatSymbolRefAttr domain) {
  for (auto [role, input] :
       llvm::zip(kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), kernel.getInputs())) {
    bool isOwn = isRowsOf(input, domain);
    if (role.getValue() == OperandRole::ancestor || role.getValue() == OperandRole::untruncated ||
        isOwn != (role.getValue() == OperandRole::aligned))
      return false;
  }
  for (auto [role, result] :
       llvm::zip(kernel.getResultRoles().getAsRange<ResultRoleAttr>(), kernel.getResults()))
    if (role.getValue() == ResultRole::pooled ||
        isRowsOf(result, domain) != (role.getValue() == ResultRole::aligned))
      return false;
  return !storesRows(kernel);
}

/// Floats of the partial sums that each chunk of a row kernel keeps.
int64_t getSumFloats(RowKernelOp kernel, const StepSizes &sizes) {
  int64_t floats = 0;
  for (auto [index, role] : llvm::enumerate(kernel.getResultRoles().getAsRange<ResultRoleAttr>())) {
    if (!isAccumulated(role.getValue()))
      continue;
    Type type = kernel.getResult(index).getType();
    FlatSymbolRefAttr domain = getRowDomain(type);
    floats += getRowSize(type) * (domain ? sizes.getRows(domain) : 1);
  }
  return floats;
}

struct RowKernelStep : StepModel<RowKernelStep, RowKernelOp> {
  OpResult getJoinedResult(Operation *op, unsigned number) const {
    return number > 0 ? findJoinedResult(cast<RowKernelOp>(op), number - 1) : OpResult();
  }
  StepKind getStepKind(Operation *) const { return StepKind::kernel; }
  bool takesPaddedRows(Operation *, unsigned) const { return true; }
  FlatSymbolRefAttr getStepDomain(Operation *op) const {
    return cast<RowKernelOp>(op).getDomain().getType().getDomain();
  }
  FlatSymbolRefAttr getBlockDomain(Operation *op) const {
    FlatSymbolRefAttr domain = getStepDomain(op);
    return readsOwnRows(cast<RowKernelOp>(op), domain) ? domain : FlatSymbolRefAttr();
  }
  void addCosts(Operation *op, StepCosts &costs) const {
    addKernelCosts(cast<RowKernelOp>(op), costs);
  }
  int64_t getScratchBytes(Operation *op, const StepSizes &sizes) const {
    int64_t floats = getSumFloats(cast<RowKernelOp>(op), sizes);
    int64_t rows = sizes.getRows(getStepDomain(op));
    return floats ? rt::sumScratchBytes(rt::cutForSums(rows, 1, floats), floats) : 0;
  }
  BlockScratch getBlockScratch(Operation *op, const StepSizes &sizes) const {
    int64_t floats = getSumFloats(cast<RowKernelOp>(op), sizes);
    int64_t parts = floats <= rt::kMostPieceFloats ? 2 : 1; // the chunk's and a block's
    return {0, 4 * parts * floats, 0};
  }
};

struct TransformColumnsStep : StepModel<TransformColumnsStep, TransformColumnsOp> {
  /// Of a list that its domain was truncated from, a column reads the rows that were kept.
  void addCosts(Operation *op, StepCosts &costs) const {
    auto transform = cast<TransformColumnsOp>(op);
    for (const TransformColumnsOp::Column &column : transform.getColumns())
      for (auto [index, input] : llvm::enumerate(column.inputs))
        if (transform.getInputRole(column, index) == OperandRole::untruncated)
          costs.addRowOf(getColumnRows(transform, column), input.getType(), 1);
        else
          costs.addTensor(input.getType());
    for (Value result : op->getResults())
      costs.addTensor(result.getType());
  }
  static FlatSymbolRefAttr getColumnRows(TransformColumnsOp op,
                                         const TransformColumnsOp::Column &column) {
    return cast<DomainType>(op.getColumnDomain(column).getType()).getDomain();
  }
};

/// A launch has the costs of the row kernel that it was made from (`genrec.costs`).
struct LaunchStep : StepModel<LaunchStep, LaunchOp> {
  StepKind getStepKind(Operation *) const { return StepKind::kernel; }
};

struct LaunchColumnsStep : StepModel<LaunchColumnsStep, LaunchColumnsOp> {
  StepKind getStepKind(Operation *) const { return StepKind::kernel; }
};

} // namespace

bool genrec::storesRows(Operation *op) {
  auto kernel = dyn_cast<RowKernelOp>(op);
  return kernel && llvm::any_of(kernel.getBody().front(),
                                [](Operation &inner) { return isa<RowStoreOp>(inner); });
}

/// Whether an element of what an op of a body makes depends on the same element of its operands, or
/// on scalars: no thread of a row reads or writes what others have.
static bool isElementwise(Operation &op) {
  auto body = dyn_cast<BodyOpInterface>(op);
  return !body || (body.getBodyKind() != BodyKind::call && !body.readsOtherLanes() &&
                   !body.writesOtherLanes());
}

/// Whether `value` is, or aliases, a parameter other than `own`.
static bool readsParameter(Value value, FlatSymbolRefAttr own) {
  Operation *maker = value.getDefiningOp();
  if (auto param = dyn_cast_or_null<ParamOp>(maker))
    return param.getParameterAttr() != own;
  if (auto rows = dyn_cast_or_null<ParameterRowsOp>(maker))
    return rows.getParameterAttr() != own;
  return maker && isView(maker) &&
         llvm::any_of(cast<StepOpInterface>(maker).getAliasedOperands(),
                      [&](Value aliased) { return readsParameter(aliased, own); });
}

/// Whether one op alone has rows of the parameter.
static bool areReadOnce(ParameterRowsOp rows) {
  auto isOfParameter = [&](ParameterRowsOp other) {
    return other.getParameterAttr() == rows.getParameterAttr();
  };
  return rows.getResult().hasOneUse() &&
         llvm::count_if(rows->getBlock()->getOps<ParameterRowsOp>(), isOfParameter) == 1;
}

/// Whether each row of `kernel` reads its own rows of inputs, or what all rows share.
static bool readsOwnRows(RowKernelOp kernel) {
  return llvm::all_of(
      kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), [](OperandRoleAttr role) {
        return role.getValue() == OperandRole::aligned || role.getValue() == OperandRole::shared;
      });
}

bool genrec::isParameterUpdate(Operation *op) {
  auto kernel = dyn_cast<RowKernelOp>(op);
  if (!kernel || kernel.getNumResults() > 0 || !storesRows(kernel))
    return false;
  auto rows = kernel.getDomain().getDefiningOp<ParameterRowsOp>();
  if (!rows || !areReadOnce(rows))
    return false;
  auto type = cast<RowType>(cast<RankedTensorType>(rows.getResult().getType()).getElementType());
  if (type.getWidth() > rt::kMostColumnWidth)
    return false;
  if (!readsOwnRows(kernel) || llvm::any_of(kernel.getInputs(), [&](Value input) {
        return readsParameter(input, rows.getParameterAttr());
      }))
    return false;
  return llvm::all_of(kernel.getBody().front(), isElementwise);
}

/// Whether a block of a device has room for a row of values of `type` as a column: of floats, which
/// are reduced in 32 KiB of shared memory at most.
static bool fitsColumn(Type type) {
  if (auto row = dyn_cast<RowType>(type))
    return row.getWidth() <= rt::kMostColumnWidth;
  auto vector = dyn_cast<VectorType>(type);
  return !vector ||
         (vector.getElementType().isF32() && vector.getNumElements() <= rt::kMostColumnWidth);
}

/// Whether each row of `kernel` reads its own rows of inputs, or what all rows share, and is
/// reduced by itself.
static bool reducesOwnRows(RowKernelOp kernel) {
  if (!readsOwnRows(kernel))
    return false;
  Block &body = kernel.getBody().front();
  return llvm::all_of(body.getArgumentTypes(), fitsColumn) && llvm::all_of(body, [](Operation &op) {
           return (isElementwise(op) || isa<vector::ReductionOp>(op)) &&
                  llvm::all_of(op.getResultTypes(), fitsColumn);
         });
}

Operation *genrec::getReductionReader(Operation *op) {
  auto kernel = dyn_cast<RowKernelOp>(op);
  if (!kernel || kernel.getNumResults() != 1 || storesRows(kernel) || getRowBlock(kernel) ||
      !kernel.getDomain().getDefiningOp<ParameterRowsOp>() || !reducesOwnRows(kernel))
    return nullptr;
  OpResult result = kernel->getResult(0);
  if (kernel.getKernelResultRole(0) != ResultRole::aligned ||
      !getRowShape(cast<RankedTensorType>(result.getType())).empty() || result.use_empty() ||
      !llvm::all_equal(result.getUsers()))
    return nullptr;
  Operation *reader = *result.user_begin();
  return getStage(reader) == getStage(kernel) ? reader : nullptr;
}

/// What kernels of one launch have in common; nothing where `op` has a launch of its own.
static std::optional<std::pair<Stage, Operation *>> getJointKey(Operation *op) {
  if (isParameterUpdate(op))
    return std::pair(getStage(op), static_cast<Operation *>(nullptr));
  if (Operation *reader = getReductionReader(op))
    return std::pair(getStage(op), reader);
  return std::nullopt;
}

SmallVector<SmallVector<RowKernelOp>> genrec::getJointLaunches(ProgramOp program) {
  SmallVector<SmallVector<RowKernelOp>> launches;
  if (!Target::of(program).hasDevice)
    return launches;
  std::optional<std::pair<Stage, Operation *>> last;
  for (Operation &op : program.getBody().front()) {
    auto key = getJointKey(&op);
    // What writes nothing that a kernel reads may run before all of them.
    const bool mayComeBefore = isa<RowKernelOp>(op) && !storesRows(&op);
    if (isDeclaration(&op) || isView(&op) || (!key && mayComeBefore))
      continue;
    if (key && key != last)
      launches.emplace_back();
    if (key)
      launches.back().push_back(cast<RowKernelOp>(op));
    last = key;
  }
  llvm::erase_if(launches, [](ArrayRef<RowKernelOp> kernels) {
    return kernels.size() == 1 && !isParameterUpdate(kernels.front());
  });
  return launches;
}

bool genrec::leavesTerms(RankedTensorType sums) {
  return getRowDomain(sums) || sums.getDimSize(0) > rt::kernels::kMostPrivateRows;
}

void genrec::attachKernelModels(MLIRContext *context) {
  RowKernelOp::attachInterface<RowKernelStep>(*context);
  LaunchOp::attachInterface<LaunchStep>(*context);
  LaunchColumnsOp::attachInterface<LaunchColumnsStep>(*context);
  TransformColumnsOp::attachInterface<TransformColumnsStep>(*context);
}
