//===- PlanDiff.h - what differs between two plans --------------*- C++ -*-===//

#ifndef GENREC_TOOLS_GENREC_DIFF_PLANDIFF_H
#define GENREC_TOOLS_GENREC_DIFF_PLANDIFF_H

#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace genrec {

/// Prints what differs from plan `a` to plan `b` (of `genrec-compile --explain=json`): tables,
/// columns, decisions, and per program what kernels were fused, split, added, removed or became
/// dearer, with what that costs. Returns whether anything does.
bool printDifferences(const llvm::json::Object &a, const llvm::json::Object &b,
                      llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_TOOLS_GENREC_DIFF_PLANDIFF_H
