//===- KernelOps.cpp - verifiers of row kernels ---------------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::rules;

static bool isPooled(ResultRole role) { return role == ResultRole::pooled; }

static OperandRole operandRole(RowKernelOp kernel, size_t index) {
  return cast<OperandRoleAttr>(kernel.getOperandRoles()[index]).getValue();
}

/// The kind of pooled result number `pooled`.
static PoolKind poolKind(RowKernelOp kernel, size_t pooled) {
  return cast<PoolKindAttr>((*kernel.getPoolKinds())[pooled]).getValue();
}

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

static LogicalResult verifyCounts(RowKernelOp kernel) {
  if (kernel.getOperandRoles().size() != kernel.getInputs().size())
    return kernel.emitOpError() << "needs an operand role per input, " << kernel.getInputs().size()
                                << ", but has " << kernel.getOperandRoles().size();
  if (kernel.getResultRoles().size() != kernel.getResults().size())
    return kernel.emitOpError() << "needs a result role per result, " << kernel.getResults().size()
                                << ", but has " << kernel.getResultRoles().size();
  size_t pooled = llvm::count_if(kernel.getResultRoles().getAsRange<ResultRoleAttr>(),
                                 [](ResultRoleAttr role) { return isPooled(role.getValue()); });
  size_t kinds = kernel.getPoolKinds() ? kernel.getPoolKinds()->size() : 0;
  if (pooled != kinds)
    return kernel.emitOpError() << "needs a pool kind per pooled result, " << pooled << ", but has "
                                << kinds;
  return success();
}

static LogicalResult verifyInput(RowKernelOp kernel, size_t index) {
  FlatSymbolRefAttr domain = domainOf(kernel.getDomain());
  std::string name = numbered("input", index);
  auto type = cast<RankedTensorType>(kernel.getInputs()[index].getType());
  StringRef role = stringifyOperandRole(operandRole(kernel, index));
  auto complain = [&](const Twine &form) -> LogicalResult {
    return kernel.emitOpError() << "'" << name << "' has role " << role << ", so it must be "
                                << form << ", but is " << describe(type);
  };
  FlatSymbolRefAttr own = getRowDomain(type);
  switch (operandRole(kernel, index)) {
  case OperandRole::aligned:
    return own == domain ? success() : complain("rows of @" + domain.getValue());
  case OperandRole::ancestor:
    return own && own != domain ? success()
                                : complain("rows of an ancestor of @" + domain.getValue());
  case OperandRole::shared:
    return !own && type.getRank() <= 1 ? success() : complain("shared, of rank 0 or 1");
  case OperandRole::source:
    return type.getRank() >= 1 ? success() : complain("rows, or shared of rank 1 or 2");
  case OperandRole::untruncated: {
    auto truncate = kernel.getDomain().getDefiningOp<TruncateOp>();
    return truncate && own == domainOf(truncate.getSource())
               ? success()
               : complain("rows of the list that @" + domain.getValue() + " was truncated from");
  }
  }
  llvm_unreachable("every operand role is handled");
}

static LogicalResult verifyResult(RowKernelOp kernel, size_t index) {
  FlatSymbolRefAttr domain = domainOf(kernel.getDomain());
  std::string name = numbered("result", index);
  Type type = kernel.getResults()[index].getType();
  StringRef role = stringifyResultRole(kernel.getKernelResultRole(index));
  auto complain = [&](const Twine &form) -> LogicalResult {
    return kernel.emitOpError() << "'" << name << "' has role " << role << ", so it must be "
                                << form << ", but is " << describe(type);
  };
  FlatSymbolRefAttr own = getRowDomain(type);
  switch (kernel.getKernelResultRole(index)) {
  case ResultRole::aligned:
    return own == domain ? success() : complain("rows of @" + domain.getValue());
  case ResultRole::pooled:
    return own && own != domain ? success()
                                : complain("rows of an ancestor of @" + domain.getValue());
  case ResultRole::reduced:
    return Form::shared().element(numbers).matches(type) ? success()
                                                         : complain("a shared tensor of numbers");
  case ResultRole::scattered:
    return own != domain && cast<RankedTensorType>(type).getRank() >= 1 &&
                   Form::any().element(numbers).matches(type)
               ? success()
               : complain("numbers, rows of another domain or shared of rank 1 or 2");
  }
  llvm_unreachable("every result role is handled");
}

LogicalResult RowKernelOp::verify() {
  if (failed(verifyCounts(*this)))
    return failure();
  for (size_t index = 0; index < getInputs().size(); ++index)
    if (failed(verifyInput(*this, index)))
      return failure();
  for (size_t index = 0; index < getResults().size(); ++index)
    if (failed(verifyResult(*this, index)))
      return failure();
  return success();
}

LogicalResult RowKernelOp::verifySymbolUses(SymbolTableCollection &) {
  if (!isInProgram(*this))
    return success();
  FlatSymbolRefAttr domain = domainOf(getDomain());
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    FlatSymbolRefAttr own = getRowDomain(input.getType());
    if (operandRole(*this, index) == OperandRole::ancestor && !isAncestor(*this, own, domain))
      return emitOpError() << "'" << numbered("input", index)
                           << "' has role ancestor, but its domain " << own
                           << " does not lie above " << domain;
  }
  size_t pooled = 0;
  for (auto [index, result] : llvm::enumerate(getResults()))
    if (isPooled(getKernelResultRole(index)) &&
        failed(expectPoolTarget(*this, poolKind(*this, pooled++), domain,
                                getRowDomain(result.getType()))))
      return failure();
  return success();
}

//===----------------------------------------------------------------------===//
// The body
//===----------------------------------------------------------------------===//

/// The required types of the block arguments of `kernel`, each with a description.
static SmallVector<std::pair<std::string, Type>> expectedArguments(RowKernelOp kernel) {
  SmallVector<std::pair<std::string, Type>> expected;
  for (auto [index, input] : llvm::enumerate(kernel.getInputs())) {
    bool isSource = operandRole(kernel, index) == OperandRole::source;
    expected.push_back(
        {numbered("input", index), isSource ? input.getType() : getBodyType(input.getType())});
  }
  for (auto [index, result] : llvm::enumerate(kernel.getResults()))
    if (isAccumulated(kernel.getKernelResultRole(index)))
      expected.push_back(
          {numbered("result", index),
           AccumulatorType::get(kernel.getContext(), cast<RankedTensorType>(result.getType()))});
  return expected;
}

static LogicalResult verifyArguments(RowKernelOp kernel) {
  SmallVector<std::pair<std::string, Type>> expected = expectedArguments(kernel);
  Block &body = kernel.getBody().front();
  if (body.getNumArguments() != expected.size())
    return kernel.emitOpError()
           << "needs a block argument per input and one per reduced or scattered result, "
           << expected.size() << ", but has " << body.getNumArguments();
  for (auto [index, argument, entry] : llvm::enumerate(body.getArguments(), expected))
    if (argument.getType() != entry.second)
      return kernel.emitOpError() << "block argument " << index << " stands for '" << entry.first
                                  << "', so it must be " << typeText(entry.second) << ", but is "
                                  << typeText(argument.getType());
  return success();
}

static LogicalResult verifyYield(RowKernelOp kernel) {
  auto yield = dyn_cast<RowYieldOp>(kernel.getBody().front().back());
  if (!yield)
    return kernel.emitOpError() << "must end with genrec.row_yield";
  SmallVector<std::pair<std::string, Type>> expected;
  for (auto [index, result] : llvm::enumerate(kernel.getResults()))
    if (!isAccumulated(kernel.getKernelResultRole(index)))
      expected.push_back({numbered("result", index), getBodyType(result.getType())});
  if (yield.getValues().size() != expected.size())
    return yield.emitOpError() << "needs a value per aligned or pooled result, " << expected.size()
                               << ", but has " << yield.getValues().size();
  for (auto [index, value, entry] : llvm::enumerate(yield.getValues(), expected))
    if (value.getType() != entry.second)
      return yield.emitOpError() << "value " << index << " is for '" << entry.first
                                 << "', so it must be " << typeText(entry.second) << ", but is "
                                 << typeText(value.getType());
  return success();
}

static bool isBodyOp(Operation &op) {
  if (isa<arith::ArithDialect, math::MathDialect, vector::VectorDialect>(op.getDialect()))
    return true;
  return isa<RowYieldOp, BodyOpInterface>(op);
}

static bool isBodyReduction(vector::ReductionOp reduction) {
  using enum vector::CombiningKind;
  return llvm::is_contained({ADD, MAXIMUMF, MAXNUMF, MAXSI, MINIMUMF, MINNUMF, MINSI},
                            reduction.getKind());
}

LogicalResult RowKernelOp::verifyRegions() {
  if (failed(verifyArguments(*this)) || failed(verifyYield(*this)))
    return failure();
  for (Operation &op : getBody().front())
    if (auto reduction = dyn_cast<vector::ReductionOp>(op);
        reduction && !isBodyReduction(reduction))
      return emitOpError() << "reduces rows by add, maximum and minimum only, but has '"
                           << vector::stringifyCombiningKind(reduction.getKind()) << "'";
  for (Operation &op : getBody().front())
    if (!isBodyOp(op))
      return emitOpError() << "holds ops of arith, math, vector and genrec's body ops only, but "
                              "has '"
                           << op.getName() << "'";
  return success();
}

// Accumulators are local to the kernel; only accesses to table and parameter rows are side effects.
void RowKernelOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  bool reads = false, writes = false;
  for (Operation &op : getBody().front()) {
    reads |= isa<RowLoadOp>(op);
    writes |= isa<RowStoreOp>(op);
  }
  if (reads)
    effects.emplace_back(MemoryEffects::Read::get());
  if (writes)
    effects.emplace_back(MemoryEffects::Write::get());
}
