//===- Explain.h - report of a compiled model -------------------*- C++ -*-===//

#ifndef GENREC_REPORT_EXPLAIN_H
#define GENREC_REPORT_EXPLAIN_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace genrec {

/// The assumed data and machine. Maps are by the name of a domain (derived or not) or table.
struct ExplainOptions {
  int64_t batch = 128;                ///< root rows of a step
  int64_t longest = 200;              ///< rows of the longest list
  llvm::StringMap<int64_t> longestOf; ///< the same for single domains
  llvm::StringMap<int64_t> rows;      ///< of a domain in the largest batch, or of a catalogue
  llvm::StringMap<int64_t> ids;       ///< distinct ids that a table will contain
  llvm::StringMap<int64_t> dataset;   ///< rows of a domain in the whole dataset
  int64_t threads = 1;                ///< compute threads
};

/// Writes as text: tables, kernels with the ops that were fused into them, library calls with the
/// FLOPs of their matrix products, values that are stored between kernels with the reason, and the
/// memory of a run by use. `model` must have been through `plan-memory`. Fails if `options` name a
/// domain or table that the model lacks.
llvm::Error explain(ModelOp model, const ExplainOptions &options, llvm::raw_ostream &os);

/// The graph of each program by name. Call it before passes change the model.
llvm::json::Object describeGraphs(ModelOp model);

/// The plan of a model as JSON: what `explain` writes, and more. Keys are "domains", "tables",
/// "columns", "decisions", and per program its ops with their work, buffers and graph.
/// `graphsBefore` is a result of `describeGraphs`.
llvm::json::Object explainAsData(ModelOp model, const ExplainOptions &options,
                                 llvm::json::Object graphsBefore);

/// Writes a plan as one self-contained HTML page with pictures and tables that can be searched and
/// sorted.
void printPlanAsHtml(const llvm::json::Object &plan, llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_REPORT_EXPLAIN_H
