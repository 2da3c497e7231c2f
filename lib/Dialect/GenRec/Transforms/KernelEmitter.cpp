//===- KernelEmitter.cpp - emits planned row kernels ----------------------===//

#include "KernelEmitter.h"
#include "RowKernelBuilder.h"
#include "RowOps.h"
#include "genrec/Dialect/GenRec/IR/RowBodies.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"

#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace genrec;

namespace {
/// Emits one kernel: first its operands and results, then the body op by op.
class Emitter {
public:
  Emitter(OpBuilder &builder, const KernelPlan &plan)
      : builder(builder), plan(plan), inner(builder.getContext()) {}

  LogicalResult run(DenseMap<Value, Value> &replacements);

private:
  using InputKey = std::pair<Value, OperandRole>;

  void collectInputs();
  void collectResults();
  Value getDomain();
  void createSignature();
  LogicalResult emitOp(Operation *op);
  Value readOperand(Operation *op, unsigned index);
  void inlineKernel(RowKernelOp kernel);
  void emitScatter(SampledSoftmaxGradOp op);
  void finish(DenseMap<Value, Value> &replacements);
  bool isInside(Value value) const {
    return plan.ops.contains(value.getDefiningOp());
  }
  Location getLoc() const;
  /// Sets the stage of an op created here to that of the plan.
  template <typename OpT> OpT staged(OpT op) const {
    if (plan.stage)
      op->setDiscardableAttr(GenRecDialect::StageAttrHelper::getNameStr(), plan.stage);
    return op;
  }
  Type getResultType(Value output) const;

  OpBuilder &builder;
  const KernelPlan &plan;
  OpBuilder inner;
  Value domain;
  RowKernelOp kernel;
  llvm::MapVector<InputKey, BlockArgument> inputs;
  SmallVector<Value> outputs;
  DenseMap<Value, Value> accumulators;
  /// The body value for each value of the plan's ops.
  DenseMap<Value, Value> values;
};
} // namespace

static bool isConstant(Value value) {
  return isa_and_nonnull<ConstantOp>(value.getDefiningOp());
}

/// The inputs are the operands from outside of the plan; constants are copied into the body.
void Emitter::collectInputs() {
  for (Operation *op : plan.ops)
    for (unsigned index = 0; index < op->getNumOperands(); ++index) {
      std::optional<OperandRole> role = getOperandRole(op, index);
      Value operand = op->getOperand(index);
      if (!role)
        continue;
      if (isInside(operand) && *role != OperandRole::source)
        continue;
      if (isConstant(operand) && *role == OperandRole::shared)
        continue;
      inputs.insert({{operand, *role}, BlockArgument()});
    }
}

/// The results are the outputs in program order, and all results that are not aligned.
void Emitter::collectResults() {
  for (Operation *op : plan.ops)
    for (OpResult result : op->getResults())
      if (plan.outputs.contains(result))
        outputs.push_back(result);
}

Value Emitter::getDomain() {
  auto program =
      cast<ProgramOp>(plan.ops.front()->getBlock()->getParentOp());
  return plan.domain ? lookupDomainValue(program, plan.domain)
                     : getFixedRows(program, plan.sharedRows);
}

Location Emitter::getLoc() const {
  if (plan.ops.size() == 1)
    return plan.ops.front()->getLoc();
  SmallVector<Location> locations;
  for (Operation *op : plan.ops)
    locations.push_back(op->getLoc());
  return FusedLoc::get(builder.getContext(), locations);
}

/// A shared result of a kernel over a fixed step domain has the type of that domain's rows.
Type Emitter::getResultType(Value output) const {
  auto type = cast<RankedTensorType>(output.getType());
  auto result = cast<OpResult>(output);
  if (plan.domain ||
      getResultRole(result.getOwner(), result.getResultNumber()) !=
          ResultRole::aligned)
    return type;
  ArrayRef<int64_t> shape = type.getShape();
  if (shape.size() == 2)
    shape = shape.drop_front();
  return getRowsType(cast<DomainType>(domain.getType()).getDomain(), shape,
                     type.getElementType());
}

void Emitter::createSignature() {
  SmallVector<KernelInput> kernelInputs;
  for (auto &[key, argument] : inputs) {
    auto [value, role] = key;
    // A shared matrix is viewed as rows of the fixed step domain.
    if (role == OperandRole::shared && !plan.domain &&
        cast<RankedTensorType>(value.getType()).getRank() == 2) {
      Value rows = viewSharedAsRows(builder, value.getLoc(), value, domain);
      staged(rows.getDefiningOp());
      kernelInputs.push_back({rows, OperandRole::aligned});
    } else
      kernelInputs.push_back({value, role});
  }
  SmallVector<KernelResult> results;
  for (Value output : outputs) {
    auto result = cast<OpResult>(output);
    Operation *op = result.getOwner();
    unsigned index = result.getResultNumber();
    KernelResult entry{getResultType(output), getResultRole(op, index)};
    if (auto pool = dyn_cast<PoolOp>(op))
      entry.pool = pool.getKind();
    results.push_back(entry);
  }
  kernel = staged(createRowKernel(builder, getLoc(), domain, kernelInputs,
                                  results, plan.name));
  Block &body = kernel.getBody().front();
  inner.setInsertionPointToEnd(&body);
  unsigned next = 0;
  for (auto &[key, argument] : inputs)
    argument = body.getArgument(next++);
  for (auto [output, entry] : llvm::zip_equal(outputs, results))
    if (isAccumulated(entry.role))
      accumulators[output] = body.getArgument(next++);
}

/// The body value for an operand's row.
Value Emitter::readOperand(Operation *op, unsigned index) {
  std::optional<OperandRole> role = getOperandRole(op, index);
  Value operand = op->getOperand(index);
  if (!role)
    return Value();
  if (*role != OperandRole::source)
    if (Value value = values.lookup(operand))
      return value;
  auto it = inputs.find({operand, *role});
  if (it != inputs.end())
    return it->second;
  auto attribute = cast<DenseElementsAttr>(
      operand.getDefiningOp<ConstantOp>().getValue());
  TypedAttr value = attribute;
  if (attribute.getType().getRank() == 0)
    value = cast<TypedAttr>(attribute.getSplatValue<Attribute>());
  else
    value = attribute.reshape(
        cast<ShapedType>(getBodyType(operand.getType())));
  Value constant = arith::ConstantOp::create(inner, op->getLoc(), value);
  values[operand] = constant;
  return constant;
}

/// Inlines the body of a kernel that an earlier pass created.
void Emitter::inlineKernel(RowKernelOp inlined) {
  IRMapping mapping;
  Block &body = inlined.getBody().front();
  unsigned next = 0;
  for (; next < inlined.getInputs().size(); ++next)
    mapping.map(body.getArgument(next), readOperand(inlined, next + 1));
  for (OpResult result : inlined.getResults())
    if (Value accumulator = accumulators.lookup(result))
      mapping.map(body.getArgument(next++), accumulator);
  for (Operation &op : body.without_terminator())
    inner.clone(op, mapping);
  unsigned yielded = 0;
  for (OpResult result : inlined.getResults())
    if (getResultRole(inlined, result.getResultNumber()) ==
        ResultRole::aligned)
      values[result] =
          mapping.lookup(body.getTerminator()->getOperand(yielded++));
}

void Emitter::emitScatter(SampledSoftmaxGradOp op) {
  SampledSoftmaxDraw draw{op.getDrawn() ? readOperand(op, 4) : Value(),
                          static_cast<int64_t>(op.getNegatives()),
                          static_cast<int64_t>(op.getStream()),
                          op.getShared(),
                          op.getTemperature().convertToDouble()};
  values[op.getDquery()] = buildSampledSoftmaxGradient(
      inner, op.getLoc(), readOperand(op, 0), readOperand(op, 1),
      readOperand(op, 2), readOperand(op, 3), draw,
      accumulators.lookup(op.getDitems()));
}

LogicalResult Emitter::emitOp(Operation *op) {
  if (auto inlined = dyn_cast<RowKernelOp>(op)) {
    inlineKernel(inlined);
    return success();
  }
  if (auto grad = dyn_cast<SampledSoftmaxGradOp>(op)) {
    emitScatter(grad);
    return success();
  }
  if (op->hasTrait<IsOperandRow>()) {
    values[op->getResult(0)] = readOperand(op, 0);
    return success();
  }
  if (isa<ReduceRowsOp>(op)) {
    AccumulateOp::create(inner, op->getLoc(),
                         accumulators.lookup(op->getResult(0)),
                         readOperand(op, 0), Value(), Value(), false);
    return success();
  }
  if (auto grad = dyn_cast<EmbeddingGradOp>(op)) {
    AccumulateOp::create(inner, op->getLoc(),
                         accumulators.lookup(op->getResult(0)),
                         readOperand(op, 1), readOperand(op, 0), Value(),
                         /*clamp=*/true);
    return success();
  }
  if (auto scatter = dyn_cast<ScatterRowsOp>(op)) {
    AccumulateOp::create(inner, op->getLoc(), accumulators.lookup(op->getResult(0)),
                         readOperand(op, 0), readOperand(op, 1), Value(), /*clamp=*/false);
    return success();
  }
  SmallVector<Value> operands, results;
  for (unsigned index = 0; index < op->getNumOperands(); ++index)
    operands.push_back(readOperand(op, index));
  if (failed(cast<RowwiseOpInterface>(op).buildRowBody(inner, operands,
                                                       results)))
    return op->emitOpError("has no form inside a row kernel");
  for (auto [result, value] : llvm::zip_equal(op->getResults(), results))
    values[result] = value;
  return success();
}

void Emitter::finish(DenseMap<Value, Value> &replacements) {
  SmallVector<Value> yielded;
  for (auto [output, result] :
       llvm::zip_equal(outputs, kernel.getResults())) {
    if (!accumulators.contains(output))
      yielded.push_back(values.lookup(output));
    Value replacement = result;
    if (result.getType() != output.getType())
      replacement = staged(RowsAsSharedOp::create(builder, output.getLoc(),
                                                  output.getType(), result));
    replacements[output] = replacement;
  }
  RowYieldOp::create(inner, kernel.getLoc(), yielded);
}

LogicalResult Emitter::run(DenseMap<Value, Value> &replacements) {
  domain = getDomain();
  collectInputs();
  collectResults();
  createSignature();
  for (Operation *op : plan.ops)
    if (failed(emitOp(op)))
      return failure();
  finish(replacements);
  return success();
}

LogicalResult genrec::emitKernel(OpBuilder &builder, const KernelPlan &plan,
                                 DenseMap<Value, Value> &replacements) {
  return Emitter(builder, plan).run(replacements);
}
