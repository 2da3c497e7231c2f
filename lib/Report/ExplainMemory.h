//===- ExplainMemory.h - memory of a run, part by part ----------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_EXPLAINMEMORY_H
#define GENREC_LIB_REPORT_EXPLAINMEMORY_H

#include "genrec/Report/Explain.h"

#include <string>
#include <vector>

namespace genrec {

class ModelIndex;

/// One thing that a run takes memory for; the last of a list is all of them together.
struct MemoryPart {
  std::string name;
  int64_t bytes;
  std::string note;
};

/// What a run of `program`, after `plan-memory`, takes memory for, beside what a process holds
/// at its start; and that, printed.
std::vector<MemoryPart> listMemory(ProgramOp program, const ModelIndex &index,
                                   const ExplainOptions &options);
void explainMemory(ProgramOp program, const ModelIndex &index, const ExplainOptions &options,
                   llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_LIB_REPORT_EXPLAINMEMORY_H
