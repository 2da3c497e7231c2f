//===- ColumnJoin.cpp - joins whose parts are columns ---------------------===//

#include "ColumnJoin.h"

#include "RowBodySchedule.h"

#include "genrec/Dialect/GenRec/IR/ColumnPrograms.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"

#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace genrec;

namespace {
/// What of a kernel's body a part is made of: ops in their order, and arguments.
struct PartBody {
  explicit PartBody(Value part);

  SmallVector<Operation *> ops;
  llvm::SetVector<BlockArgument> arguments;
};
} // namespace

PartBody::PartBody(Value part) {
  llvm::SetVector<Operation *> found;
  auto add = [&](Value value) {
    if (Operation *maker = value.getDefiningOp())
      found.insert(maker);
    else
      arguments.insert(cast<BlockArgument>(value));
  };
  add(part);
  for (size_t next = 0; next < found.size(); ++next)
    for (Value operand : found[next]->getOperands())
      add(operand);
  ops = found.takeVector();
  llvm::sort(ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
}

/// Whether a column may read an input: its own row, one above it, or what all rows share.
static bool mayRead(Value input, BlockArgument argument, OperandRole role) {
  return (role == OperandRole::aligned || role == OperandRole::ancestor ||
          role == OperandRole::shared) &&
         !isAddedByReader(input) && !getRowsParameter(input) && fitsColumn(argument.getType());
}

/// Whether each column of `kernel` can make its rows by itself.
static bool isOfColumns(RowKernelOp kernel) {
  Block &body = kernel.getBody().front();
  for (auto [input, argument, role] :
       llvm::zip(kernel.getInputs(), body.getArguments(),
                 kernel.getOperandRoles().getAsRange<OperandRoleAttr>()))
    if (!mayRead(input, argument, role.getValue()))
      return false;
  for (auto [number, result] : llvm::enumerate(kernel.getResults()))
    if (kernel.getKernelResultRole(number) != ResultRole::aligned ||
        getElementTypeOrSelf(result.getType()).isBF16())
      return false;
  return !getRowBlock(kernel) && !storesRows(kernel);
}

namespace {
/// A value that a column makes, and where it begins in the rows of a result.
struct Column {
  Value value;
  unsigned result;
  int64_t offset;
};
} // namespace

/// The columns of a kernel that makes a wide join; none of other kernels.
static SmallVector<Column> findColumns(RowKernelOp kernel) {
  if (!isOfColumns(kernel))
    return {};
  Block &body = kernel.getBody().front();
  SmallVector<Column> columns;
  llvm::SmallPtrSet<Operation *, 2> joins;
  for (auto [number, value] : llvm::enumerate(body.getTerminator()->getOperands())) {
    auto join = value.getDefiningOp<RowConcatOp>();
    int64_t offset = 0;
    if (!join || !join->hasOneUse() || join.getParts().size() < kFewestColumns) {
      columns.push_back({value, static_cast<unsigned>(number), offset});
      continue;
    }
    joins.insert(join);
    for (Value part : join.getParts()) {
      columns.push_back({part, static_cast<unsigned>(number), offset});
      offset += isVector(part) ? getExtent(part) : 1;
    }
  }
  auto fits = [&](Operation &op) { return joins.contains(&op) || fitsColumn(op); };
  size_t ops = 0;
  for (const Column &column : columns)
    ops += PartBody(column.value).ops.size();
  // What columns share is made for each of them.
  if (joins.empty() || !llvm::all_of(body.without_terminator(), fits) ||
      ops > 2 * static_cast<size_t>(llvm::range_size(body.without_terminator())))
    return {};
  return columns;
}

/// The body of one part, whose inputs are those of `kernel`.
static ColumnBody buildBody(RowKernelOp kernel, Value part) {
  PartBody made(part);
  ColumnBody body;
  body.domain = domainOf(kernel.getDomain());
  body.block = std::make_unique<Block>();
  IRMapping mapping;
  for (BlockArgument argument : made.arguments) {
    body.inputs.push_back(kernel.getInputs()[argument.getArgNumber()]);
    mapping.map(argument, body.block->addArgument(argument.getType(), argument.getLoc()));
  }
  OpBuilder builder(kernel.getContext());
  builder.setInsertionPointToEnd(body.block.get());
  for (Operation *op : made.ops)
    builder.clone(*op, mapping);
  RowYieldOp::create(builder, part.getLoc(), mapping.lookup(part));
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
    numbers.push_back(programs.add(buildBody(kernel, column.value)));
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
