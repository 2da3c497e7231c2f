//===- RecomputeCost.h - what computing a row again costs -------*- C++ -*-===//
//
// The unit is bytes moved per row of the kernel. A value kept in a buffer is
// written once and read once. Arithmetic counts as the bytes that a core moves
// meanwhile: one vector operation on 64 bytes takes about a cycle, moving 64
// bytes beyond the second-level cache about twelve both ways.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_RECOMPUTECOST_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_RECOMPUTECOST_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The bytes of one row of `type`; 8 for a table row's handle.
double getRowBytes(mlir::Type type);

/// The arithmetic of one row of a row op, in bytes; without its operands.
double getArithmeticCost(mlir::Operation *op);

/// The bytes that reading operand `index` of a row op from memory costs per row.
/// A shared operand stays in cache; a row of an ancestor is read for several
/// rows in turn.
double getReadCost(mlir::Operation *op, unsigned index);

/// False for ops that may run once only: they reduce, scatter, store or draw
/// many rows.
bool isRecomputable(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_RECOMPUTECOST_H
