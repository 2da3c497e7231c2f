//===- Operations.h - what arithmetic costs ---------------------*- C++ -*-===//
//
// The one price list of arithmetic: `form-row-kernels` weighs computing a value again against
// keeping it by it, `--explain`, profiles and the roofline count floating-point operations by it.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_ANALYSIS_OPERATIONS_H
#define GENREC_ANALYSIS_OPERATIONS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Operations that an op of a row kernel's body takes, per row: 1 per element for an addition, a
/// product or a comparison, 4 for a division or a square root, 16 for exp, log and their kin
/// (a polynomial and what reduces its argument), a word of random bits or a hash; a reduction one
/// per element that it reads. Moving values takes none. Rows picked by index are priced
/// by their bytes, not here.
double getOperations(mlir::Operation *op);

/// The same of a row-wise op of the model: what its body takes.
double getRowOperations(RowwiseOpInterface op);

} // namespace genrec

#endif // GENREC_ANALYSIS_OPERATIONS_H
