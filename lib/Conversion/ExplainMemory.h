//===- ExplainMemory.h - memory of a run, part by part ----------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_EXPLAINMEMORY_H
#define GENREC_LIB_CONVERSION_EXPLAINMEMORY_H

#include "genrec/Conversion/Explain.h"

namespace genrec {

class ModelIndex;

/// Prints what a run of `program`, after `plan-memory`, takes memory for, beside what
/// a process holds at its start.
void explainMemory(ProgramOp program, const ModelIndex &index, const ExplainOptions &options,
                   llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_EXPLAINMEMORY_H
