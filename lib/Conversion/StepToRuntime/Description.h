//===- Description.h - the constant tables of a compiled model --*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H
#define GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

namespace genrec {

/// Makes the constant tables of the description and `genrec_model()`.
/// `stages[p]` holds the names of program p's copy, dispatch and compute functions, "" for none.
void emitDescription(const ModelIndex &index, llvm::ArrayRef<std::array<std::string, 3>> stages,
                     llvm::ArrayRef<StepOp> ops, llvm::StringRef compiler, mlir::OpBuilder &builder);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H
