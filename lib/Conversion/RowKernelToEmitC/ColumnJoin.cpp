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

/// Of fewer parts a thread makes all without much delay, and reads once what several are made of.
static constexpr size_t kFewestParts = 16;

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

RowConcatOp genrec::findColumnJoin(RowKernelOp kernel) {
  if (kernel.getNumResults() != 1 || getRowBlock(kernel) ||
      kernel.getKernelResultRole(0) != ResultRole::aligned)
    return {};
  Block &body = kernel.getBody().front();
  auto join = body.getTerminator()->getOperand(0).getDefiningOp<RowConcatOp>();
  if (!join || !join->hasOneUse() || join.getParts().size() < kFewestParts ||
      !getElementTypeOrSelf(join.getType()).isF32())
    return {};
  for (auto [input, argument, role] :
       llvm::zip(kernel.getInputs(), body.getArguments(),
                 kernel.getOperandRoles().getAsRange<OperandRoleAttr>()))
    if (!mayRead(input, argument, role.getValue()))
      return {};
  size_t ops = 0;
  for (Value part : join.getParts())
    ops += PartBody(part).ops.size();
  // What parts share is made for each of them.
  const auto own = static_cast<size_t>(llvm::range_size(body.without_terminator()));
  const bool fits = llvm::all_of(body.without_terminator(),
                                 [&](Operation &op) { return &op == join || fitsColumn(op); });
  return fits && ops <= 2 * own ? join : RowConcatOp();
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
                                  builder.getArrayAttr(roles), kernel.getResultRoles(),
                                  /*pool_kinds=*/ArrayAttr(), kernel.getNameAttr());
  made->setAttr(GenRecDialect::JoinedAtAttrHelper::getNameStr(),
                builder.getDenseI64ArrayAttr(place));
  return made;
}

SmallVector<JoinedPart> genrec::splitJoin(RowKernelOp kernel, RowConcatOp join) {
  SmallVector<std::pair<Value, int64_t>> parts; // that are made here, and where
  SmallVector<unsigned> numbers;
  ColumnPrograms programs;
  int64_t next = 0;
  for (Value part : join.getParts()) {
    const int64_t offset = next;
    next += isVector(part) ? getExtent(part) : 1;
    auto argument = dyn_cast<BlockArgument>(part);
    if (argument && isJoinedInPlace(kernel, kernel.getInputs()[argument.getArgNumber()]))
      continue;
    parts.emplace_back(part, offset);
    numbers.push_back(programs.add(buildBody(kernel, part)));
  }
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
  const int64_t stride = getRowAddress(kernel->getResult(0)).stride;
  OpBuilder builder(kernel);
  SmallVector<JoinedPart> made;
  for (auto [part, program, inputs] :
       llvm::zip_equal(parts, numbers, programs.makeInputs(builder, builder.getUnknownLoc()))) {
    RowKernelOp own =
        createPart(kernel, part.first, inputs,
                   llvm::map_to_vector(ArrayRef<Value>(inputs), getRole), {part.second, stride});
    programs.fill(program, own.getBody());
    made.push_back({own, part.second});
  }
  return made;
}
