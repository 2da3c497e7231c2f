//===- DomainOps.cpp - batches, features, moves between domains -----------===//

#include "VerifierRules.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// Domain instances
//===----------------------------------------------------------------------===//

LogicalResult BatchOp::verify() {
  llvm::SmallDenseSet<Attribute> seen;
  for (Value domain : getDomains())
    if (!seen.insert(domainOf(domain)).second)
      return emitOpError() << "gives " << domainOf(domain) << " twice";
  return success();
}

LogicalResult TruncateOp::verify() {
  if (domainOf(getSource()) == domainOf(getResult()))
    return emitOpError() << "must derive a domain of its own, but 'source' and 'result' are both "
                         << domainOf(getSource());
  return success();
}

LogicalResult TruncateOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr source = domainOf(getSource()), result = domainOf(getResult());
  FlatSymbolRefAttr parent = parentOf(*this, source);
  if (!parent)
    return emitOpError() << "needs lists to cut, but 'source' " << source << " is a root";
  if (FlatSymbolRefAttr resultParent = parentOf(*this, result); parent != resultParent)
    return emitOpError() << "keeps the parent of 'source' " << source << ", " << parent
                         << ", but 'result' " << result << " is declared with parent "
                         << resultParent;
  return success();
}

LogicalResult ConcatDomainsOp::verify() {
  if (getSources().empty())
    return emitOpError() << "needs at least one source";
  for (Value source : getSources())
    if (domainOf(source) == domainOf(getResult()))
      return emitOpError() << "must derive a domain of its own, but 'result' is the source "
                           << domainOf(source);
  return success();
}

LogicalResult ConcatDomainsOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr parent = parentOf(*this, domainOf(getResult()));
  for (Value source : getSources()) {
    FlatSymbolRefAttr domain = domainOf(source);
    FlatSymbolRefAttr sourceParent = parentOf(*this, domain);
    if (domain == parent || sourceParent == parent)
      continue;
    InFlightDiagnostic diagnostic = emitOpError()
                                    << "joins children of " << parent << ", the parent of 'result' "
                                    << domainOf(getResult()) << ", and " << parent
                                    << " itself, but source " << domain;
    if (sourceParent)
      return diagnostic << " has parent " << sourceParent;
    return diagnostic << " is another root";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Columns exist where rows come from a file.
static LogicalResult verifyReadDomain(Operation *op, Value domain) {
  return expectKind(op, "domain", domainOf(domain), {DomainKind::data, DomainKind::catalogue});
}

LogicalResult FeatureOp::verify() {
  Named result{"result", getType()};
  if (failed(expectNotEmpty(*this, "column", getColumn())) ||
      failed(expect(*this, result, Form::rows(domainOf(getDomain())).scalar())))
    return failure();
  bool isInteger = Form::any().element(integers).matches(getType());
  if (getPaddingIdAttr() && !isInteger)
    return emitOpError() << "has 'padding_id', which is for i32 and i64 columns, but 'result' is "
                         << describe(getType());
  if (getIdBits() != 0 && !isInteger)
    return emitOpError() << "has 'id_bits', which is for i32 and i64 columns, but 'result' is "
                         << describe(getType());
  return expectRange(*this, "id_bits", getIdBits(), 0, 63);
}

LogicalResult FeatureOp::verifySymbolUses(SymbolTableCollection &) {
  if (failed(verifyReadDomain(*this, getDomain())))
    return failure();
  FlatSymbolRefAttr domain = domainOf(getDomain());
  if (getPaddingIdAttr() && !parentOf(*this, domain))
    return emitOpError() << "has 'padding_id', which drops entries of a list, but 'domain' "
                         << domain << " is a root";
  return success();
}

LogicalResult FeatureValidOp::verify() {
  if (failed(expectNotEmpty(*this, "column", getColumn())))
    return failure();
  return expect(*this, {"result", getType()},
                Form::rows(domainOf(getDomain())).scalar().element(i1));
}

LogicalResult FeatureValidOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyReadDomain(*this, getDomain());
}

LogicalResult ParamOp::verify() {
  return expect(*this, {"result", getType()}, Form::shared().element(f32));
}

LogicalResult ParamOp::verifySymbolUses(SymbolTableCollection &) {
  ParameterOp parameter = lookupParameter(*this, getParameterAttr());
  if (!parameter)
    return emitOpError() << "reads " << getParameterAttr()
                         << ", which the model does not declare as a parameter";
  return expectType(*this, {"result", getType()}, parameter.getType(),
                    "the type of parameter @" + getParameter());
}

LogicalResult ConstantOp::verify() {
  auto type = cast<RankedTensorType>(getType());
  if (type.getRank() <= 1 && Form::shared().element(values).matches(type) && type.hasStaticShape())
    return success();
  return emitOpError() << "must be shared, of rank 0 or 1 and element type i1, i32, i64, f32 or "
                          "f64, but is "
                       << describe(type);
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Into and out of derived domains
//===----------------------------------------------------------------------===//

/// The form of a value that went from x's domain to `domain` unchanged.
static LogicalResult expectMoved(Operation *op, Type x, Type result, FlatSymbolRefAttr domain) {
  if (failed(expect(op, {"x", x}, Form::rows())))
    return failure();
  return expect(op, {"result", result}, Form::rows(domain).shape(getRowShape(x)).elementOf(x),
                "x's rows in another domain");
}

LogicalResult DeriveOp::verify() {
  auto truncate = getDomain().getDefiningOp<TruncateOp>();
  if (!truncate)
    return emitOpError() << "brings values into a domain made by genrec.truncate, but 'domain' "
                         << domainOf(getDomain()) << " is made otherwise";
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows(domainOf(truncate.getSource())),
                    "the source of the truncate op")))
    return failure();
  return expectMoved(*this, x, getType(), domainOf(getDomain()));
}

LogicalResult DeriveGradOp::verify() {
  return expectMoved(*this, getX().getType(), getType(), domainOf(getDomain()));
}

LogicalResult DeriveGradOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr derived = getRowDomain(getX().getType());
  auto truncate = dyn_cast_or_null<TruncateOp>(makerOf(*this, derived));
  if (!truncate)
    return emitOpError() << "takes rows of a domain made by genrec.truncate, but 'x' has rows of "
                         << derived;
  if (domainOf(truncate.getSource()) != domainOf(getDomain()))
    return emitOpError() << "'domain' must be " << domainOf(truncate.getSource())
                         << ", the source that " << derived << " was cut from, but is "
                         << domainOf(getDomain());
  return success();
}

LogicalResult ConcatRowsOp::verify() {
  auto concat = getDomain().getDefiningOp<ConcatDomainsOp>();
  if (!concat)
    return emitOpError() << "joins values into a domain made by genrec.concat_domains, but "
                            "'domain' "
                         << domainOf(getDomain()) << " is made otherwise";
  if (concat.getSources().size() != getParts().size())
    return emitOpError() << "needs a part per source of " << domainOf(getDomain()) << ", "
                         << concat.getSources().size() << ", but has " << getParts().size();
  Type first = getParts().front().getType();
  for (auto [index, part, source] : llvm::enumerate(getParts(), concat.getSources())) {
    std::string name = "part " + std::to_string(index);
    if (failed(expect(*this, {name, part.getType()},
                      Form::rows(domainOf(source)).shape(getRowShape(first)).elementOf(first),
                      "source " + Twine(index) + " of the concat_domains op, part 0's row")))
      return failure();
  }
  return expect(*this, {"result", getType()},
                Form::rows(domainOf(getDomain())).shape(getRowShape(first)).elementOf(first),
                "the parts joined");
}

LogicalResult SplitRowsOp::verify() {
  return expectMoved(*this, getX().getType(), getType(), domainOf(getDomain()));
}

LogicalResult SplitRowsOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr joined = getRowDomain(getX().getType());
  auto concat = dyn_cast_or_null<ConcatDomainsOp>(makerOf(*this, joined));
  if (!concat)
    return emitOpError() << "takes rows of a domain made by genrec.concat_domains, but 'x' has "
                            "rows of "
                         << joined;
  int64_t count = concat.getSources().size(), part = getPart();
  if (failed(expectRange(*this, "part", part, 0, count - 1)))
    return failure();
  FlatSymbolRefAttr source = domainOf(concat.getSources()[part]);
  if (source != domainOf(getDomain()))
    return emitOpError() << "'domain' must be " << source << ", source " << part << " of " << joined
                         << ", but is " << domainOf(getDomain());
  return success();
}

//===----------------------------------------------------------------------===//
// Up and down the domain tree
//===----------------------------------------------------------------------===//

LogicalResult FanoutOp::verify() {
  return expectMoved(*this, getX().getType(), getType(), domainOf(getDomain()));
}

LogicalResult FanoutOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr from = getRowDomain(getX().getType()), to = domainOf(getDomain());
  if (isAncestor(*this, from, to))
    return success();
  InFlightDiagnostic diagnostic = emitOpError()
                                  << "copies rows to a descendant, but 'domain' " << to
                                  << " does not lie below " << from << ", the domain of 'x'";
  if (isAncestor(*this, to, from))
    diagnostic << "; reduce to an ancestor with genrec.pool";
  return diagnostic;
}

/// Element types a kind of pool can combine.
static unsigned poolElements(PoolKind kind) {
  switch (kind) {
  case PoolKind::mean:
    return floats;
  case PoolKind::sum:
  case PoolKind::max:
    return numbers;
  case PoolKind::first:
  case PoolKind::last:
    return values;
  }
  llvm_unreachable("every pool kind is handled");
}

LogicalResult PoolOp::verify() {
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().element(poolElements(getKind())),
                    "kind " + stringifyPoolKind(getKind()))))
    return failure();
  return expectMoved(*this, x, getType(), domainOf(getDomain()));
}

LogicalResult PoolOp::verifySymbolUses(SymbolTableCollection &) {
  return expectPoolTarget(*this, getKind(), getRowDomain(getX().getType()), domainOf(getDomain()));
}

LogicalResult PoolGradOp::verify() {
  if (getKind() == PoolKind::sum || getKind() == PoolKind::mean)
    return emitOpError() << "is for kinds max, first and last; " << stringifyPoolKind(getKind())
                         << " needs no record of the chosen row";
  Type x = getX().getType(), gradient = getGradient().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().element(floats))) ||
      failed(expect(*this, {"gradient", gradient},
                    Form::rows(domainOf(getDomain())).shape(getRowShape(x)).elementOf(x),
                    "the pooled value's rows")))
    return failure();
  return expectType(*this, {"result", getType()}, x, "the type of 'x'");
}

LogicalResult PoolGradOp::verifySymbolUses(SymbolTableCollection &) {
  return expectPoolTarget(*this, getKind(), getRowDomain(getX().getType()), domainOf(getDomain()));
}

//===----------------------------------------------------------------------===//
// Within a list
//===----------------------------------------------------------------------===//

template <typename OpT> static LogicalResult verifyShift(OpT op) {
  Type x = op.getX().getType();
  if (failed(expect(op, {"x", x}, Form::rows().element(values))) ||
      failed(expectType(op, {"result", op.getResult().getType()}, x, "the type of 'x'")))
    return failure();
  return expect(op, {"valid", op.getValid().getType()},
                Form::rows(getRowDomain(x)).scalar().element(i1), "whether there is such a row");
}

LogicalResult LeadOp::verify() { return verifyShift(*this); }
LogicalResult LagOp::verify() { return verifyShift(*this); }

LogicalResult PositionOp::verify() {
  return expect(*this, {"result", getType()},
                Form::rows(domainOf(getDomain())).scalar().element(i64));
}

LogicalResult LengthOp::verify() {
  return expect(*this, {"result", getType()}, Form::rows().scalar().element(i64));
}

LogicalResult LengthOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr children = domainOf(getChildren());
  FlatSymbolRefAttr parent = parentOf(*this, children);
  if (!parent)
    return emitOpError() << "counts the rows of lists, but 'children' " << children << " is a root";
  return expect(*this, {"result", getType()}, Form::rows(parent).scalar().element(i64),
                "the parent of @" + children.getValue());
}

LogicalResult GatherRowsOp::verify() {
  Type source = getSource().getType(), index = getIndex().getType();
  if (failed(expect(*this, {"source", source}, Form::rows().scalar().element(integers))) ||
      failed(expect(*this, {"index", index}, Form::rows().element(i64))))
    return failure();
  return expect(*this, {"result", getType()},
                Form::rows(getRowDomain(index)).shape(getRowShape(index)).elementOf(source),
                "an element of 'source' per element of 'index'");
}
