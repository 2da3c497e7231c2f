//===- ColumnJoin.cpp - joins whose parts are columns ---------------------===//

#include "ColumnJoin.h"

#include "RowBodySchedule.h"

#include "genrec/Dialect/GenRec/IR/ColumnPrograms.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace genrec;

namespace {
/// A value that a column makes, of which ops, and where it begins in the rows of a result.
struct Column {
  Column(Value value, unsigned result, int64_t offset)
      : value(value), ops(getMakers(value)), result(result), offset(offset) {}

  Value value;
  llvm::SetVector<Operation *> ops;
  unsigned result;
  int64_t offset;
};
} // namespace

/// The columns of a kernel that makes a wide join; none of other kernels.
static SmallVector<Column> findColumns(RowKernelOp kernel) {
  if (!makesRowsAlone(kernel) ||
      !llvm::all_of(kernel.getResultRoles().getAsRange<ResultRoleAttr>(),
                    [](ResultRoleAttr role) { return role.getValue() == ResultRole::aligned; }))
    return {};
  Block &body = kernel.getBody().front();
  SmallVector<Column> columns;
  llvm::SmallPtrSet<Operation *, 2> joins;
  for (auto [number, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto join = value.getDefiningOp<RowConcatOp>();
    int64_t offset = 0;
    if (!join || !join->hasOneUse() || join.getParts().size() < kFewestColumns) {
      columns.emplace_back(value, number, offset);
      continue;
    }
    joins.insert(join);
    for (Value part : join.getParts()) {
      columns.emplace_back(part, number, offset);
      offset += isVector(part) ? getExtent(part) : 1;
    }
  }
  auto fits = [&](Operation &op) { return joins.contains(&op) || fitsColumn(op); };
  size_t ops = 0;
  for (const Column &column : columns)
    ops += column.ops.size();
  // What columns share is made for each of them.
  if (joins.empty() || !llvm::all_of(body.without_terminator(), fits) ||
      ops > 2 * static_cast<size_t>(llvm::range_size(body.without_terminator())))
    return {};
  return columns;
}

/// The body of a column, whose inputs are those of `kernel`.
static ColumnBody buildBody(RowKernelOp kernel, const Column &column) {
  ColumnBody body;
  body.domain = domainOf(kernel.getDomain());
  body.block = std::make_unique<Block>();
  IRMapping mapping;
  auto addInput = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (!argument || mapping.contains(argument))
      return;
    body.inputs.push_back(kernel.getInputs()[argument.getArgNumber()]);
    mapping.map(argument, body.block->addArgument(argument.getType(), argument.getLoc()));
  };
  OpBuilder builder(kernel.getContext());
  builder.setInsertionPointToEnd(body.block.get());
  for (Operation *op : column.ops) {
    llvm::for_each(op->getOperands(), addInput);
    builder.clone(*op, mapping);
  }
  addInput(column.value);
  RowYieldOp::create(builder, column.value.getLoc(), mapping.lookup(column.value));
  return body;
}

/// Creates the kernel of a part before `kernel`, without its body.
static RowKernelOp createPart(RowKernelOp kernel, Value part, ArrayRef<Value> inputs,
                              ArrayRef<Attribute> roles, ArrayRef<int64_t> place) {
  OpBuilder builder(kernel);
  SmallVector<int64_t> shape;
  if (isVector(part))
    shape.push_back(getExtent(part));
  Location loc = part.getDefiningOp() ? part.getLoc() : inputs.front().getLoc();
  Type type = getRowsType(domainOf(kernel.getDomain()), shape, getElementTypeOrSelf(part));
  auto made = RowKernelOp::create(builder, loc, type, kernel.getDomain(), inputs,
                                  builder.getArrayAttr(roles),
                                  builder.getArrayAttr(kernel.getResultRoles()[0]),
                                  /*pool_kinds=*/ArrayAttr(), kernel.getNameAttr());
  made->setAttr(GenRecDialect::JoinedAtAttrHelper::getNameStr(),
                builder.getDenseI64ArrayAttr(place));
  return made;
}

SmallVector<ColumnPart> genrec::splitJoin(RowKernelOp kernel) {
  SmallVector<Column> columns = findColumns(kernel);
  llvm::erase_if(columns, [&](const Column &column) {
    auto argument = dyn_cast<BlockArgument>(column.value);
    return argument && isJoinedInPlace(kernel, kernel.getInputs()[argument.getArgNumber()]);
  });
  SmallVector<unsigned> numbers;
  ColumnPrograms programs;
  for (const Column &column : columns)
    numbers.push_back(programs.add(buildBody(kernel, column)));
  llvm::DenseMap<Value, Attribute> roles;
  for (auto [input, role] : llvm::zip(kernel.getInputs(), kernel.getOperandRoles()))
    roles[input] = role;
  const auto constant = OperandRoleAttr::get(kernel.getContext(), OperandRole::shared),
             edges = OperandRoleAttr::get(kernel.getContext(), OperandRole::source);
  auto getRole = [&](Value input) -> Attribute {
    if (Attribute known = roles.lookup(input))
      return known;
    return cast<RankedTensorType>(input.getType()).getRank() > 0 ? edges : constant;
  };
  OpBuilder builder(kernel);
  SmallVector<ColumnPart> parts;
  for (auto [column, program, inputs] :
       llvm::zip_equal(columns, numbers, programs.makeInputs(builder, builder.getUnknownLoc()))) {
    const int64_t stride = getRowAddress(kernel->getResult(column.result)).stride;
    RowKernelOp own =
        createPart(kernel, column.value, inputs,
                   llvm::map_to_vector(ArrayRef<Value>(inputs), getRole), {column.offset, stride});
    programs.fill(program, own.getBody());
    parts.push_back({own, column.result, column.offset});
  }
  return parts;
}
