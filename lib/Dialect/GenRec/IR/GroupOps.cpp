//===- GroupOps.cpp - merged tables and fused columns ---------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

/// The stack_domains that made `domain`; if there is none, an error at `op`.
static FailureOr<StackDomainsOp> findStack(Operation *op, FlatSymbolRefAttr domain) {
  if (auto stack = dyn_cast_or_null<StackDomainsOp>(makerOf(op, domain)))
    return stack;
  return op->emitOpError() << "needs rows of a domain made by genrec.stack_domains, but " << domain
                           << " is made otherwise";
}

/// The declared merged table, or an error.
static FailureOr<TableOp> findMerged(SymbolTableCollection &symbols, Operation *op,
                                     FlatSymbolRefAttr name) {
  TableOp table = lookupTable(op, name, &symbols);
  if (table && table.getMembersAttr())
    return table;
  return op->emitOpError() << "names " << name
                           << ", which the model does not declare as a table with members";
}

//===----------------------------------------------------------------------===//
// Stacked rows
//===----------------------------------------------------------------------===//

LogicalResult StackDomainsOp::verify() {
  if (getParts().empty())
    return emitOpError() << "needs at least one part";
  return success();
}

LogicalResult StackDomainsOp::verifySymbolUses(SymbolTableCollection &) {
  return expectKind(*this, "result", domainOf(getResult()), {DomainKind::step});
}

LogicalResult UnstackRowsOp::verify() {
  if (getRowDomain(getX().getType()) != domainOf(getStack()))
    return emitOpError() << "'x' must be rows of " << domainOf(getStack()) << ", but is "
                         << describe(getX().getType());
  auto x = cast<RankedTensorType>(getX().getType());
  Type expected = getRowsType(domainOf(getDomain()), getRowShape(x), x.getElementType());
  if (failed(expectType(*this, {"result", getType()}, expected, "x's rows, in the given domain")))
    return failure();
  auto stack = getStack().getDefiningOp<StackDomainsOp>();
  if (!stack)
    return emitOpError() << "needs a 'stack' made by genrec.stack_domains";
  int64_t part = getPart(), parts = stack.getParts().size();
  if (failed(expectRange(*this, "part", part, 0, parts - 1)))
    return failure();
  if (stack.getParts()[part] == getDomain())
    return success();
  return emitOpError() << "'domain' must be part " << part << " of the stack, "
                       << domainOf(stack.getParts()[part]) << ", but is " << domainOf(getDomain());
}

//===----------------------------------------------------------------------===//
// Keys and lookups
//===----------------------------------------------------------------------===//

LogicalResult MergedKeysOp::verify() {
  size_t parts = getIds().size();
  if (parts == 0 || getTables().size() != parts)
    return emitOpError() << "needs ids and a table for each, but has " << parts << " ids and "
                         << getTables().size() << " tables";
  if (getValid().size() != getValidOf().size())
    return emitOpError() << "needs a part in 'valid_of' for each of " << getValid().size()
                         << " 'valid', but has " << getValidOf().size();
  for (auto [index, ids] : llvm::enumerate(getIds()))
    if (failed(expect(*this, {numbered("ids", index), ids.getType()},
                      Form::rows().scalar().element(i64))))
      return failure();
  for (auto [index, valid, part] : llvm::enumerate(getValid(), getValidOf())) {
    if (failed(expectRange(*this, "valid_of", part, index ? getValidOf()[index - 1] + 1 : 0,
                           parts - 1)))
      return failure();
    FlatSymbolRefAttr domain = getRowDomain(getIds()[part].getType());
    if (failed(expect(*this, {numbered("valid", index), valid.getType()},
                      Form::rows(domain).scalar().element(i1), "of the ids of its part")))
      return failure();
  }
  return expect(*this, {"result", getType()},
                Form::rows(domainOf(getDomain())).scalar().element(i64), "a key per stacked id");
}

LogicalResult MergedKeysOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = findMerged(symbols, *this, getTableAttr());
  if (failed(table))
    return failure();
  llvm::SmallDenseSet<Attribute, 16> members(table->getMembersAttr().begin(),
                                             table->getMembersAttr().end());
  for (auto [index, name] : llvm::enumerate(getTables()))
    if (!members.contains(name))
      return emitOpError() << "looks ids " << index << " up in " << name
                           << ", which is no member of " << getTableAttr();
  auto stack = getDomain().getDefiningOp<StackDomainsOp>();
  if (!stack)
    return emitOpError() << "needs a domain made by genrec.stack_domains";
  if (stack.getParts().size() != getIds().size())
    return emitOpError() << "has " << getIds().size() << " ids for the " << stack.getParts().size()
                         << " parts of its domain";
  for (auto [index, part, ids] : llvm::enumerate(stack.getParts(), getIds()))
    if (domainOf(part) != getRowDomain(ids.getType()))
      return emitOpError() << "'" << numbered("ids", index) << "' must be rows of "
                           << domainOf(part) << " (part " << index << " of its domain), but is "
                           << describe(ids.getType());
  return success();
}

LogicalResult GroupedLookupOp::verify() {
  if (failed(expect(*this, {"keys", getKeys().getType()}, Form::rows().scalar().element(i64))))
    return failure();
  if (getDomains().empty() || getDomains().size() != getResults().size())
    return emitOpError() << "needs a domain per result, but has " << getDomains().size()
                         << " domains and " << getResults().size() << " results";
  for (auto [index, domain, result] : llvm::enumerate(getDomains(), getResults()))
    if (failed(expect(*this, {numbered("result", index), result.getType()},
                      Form::rows(domainOf(domain)).vector().element(f32))))
      return failure();
  return success();
}

LogicalResult GroupedLookupOp::verifySymbolUses(SymbolTableCollection &symbols) {
  FailureOr<TableOp> table = findMerged(symbols, *this, getTableAttr());
  if (failed(table))
    return failure();
  int64_t dim = table->getDim();
  for (auto [index, result] : llvm::enumerate(getResults()))
    if (failed(expect(*this, {numbered("result", index), result.getType()},
                      Form::alike(result.getType()).shape({dim}).element(f32),
                      "the dimension of table @" + getTable())))
      return failure();
  if (!isInProgram(*this))
    return success();
  FailureOr<StackDomainsOp> stack = findStack(*this, getRowDomain(getKeys().getType()));
  if (failed(stack))
    return failure();
  if (llvm::equal(stack->getParts(), getDomains()))
    return success();
  return emitOpError() << "'domains' must be the " << stack->getParts().size()
                       << " parts of the domain of its keys, in order";
}

// The gradients of all lookups of a table become one update, which `differentiate` creates.
LogicalResult GroupedLookupOp::buildGradient(OpBuilder &, ValueRange,
                                             SmallVectorImpl<Value> &operandGradients) {
  operandGradients.append(getNumOperands(), Value());
  return success();
}

//===----------------------------------------------------------------------===//
// Fused columns
//===----------------------------------------------------------------------===//

SmallVector<TransformColumnsOp::Column> TransformColumnsOp::getColumns() {
  SmallVector<Column> columns;
  unsigned result = 0, part = 0, next = 0;
  for (int64_t program : getPrograms()) {
    auto stack = getDomains()[result].getDefiningOp<StackDomainsOp>();
    if (part == stack.getParts().size()) {
      part = 0;
      ++result;
    }
    unsigned count = getBodies()[program].getNumArguments();
    columns.push_back(
        {static_cast<unsigned>(program), result, part++, getInputs().slice(next, count)});
    next += count;
  }
  return columns;
}

Value TransformColumnsOp::getColumnDomain(const Column &column) {
  return getDomains()[column.result].getDefiningOp<StackDomainsOp>().getParts()[column.part];
}

LogicalResult TransformColumnsOp::verify() {
  if (getDomains().empty() || getDomains().size() != getResults().size())
    return emitOpError() << "needs a domain per result, but has " << getDomains().size()
                         << " domains and " << getResults().size() << " results";
  size_t parts = 0, wanted = 0;
  for (auto [index, domain, result] : llvm::enumerate(getDomains(), getResults())) {
    auto stack = domain.getDefiningOp<StackDomainsOp>();
    if (!stack)
      return emitOpError() << "needs domains made by genrec.stack_domains, but domain " << index
                           << " is made otherwise";
    parts += stack.getParts().size();
    if (failed(expect(*this, {numbered("result", index), result.getType()},
                      Form::rows(domainOf(domain)).scalar().element(i64))))
      return failure();
  }
  if (parts != getPrograms().size())
    return emitOpError() << "needs a program for each of the " << parts
                         << " parts of its domains, but has " << getPrograms().size();
  for (int64_t program : getPrograms()) {
    if (failed(expectRange(*this, "programs", program, 0,
                           static_cast<int64_t>(getBodies().size()) - 1)))
      return failure();
    wanted += getBodies()[program].getNumArguments();
  }
  if (wanted != getInputs().size())
    return emitOpError() << "has " << getInputs().size() << " inputs, but its columns take "
                         << wanted;
  return success();
}

/// Whether a block argument of type `argument` fits `input`: one row, the value of a shared scalar,
/// or a tensor to search.
static bool fitsArgument(Value input, Type argument) {
  return argument == input.getType() || argument == getBodyType(input.getType());
}

OperandRole TransformColumnsOp::getInputRole(const Column &column, unsigned index) {
  if (isa<RankedTensorType>(getBodies()[column.program].getArgument(index).getType()))
    return OperandRole::source;
  FlatSymbolRefAttr rows = getRowDomain(column.inputs[index].getType());
  if (!rows)
    return OperandRole::shared;
  Value domain = getColumnDomain(column);
  if (rows == domainOf(domain))
    return OperandRole::aligned;
  auto truncate = domain.getDefiningOp<TruncateOp>();
  return truncate && rows == domainOf(truncate.getSource()) ? OperandRole::untruncated
                                                            : OperandRole::ancestor;
}

LogicalResult TransformColumnsOp::verifyRegions() {
  for (auto [index, body] : llvm::enumerate(getBodies())) {
    auto yield = dyn_cast<RowYieldOp>(body.front().getTerminator());
    if (!yield || yield.getValues().size() != 1 ||
        !yield.getValues()[0].getType().isSignlessInteger(64))
      return emitOpError() << "program " << index << " must yield one i64, the key";
  }
  for (auto [index, column] : llvm::enumerate(getColumns())) {
    FlatSymbolRefAttr own = domainOf(getColumnDomain(column));
    for (auto [number, input, argument] :
         llvm::enumerate(column.inputs, getBodies()[column.program].getArguments())) {
      if (!fitsArgument(input, argument.getType()))
        return emitOpError() << "column " << index << " gives " << describe(input.getType())
                             << " where program " << column.program << " takes "
                             << typeText(argument.getType());
      FlatSymbolRefAttr domain = getRowDomain(input.getType());
      if (getInputRole(column, number) == OperandRole::ancestor && isInProgram(*this) &&
          !isAncestor(*this, domain, own))
        return emitOpError() << "column " << index << " over " << own << " reads rows of " << domain
                             << ", which is neither above it nor what it was truncated from";
    }
  }
  return success();
}
