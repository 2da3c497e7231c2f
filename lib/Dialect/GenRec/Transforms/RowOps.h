//===- RowOps.h - ops that row kernels can compute --------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWOPS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWOPS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Whether row kernels compute `op`: row-wise ops, fan-outs and pools, reductions and scatters over
/// rows, and row kernels.
bool isRowOp(mlir::Operation *op);

/// The domain that a row op iterates over; null for an op on shared tensors only.
mlir::FlatSymbolRefAttr getRowOpDomain(mlir::Operation *op);

/// Whether all operands and results of the row op are shared tensors.
bool isSharedOnly(mlir::Operation *op);

/// How the body of `op` reads operand `index`. Domain operands have no role.
std::optional<OperandRole> getOperandRole(mlir::Operation *op, unsigned index);

/// The role of result `index` of a row op as a result of a kernel.
ResultRole getResultRole(mlir::Operation *op, unsigned index);

/// Whether `use` reads a slice in place, with a stride: the slice is then a view and needs no copy.
bool readsColumnsInPlace(mlir::OpOperand &use);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWOPS_H
