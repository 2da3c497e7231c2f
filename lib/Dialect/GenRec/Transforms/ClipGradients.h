//===- ClipGradients.h - gradient clipping as ops ---------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLIPGRADIENTS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLIPGRADIENTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// Clips `gradients` (rows of step domains, one entry per parameter and table, duplicates summed)
/// as `model` declares: by value, then by global norm. Replaces each entry. A limit of 0 at run
/// time means no clipping.
void clipGradients(mlir::OpBuilder &builder, ModelOp model,
                   llvm::MutableArrayRef<mlir::Value> gradients);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLIPGRADIENTS_H
