//===- Operations.h - costs of arithmetic -----------------------*- C++ -*-===//
//
// The costs of arithmetic, for `form-row-kernels`, which weighs recomputing a value against storing
// it, and for the floating-point operations in `--explain`, profiles and the roofline.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_ANALYSIS_OPERATIONS_H
#define GENREC_ANALYSIS_OPERATIONS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// The operations of a body op per row. An addition, product or comparison counts 1 per element, a
/// division or square root 4; exp, log and similar functions (a polynomial and a range reduction),
/// a random word and a hash count 16. A reduction counts 1 per element that it reads. Moving values
/// costs nothing. Gathered rows cost bytes, which are counted elsewhere.
double getOperations(mlir::Operation *op);

/// The operations of a row-wise op per row: the sum over the ops of its body.
double getRowOperations(RowwiseOpInterface op);

} // namespace genrec

#endif // GENREC_ANALYSIS_OPERATIONS_H
