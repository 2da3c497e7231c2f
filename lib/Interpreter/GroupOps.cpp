//===- GroupOps.cpp - merged tables, stacked rows, split parameters -------===//

#include "genrec/Interpreter/Evaluator.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Stacked rows
//===----------------------------------------------------------------------===//

/// The rows of a stack: `offsets` holds the first row of each part.
static Error evaluateStackDomains(Evaluator &e, StackDomainsOp op) {
  DomainRows rows;
  rows.offsets = {0};
  for (auto [number, part] : llvm::enumerate(op.getParts())) {
    int64_t count = e.rowsOf(part).count;
    rows.parent.insert(rows.parent.end(), count, number);
    rows.count += count;
    rows.offsets.push_back(rows.count);
  }
  e.setRows(op.getResult(), std::move(rows));
  return Error::success();
}

/// Rows [first, first + count) of `x`.
static Tensor takeRows(const Tensor &x, int64_t first, int64_t count, Type type) {
  Tensor result = makeTensor(type, count);
  for (int64_t row = 0; row < count; ++row)
    copyRow(x, first + row, result, row);
  return result;
}

static Error evaluateUnstackRows(Evaluator &e, UnstackRowsOp op) {
  int64_t first = e.rowsOf(op.getStack()).offsets[op.getPart()];
  e.set(op.getResult(),
        takeRows(e.get(op.getX()), first, e.rowsOf(op.getDomain()).count, op.getType()));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Keys of merged tables
//===----------------------------------------------------------------------===//

static Error evaluateMergedKeys(Evaluator &e, MergedKeysOp op) {
  const MergedTable &table = e.state.merged.find(op.getTable())->second;
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  size_t next = 0, validity = 0;
  for (auto [part, idsValue, name] :
       llvm::enumerate(op.getIds(), op.getTables().getAsRange<FlatSymbolRefAttr>())) {
    const Tensor *valid = nullptr;
    if (validity < op.getValidOf().size() &&
        op.getValidOf()[validity] == static_cast<int64_t>(part))
      valid = &e.get(op.getValid()[validity++]);
    size_t member = llvm::find(table.members, name.getValue()) - table.members.begin();
    int64_t bits = e.table(name.getValue()).idBits;
    for (int64_t id : e.get(idsValue).integers()) {
      size_t row = next - static_cast<size_t>(e.rowsOf(op.getDomain()).offsets[part]);
      if (valid && !valid->integers()[row]) {
        result.integers()[next++] = -1;
        continue;
      }
      if (id < 0 || (id >> bits) != 0)
        return fail(op, "has id " + Twine(id) + ", beyond the " + Twine(bits) + " bits of table @" +
                            name.getValue());
      result.integers()[next++] = table.keyOf(member, id);
    }
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateGroupedLookup(Evaluator &e, GroupedLookupOp op) {
  const Tensor &keys = e.get(op.getKeys());
  int64_t first = 0;
  for (auto [domain, value] : llvm::zip(op.getDomains(), op.getResults())) {
    int64_t count = e.rowsOf(domain).count;
    Tensor result = makeTensor(value.getType(), count);
    for (int64_t row = 0; row < count; ++row) {
      llvm::Expected<RowHandle> handle = e.findRow(op, op.getTable(), keys.integers()[first + row]);
      if (!handle)
        return handle.takeError();
      if (!handle->isZero())
        e.readValue(*handle, result.width, result.row(row));
    }
    first += count;
    e.set(value, std::move(result));
  }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Matrices split into rows
//===----------------------------------------------------------------------===//

static Error evaluateSplitShared(Evaluator &e, SplitSharedOp op) {
  const std::vector<double> &whole = e.get(op.getX()).floats();
  auto next = whole.begin();
  for (Value part : op.getParts()) {
    Tensor result = makeTensor(part.getType(), 1);
    std::copy_n(next, result.size(), result.floats().begin());
    next += result.size();
    e.set(part, std::move(result));
  }
  return Error::success();
}

static Error evaluateConcatShared(Evaluator &e, ConcatSharedOp op) {
  Tensor result = makeTensor(op.getType(), 1);
  auto next = result.floats().begin();
  for (Value part : op.getParts())
    next = llvm::copy(e.get(part).floats(), next);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

void interpreter::addGroupOps(HandlerMap &map) {
  map.add<StackDomainsOp, evaluateStackDomains>();
  map.add<UnstackRowsOp, evaluateUnstackRows>();
  map.add<MergedKeysOp, evaluateMergedKeys>();
  map.add<GroupedLookupOp, evaluateGroupedLookup>();
  map.add<SplitSharedOp, evaluateSplitShared>();
  map.add<ConcatSharedOp, evaluateConcatShared>();
}
