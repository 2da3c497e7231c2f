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

/// A part of a join: the kernel that makes it, whose rows lie in those that are joined
/// (`genrec.joined_at`), and the column that it begins at.
struct JoinedPart {
  RowKernelOp kernel;
  int64_t offset;
};

/// The join of many parts that `kernel` is for, which are made of rows that it reads by themselves;
/// null for other kernels.
RowConcatOp findColumnJoin(RowKernelOp kernel);

/// Creates, before `kernel`, kernels of the parts that it joins; of a part that is stored in the
/// joined rows before (`plan-memory`) there is none. Those that differ in constants alone have one
/// body, which reads these.
llvm::SmallVector<JoinedPart> splitJoin(RowKernelOp kernel, RowConcatOp join);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNJOIN_H
