//===- ColumnJoin.h - joins whose parts are columns -------------*- C++ -*-===//
//
// A device makes the parts of a wide join one beside the other: each is a column of a launch
// (genrec_rt/kernels/cuda/column_bodies.h), and those that do the same share a body. In one kernel
// the threads of a row would make hundreds of parts one after the other.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNJOIN_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNJOIN_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// A kernel that makes a part of a join, or another result of the kernel that joins.
struct ColumnPart {
  RowKernelOp kernel; ///< `genrec.joined_at`: where its rows lie
  unsigned result;    ///< of the kernel that joins
  int64_t offset;     ///< in rows of this result
};

/// Of a kernel that makes a wide join (`kFewestColumns`) of rows that each part reads by itself:
/// creates, before it, kernels of the parts, and of its other results. Of a part that is stored in
/// the joined rows before (`plan-memory`) there is none. Kernels that differ in constants alone
/// have one body, which reads these. Of other kernels there are no parts.
llvm::SmallVector<ColumnPart> splitJoin(RowKernelOp kernel);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNJOIN_H
