//===- StepOpModelsKernel.cpp - generated kernels -------------------------===//

#include "RowKernelCosts.h"
#include "StepOpModels.h"

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec_rt/scattered_limits.h"
#include "genrec_rt/scratch_sizes.h"

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
    return domainOf(op.getColumnDomain(column));
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

bool genrec::leavesTerms(RankedTensorType sums) {
  return getRowDomain(sums) || sums.getDimSize(0) > rt::kernels::kMostPrivateRows;
}

void genrec::attachKernelModels(MLIRContext *context) {
  RowKernelOp::attachInterface<RowKernelStep>(*context);
  LaunchOp::attachInterface<LaunchStep>(*context);
  LaunchColumnsOp::attachInterface<LaunchColumnsStep>(*context);
  attachModels<Setup, LaunchedKernelOp>(context);
  TransformColumnsOp::attachInterface<TransformColumnsStep>(*context);
}
