//===- VerifyOwnership.cpp - checks the owner of tables, columns, ids -----===//

#include "OwnershipContract.h"
#include "Shares.h"
#include "genrec/Dialect/GenRec/IR/ColumnTags.h"
#include "genrec/Dialect/GenRec/Transforms/Passes.h"
#include "genrec/Dialect/GenRec/Transforms/RewriteCounter.h"

#include "llvm/ADT/MapVector.h"

namespace genrec {
#define GEN_PASS_DEF_VERIFYOWNERSHIP
#include "genrec/Dialect/GenRec/Transforms/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

/// The table_rows that made the handles `rows`, looking through views of parts. For distinct
/// handles, one of the ops that made them; null if they are of several tables.
static TableRowsOp findMaker(Value rows) {
  while (auto part = rows.getDefiningOp<UnstackRowsOp>())
    rows = part.getX();
  auto distinct = rows.getDefiningOp<DistinctRowsOp>();
  if (!distinct)
    return rows.getDefiningOp<TableRowsOp>();
  OperandRange parts = distinct.getRowsOf(rows);
  TableRowsOp maker = findMaker(parts.front());
  for (Value part : parts.drop_front()) {
    TableRowsOp other = findMaker(part);
    if (!maker || !other || other.getTableAttr() != maker.getTableAttr())
      return {};
  }
  return maker;
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
  LogicalResult verifyShares(ProgramOp program);
  LogicalResult verifyRead(ProgramOp program);
  LogicalResult verifyTrained(ProgramOp program,
                              const llvm::MapVector<Attribute, Operation *> &distinct);
  LogicalResult complainTwice(Operation *op, Operation *first, const Twine &message);

  ModelOp model;
  DenseMap<Attribute, TableOp> declared; ///< by symbol
  DenseMap<Attribute, TableOp> owners;   ///< the merged table, by symbol of the member
};
} // namespace

/// Whether `rows` has no duplicates, and they are rows of the table itself: not copies that a portion
/// has of rows of any rank.
static bool mayUpdate(Value rows) {
  Operation *maker = rows.getDefiningOp();
  auto unique = dyn_cast_or_null<UniqueRowsOp>(maker);
  return maker && maker->hasTrait<MakesUniqueRows>() && (!unique || getUpdatedRows(unique) == rows);
}

LogicalResult OwnershipVerifier::complainTwice(Operation *op, Operation *first,
                                               const Twine &message) {
  InFlightDiagnostic diagnostic = op->emitOpError() << message;
  diagnostic.attachNote(first->getLoc()) << "the first is here";
  return diagnostic;
}

/// Every logical table has one owner: itself or one merged table.
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
    // Bounds of ids may differ, as all readers of a column share one decoder.
    auto first = cast<FeatureOp>(place->second);
    if (!isNew &&
        (first.getType() != feature.getType() || first.getPaddingId() != feature.getPaddingId()))
      return complainTwice(feature, first,
                           "reads column '" + feature.getColumn() +
                               "' in another way than the program has read it");
  }
  return success();
}

/// Rows of a member are looked up only in its merged table, by that table's keys.
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
    if (isMerged != (maker && maker->hasTrait<MakesMergedKeys>()) ||
        (keys && keys.getTableAttr() != rows.getTableAttr()))
      return rows.emitOpError() << "finds rows of table '" << rows.getTable() << "' by "
                                << (isMerged ? "ids that are no keys of it"
                                             : "keys of a merged table");
  }
  return success();
}

/// The tag of every fused column is the number of a member of the table that its keys are looked up
/// in.
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

/// A list of handles occurs once per gradient, and all lists are of one table.
LogicalResult OwnershipVerifier::verifyDistinct(UniqueRowsOp unique) {
  llvm::DenseSet<std::pair<Value, Value>> seen;
  TableRowsOp first = findMaker(unique.getRows().front());
  for (Operation *user : unique.getDomain().getUsers())
    if (auto sum = dyn_cast<SegmentSumOp>(user))
      if (sum.getGradients() != unique.getGradients()) {
        InFlightDiagnostic diagnostic =
            sum.emitOpError() << "adds up other gradients than those of the rows that it is of";
        diagnostic.attachNote(unique.getLoc()) << "the rows are here";
        return diagnostic;
      }
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

/// Rows are stored only through distinct handles (or those of a parameter).
LogicalResult OwnershipVerifier::verifyStores(ProgramOp program) {
  for (auto kernel : program.getBody().front().getOps<RowKernelOp>())
    for (auto store : kernel.getBody().front().getOps<RowStoreOp>()) {
      auto argument = dyn_cast<BlockArgument>(store.getRow());
      Value rows = argument ? kernel.getInputs()[argument.getArgNumber()] : Value();
      if (!rows || !mayUpdate(rows))
        return store.emitOpError(
            "stores through handles that may repeat or belong to another rank; a row is updated once "
            "in a step, through those that unique_rows or collect_rows gives");
    }
  return success();
}

LogicalResult OwnershipVerifier::verifyUpdates(ProgramOp program) {
  llvm::MapVector<Attribute, Operation *> distinct;
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
      if (mayUpdate(rows)) {
        auto [place, isNew] = stored.try_emplace(rows, &op);
        if (!isNew)
          return complainTwice(&op, place->second, "updates rows that another kernel updates");
      }
  }
  for (auto &[table, unique] : distinct)
    if (!stored.contains(getUpdatedRows(cast<UniqueRowsOp>(unique))))
      return unique->emitOpError() << "finds the rows of " << table
                                   << " that a step has touched, but no kernel updates them";
  if (failed(verifyTrained(program, distinct)))
    return failure();
  return verifyStores(program);
}

/// An error at `program` about `name`, with the table's declaration.
static LogicalResult complainAbout(ProgramOp program, Attribute name, const Twine &message) {
  InFlightDiagnostic diagnostic = program.emitOpError() << message;
  if (auto symbol = dyn_cast<FlatSymbolRefAttr>(name))
    if (TableOp table = lookupTable(program, symbol))
      diagnostic.attachNote(table.getLoc()) << "the table is declared here";
  return diagnostic;
}

/// The program reads what it read when it was differentiated, and nothing else.
LogicalResult OwnershipVerifier::verifyRead(ProgramOp program) {
  for (bool isTable : {false, true}) {
    auto written =
        program->getAttrOfType<ArrayAttr>(isTable ? GenRecDialect::TablesAttrHelper::getNameStr() : GenRecDialect::ColumnsAttrHelper::getNameStr());
    if (!written)
      continue;
    Names known(written.begin(), written.end()),
        read = isTable ? collectReadTables(program) : collectReadColumns(program);
    auto describe = [&](Attribute name) {
      return isTable ? "rows of table '" + cast<FlatSymbolRefAttr>(name).getValue().str() + "'"
                     : "column '" + cast<StringAttr>(name).getValue().str() + "'";
    };
    for (Attribute name : known)
      if (!read.contains(name))
        return complainAbout(program, name,
                             "does not read " + describe(name) + ", which the model reads here");
    for (Attribute name : read)
      if (!known.contains(name))
        return complainAbout(program, name,
                             "reads " + describe(name) + ", which the model does not read here");
  }
  return success();
}

/// The lists of ids whose rows are updated: `factor-lookups` makes one of the distinct rows of
/// some.
static int64_t countLists(UniqueRowsOp unique) {
  llvm::SmallPtrSet<Value, 8> lists;
  for (Value rows : unique.getRows())
    if (auto distinct = rows.getDefiningOp<DistinctRowsOp>())
      lists.insert_range(distinct.getRowsOf(rows));
    else
      lists.insert(rows);
  return lists.size();
}

/// The tables with updates are exactly those that a loss trains, each by as many lists of ids as
/// when the program was differentiated.
LogicalResult
OwnershipVerifier::verifyTrained(ProgramOp program,
                                 const llvm::MapVector<Attribute, Operation *> &distinct) {
  auto written = program->getAttrOfType<ArrayAttr>(GenRecDialect::TrainsAttrHelper::getNameStr());
  if (!written)
    return success();
  for (auto name : written.getAsRange<FlatSymbolRefAttr>())
    if (!distinct.contains(name))
      return complainAbout(program, name,
                           "does not update table '" + name.getValue() + "', which a loss trains");
  for (auto &[name, unique] : distinct) {
    int64_t lists = llvm::count(written, name), updated = countLists(cast<UniqueRowsOp>(unique));
    if (lists == 0)
      return unique->emitOpError() << "updates table " << name << ", which no loss trains";
    if (updated != lists)
      return unique->emitOpError() << "updates table " << name << ", of whose lists of ids the "
                                   << "losses train " << lists << ", by " << updated << " of them";
  }
  return success();
}

/// In a distributed program, a sum over all portions is read where one is needed, and nothing is
/// added up twice.
LogicalResult OwnershipVerifier::verifyShares(ProgramOp program) {
  if (!isDistributed(program))
    return success();
  Shares shares(program);
  for (Operation &op : program.getBody().front()) {
    ShareNeeds needs = shares.visit(&op);
    if (!needs.sums.empty())
      return op.emitOpError() << "reads operand " << needs.sums.front()
                              << " of one portion, but depends on its sum over all portions";
    if (!needs.once.empty())
      return op.emitOpError() << "adds operand " << needs.once.front()
                              << " once per portion, although all portions have the same";
    if (needs.sumsOwned)
      return op.emitOpError("adds up the rows of one rank only");
    if (auto given = dyn_cast<ContributeOp>(op))
      for (auto [index, value] : llvm::enumerate(given.getValues()))
        if (shares.of(value) != Share::partial)
          return op.emitOpError() << "adds up value " << index << ", of which "
                                  << (shares.of(value) == Share::local ? "every portion has its own rows"
                                                                       : "all portions have the same");
  }
  return success();
}

LogicalResult OwnershipVerifier::verifyProgram(ProgramOp program) {
  if (failed(verifyColumns(program)) || failed(verifyLookups(program)) ||
      failed(verifyRead(program)))
    return failure();
  if (!program->hasAttr(GenRecDialect::SingleRankAttrHelper::getNameStr()) &&
      failed(verifyShares(program)))
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
