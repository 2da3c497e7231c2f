//===- DistinctOps.cpp - work per distinct looked-up row ------------------===//

#include "genrec/Interpreter/Evaluator.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

static Error evaluateDistinctRows(Evaluator &e, DistinctRowsOp op) {
  Tensor::Handles distinct;
  std::vector<std::vector<int64_t>> places;
  for (Value value : op.getRows()) {
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
  Tensor result = makeTensor(op.getResult().getType(), rows.count);
  result.as<RowHandle>() = std::move(distinct);
  e.setRows(op.getDomain(), std::move(rows));
  e.set(op.getResult(), std::move(result));
  e.segments[op.getDomain()] = std::move(places);
  return Error::success();
}

static Error evaluateDistinctLinear(Evaluator &e, DistinctLinearOp op) {
  Factor left(e, op, e.get(op.getValues())), right(e, op, e.get(op.getWeight()));
  const Tensor &values = left, &weight = right;
  const std::vector<std::vector<int64_t>> &places = e.segments[op.getDomain()];
  int64_t columns = getRowSize(op.getType());
  Tensor result = makeTensor(op.getType(), static_cast<int64_t>(places.front().size()));
  for (auto [placeOf, first] : llvm::zip_equal(places, op.getColumns()))
    for (int64_t row = 0; row < result.rows; ++row)
      for (int64_t k = 0; k < values.width; ++k)
        for (int64_t n = 0; n < columns; ++n)
          result.row(row)[n] +=
              values.row(placeOf[row])[k] * weight.floats()[(first + k) * columns + n];
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateDistinctLinearGrad(Evaluator &e, DistinctLinearGradOp op) {
  Factor left(e, op, e.get(op.getValues())), right(e, op, e.get(op.getWeight()));
  const Tensor &values = left, &weight = right;
  const Tensor &gradient = e.get(op.getGradient());
  const std::vector<std::vector<int64_t>> &places = e.segments[op.getDomain()];
  Tensor dvalues = makeTensor(op.getDvalues().getType(), values.rows);
  Tensor dweight = makeTensor(op.getDweight().getType(), 1);
  int64_t columns = gradient.width;
  for (auto [lookup, placeOf, first] : llvm::enumerate(places, op.getColumns())) {
    Tensor sums = Tensor::make<double>(values.rows, columns); // per distinct row
    for (int64_t row = 0; row < gradient.rows; ++row)
      for (int64_t n = 0; n < columns; ++n)
        sums.row(placeOf[row])[n] += gradient.row(row)[n];
    Factor factors(e, op, sums);
    for (int64_t row = 0; row < values.rows; ++row)
      for (int64_t k = 0; k < values.width; ++k)
        for (int64_t n = 0; n < columns; ++n) {
          double g = factors->row(row)[n];
          dvalues.row(row)[k] += g * weight.floats()[(first + k) * columns + n];
          dweight.floats()[(lookup * values.width + k) * columns + n] += g * values.row(row)[k];
        }
  }
  e.set(op.getDvalues(), std::move(dvalues));
  e.set(op.getDweight(), std::move(dweight));
  return Error::success();
}

void interpreter::addDistinctOps(HandlerMap &map) {
  map.add<DistinctRowsOp, evaluateDistinctRows>();
  map.add<DistinctLinearOp, evaluateDistinctLinear>();
  map.add<DistinctLinearGradOp, evaluateDistinctLinearGrad>();
}
