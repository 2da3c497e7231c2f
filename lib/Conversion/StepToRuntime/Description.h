//===- Description.h - the description of a compiled model ------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H
#define GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

namespace genrec {

/// Emits the constant tables that describe the model, and the function `genrec_model()` that
/// returns them. `stages[p]` holds the names of program p's copy, dispatch and compute functions;
/// "" if there is none.
void emitDescription(const ModelIndex &index, llvm::ArrayRef<std::array<std::string, 3>> stages,
                     llvm::ArrayRef<StepOp> ops, llvm::StringRef compiler, mlir::OpBuilder &builder);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H
