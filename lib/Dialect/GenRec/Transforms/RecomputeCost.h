//===- RecomputeCost.h - the cost of recomputing a row ----------*- C++ -*-===//
//
// The unit is bytes moved per row of the kernel. A value stored in a buffer is written once and
// read once. Arithmetic is converted to bytes: a vector operation on 64 bytes takes about a cycle;
// moving 64 bytes beyond the second-level cache takes about twelve cycles, for both directions.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_RECOMPUTECOST_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_RECOMPUTECOST_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The bytes of one row of `type`; 8 for a table row's handle.
double getRowBytes(mlir::Type type);

/// The arithmetic of one row of a row op, in bytes, without that of its operands.
double getArithmeticCost(mlir::Operation *op);

/// The bytes per row to read operand `index` of a row op from memory. A shared operand stays in the
/// cache; a row of an ancestor is read for several rows in sequence.
double getReadCost(mlir::Operation *op, unsigned index);

/// Whether an op may run more than once. Ops that reduce, scatter, store or draw many rows may not.
bool isRecomputable(mlir::Operation *op);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_RECOMPUTECOST_H
