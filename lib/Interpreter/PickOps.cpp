//===- PickOps.cpp - rows that a step picks from a catalogue --------------===//

#include "genrec/Interpreter/Evaluator.h"

#include <map>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

static Error evaluateDrawRows(Evaluator &e, DrawRowsOp op) {
  auto rows = static_cast<uint64_t>(e.rowsOf(op.getSource()).count);
  const DomainRows *each = op.getDomain() ? &e.rowsOf(op.getDomain()) : nullptr;
  Tensor result = makeTensor(op.getType(), each ? each->count : 1);
  for (int64_t row = 0; row < result.rows; ++row)
    for (int64_t draw = 0; draw < result.width; ++draw) {
      uint64_t word = e.word(op.getStream(), each ? each->identity[row] : 0, draw);
      result.integers()[row * result.width + draw] = static_cast<int64_t>((word * rows) >> 32);
    }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

/// Sets the value of a domain that has the rows `source`, and that of their numbers.
static void setPickedRows(Evaluator &e, Value domain, Value numbers, DomainRows rows,
                          std::vector<int64_t> source) {
  Tensor result = makeTensor(numbers.getType(), rows.count);
  result.integers() = std::move(source);
  e.setRows(domain, std::move(rows));
  e.set(numbers, std::move(result));
}

static Error evaluatePickRows(Evaluator &e, PickRowsOp op) {
  const DomainRows &source = e.rowsOf(op.getSource());
  std::map<int64_t, int64_t> places;
  for (Value numbers : op.getNumbers())
    for (int64_t row : e.get(numbers).integers()) {
      if (row < -1 || (row >= source.count && source.count != 0))
        return fail(op, "has row number " + Twine(row) + ", but 'source' has " +
                            Twine(source.count) + " rows");
      if (row >= 0 && source.count != 0)
        places.emplace(row, 0);
    }
  DomainRows rows;
  std::vector<int64_t> picked;
  for (auto &[row, place] : places) {
    place = rows.count++;
    rows.identity.push_back(source.identity[row]);
    picked.push_back(row);
  }
  for (auto [numbers, result] : llvm::zip_equal(op.getNumbers(), op.getPicked())) {
    Tensor moved = e.get(numbers);
    for (int64_t &row : moved.integers())
      if (auto place = places.find(row); place != places.end())
        row = place->second;
    e.set(result, std::move(moved));
  }
  setPickedRows(e, op.getDomain(), op.getRows(), std::move(rows), std::move(picked));
  return Error::success();
}

static Error evaluatePickLists(Evaluator &e, PickListsOp op) {
  const DomainRows &source = e.rowsOf(op.getSource());
  const Tensor &parents = e.get(op.getParents());
  DomainRows rows;
  rows.above = &e.rowsOf(op.getParents().getType());
  std::vector<int64_t> picked;
  for (auto [list, parent] : llvm::enumerate(parents.integers())) {
    rows.offsets.push_back(rows.count);
    for (int64_t row = source.offsets[parent]; row < source.offsets[parent + 1]; ++row) {
      rows.parent.push_back(static_cast<int64_t>(list));
      rows.identity.push_back(source.identity[row]);
      picked.push_back(row);
      ++rows.count;
    }
  }
  rows.offsets.push_back(rows.count);
  setPickedRows(e, op.getDomain(), op.getRows(), std::move(rows), std::move(picked));
  return Error::success();
}

void interpreter::addPickOps(HandlerMap &map) {
  map.add<DrawRowsOp, evaluateDrawRows>();
  map.add<PickRowsOp, evaluatePickRows>();
  map.add<PickListsOp, evaluatePickLists>();
}
