//===- DomainOps.cpp - batches, domains, features -------------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include <limits>

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

//===----------------------------------------------------------------------===//
// Domains
//===----------------------------------------------------------------------===//

/// Checks that all results of `op` are different domains.
static LogicalResult expectDistinct(Operation *op, ValueRange domains) {
  llvm::SmallDenseSet<Attribute> seen;
  for (Value domain : domains)
    if (!seen.insert(domainOf(domain)).second)
      return op->emitOpError() << "gives " << domainOf(domain) << " twice";
  return success();
}

LogicalResult BatchOp::verify() { return expectDistinct(*this, getDomains()); }

LogicalResult BatchOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (!isInProgram(*this))
    return success();
  for (Value domain : getDomains())
    if (isOfCatalogue(*this, domainOf(domain), &symbols))
      return emitOpError() << "gives rows of the dataset, but " << domainOf(domain)
                           << " is of a catalogue; it is a result of genrec.catalogue";
  return success();
}

LogicalResult CatalogueOp::verify() {
  if (getDomains().empty())
    return emitOpError("gives the rows of a catalogue, but has no result");
  return expectDistinct(*this, getDomains());
}

LogicalResult CatalogueOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr root = domainOf(getDomains().front());
  for (Value list : getDomains().drop_front())
    if (!isAncestor(*this, root, domainOf(list)))
      return emitOpError() << "gives the lists of " << root << " after it, but " << domainOf(list)
                           << " does not lie below";
  return success();
}

/// Checks an op that derives a domain from a list: `result` is another domain, and `count` rows for
/// every list of a batch do not overflow 64 bits.
template <typename OpT> static LogicalResult verifyResize(OpT op) {
  constexpr uint64_t kMostRows = std::numeric_limits<int32_t>::max();
  if (static_cast<uint64_t>(op.getCount()) > kMostRows)
    return op.emitOpError() << "'count' must be at most " << kMostRows << ", but is "
                            << op.getCount();
  if (domainOf(op.getSource()) == domainOf(op.getResult()))
    return op.emitOpError() << "must derive a domain of its own, but 'source' and 'result' are "
                               "both "
                            << domainOf(op.getSource());
  return success();
}

/// Checks that `source` is a list and that `result` is declared with its parent. `verb` names the
/// op in messages.
template <typename OpT> static LogicalResult verifyResizeSymbols(OpT op, StringRef verb) {
  if (!isInProgram(op))
    return success();
  FlatSymbolRefAttr source = domainOf(op.getSource()), result = domainOf(op.getResult());
  FlatSymbolRefAttr parent = parentOf(op, source);
  if (!parent)
    return op.emitOpError() << "needs lists to " << verb << ", but 'source' " << source
                            << " is a root";
  if (FlatSymbolRefAttr resultParent = parentOf(op, result); parent != resultParent)
    return op.emitOpError() << "keeps the parent of 'source' " << source << ", " << parent
                            << ", but 'result' " << result << " is declared with parent "
                            << resultParent;
  return success();
}

LogicalResult TruncateOp::verify() { return verifyResize(*this); }
LogicalResult TruncateOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyResizeSymbols(*this, "cut");
}

LogicalResult PadOp::verify() { return verifyResize(*this); }
LogicalResult PadOp::verifySymbolUses(SymbolTableCollection &) {
  return verifyResizeSymbols(*this, "lengthen");
}

LogicalResult PairDomainsOp::verify() {
  FlatSymbolRefAttr result = domainOf(getResult());
  if (result == domainOf(getFirst()) || result == domainOf(getSecond()))
    return emitOpError() << "must derive a domain of its own, but 'result' is " << result
                         << ", which it pairs";
  return success();
}

LogicalResult PairDomainsOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr first = domainOf(getFirst()), second = domainOf(getSecond());
  FlatSymbolRefAttr result = domainOf(getResult());
  FlatSymbolRefAttr parent = parentOf(*this, first), other = parentOf(*this, second);
  if (!parent)
    return emitOpError() << "pairs lists of one parent, but 'first' " << first << " is a root";
  if (!other)
    return emitOpError() << "pairs lists of one parent, but 'second' " << second << " is a root";
  if (parent != other)
    return emitOpError() << "pairs lists of one parent, but 'first' " << first << " has parent "
                         << parent << " and 'second' " << second << " has parent " << other;
  FlatSymbolRefAttr resultParent = parentOf(*this, result);
  if (resultParent == first)
    return success();
  InFlightDiagnostic diagnostic = emitOpError() << "makes children of 'first' " << first
                                                << ", but 'result' " << result;
  if (resultParent)
    return diagnostic << " is declared with parent " << resultParent;
  return diagnostic << " is declared as a root";
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
// Features
//===----------------------------------------------------------------------===//

/// Only domains whose rows are read from a file have columns.
static LogicalResult verifyReadDomain(Operation *op, Value domain, SymbolTableCollection &symbols) {
  return expectKind(op, "domain", domainOf(domain), {DomainKind::data, DomainKind::catalogue},
                    &symbols);
}

LogicalResult FeatureOp::verify() {
  Named result{"result", getType()};
  Form form = Form::rows(domainOf(getDomain()));
  // A column of lists of a fixed length.
  if (getRowShape(getType()).empty())
    form.scalar();
  else
    form.vector().element(floats);
  if (failed(expectNotEmpty(*this, "column", getColumn())) ||
      failed(expect(*this, result, form)))
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

LogicalResult FeatureOp::verifySymbolUses(SymbolTableCollection &symbols) {
  if (failed(verifyReadDomain(*this, getDomain(), symbols)))
    return failure();
  FlatSymbolRefAttr domain = domainOf(getDomain());
  if (getPaddingIdAttr() && !parentOf(*this, domain, &symbols))
    return emitOpError() << "has 'padding_id', which drops entries of a list, but 'domain' "
                         << domain << " is a root";
  return success();
}

// A padding id affects the rows of the domain, not just a value: erasing its feature would add rows
// to the domain.
void FeatureOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  if (getPaddingIdAttr())
    effects.emplace_back(MemoryEffects::Write::get());
}

LogicalResult FeatureValidOp::verify() {
  if (failed(expectNotEmpty(*this, "column", getColumn())))
    return failure();
  return expect(*this, {"result", getType()},
                Form::rows(domainOf(getDomain())).scalar().element(i1));
}

LogicalResult FeatureValidOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyReadDomain(*this, getDomain(), symbols);
}

LogicalResult ParamOp::verify() {
  return expect(*this, {"result", getType()}, Form::shared().element(f32));
}

LogicalResult ParamOp::verifySymbolUses(SymbolTableCollection &symbols) {
  ParameterOp parameter = lookupParameter(*this, getParameterAttr(), &symbols);
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
