//===- ExplainMemory.h - memory of a run by use -----------------*- C++ -*-===//

#ifndef GENREC_LIB_REPORT_EXPLAINMEMORY_H
#define GENREC_LIB_REPORT_EXPLAINMEMORY_H

#include "genrec/Report/Explain.h"

#include <string>
#include <vector>

namespace genrec {

class ModelIndex;

/// One use of memory in a run. The last entry of a list is the total.
struct MemoryPart {
  std::string name;
  int64_t bytes;
  std::string note;
  bool isUntold = false; ///< a table, of which nobody said how many rows it has
};

/// Lists (explainMemory: prints) what a run of `program` allocates, besides what a process uses at
/// its start. `program` must have been through `plan-memory`.
std::vector<MemoryPart> listMemory(ProgramOp program, const ModelIndex &index,
                                   const ExplainOptions &options);
void explainMemory(ProgramOp program, const ModelIndex &index, const ExplainOptions &options,
                   llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_LIB_REPORT_EXPLAINMEMORY_H
