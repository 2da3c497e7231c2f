//===- VectorBodyOps.h - vector ops in the bodies of row kernels -*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_IR_VECTORBODYOPS_H
#define GENREC_LIB_DIALECT_GENREC_IR_VECTORBODYOPS_H

#include "mlir/IR/MLIRContext.h"

namespace genrec {

/// Makes ops of the vector dialect body ops.
void attachVectorBodies(mlir::MLIRContext *context);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_IR_VECTORBODYOPS_H
