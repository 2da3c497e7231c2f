//===- MoveOps.cpp - moves between domains --------------------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include <limits>

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// Derived domains
//===----------------------------------------------------------------------===//

/// Checks that a value moved from x's domain to `domain` has x's row shape and element type.
static LogicalResult expectMoved(Operation *op, Type x, Type result, FlatSymbolRefAttr domain) {
  if (failed(expect(op, {"x", x}, Form::rows())))
    return failure();
  return expect(op, {"result", result}, Form::rows(domain).shape(getRowShape(x)).elementOf(x),
                "x's rows in another domain");
}

/// The source of the truncate or pad `maker`; null for any other op.
static Value resizedBy(Operation *maker) {
  if (auto truncate = dyn_cast_or_null<TruncateOp>(maker))
    return truncate.getSource();
  auto pad = dyn_cast_or_null<PadOp>(maker);
  return pad ? pad.getSource() : Value();
}

LogicalResult DeriveOp::verify() {
  Operation *maker = getDomain().getDefiningOp();
  Value source = resizedBy(maker);
  if (!source)
    return emitOpError() << "brings values into a domain made by genrec.truncate or genrec.pad, "
                            "but 'domain' "
                         << domainOf(getDomain()) << " is made otherwise";
  Type x = getX().getType();
  Form form = Form::rows(domainOf(source));
  if (isa<PadOp>(maker))
    form.element(values);
  if (failed(expect(*this, {"x", x}, form,
                    "the source of the " + maker->getName().stripDialect() + " op")))
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
  Value source = resizedBy(makerOf(*this, derived));
  if (!source)
    return emitOpError() << "takes rows of a domain made by genrec.truncate or genrec.pad, but 'x' "
                            "has rows of "
                         << derived;
  if (domainOf(source) != domainOf(getDomain()))
    return emitOpError() << "'domain' must be " << domainOf(source) << ", the source that "
                         << derived << " was made of, but is " << domainOf(getDomain());
  return success();
}

LogicalResult PairRowsOp::verify() {
  auto pairs = getDomain().getDefiningOp<PairDomainsOp>();
  if (!pairs)
    return emitOpError() << "brings values into a domain made by genrec.pair_domains, but "
                            "'domain' "
                         << domainOf(getDomain()) << " is made otherwise";
  Type x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows(domainOf(pairs.getSecond())).element(values),
                    "'second' of the pair_domains op")))
    return failure();
  return expectMoved(*this, x, getType(), domainOf(getDomain()));
}

LogicalResult PairSumOp::verify() {
  if (failed(expect(*this, {"x", getX().getType()}, Form::rows().element(f32))))
    return failure();
  return expectMoved(*this, getX().getType(), getType(), domainOf(getDomain()));
}

LogicalResult PairSumOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr from = getRowDomain(getX().getType());
  auto pairs = dyn_cast_or_null<PairDomainsOp>(makerOf(*this, from));
  if (!pairs)
    return emitOpError() << "takes rows of a domain made by genrec.pair_domains, but 'x' has rows "
                            "of "
                         << from;
  FlatSymbolRefAttr second = domainOf(pairs.getSecond());
  if (second != domainOf(getDomain()))
    return emitOpError() << "'domain' must be " << second << ", 'second' of the pairs " << from
                         << ", but is " << domainOf(getDomain());
  return success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Checks that `list` has rows of a list, and `tiled` rows of its parent, `count` times as large.
template <typename OpT>
static LogicalResult verifyTile(OpT op, Named list, Named tiled, FlatSymbolRefAttr tiledDomain) {
  if (failed(expect(op, list, Form::rows().element(values))))
    return failure();
  int64_t size = getRowSize(list.type) * static_cast<int64_t>(op.getCount());
  return expect(op, tiled, Form::rows(tiledDomain).shape({size}).elementOf(list.type),
                "'count' rows of '" + list.name + "' side by side");
}

/// Outside of a program the domain tree is unknown.
static LogicalResult verifyTileSymbols(Operation *op, FlatSymbolRefAttr list,
                                       FlatSymbolRefAttr parent) {
  if (!isInProgram(op) || parentOf(op, list) == parent)
    return success();
  return op->emitOpError() << "puts lists into the rows of their parent, but " << parent
                           << " is not the parent of " << list;
}

LogicalResult TileOp::verify() {
  return verifyTile(*this, {"x", getX().getType()}, {"result", getType()}, domainOf(getDomain()));
}
LogicalResult TileOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTileSymbols(*this, getRowDomain(getX().getType()), domainOf(getDomain()));
}

LogicalResult TileGradOp::verify() {
  Type result = getType(), x = getX().getType();
  if (failed(expect(*this, {"x", x}, Form::rows().vector().element(values))) ||
      failed(expect(*this, {"result", result}, Form::rows(domainOf(getDomain())).elementOf(x))))
    return failure();
  return verifyTile(*this, {"result", result}, {"x", x}, getRowDomain(x));
}
LogicalResult TileGradOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyTileSymbols(*this, domainOf(getDomain()), getRowDomain(getX().getType()));
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
// Fan-out and pooling
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

/// The element types that a kind of pool can reduce.
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

LogicalResult PoolOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return expectPoolTarget(*this, getKind(), getRowDomain(getX().getType()), domainOf(getDomain()),
                          &symbols);
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

LogicalResult PoolGradOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return expectPoolTarget(*this, getKind(), getRowDomain(getX().getType()), domainOf(getDomain()),
                          &symbols);
}

//===----------------------------------------------------------------------===//
// Lead, lag, position, length
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
  if (getChildren().empty() || getChildren().size() != getLengths().size())
    return emitOpError() << "has " << getLengths().size() << " results for " << getChildren().size()
                         << " lists";
  for (Value length : getLengths())
    if (failed(expect(*this, {"result", length.getType()}, Form::rows().scalar().element(i64))))
      return failure();
  return success();
}

LogicalResult LengthOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr shared;
  for (auto [list, length] : llvm::zip_equal(getChildren(), getLengths())) {
    FlatSymbolRefAttr children = domainOf(list);
    FlatSymbolRefAttr parent = parentOf(*this, children, &symbols);
    if (!parent)
      return emitOpError() << "counts the rows of lists, but 'children' " << children
                           << " is a root";
    if (shared && shared != parent)
      return emitOpError() << "counts the rows of lists of " << shared << " and of " << parent;
    shared = parent;
    if (failed(expect(*this, {"result", length.getType()}, Form::rows(parent).scalar().element(i64),
                      "the parent of @" + children.getValue())))
      return failure();
  }
  return success();
}

LogicalResult GatherRowsOp::verify() {
  Type source = getSource().getType(), index = getIndex().getType();
  if (failed(expect(*this, {"source", source}, Form::rows().element(values))) ||
      failed(expect(*this, {"index", index}, Form::rows().element(i64))))
    return failure();
  bool gathersVectors = !getRowShape(source).empty();
  if (gathersVectors && failed(expect(*this, {"index", index}, Form::rows().scalar().element(i64),
                                      "'source' has a row of several elements")))
    return failure();
  return expect(*this, {"result", getType()},
                Form::rows(getRowDomain(index))
                    .shape(getRowShape(gathersVectors ? source : index))
                    .elementOf(source),
                gathersVectors ? "a row of 'source' per row of 'index'"
                               : "an element of 'source' per element of 'index'");
}

LogicalResult ScatterRowsOp::verify() {
  Named x{"x", getX().getType()}, index{"index", getIndex().getType()};
  if (failed(expect(*this, x, Form::rows().vector().element(f32))) ||
      failed(expectSameDomain(*this, {x, index})) ||
      failed(expect(*this, index, Form::alike(x.type).scalar().element(i64),
                    "a row of the result per row of 'x'")))
    return failure();
  return expect(*this, {"result", getType()}, Form::rows().shape(getRowShape(x.type)).element(f32),
                "sums of rows of 'x'");
}

LogicalResult ScatterRowsOp::verifySymbolUses(SymbolTableCollection &) {
  if (getRowDomain(getType()) != getRowDomain(getX().getType()))
    return success();
  return emitOpError("'result' has rows of the domain of 'x', but needs another one's");
}
