//===- VerifyOwnership.cpp - one owner per table, column and id -----------===//

#include "genrec/Dialect/GenRec/IR/ColumnTags.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

namespace genrec {
#define GEN_PASS_DEF_VERIFYOWNERSHIP
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// The op that found the handles `rows`, behind the views of its parts.
static TableRowsOp findMaker(Value rows) {
  while (auto part = rows.getDefiningOp<UnstackRowsOp>())
    rows = part.getX();
  return rows.getDefiningOp<TableRowsOp>();
}

namespace {
/// Checks one model.
class OwnershipVerifier {
public:
  explicit OwnershipVerifier(ModelOp model) : model(model) {}

  LogicalResult verifyTables();
  LogicalResult verifyProgram(ProgramOp program);

  unsigned tables = 0, columns = 0, updates = 0;

private:
  LogicalResult verifyColumns(ProgramOp program);
  LogicalResult verifyLookups(ProgramOp program);
  LogicalResult verifyTags(TransformColumnsOp op);
  LogicalResult verifyUpdates(ProgramOp program);
  LogicalResult verifyDistinct(UniqueRowsOp unique);
  LogicalResult verifyStores(ProgramOp program);
  LogicalResult complainTwice(Operation *op, Operation *first, const Twine &message);

  ModelOp model;
  DenseMap<Attribute, TableOp> declared; ///< by symbol
  DenseMap<Attribute, TableOp> owners;   ///< merged table by symbol of the member
};
} // namespace

LogicalResult OwnershipVerifier::complainTwice(Operation *op, Operation *first,
                                               const Twine &message) {
  InFlightDiagnostic diagnostic = op->emitOpError() << message;
  diagnostic.attachNote(first->getLoc()) << "the first is here";
  return diagnostic;
}

/// Every logical table has one owner: itself, or one merged table.
LogicalResult OwnershipVerifier::verifyTables() {
  for (auto table : model.getBody().front().getOps<TableOp>())
    declared[FlatSymbolRefAttr::get(table.getSymNameAttr())] = table;
  for (auto table : model.getBody().front().getOps<TableOp>()) {
    if (!table.getMembersAttr()) {
      ++tables;
      continue;
    }
    for (auto member : table.getMembersAttr().getAsRange<FlatSymbolRefAttr>()) {
      auto [place, isNew] = owners.try_emplace(member, table);
      if (!isNew)
        return complainTwice(table, place->second,
                             "is a second owner of table '" + member.getValue() + "'");
    }
  }
  return success();
}

/// Every column is decoded in one way.
LogicalResult OwnershipVerifier::verifyColumns(ProgramOp program) {
  DenseMap<std::pair<Attribute, Attribute>, Operation *> seen;
  for (auto feature : program.getBody().front().getOps<FeatureOp>()) {
    ++columns;
    auto [place, isNew] = seen.try_emplace(
        {feature.getDomain().getType().getDomain(), feature.getColumnAttr()}, feature);
    // Bounds of ids may differ: a column is decoded once for all that read it.
    auto first = cast<FeatureOp>(place->second);
    if (!isNew &&
        (first.getType() != feature.getType() || first.getPaddingId() != feature.getPaddingId()))
      return complainTwice(feature, first,
                           "reads column '" + feature.getColumn() +
                               "' in another way than the program has read it");
  }
  return success();
}

/// Rows of a member are found through its owner only, by keys of that owner.
LogicalResult OwnershipVerifier::verifyLookups(ProgramOp program) {
  for (Operation &op : program.getBody().front()) {
    auto rows = dyn_cast<TableRowsOp>(op);
    if (auto transform = dyn_cast<TransformColumnsOp>(op))
      if (failed(verifyTags(transform)))
        return failure();
    if (!rows)
      continue;
    if (TableOp owner = owners.lookup(rows.getTableAttr()))
      return rows.emitOpError() << "finds rows of table '" << rows.getTable() << "' apart, but '"
                                << owner.getSymName() << "' owns them";
    TableOp table = declared.lookup(rows.getTableAttr());
    Operation *maker = rows.getIds().getDefiningOp();
    bool isMerged = table && table.getMembersAttr();
    auto keys = dyn_cast_or_null<MergedKeysOp>(maker);
    if (isMerged != isa_and_nonnull<MergedKeysOp, TransformColumnsOp>(maker) ||
        (keys && keys.getTableAttr() != rows.getTableAttr()))
      return rows.emitOpError() << "finds rows of table '" << rows.getTable() << "' by "
                                << (isMerged ? "ids that are no keys of it"
                                             : "keys of a merged table");
  }
  return success();
}

/// Every column of fused keys is tagged with the number of a member of the table that
/// its keys are looked up in.
LogicalResult OwnershipVerifier::verifyTags(TransformColumnsOp op) {
  SmallVector<TableOp> looked(op.getNumResults());
  for (OpResult result : op.getResults())
    for (Operation *user : result.getUsers())
      if (auto rows = dyn_cast<TableRowsOp>(user))
        looked[result.getResultNumber()] = declared.lookup(rows.getTableAttr());
  for (auto [index, column] : llvm::enumerate(op.getColumns())) {
    TableOp table = looked[column.result];
    if (!table || !table.getMembersAttr())
      continue;
    int64_t bits = table.getKeyBits();
    std::optional<ColumnTag> tag = getColumnTag(op, column);
    if (!tag)
      return op.emitOpError() << "column " << index
                              << " yields keys without the number of a member of '"
                              << table.getSymName() << "'";
    int64_t member = tag->value >> bits;
    if (tag->value != member << bits || member < 0 ||
        member >= static_cast<int64_t>(table.getMembersAttr().size()))
      return op.emitOpError() << "column " << index << " has the tag " << tag->value
                              << ", which no member of '" << table.getSymName() << "' owns";
  }
  return success();
}

/// A list of handles takes part once per gradient, and all are of one table.
LogicalResult OwnershipVerifier::verifyDistinct(UniqueRowsOp unique) {
  llvm::DenseSet<std::pair<Value, Value>> seen;
  TableRowsOp first = findMaker(unique.getRows().front());
  for (auto [index, rows, gradients] : llvm::enumerate(unique.getRows(), unique.getGradients())) {
    TableRowsOp maker = findMaker(rows);
    if (!maker || !first || maker.getTableAttr() != first.getTableAttr())
      return unique.emitOpError() << "mixes rows of several tables: rows " << index
                                  << " are not of the table of rows 0";
    if (!seen.insert({rows, gradients}).second)
      return unique.emitOpError() << "counts the gradients of rows " << index << " twice";
  }
  return success();
}

/// Rows are stored through distinct handles (or those of a parameter) only.
LogicalResult OwnershipVerifier::verifyStores(ProgramOp program) {
  for (auto kernel : program.getBody().front().getOps<RowKernelOp>())
    for (auto store : kernel.getBody().front().getOps<RowStoreOp>()) {
      auto argument = dyn_cast<BlockArgument>(store.getRow());
      Value rows = argument ? kernel.getInputs()[argument.getArgNumber()] : Value();
      if (!rows || !isa_and_nonnull<UniqueRowsOp, ParameterRowsOp>(rows.getDefiningOp()))
        return store.emitOpError(
            "stores through handles that may repeat; a row is updated once in a step, "
            "through those that unique_rows gives");
    }
  return success();
}

LogicalResult OwnershipVerifier::verifyUpdates(ProgramOp program) {
  DenseMap<Attribute, Operation *> distinct;
  DenseMap<Value, Operation *> stored;
  for (Operation &op : program.getBody().front()) {
    if (auto unique = dyn_cast<UniqueRowsOp>(op)) {
      if (failed(verifyDistinct(unique)))
        return failure();
      ++updates;
      FlatSymbolRefAttr table = findMaker(unique.getRows().front()).getTableAttr();
      auto [place, isNew] = distinct.try_emplace(table, &op);
      if (!isNew)
        return complainTwice(&op, place->second,
                             "is a second update of table '" + table.getValue() + "'");
    }
    auto kernel = dyn_cast<RowKernelOp>(op);
    if (!kernel || kernel.getBody().front().getOps<RowStoreOp>().empty())
      continue;
    for (Value rows : kernel.getInputs())
      if (isa_and_nonnull<UniqueRowsOp, ParameterRowsOp>(rows.getDefiningOp())) {
        auto [place, isNew] = stored.try_emplace(rows, &op);
        if (!isNew)
          return complainTwice(&op, place->second, "updates rows that another kernel updates");
      }
  }
  return verifyStores(program);
}

LogicalResult OwnershipVerifier::verifyProgram(ProgramOp program) {
  if (failed(verifyColumns(program)) || failed(verifyLookups(program)))
    return failure();
  return verifyUpdates(program);
}

namespace {
struct VerifyOwnership : genrec::impl::VerifyOwnershipBase<VerifyOwnership> {
  void runOnOperation() override {
    OwnershipVerifier verifier(getOperation());
    if (failed(verifier.verifyTables()))
      return signalPassFailure();
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>())
      if (failed(verifier.verifyProgram(program)))
        return signalPassFailure();
    countStatistic(*this, tables, "tables", verifier.tables);
    countStatistic(*this, columns, "columns", verifier.columns);
    countStatistic(*this, updates, "updates", verifier.updates);
    markAllAnalysesPreserved();
  }
};
} // namespace
