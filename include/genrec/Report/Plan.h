//===- Plan.h - what a model became, as data --------------------*- C++ -*-===//
//
// A plan says what the compiler made of a model: tables, columns, and per program the kernels with
// what each has to do, buffers and decisions; and the graph before and after. `--explain=json`
// prints it, `--explain=html` shows it, `genrec-diff` compares two.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_REPORT_PLAN_H
#define GENREC_REPORT_PLAN_H

#include "genrec/Dialect/GenRec/Step/Costs.h"
#include "genrec_rt/roofline.h"

#include "llvm/Support/JSON.h"

#include <optional>

namespace genrec {

/// Rows of a domain in the batch that is spoken of.
using RowsOfDomain = llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)>;

/// An op of a step and what it has to do in the batch that is spoken of.
struct PlannedOp {
  mlir::Operation *op;
  std::string name, origin;
  Stage stage;
  mlir::FlatSymbolRefAttr domain; ///< that it goes over
  int64_t rows = 0;
  rt::Work work;
  double bytesPerRow = 0, flopsPerRow = 0; ///< of that domain
};

/// The ops of a program in their order: as many as a step runs.
llvm::SmallVector<PlannedOp> getPlannedOps(ProgramOp program, RowsOfDomain rows);

/// The measured limits in $GENREC_MACHINE, else in machine.json in genrec's folder of
/// $XDG_CACHE_HOME or ~/.cache; nothing where that is missing or damaged.
std::optional<rt::Roofline> loadRoofline();

/// Nodes (op, name, domain, line) and edges between them of a program's body; ops that only
/// declare values are left out.
llvm::json::Object describeGraph(ProgramOp program);
/// The plan of a model after `plan-memory`. `rows` gives the rows of a domain of a program.
llvm::json::Object
describePlan(ModelOp model, llvm::function_ref<int64_t(ProgramOp, mlir::FlatSymbolRefAttr)> rows,
             const std::optional<rt::Roofline> &roofline);

/// Prints per op what it has to do, per step and per row, and the time that this takes at least.
void printCosts(ProgramOp program, RowsOfDomain rows, const std::optional<rt::Roofline> &roofline,
                llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_REPORT_PLAN_H
