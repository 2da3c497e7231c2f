//===- ClipGradients.h - gradient clipping in ordinary ops ------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLIPGRADIENTS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLIPGRADIENTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Clips `gradients` (rows of step domains, one entry per parameter and table,
/// duplicates summed) as `model` declares: by value, then by global norm. Each
/// entry is replaced. Limits of 0 at run time leave gradients as they are.
void clipGradients(mlir::OpBuilder &builder, ModelOp model,
                   llvm::MutableArrayRef<mlir::Value> gradients);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLIPGRADIENTS_H
