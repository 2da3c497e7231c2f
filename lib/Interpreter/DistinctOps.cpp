//===- DistinctOps.cpp - work per distinct looked-up row ------------------===//

#include "genrec/Interpreter/Evaluator.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

/// Finds the distinct rows of one group of lookups.
static void findDistinctRows(Evaluator &e, ValueRange lookups, Value domain, Value handles) {
  Tensor::Handles distinct;
  std::vector<std::vector<int64_t>> places;
  for (Value value : lookups) {
    const Tensor &rows = e.get(value);
    std::map<const double *, int64_t> numbers; // per lookup, as no two lookups share a row
    std::vector<int64_t> &placeOf = places.emplace_back(rows.rows);
    for (int64_t row = 0; row < rows.rows; ++row) {
      RowHandle handle = rows.handles()[row];
      auto [place, isNew] = numbers.try_emplace(handle.value, distinct.size());
      if (isNew)
        distinct.push_back(handle);
      placeOf[row] = place->second;
    }
  }
  DomainRows rows;
  rows.count = static_cast<int64_t>(distinct.size());
  rows.offsets = {0, rows.count};
  rows.parent.assign(rows.count, 0);
  Tensor result = makeTensor(handles.getType(), rows.count);
  result.as<RowHandle>() = std::move(distinct);
  e.setRows(domain, std::move(rows));
  e.set(handles, std::move(result));
  e.segments[domain] = std::move(places);
}

static Error evaluateDistinctRows(Evaluator &e, DistinctRowsOp op) {
  for (auto [lookups, domain, handles] :
       llvm::zip_equal(op.getRows(), op.getDomains(), op.getHandles()))
    findDistinctRows(e, lookups, domain, handles);
  return Error::success();
}

static Error evaluateDistinctLinear(Evaluator &e, DistinctLinearOp op) {
  Factor right(e, op, e.get(op.getWeight()));
  const Tensor &weight = right;
  int64_t columns = getRowSize(op.getType());
  ArrayRef<int64_t> firsts = op.getColumns();
  int64_t rows = static_cast<int64_t>(e.segments[op.getDomains().front()].front().size());
  Tensor result = makeTensor(op.getType(), rows);
  for (auto [domain, value] : llvm::zip_equal(op.getDomains(), op.getValues())) {
    Factor left(e, op, e.get(value));
    const Tensor &values = left;
    for (const std::vector<int64_t> &placeOf : e.segments[domain]) {
      for (int64_t row = 0; row < result.rows; ++row)
        for (int64_t k = 0; k < values.width; ++k)
          for (int64_t n = 0; n < columns; ++n)
            result.row(row)[n] +=
                values.row(placeOf[row])[k] * weight.floats()[(firsts.front() + k) * columns + n];
      firsts = firsts.drop_front();
    }
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateDistinctLinearGrad(Evaluator &e, DistinctLinearGradOp op) {
  Factor right(e, op, e.get(op.getWeight()));
  const Tensor &weight = right, &gradient = e.get(op.getGradient());
  Tensor dweight = makeTensor(op.getDweight().getType(), 1);
  int64_t columns = gradient.width, ofWeight = 0; // rows of `dweight` before a lookup's
  ArrayRef<int64_t> firsts = op.getColumns();
  for (auto [domain, value, result] :
       llvm::zip_equal(op.getDomains(), op.getValues(), op.getDvalues())) {
    Factor left(e, op, e.get(value));
    const Tensor &values = left;
    Tensor dvalues = makeTensor(result.getType(), values.rows);
    for (const std::vector<int64_t> &placeOf : e.segments[domain]) {
      Tensor sums = Tensor::make<double>(values.rows, columns); // per distinct row
      for (int64_t row = 0; row < gradient.rows; ++row)
        for (int64_t n = 0; n < columns; ++n)
          sums.row(placeOf[row])[n] += gradient.row(row)[n];
      Factor factors(e, op, sums);
      for (int64_t row = 0; row < values.rows; ++row)
        for (int64_t k = 0; k < values.width; ++k)
          for (int64_t n = 0; n < columns; ++n) {
            double g = factors->row(row)[n];
            dvalues.row(row)[k] += g * weight.floats()[(firsts.front() + k) * columns + n];
            dweight.floats()[(ofWeight + k) * columns + n] += g * values.row(row)[k];
          }
      firsts = firsts.drop_front();
      ofWeight += values.width;
    }
    e.set(result, std::move(dvalues));
  }
  e.set(op.getDweight(), std::move(dweight));
  return Error::success();
}

void interpreter::addDistinctOps(HandlerMap &map) {
  map.add<DistinctRowsOp, evaluateDistinctRows>();
  map.add<DistinctLinearOp, evaluateDistinctLinear>();
  map.add<DistinctLinearGradOp, evaluateDistinctLinearGrad>();
}
