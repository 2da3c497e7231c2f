//===- RankOps.cpp - sums over the portions of a batch --------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

bool genrec::isDistributed(ProgramOp program) {
  return llvm::any_of(program.getBody().front(),
                      [](Operation &op) { return op.hasTrait<SumsPortions>(); });
}

//===----------------------------------------------------------------------===//
// Shared values
//===----------------------------------------------------------------------===//

LogicalResult ContributeOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                             ValueRange operands, DictionaryAttr, OpaqueProperties,
                                             RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

LogicalResult CollectOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                          ValueRange operands, DictionaryAttr, OpaqueProperties,
                                          RegionRange, SmallVectorImpl<Type> &types) {
  llvm::append_range(types, operands.getTypes());
  return success();
}

LogicalResult ContributeOp::verify() {
  if (getValues().empty())
    return emitOpError() << "needs at least one value";
  for (auto [index, value] : llvm::enumerate(getValues()))
    if (!getElementTypeOrSelf(value.getType()).isF32())
      return emitOpError() << "value " << index << " must be f32, but is "
                           << describe(value.getType());
  for (Operation *user : getOperation()->getUsers())
    if (auto collect = dyn_cast<CollectOp>(user); !collect || collect.getNumber() != getNumber())
      return emitOpError() << "gives values to sums, which only 'genrec.collect' " << getNumber()
                           << " may read";
  return success();
}

LogicalResult CollectOp::verify() {
  for (Value value : getValues())
    if (auto given = value.getDefiningOp<ContributeOp>(); !given || given.getNumber() != getNumber())
      return emitOpError() << "must read the results of 'genrec.contribute' " << getNumber();
  return success();
}

//===----------------------------------------------------------------------===//
// Rows of tables
//===----------------------------------------------------------------------===//

/// `rows` and `sums` are of `domain`, and of one width.
static LogicalResult verifyRows(Operation *op, DomainType domain, Value rows, Value sums) {
  auto row = dyn_cast<RowType>(getElementTypeOrSelf(rows.getType()));
  if (!row)
    return op->emitOpError() << "needs handles of table rows, but 'rows' is "
                             << describe(rows.getType());
  for (Value value : {rows, sums})
    if (getRowDomain(value.getType()) != domain.getDomain())
      return op->emitOpError() << "needs rows of " << domain.getDomain() << ", but has "
                               << describe(value.getType());
  int64_t width = row.getWidth();
  return expect(op, {"sums", sums.getType()}, Form::alike(sums.getType()).shape({width}).element(f32),
                "the width of the rows");
}

LogicalResult ContributeRowsOp::verify() {
  if (!getDomain().getDefiningOp<UniqueRowsOp>())
    return emitOpError() << "needs the domain of a 'genrec.unique_rows'";
  if (getType() != getSums().getType())
    return emitOpError() << "must have the type of 'sums', but has " << describe(getType());
  for (Operation *user : getOperation()->getUsers())
    if (!isa<CollectRowsOp>(user))
      return emitOpError()
             << "gives rows to sums, which only 'genrec.collect_rows' may read";
  return verifyRows(*this, getDomain().getType(), getRows(), getSums());
}

LogicalResult CollectRowsOp::verify() {
  auto given = getSums().getDefiningOp<ContributeRowsOp>();
  if (!given || given.getDomain() != getDomain() || given.getRows() != getRows() ||
      given.getTableAttr() != getTableAttr())
    return emitOpError() << "must read a 'genrec.contribute_rows' of the same domain, rows and table";
  return verifyRows(*this, getOwned().getType(), getOwnedRows(), getOwnedSums());
}

LogicalResult ExactSumOp::verify() {
  if (getValues().empty())
    return emitOpError() << "needs at least one value";
  if (getValues().size() != getNumResults())
    return emitOpError() << "needs a result per value, but has " << getNumResults() << " of "
                         << getValues().size();
  for (auto [value, result] : llvm::zip_equal(getValues(), getResults()))
    if (failed(expect(*this, {"a value", value.getType()}, Form::rows().scalar().element(f32))) ||
        failed(expect(*this, {"a result", result.getType()}, Form::shared().scalar().element(f32))))
      return failure();
  return success();
}
