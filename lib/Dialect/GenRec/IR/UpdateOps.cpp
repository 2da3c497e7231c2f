//===- UpdateOps.cpp - parameter and table updates ------------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

/// The declared parameter, or an error.
static FailureOr<ParameterOp> findParameter(SymbolTableCollection &symbols, Operation *op,
                                            FlatSymbolRefAttr name) {
  if (ParameterOp parameter = lookupParameter(op, name, &symbols))
    return parameter;
  return op->emitOpError() << "names " << name
                           << ", which the model does not declare as a parameter";
}

/// The declared table, or an error.
static FailureOr<TableOp> findTable(SymbolTableCollection &symbols, Operation *op,
                                    FlatSymbolRefAttr name) {
  if (TableOp table = lookupTable(op, name, &symbols))
    return table;
  return op->emitOpError() << "names " << name << ", which the model does not declare as a table";
}

//===----------------------------------------------------------------------===//
// Updates before expand-updates
//===----------------------------------------------------------------------===//

LogicalResult UpdateParameterOp::verify() {
  return expect(*this, {"gradient", getGradient().getType()}, Form::shared().element(f32));
}

LogicalResult UpdateParameterOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<ParameterOp> parameter = findParameter(symbols, *this, getParameterAttr());
  if (failed(parameter))
    return failure();
  return expectType(*this, {"gradient", getGradient().getType()}, parameter->getType(),
                    "the type of parameter @" + getParameter());
}

LogicalResult UpdateTableOp::verify() {
  if (getIds().empty())
    return emitOpError() << "needs at least one pair of ids and gradients";
  for (auto [index, ids, gradients] : llvm::enumerate(getIds(), getGradients())) {
    std::string idsName = numbered("ids", index), gradientsName = numbered("gradients", index);
    Named idsNamed{idsName, ids.getType()}, gradientsNamed{gradientsName, gradients.getType()};
    if (failed(expect(*this, idsNamed, Form::rows().scalar().element(i64))) ||
        failed(expectSameDomain(*this, {idsNamed, gradientsNamed})) ||
        failed(expect(*this, gradientsNamed, Form::alike(ids.getType()).vector().element(f32))))
      return failure();
  }
  return success();
}

LogicalResult UpdateTableOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = findTable(symbols, *this, getTableAttr());
  if (failed(table))
    return failure();
  int64_t dim = table->getDim();
  for (auto [index, gradients] : llvm::enumerate(getGradients()))
    if (failed(expect(*this, {numbered("gradients", index), gradients.getType()},
                      Form::alike(gradients.getType()).shape({dim}).element(f32),
                      "the dimension of table @" + getTable())))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// Lowered updates and lookups
//===----------------------------------------------------------------------===//

LogicalResult TableRowsOp::verify() {
  if (failed(expectIds(*this, getIds(), getValid())))
    return failure();
  auto row = dyn_cast<RowType>(getElementTypeOrSelf(getType()));
  if (row && getType() == getRowsType(getRowDomain(getIds().getType()), {}, row))
    return success();
  return emitOpError() << "'result' must be rows of " << getRowDomain(getIds().getType())
                       << ", [] x !genrec.row (a table row per id), but is " << describe(getType());
}

LogicalResult TableRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = findTable(symbols, *this, getTableAttr());
  if (failed(table))
    return failure();
  return expect(*this, {"result", getType()},
                Form::alike(getType()).scalar().element(table->getRowType()),
                "the dimension and element of table @" + getTable());
}

LogicalResult UniqueRowsOp::verify() {
  if (getRows().empty())
    return emitOpError() << "needs at least one pair of rows and gradients";
  auto row = dyn_cast<RowType>(getElementTypeOrSelf(getRows().front().getType()));
  if (!row)
    return emitOpError() << "'rows 0' must be rows of a domain, [] x !genrec.row, but is "
                         << describe(getRows().front().getType());
  for (auto [index, rows, gradients] : llvm::enumerate(getRows(), getGradients())) {
    std::string rowsName = numbered("rows", index), gradientsName = numbered("gradients", index);
    Named rowsNamed{rowsName, rows.getType()}, gradientsNamed{gradientsName, gradients.getType()};
    if (failed(expect(*this, rowsNamed, Form::rows().scalar().element(row), "rows of one table")) ||
        failed(expect(*this, gradientsNamed, Form::rows().shape({row.getWidth()}).element(f32),
                      "the width of the rows")))
      return failure();
  }
  return expect(*this, {"result", getResult().getType()},
                Form::rows(domainOf(getDomain())).scalar().element(row), "the distinct rows");
}

LogicalResult UniqueRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  for (auto [index, rows, gradients] : llvm::enumerate(getRows(), getGradients())) {
    FlatSymbolRefAttr own = getRowDomain(rows.getType()), other = getRowDomain(gradients.getType());
    if (own != other && parentOf(*this, own, &symbols) != other)
      return emitOpError() << "'gradients " << index << "' must be rows of " << own
                           << ", the domain of 'rows " << index << "', or of its parent, but is "
                           << describe(gradients.getType());
  }
  return success();
}

LogicalResult SegmentSumOp::verify() {
  auto unique = getDomain().getDefiningOp<UniqueRowsOp>();
  if (!unique)
    return emitOpError() << "sums into rows found by genrec.unique_rows, but 'domain' "
                         << domainOf(getDomain()) << " is made otherwise";
  if (unique.getGradients().size() != getGradients().size())
    return emitOpError() << "needs the gradients of the unique_rows op, "
                         << unique.getGradients().size() << ", but has " << getGradients().size();
  for (auto [index, own, other] : llvm::enumerate(getGradients(), unique.getGradients()))
    if (failed(expectType(*this, {numbered("gradients", index), own.getType()}, other.getType(),
                          "as in the unique_rows op")))
      return failure();
  Type first = getGradients().front().getType();
  return expect(*this, {"result", getType()},
                Form::rows(domainOf(getDomain())).shape(getRowShape(first)).element(f32),
                "a sum per distinct row");
}

LogicalResult ParameterRowsOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<ParameterOp> parameter = findParameter(symbols, *this, getParameterAttr());
  if (failed(parameter))
    return failure();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(parameter->getType()).getShape();
  int64_t width = shape.empty() ? 1 : shape.back();
  return expect(
      *this, {"result", getResult().getType()},
      Form::rows(domainOf(getDomain())).scalar().element(RowType::get(getContext(), width)),
      "the rows of parameter @" + getParameter());
}

LogicalResult SharedRowsOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::shared().element(values))))
    return failure();
  Form row = Form::rows(domainOf(getDomain())).elementOf(x);
  ArrayRef<int64_t> shape = getRowShape(x);
  // A scalar is one row [], or one row [1] like the rows of a parameter.
  bool isVector = !getRowShape(getType()).empty();
  if (shape.empty())
    return expect(*this, {"result", getType()}, isVector ? row.shape({1}) : row.scalar(),
                  "'x' as one row");
  // A vector is one row, or as many rows [] as it has elements.
  if (shape.size() == 1 && !isVector)
    return expect(*this, {"result", getType()}, row.scalar(), "the elements of 'x'");
  return expect(*this, {"result", getType()}, row.shape({shape.back()}), "the rows of 'x'");
}

LogicalResult SharedRowsOp::verifySymbolUses(SymbolTableCollection &) {
  return expectKind(*this, "domain", domainOf(getDomain()), {DomainKind::step});
}

LogicalResult StepValueOp::verify() {
  double argument = getArgument().convertToDouble();
  if (getName() == "bias_correction") {
    if (failed(expectRate(*this, "argument", argument)))
      return failure();
  } else if (getName() == "learning_rate" || getName() == "clip_norm" ||
             getName() == "clip_value" || getName() == "first_portion") {
    if (failed(expectNotNegative(*this, "argument", argument)))
      return failure();
  } else {
    return emitOpError() << "'name' must be \"learning_rate\", \"bias_correction\", \"clip_norm\", "
                            "\"clip_value\" or \"first_portion\", but is \""
                         << getName() << "\"";
  }
  return expect(*this, {"result", getType()}, Form::shared().scalar().element(f32));
}
