//===- DistinctOps.cpp - verifiers of ops per distinct row ----------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

LogicalResult DistinctRowsOp::verify() {
  if (getAllRows().empty() || llvm::is_contained(getLookups(), 0))
    return emitOpError() << "needs the rows of at least one lookup in each group";
  if (getDomains().size() != getRows().size())
    return emitOpError() << "needs a domain and handles per group of lookups, " << getRows().size()
                         << ", but has " << getDomains().size();
  Type first = getAllRows().front().getType();
  int64_t index = 0;
  for (auto [group, domain, result] : llvm::zip_equal(getRows(), getDomains(), getHandles())) {
    Type own = group.front().getType();
    auto row = dyn_cast<RowType>(getElementTypeOrSelf(own));
    if (!row || !getRowDomain(own) || !getRowShape(own).empty())
      return emitOpError() << "'rows " << index
                           << "' must be rows of a domain, [] x !genrec.row, but is "
                           << describe(own);
    for (Value rows : group) {
      std::string name = "rows " + std::to_string(index++);
      if (failed(expect(*this, {name, rows.getType()}, Form::alike(first).scalar().element(row),
                        "a row of the domain of 'rows 0', of one width within a group")))
        return failure();
    }
    if (failed(expect(*this, {"handles", result.getType()},
                      Form::rows(domainOf(domain)).scalar().element(row), "the distinct rows")))
      return failure();
  }
  return success();
}

DistinctRowsOp DistinctLinearOp::getDistinctRows() {
  return getDomains().front().getDefiningOp<DistinctRowsOp>();
}

DistinctRowsOp DistinctLinearGradOp::getDistinctRows() {
  return getDomains().front().getDefiningOp<DistinctRowsOp>();
}

/// Checks that the domains are those of one distinct_rows op.
template <typename OpT> static FailureOr<DistinctRowsOp> verifyDomains(OpT op) {
  if (op.getDomains().empty())
    return op.emitOpError() << "needs the domains of a genrec.distinct_rows";
  DistinctRowsOp distinct = op.getDistinctRows();
  if (distinct && llvm::equal(op.getDomains(), distinct.getDomains()))
    return distinct;
  for (Value domain : op.getDomains())
    if (domain.getDefiningOp<DistinctRowsOp>() == nullptr)
      return op.emitOpError() << "multiplies rows found by genrec.distinct_rows, but domain "
                              << domainOf(domain) << " is made otherwise";
  return op.emitOpError() << "needs all domains of one genrec.distinct_rows, in its order";
}

/// Checks domains, values, weight and columns of both ops. Returns the op that made the domains.
template <typename OpT> static FailureOr<DistinctRowsOp> verifyFactors(OpT op) {
  FailureOr<DistinctRowsOp> distinct = verifyDomains(op);
  if (failed(distinct) || failed(expect(op, {"weight", op.getWeight().getType()},
                                        Form::shared().shape({kFree, kFree}).element(f32))))
    return failure();
  size_t lookups = distinct->getAllRows().size();
  if (op.getColumns().size() != lookups)
    return op.emitOpError() << "'columns' needs a number per lookup of the distinct_rows op, "
                            << lookups << ", but has " << op.getColumns().size();
  int64_t rows = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(0);
  ArrayRef<int64_t> columns = op.getColumns();
  for (auto [group, domain, values] :
       llvm::zip_equal(distinct->getRows(), op.getDomains(), op.getValues())) {
    int64_t width = cast<RowType>(getElementTypeOrSelf(group.front().getType())).getWidth();
    if (failed(expect(op, {"values", values.getType()},
                      Form::rows(domainOf(domain)).shape({width}).element(f32),
                      "the values of the distinct rows")))
      return failure();
    for (int64_t column : columns.take_front(group.size()))
      if (failed(expectRange(op, "columns", column, 0, rows - width)))
        return failure();
    columns = columns.drop_front(group.size());
  }
  return distinct;
}

/// The form of rows of the lookups' domain with the size of the weight's rows.
template <typename OpT> static Form sumsOf(OpT op, DistinctRowsOp distinct) {
  int64_t columns = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(1);
  return Form::alike(distinct.getAllRows().front().getType()).shape({columns}).element(f32);
}

LogicalResult DistinctLinearOp::verify() {
  FailureOr<DistinctRowsOp> distinct = verifyFactors(*this);
  if (failed(distinct))
    return failure();
  return expect(*this, {"result", getType()}, sumsOf(*this, *distinct),
                "a row per row of the lookups");
}

LogicalResult DistinctLinearGradOp::verify() {
  FailureOr<DistinctRowsOp> distinct = verifyFactors(*this);
  if (failed(distinct) || failed(expect(*this, {"gradient", getGradient().getType()},
                                        sumsOf(*this, *distinct), "a row per row of the lookups")))
    return failure();
  if (getDvalues().size() != getValues().size())
    return emitOpError() << "needs gradients of the distinct rows of each group, "
                         << getValues().size() << ", but has " << getDvalues().size();
  int64_t rows = 0;
  for (auto [group, values, dvalues] :
       llvm::zip_equal(distinct->getRows(), getValues(), getDvalues())) {
    if (failed(expectType(*this, {"dvalues", dvalues.getType()}, values.getType(),
                          "the type of 'values'")))
      return failure();
    rows += getRowSize(values.getType()) * static_cast<int64_t>(group.size());
  }
  int64_t columns = cast<RankedTensorType>(getWeight().getType()).getDimSize(1);
  return expect(*this, {"dweight", getDweight().getType()},
                Form::shared().shape({rows, columns}).element(f32),
                "the rows of the weight that the lookups are multiplied by");
}
