//===- ColumnPrograms.cpp - column programs -------------------------------===//

#include "genrec/Dialect/GenRec/IR/ColumnPrograms.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace genrec;

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

SmallVector<SmallVector<Value>> ColumnPrograms::makeInputs(OpBuilder &builder, Location loc) const {
  DenseMap<Attribute, Value> made;
  SmallVector<SmallVector<Value>> all;
  for (const Column &column : columns) {
    SmallVector<Value> &inputs = all.emplace_back(column.inputs);
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
  return all;
}
