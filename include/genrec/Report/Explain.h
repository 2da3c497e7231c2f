//===- Explain.h - report of a compiled model -------------------*- C++ -*-===//

#ifndef GENREC_REPORT_EXPLAIN_H
#define GENREC_REPORT_EXPLAIN_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Report/IdStatistics.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

#include <optional>

namespace genrec {

/// One rank's share of a cluster.
struct RankMachine {
  double memoryBytes = 64e9;
  double networkBitsPerSecond = 200e9; ///< into and out of a rank, each
  double messageSeconds = 2e-6;        ///< that a message takes besides its bytes
  /// Of a rank's part of a step, measured; none: at least what the calibrated machine needs.
  std::optional<double> computeSeconds;
  /// Of a device, for rows of tables; none: nothing is told of it.
  std::optional<double> deviceBytes;
  double busBytesPerSecond = 50e9; ///< between it and the host, both directions together
};

/// The assumed data and machine. Maps are by the name of a domain (derived or not) or table.
struct ExplainOptions {
  int64_t batch = 128;                ///< root rows of a step
  int64_t longest = 200;              ///< rows of the longest list
  llvm::StringMap<int64_t> longestOf; ///< the same for single domains
  llvm::StringMap<int64_t> rows;      ///< of a domain in the largest batch, or of a catalogue
  llvm::StringMap<int64_t> ids;       ///< distinct ids that a table will contain
  llvm::StringMap<int64_t> dataset;   ///< rows of a domain in the whole dataset
  int64_t threads = 1;                ///< compute threads
  int64_t portionsPerProcess = 1;     ///< of `batch` root rows each, that a process runs in turn

  // Several ranks, which share a global batch of `batch` root rows.
  int64_t ranks = 0;            ///< 0: nothing is told of ranks
  int64_t portions = 0;         ///< of a global batch; 0: one per rank
  bool shardOptimizer = false;  ///< ranks share the updates of dense parameters
  IdStatistics statistics;      ///< how often ids are looked up
  llvm::StringMap<double> zipf; ///< by table: the exponent of Zipf's law, without statistics
  RankMachine machine;
  llvm::StringSet<> replicate;  ///< tables of which every rank has all rows
  bool choosesReplicas = false; ///< those are the tables that a run chooses
};

/// Takes sizes of domains that `options` do not tell from its statistics: those of a mean batch.
void adoptSizes(ModelOp model, ExplainOptions &options);

/// Writes as text: tables, kernels with the ops that were fused into them, library calls with the
/// FLOPs of their matrix products, values that are stored between kernels with the reason, and the
/// memory of a run by use. `model` must have been through `plan-memory`. Fails if `options` name a
/// domain or table that the model lacks.
///
/// With `options.ranks`, also what a training step on so many ranks exchanges and holds; `apart` is
/// the same model with no tables merged (null otherwise).
llvm::Error explain(ModelOp model, ModelOp apart, const ExplainOptions &options,
                    llvm::raw_ostream &os);

/// The graph of each program by name. Call it before passes change the model.
llvm::json::Object describeGraphs(ModelOp model);

/// The plan of a model as JSON: what `explain` writes, and more. Keys are "domains", "tables",
/// "columns", "decisions", and per program its ops with their work, buffers and graph.
/// `graphsBefore` is a result of `describeGraphs`. Fails as `explain` does.
llvm::Expected<llvm::json::Object> explainAsData(ModelOp model, ModelOp apart,
                                                 const ExplainOptions &options,
                                                 llvm::json::Object graphsBefore);

/// Writes a plan as one self-contained HTML page with pictures and tables that can be searched and
/// sorted.
void printPlanAsHtml(const llvm::json::Object &plan, llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_REPORT_EXPLAIN_H
