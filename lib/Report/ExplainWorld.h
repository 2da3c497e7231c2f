//===- ExplainWorld.h - what several ranks would need -----------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_EXPLAINWORLD_H
#define GENREC_LIB_REPORT_EXPLAINWORLD_H

#include "genrec/Report/Explain.h"

namespace genrec {

/// The training program; null where there is none.
ProgramOp getStepProgram(ModelOp model);

/// Training on `options.ranks` ranks: exchanges, tables, memory, time, and what runs out first.
/// `apart` is the model with no tables merged.
llvm::json::Object describeWorld(ModelOp model, ModelOp apart, const ExplainOptions &options);

/// Writes it as text.
void printWorld(const llvm::json::Object &world, llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_LIB_REPORT_EXPLAINWORLD_H
