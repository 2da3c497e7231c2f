//===- IdCounts.h - which ids data look up ----------------------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_COMPILE_IDCOUNTS_H
#define GENREC_TOOLS_GENREC_COMPILE_IDCOUNTS_H

#include "Compiler.h"

namespace genrec {

/// What --ids names: a file of counts (.json), or data, whose ids a binary of the model counts
/// after its own transforms. That binary is kept as others are (CompileCache.h).
llvm::Expected<IdStatistics> readIdStatistics(const CompilerOptions &options,
                                              mlir::MLIRContext &context);

} // namespace genrec

#endif // GENREC_TOOLS_GENREC_COMPILE_IDCOUNTS_H
