//===- RowOps.h - which ops become part of a row kernel ---------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWOPS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWOPS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// True for ops that row kernels compute: row-wise ops, moves between a domain
/// and those above it, reductions and scatters over rows, and row kernels.
bool isRowOp(mlir::Operation *op);

/// The domain over whose rows a row op runs; null for one of shared tensors
/// alone.
mlir::FlatSymbolRefAttr getRowOpDomain(mlir::Operation *op);

/// True when every operand and result of the row op is a shared tensor.
bool isSharedOnly(mlir::Operation *op);

/// How the body of `op` reads operand `index`. Domain operands have no role.
std::optional<OperandRole> getOperandRole(mlir::Operation *op, unsigned index);

/// Where result `index` of a row op goes when it leaves the kernel.
ResultRole getResultRole(mlir::Operation *op, unsigned index);

/// True when `use` reads a column slice in place, through a leading dimension:
/// the slice is then a view and not copied.
bool readsColumnsInPlace(mlir::OpOperand &use);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_ROWOPS_H
