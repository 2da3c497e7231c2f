//===- Plan.h - the plan of a compiled model as JSON ------------*- C++ -*-===//
//
// A plan describes what the compiler made of a model: tables, columns, and per program the kernels
// with their work, buffers and decisions, and its graph before and after compilation.
// `--explain=json` prints it, `--explain=html` shows it, `genrec-diff` compares two plans.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_REPORT_PLAN_H
#define GENREC_REPORT_PLAN_H

#include "genrec/Dialect/GenRec/Step/Costs.h"
#include "genrec_rt/roofline.h"

#include "llvm/Support/JSON.h"

#include <optional>

namespace genrec {

/// The rows of a domain in the assumed batch.
using RowsOfDomain = llvm::function_ref<int64_t(mlir::FlatSymbolRefAttr)>;

/// An op of a step and its work on the assumed batch.
struct PlannedOp {
  mlir::Operation *op;
  std::string name, origin;
  Stage stage;
  mlir::FlatSymbolRefAttr domain; ///< the domain it iterates over
  int64_t rows = 0;
  rt::Work work;
  double bytesPerRow = 0, flopsPerRow = 0; ///< per row of that domain
};

/// The ops that a step runs, in program order.
llvm::SmallVector<PlannedOp> getPlannedOps(ProgramOp program, RowsOfDomain rows);
/// In how many launches and calls the ops of a program run: some kernels over rows of parameters
/// are one launch on a device.
int64_t countLaunches(llvm::ArrayRef<PlannedOp> ops);

/// The measured limits of this machine or, where the model is for a device, of a device, from
/// rt::rooflinePath. Nothing if the file is missing or damaged, or of the other kind.
std::optional<rt::Roofline> loadRoofline(ModelOp model);
/// The command that measures them.
llvm::StringRef getCalibration(mlir::Operation *op);

/// The nodes (op, name, domain, line) of a program and the edges between them, without ops that
/// only declare values.
llvm::json::Object describeGraph(ProgramOp program);
/// The plan of a model after `plan-memory`. `rows` returns the rows of a domain of a program.
llvm::json::Object
describePlan(ModelOp model, llvm::function_ref<int64_t(ProgramOp, mlir::FlatSymbolRefAttr)> rows,
             const std::optional<rt::Roofline> &roofline);

/// Prints the work of each op per step and per row, and a lower bound of its time.
void printCosts(ProgramOp program, RowsOfDomain rows, const std::optional<rt::Roofline> &roofline,
                llvm::raw_ostream &os);

} // namespace genrec

#endif // GENREC_REPORT_PLAN_H
