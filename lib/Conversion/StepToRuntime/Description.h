//===- Description.h - the description of a compiled model ------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H
#define GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

namespace genrec {

/// The names of a program's stage functions, by stage; "" if there is none.
using StageNames = std::array<std::string, getMaxEnumValForStage() + 1>;

/// Emits the constant tables that describe the model, and the function `genrec_model()` that
/// returns them. `stages[p]` holds those of program p.
void emitDescription(const ModelIndex &index, llvm::ArrayRef<StageNames> stages,
                     llvm::ArrayRef<StepOp> ops, llvm::StringRef compiler, mlir::OpBuilder &builder);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_STEPTORUNTIME_DESCRIPTION_H
