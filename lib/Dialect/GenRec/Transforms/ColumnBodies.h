//===- ColumnBodies.h - bodies of columns of ids ----------------*- C++ -*-===//
//
// The chain of transforms of a column of ids becomes a body that makes the key of one row.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_COLUMNBODIES_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_COLUMNBODIES_H

#include "genrec/Dialect/GenRec/IR/ColumnPrograms.h"

namespace genrec {

/// A column: ids, their valid mask, and the tag of their table.
struct ColumnSpec {
  mlir::Value ids, valid; ///< `valid` may be null
  int64_t tag = 0;
};

/// Builds the body that yields the key of `column`. Results of ops that cannot be part of a body
/// become inputs.
mlir::FailureOr<ColumnBody> buildColumnBody(mlir::MLIRContext *context, const ColumnSpec &column);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_COLUMNBODIES_H
