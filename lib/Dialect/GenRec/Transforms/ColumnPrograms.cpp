//===- ColumnPrograms.cpp - column programs -------------------------------===//

#include "ColumnPrograms.h"
#include "genrec/Dialect/GenRec/IR/RowBodyBuilder.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// The body of one column
//===----------------------------------------------------------------------===//

static bool isScalarRow(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && getRowShape(type).empty();
}

/// Whether a column can compute the op itself: it works on scalars, per row or shared, and neither
/// draws random numbers nor gathers.
static bool isTransform(Operation *op) {
  auto rowwise = dyn_cast_or_null<RowwiseOpInterface>(op);
  if (!rowwise || op->hasAttr("stream") || op->getNumResults() != 1 ||
      !isScalarRow(op->getResult(0)))
    return false;
  for (OpOperand &operand : op->getOpOperands())
    if (!isScalarRow(operand.get()) || rowwise.isGatherSource(operand.getOperandNumber()))
      return false;
  return true;
}

namespace {
class BodyBuilder {
public:
  BodyBuilder(ColumnBody &body, MLIRContext *context) : body(body), builder(context) {
    builder.setInsertionPointToEnd(body.block.get());
  }

  /// The value of `value`'s row inside of the body.
  FailureOr<Value> build(Value value);

  ColumnBody &body;
  OpBuilder builder;

private:
  FailureOr<Value> buildConstant(ConstantOp constant);

  DenseMap<Value, Value> values;
};
} // namespace

FailureOr<Value> BodyBuilder::build(Value value) {
  if (Value known = values.lookup(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value &result = values[value];
  auto constant = dyn_cast_or_null<ConstantOp>(op);
  if (constant && constant.getValue().getShapedType().getRank() == 0) {
    auto number =
        cast<TypedAttr>(cast<DenseElementsAttr>(constant.getValue()).getSplatValue<Attribute>());
    return result = arith::ConstantOp::create(builder, op->getLoc(), number).getResult();
  }
  if (!isTransform(op)) {
    // A fan-out is an input with the row of the ancestor, a truncated list one with its whole list.
    if (auto fanout = dyn_cast_or_null<FanoutOp>(op))
      value = fanout.getX();
    else if (auto derive = dyn_cast_or_null<DeriveOp>(op); derive && derive.isKernelPart())
      value = derive.getX();
    body.inputs.push_back(value);
    return result = body.block->addArgument(getBodyType(value.getType()), value.getLoc());
  }
  SmallVector<Value> operands, results;
  for (Value operand : op->getOperands()) {
    FailureOr<Value> row = build(operand);
    if (failed(row))
      return failure();
    operands.push_back(*row);
  }
  builder.setInsertionPointToEnd(body.block.get());
  if (failed(cast<RowwiseOpInterface>(op).buildRowBody(builder, operands, results)))
    return failure();
  body.transforms.push_back(op);
  return values[op->getResult(0)] = results.front();
}

FailureOr<ColumnBody> genrec::buildColumnBody(MLIRContext *context, const ColumnSpec &column) {
  ColumnBody body;
  body.domain = getRowDomain(column.ids.getType());
  body.block = std::make_unique<Block>();
  BodyBuilder builder(body, context);
  FailureOr<Value> id = builder.build(column.ids);
  if (failed(id))
    return failure();
  FailureOr<Value> valid = Value();
  if (column.valid && failed(valid = builder.build(column.valid)))
    return failure();
  RowBodyBuilder b(builder.builder, column.ids.getLoc());
  Type i64 = builder.builder.getI64Type();
  // The bits of an id do not overlap those of the tag.
  Value key = b.make<arith::OrIOp>(*id, b.integer(i64, column.tag));
  if (*valid)
    key = b.select(*valid, key, b.integer(i64, -1));
  RowYieldOp::create(builder.builder, column.ids.getLoc(), key);
  return body;
}

//===----------------------------------------------------------------------===//
// Column programs
//===----------------------------------------------------------------------===//

/// The attribute of a body op in which columns of one program may differ, or null.
static StringAttr getParameterName(Operation &op) {
  MLIRContext *context = op.getContext();
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return constant.getType().isIntOrFloat() ? constant.getValueAttrName() : StringAttr();
  if (isa<RowBucketizeOp>(op) && !isa<VectorType>(op.getOperand(0).getType()))
    return StringAttr::get(context, "edges");
  return {};
}

/// What two bodies must have in common to share a program: ops, operands by number, types, and all
/// attributes that are not returned in `constants`.
static Attribute describeStructure(const ColumnBody &body, SmallVectorImpl<Attribute> &constants) {
  MLIRContext *context = body.block->begin()->getContext();
  Builder b(context);
  SmallVector<Attribute> items;
  DenseMap<Value, int64_t> numbers;
  for (BlockArgument argument : body.block->getArguments()) {
    numbers[argument] = numbers.size();
    items.push_back(TypeAttr::get(argument.getType()));
  }
  for (Operation &op : *body.block) {
    items.push_back(b.getStringAttr(op.getName().getStringRef()));
    for (Value operand : op.getOperands())
      items.push_back(b.getI64IntegerAttr(numbers.lookup(operand)));
    for (Value result : op.getResults()) {
      numbers[result] = numbers.size();
      items.push_back(TypeAttr::get(result.getType()));
    }
    StringAttr parameter = getParameterName(op);
    for (NamedAttribute entry : op.getAttrDictionary())
      if (entry.getName() != parameter)
        items.push_back(b.getDictionaryAttr(entry));
    if (!parameter)
      continue;
    constants.push_back(op.getAttrDictionary().get(parameter));
    if (auto edges = dyn_cast<DenseF64ArrayAttr>(constants.back()))
      items.push_back(b.getI64IntegerAttr(edges.size()));
  }
  return b.getArrayAttr(items);
}

/// The domains of the keys and of a column's inputs, if some inputs are rows of ancestors: the code
/// that finds those rows depends on the domains.
static Attribute describeAncestors(const ColumnBody &body) {
  MLIRContext *context = body.domain.getContext();
  SmallVector<Attribute> domains{body.domain};
  bool isSame = true;
  for (Value input : body.inputs) {
    FlatSymbolRefAttr domain = getRowDomain(input.getType());
    domains.push_back(domain ? Attribute(domain) : UnitAttr::get(context));
    isSame &= domain == body.domain;
  }
  return isSame ? Attribute(UnitAttr::get(context)) : ArrayAttr::get(context, domains);
}

unsigned ColumnPrograms::add(ColumnBody body) {
  SmallVector<Attribute> constants;
  Attribute structure = describeStructure(body, constants);
  Attribute key = ArrayAttr::get(structure.getContext(), {structure, describeAncestors(body)});
  auto [place, isNew] = byStructure.insert({key, programs.size()});
  if (isNew)
    programs.push_back(
        {std::move(body.block), constants, SmallVector<bool>(constants.size(), false)});
  Program &program = programs[place->second];
  for (auto [index, constant] : llvm::enumerate(constants))
    program.differs[index] = program.differs[index] || constant != program.constants[index];
  columns.push_back({place->second, std::move(body.inputs), std::move(constants)});
  return place->second;
}

void ColumnPrograms::fill(unsigned number, Region &region) const {
  const Program &program = programs[number];
  auto *block = new Block();
  region.push_back(block);
  OpBuilder builder = OpBuilder::atBlockEnd(block);
  IRMapping mapping;
  for (BlockArgument argument : program.block->getArguments())
    mapping.map(argument, block->addArgument(argument.getType(), argument.getLoc()));
  unsigned constant = 0;
  for (Operation &op : *program.block) {
    bool isOperand = getParameterName(op) && program.differs[constant++];
    if (!isOperand) {
      builder.clone(op, mapping);
      continue;
    }
    Value result = op.getResult(0);
    if (auto bucketize = dyn_cast<RowBucketizeOp>(op)) {
      auto edges = static_cast<int64_t>(bucketize.getEdges().size());
      Value table =
          block->addArgument(RankedTensorType::get({edges}, builder.getF64Type()), op.getLoc());
      mapping.map(result, RowSearchOp::create(builder, op.getLoc(), result.getType(),
                                              mapping.lookup(bucketize.getX()), table)
                              .getResult());
    } else {
      mapping.map(result, block->addArgument(result.getType(), op.getLoc()));
    }
  }
}

/// A constant of a body, as a shared tensor.
static ElementsAttr makeShared(Attribute constant) {
  MLIRContext *context = constant.getContext();
  if (auto edges = dyn_cast<DenseF64ArrayAttr>(constant)) {
    auto type =
        RankedTensorType::get({static_cast<int64_t>(edges.size())}, Float64Type::get(context));
    return DenseElementsAttr::get(type, edges.asArrayRef());
  }
  auto number = cast<TypedAttr>(constant);
  return DenseElementsAttr::get(RankedTensorType::get({}, number.getType()),
                                ArrayRef<Attribute>(constant));
}

SmallVector<Value> ColumnPrograms::makeInputs(OpBuilder &builder, Location loc) const {
  DenseMap<Attribute, Value> made;
  SmallVector<Value> inputs;
  for (const Column &column : columns) {
    llvm::append_range(inputs, column.inputs);
    const Program &program = programs[column.program];
    for (auto [constant, differs] : llvm::zip_equal(column.constants, program.differs)) {
      if (!differs)
        continue;
      Value &value = made[constant];
      if (!value)
        value = ConstantOp::create(builder, loc, makeShared(constant));
      inputs.push_back(value);
    }
  }
  return inputs;
}
