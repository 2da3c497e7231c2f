//===- PruneColumns.cpp - removes unused columns and ops ------------------===//

#include "Batch.h"
#include "Decisions.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_PRUNECOLUMNS
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// A column: domain and dotted path.
using ColumnKey = std::pair<Attribute, Attribute>;

static std::optional<ColumnKey> getColumn(Operation &op) {
  if (auto feature = dyn_cast<FeatureOp>(op))
    return ColumnKey{feature.getDomain().getType().getDomain(), feature.getColumnAttr()};
  if (auto valid = dyn_cast<FeatureValidOp>(op))
    return ColumnKey{valid.getDomain().getType().getDomain(), valid.getColumnAttr()};
  return std::nullopt;
}

static llvm::SetVector<ColumnKey> collectColumns(ProgramOp program) {
  llvm::SetVector<ColumnKey> columns;
  for (Operation &op : program.getBody().front())
    if (std::optional<ColumnKey> column = getColumn(op))
      columns.insert(*column);
  return columns;
}

namespace {
struct PruneColumns : genrec::impl::PruneColumnsBase<PruneColumns> {
  void runOnOperation() override {
    Decisions decisions("prune-columns");
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      prune(program, decisions);
    decisions.attachTo(getOperation());
  }

  void prune(ProgramOp program, Decisions &decisions) {
    llvm::SetVector<ColumnKey> before = collectColumns(program);
    unsigned erased = eraseDeadOps(program);
    BatchChange change = completeBatch(program);
    llvm::SetVector<ColumnKey> kept = collectColumns(program);
    unsigned pruned = before.size() - kept.size();
    for (const ColumnKey &column : before)
      if (!kept.contains(column))
        decisions.add("@" + program.getSymName() + " does not read column '" +
                      cast<StringAttr>(column.second).getValue() + "': no " +
                      describeSinks(program.getMode()) + " depends on it");
    countStatistic(*this, columns, "columns", pruned);
    countStatistic(*this, ops, "ops", erased);
    countStatistic(*this, domains, "domains", change.dropped);
    RewriteCounter::count("prune-column", pruned);
  }

  static StringRef describeSinks(ProgramMode mode) {
    switch (mode) {
    case ProgramMode::train:
      return "loss";
    case ProgramMode::evaluate:
      return "loss or metric";
    case ProgramMode::predict:
      return "output";
    default:
      return "loss, metric or output";
    }
  }
};
} // namespace
