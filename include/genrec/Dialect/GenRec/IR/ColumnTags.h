//===- ColumnTags.h - what fused columns are keys of ------------*- C++ -*-===//
//
// Several tables may share one physical table, whose keys are (number of the table << bits) | id. A
// column of transform_columns that makes such keys ends with that `or`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_COLUMNTAGS_H
#define GENREC_DIALECT_GENREC_IR_COLUMNTAGS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <optional>

namespace genrec {

struct ColumnTag {
  int64_t value;   ///< what ids are joined with: the number of a table, shifted
  mlir::Value ids; ///< what is joined, where it is an input as it is; null where it is computed
};

/// The tag of the keys that a column yields; none where it ends with something else.
std::optional<ColumnTag> getColumnTag(TransformColumnsOp op,
                                      const TransformColumnsOp::Column &column);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_COLUMNTAGS_H
