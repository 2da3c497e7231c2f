//===- ColumnTags.h - table tags in keys of fused columns -------*- C++ -*-===//
//
// The keys of a merged table are (number of the logical table << bits) | id. A column of
// transform_columns that computes such keys ends with that `or`.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_COLUMNTAGS_H
#define GENREC_DIALECT_GENREC_IR_COLUMNTAGS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include <optional>

namespace genrec {

struct ColumnTag {
  int64_t value; ///< the tag: the number of the logical table, shifted
  /// the ids, if they are an input of the column; null if the column computes them
  mlir::Value ids;
};

/// The tag of the keys that a column yields; none if it does not end with such an `or`.
std::optional<ColumnTag> getColumnTag(TransformColumnsOp op,
                                      const TransformColumnsOp::Column &column);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_COLUMNTAGS_H
