//===- Explain.h - what became of a model, and why --------------*- C++ -*-===//

#ifndef GENREC_REPORT_EXPLAIN_H
#define GENREC_REPORT_EXPLAIN_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

namespace genrec {

/// What is known of the data and the machine. Maps go by the names of domains (derived
/// ones too) and tables.
struct ExplainOptions {
  int64_t batch = 128;                ///< root rows of a step
  int64_t longest = 200;              ///< entries of a list at most
  llvm::StringMap<int64_t> longestOf; ///< the same for some lists
  llvm::StringMap<int64_t> rows;      ///< of a domain in the largest batch, or of a catalogue
  llvm::StringMap<int64_t> ids;       ///< distinct ids that a table will hold
  llvm::StringMap<int64_t> dataset;   ///< rows of a domain in all of the data
  int64_t threads = 1;                ///< that compute
};

/// Writes, as plain text: tables, kernels with the ops each was made of, library calls
/// with their matrix-product FLOPs, values kept between kernels with the reason, and the
/// memory of a run, part by part. `model` is a model after `plan-memory`. Fails where
/// `options` name a domain or table that the model lacks.
llvm::Error explain(ModelOp model, const ExplainOptions &options, llvm::raw_ostream &os);

/// The graph of each program by its name, to be taken before passes change the model.
llvm::json::Object describeGraphs(ModelOp model);

/// The same as `explain` and more, as data (a plan): "domains", "tables", "columns", "decisions",
/// and per program its ops with what each has to do, buffers and graph. `graphsBefore`: of
/// `describeGraphs`.
llvm::json::Object explainAsData(ModelOp model, const ExplainOptions &options,
                                 llvm::json::Object graphsBefore);

/// One self-contained page that shows a plan: pictures, tables that can be searched and sorted.
void printPlanAsHtml(const llvm::json::Object &plan, llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_REPORT_EXPLAIN_H
