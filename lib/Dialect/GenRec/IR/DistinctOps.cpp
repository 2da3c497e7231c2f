//===- DistinctOps.cpp - verifiers of ops per distinct row ----------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

LogicalResult DistinctRowsOp::verify() {
  if (getRows().empty())
    return emitOpError() << "needs the rows of at least one lookup";
  Type first = getRows().front().getType();
  auto row = dyn_cast<RowType>(getElementTypeOrSelf(first));
  if (!row || !getRowDomain(first) || !getRowShape(first).empty())
    return emitOpError() << "'rows 0' must be rows of a domain, [] x !genrec.row, but is "
                         << describe(first);
  for (auto [index, rows] : llvm::enumerate(getRows().drop_front()))
    if (failed(expectType(*this, {"rows " + std::to_string(index + 1), rows.getType()}, first,
                          "as 'rows 0'")))
      return failure();
  return expect(*this, {"result", getResult().getType()},
                Form::rows(domainOf(getDomain())).scalar().element(row), "the distinct rows");
}

/// Checks domain, values, weight and columns of both ops. Returns the op that made the domain.
template <typename OpT> static FailureOr<DistinctRowsOp> verifyFactors(OpT op) {
  auto distinct = op.getDomain().template getDefiningOp<DistinctRowsOp>();
  if (!distinct)
    return op.emitOpError() << "multiplies rows found by genrec.distinct_rows, but 'domain' "
                            << domainOf(op.getDomain()) << " is made otherwise";
  auto row = cast<RowType>(getElementTypeOrSelf(distinct.getResult().getType()));
  int64_t width = row.getWidth();
  if (failed(expect(op, {"values", op.getValues().getType()},
                    Form::rows(domainOf(op.getDomain())).shape({width}).element(f32),
                    "the values of the distinct rows")) ||
      failed(expect(op, {"weight", op.getWeight().getType()},
                    Form::shared().shape({kFree, kFree}).element(f32))))
    return failure();
  if (op.getColumns().size() != distinct.getRows().size())
    return op.emitOpError() << "'columns' needs a number per lookup of the distinct_rows op, "
                            << distinct.getRows().size() << ", but has " << op.getColumns().size();
  int64_t last = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(0) - width;
  for (int64_t column : op.getColumns())
    if (failed(expectRange(op, "columns", column, 0, last)))
      return failure();
  return distinct;
}

/// The form of rows of the lookups' domain with the size of the weight's rows.
template <typename OpT> static Form sumsOf(OpT op, DistinctRowsOp distinct) {
  int64_t columns = cast<RankedTensorType>(op.getWeight().getType()).getDimSize(1);
  return Form::alike(distinct.getRows().front().getType()).shape({columns}).element(f32);
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
  if (failed(distinct))
    return failure();
  if (failed(expect(*this, {"gradient", getGradient().getType()}, sumsOf(*this, *distinct),
                    "a row per row of the lookups")) ||
      failed(expectType(*this, {"dvalues", getDvalues().getType()}, getValues().getType(),
                        "the type of 'values'")))
    return failure();
  int64_t rows = getRowSize(getValues().getType()) * static_cast<int64_t>(getColumns().size());
  int64_t columns = cast<RankedTensorType>(getWeight().getType()).getDimSize(1);
  return expect(*this, {"dweight", getDweight().getType()},
                Form::shared().shape({rows, columns}).element(f32),
                "the rows of the weight that the lookups are multiplied by");
}
