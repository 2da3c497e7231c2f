//===- KernelOps.cpp - row kernels and the ops of their bodies ------------===//
//
// A body is evaluated op by op like a program, each op for all rows at once. Values that do not
// depend on the row are shared tensors.
//
//===----------------------------------------------------------------------===//

#include "Random.h"
#include "genrec/Interpreter/Evaluator.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Row kernels
//===----------------------------------------------------------------------===//

/// The rows of `x` that `rowOf` gives for each of `count` rows.
template <typename RowOf> static Tensor takeRows(const Tensor &x, int64_t count, RowOf rowOf) {
  return std::visit(
      [&](const auto &source) {
        using Values = std::decay_t<decltype(source)>;
        Tensor result = Tensor::make<typename Values::value_type>(count, x.width);
        for (int64_t row = 0; row < count; ++row)
          copyRow(x, rowOf(row), result, row);
        return result;
      },
      x.data);
}

Tensor interpreter::fanOut(const Tensor &x, const DomainRows &rows, const DomainRows &from) {
  return takeRows(x, rows.count, [&](int64_t row) { return rows.ancestorRow(row, from); });
}

/// The number of rows of an accumulated result: 1 where it is shared.
static int64_t accumulatorRows(Evaluator &e, Type type) {
  return getRowDomain(type) ? e.rowsOf(type).count : 1;
}

/// What a kernel's rows read as `input`.
static Tensor readInput(Evaluator &e, Value input, OperandRole role) {
  if (role == OperandRole::ancestor)
    return fanOut(e.get(input), *e.kernelRows, e.rowsOf(input.getType()));
  if (role == OperandRole::untruncated)
    return takeRows(e.get(input), e.kernelRows->count,
                    [&](int64_t row) { return e.kernelRows->source[row]; });
  return e.get(input);
}

static void bindArguments(Evaluator &e, RowKernelOp op) {
  Block &body = op.getBody().front();
  size_t next = 0;
  for (auto [input, role] : llvm::zip(op.getInputs(), op.getOperandRoles()))
    e.set(body.getArgument(next++), readInput(e, input, cast<OperandRoleAttr>(role).getValue()));
  for (auto [index, type] : llvm::enumerate(op.getResultTypes()))
    if (isAccumulated(op.getKernelResultRole(index)))
      e.set(body.getArgument(next++), makeTensor(type, accumulatorRows(e, type)));
}

static void setResults(Evaluator &e, RowKernelOp op) {
  Block &body = op.getBody().front();
  const DomainRows &rows = *e.kernelRows;
  size_t accumulator = op.getInputs().size(), yielded = 0, pool = 0;
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (isAccumulated(op.getKernelResultRole(index))) {
      e.set(result, e.get(body.getArgument(accumulator++)));
      continue;
    }
    Tensor value = repeatRows(e.get(body.getTerminator()->getOperand(yielded++)), rows.count);
    if (op.getKernelResultRole(index) == ResultRole::pooled) {
      PoolKind kind = cast<PoolKindAttr>((*op.getPoolKinds())[pool++]).getValue();
      value = poolRows(e, kind, value, rows, e.rowsOf(result.getType()), result.getType());
    }
    e.set(result, std::move(value));
  }
}

/// Evaluates the ops of a body whose arguments are set.
static Error evaluateBody(Evaluator &e, Block &body) {
  for (Operation &inner : body.without_terminator())
    if (Error error = e.evaluate(&inner))
      return error;
  return Error::success();
}

/// Erases the values of a body, which may be evaluated again.
static void eraseBody(Evaluator &e, Block &body) {
  for (Value argument : body.getArguments())
    e.erase(argument);
  for (Operation &inner : body)
    for (Value result : inner.getResults())
      e.erase(result);
}

static Error evaluateRowKernel(Evaluator &e, RowKernelOp op) {
  Block &body = op.getBody().front();
  e.kernelRows = &e.rowsOf(op.getDomain());
  e.updatesRows = !body.getOps<RowStoreOp>().empty();
  bindArguments(e, op);
  if (Error error = evaluateBody(e, body))
    return error;
  setResults(e, op);
  e.kernelRows = nullptr;
  e.updatesRows = false;
  eraseBody(e, body);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Column programs
//===----------------------------------------------------------------------===//

static Error evaluateTransformColumns(Evaluator &e, TransformColumnsOp op) {
  SmallVector<Tensor> results;
  for (auto [domain, result] : llvm::zip(op.getDomains(), op.getResults()))
    results.push_back(makeTensor(result.getType(), e.rowsOf(domain).count));
  for (const TransformColumnsOp::Column &column : op.getColumns()) {
    Block &body = op.getBodies()[column.program].front();
    Value domain = op.getColumnDomain(column);
    e.kernelRows = &e.rowsOf(domain);
    for (auto [number, input] : llvm::enumerate(column.inputs))
      e.set(body.getArgument(number), readInput(e, input, op.getInputRole(column, number)));
    if (Error error = evaluateBody(e, body))
      return error;
    Tensor keys = repeatRows(e.get(body.getTerminator()->getOperand(0)), e.kernelRows->count);
    int64_t first = e.rowsOf(op.getDomains()[column.result]).offsets[column.part];
    llvm::copy(keys.integers(), results[column.result].integers().begin() + first);
    e.kernelRows = nullptr;
    eraseBody(e, body);
  }
  for (auto [result, tensor] : llvm::zip(op.getResults(), results))
    e.set(result, std::move(tensor));
  return Error::success();
}

/// The number of edges <= x; 0 for NaN.
static Error evaluateRowSearch(Evaluator &e, RowSearchOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getResult().getType(), x.rows);
  result.shared = x.shared;
  ArrayRef<double> edges = e.get(op.getEdges()).floats();
  for (int64_t i = 0; i < x.size(); ++i) {
    double value = x.isFloat() ? x.floats()[i] : static_cast<double>(x.integers()[i]);
    result.integers()[i] = bucketOf(value, edges);
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Table and parameter rows
//===----------------------------------------------------------------------===//

static Error evaluateRowLoad(Evaluator &e, RowLoadOp op) {
  const Tensor &rows = e.get(op.getRow());
  Tensor result = makeTensor(op.getResult().getType(), rows.rows);
  for (int64_t row = 0; row < rows.rows; ++row)
    if (RowHandle handle = rows.handles()[row]; handle.isZero())
      continue;
    else if (op.getSlot() == 0 && !op.getWhole())
      e.readValue(handle, result.width, result.row(row));
    else
      std::copy_n(handle.value + op.getSlot() * handle.slotStride, result.width, result.row(row));
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowStore(Evaluator &e, RowStoreOp op) {
  const Tensor &rows = e.get(op.getRow()), &value = e.get(op.getValue());
  bool rounds = op.getSlot() == 0 && op.getRow().getType().getElement() == RowElement::bf16;
  for (int64_t row = 0; row < rows.rows; ++row)
    if (RowHandle handle = rows.handles()[row]; !handle.isZero()) {
      double *to = handle.value + op.getSlot() * handle.slotStride;
      std::copy_n(value.row(row), value.width, to);
      if (rounds && !handle.isHot)
        std::transform(to, to + value.width, to, [&](double x) { return e.storedBf16(x); });
    }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Gathering and accumulating
//===----------------------------------------------------------------------===//

namespace {
/// A tensor as rows that an index addresses; the rows of [n] are its elements.
struct IndexedRows {
  int64_t count, width;

  IndexedRows(Type type, int64_t size) {
    auto tensor = cast<RankedTensorType>(type);
    width = tensor.getRank() == 2 ? tensor.getDimSize(1) : 1;
    count = size / width;
  }
};
} // namespace

/// The row that an index addresses; -1 for none.
static llvm::Expected<int64_t> rowAt(Operation *op, int64_t index, int64_t count, bool clamp) {
  if (clamp && count > 0)
    return std::clamp<int64_t>(index, 0, count - 1);
  if (index >= -1 && index < count)
    return index;
  return fail(op, "has index " + Twine(index) + ", but there are " + Twine(count) + " rows");
}

static Error evaluateRowGather(Evaluator &e, RowGatherOp op) {
  const Tensor &source = e.get(op.getSource()), &index = e.get(op.getIndex());
  IndexedRows rows(op.getSource().getType(), source.size());
  Tensor result = makeTensor(op.getResult().getType(), index.rows);
  result.shared = index.shared;
  for (int64_t i = 0; i < index.size(); ++i) {
    llvm::Expected<int64_t> from = rowAt(op, index.integers()[i], rows.count, op.getClamp());
    if (!from)
      return from.takeError();
    if (*from < 0)
      continue;
    std::visit(
        [&](auto &target) {
          using Values = std::decay_t<decltype(target)>;
          const auto &values = source.as<typename Values::value_type>();
          std::copy_n(values.begin() + *from * rows.width, rows.width,
                      target.begin() + i * rows.width);
        },
        result.data);
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateGatherDot(Evaluator &e, GatherDotOp op) {
  const Tensor &source = e.get(op.getSource()), &index = e.get(op.getIndex());
  const Tensor &row = e.get(op.getRow());
  IndexedRows rows(op.getSource().getType(), source.size());
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  for (int64_t r = 0; r < result.rows; ++r)
    for (int64_t j = 0; j < result.width; ++j) {
      llvm::Expected<int64_t> from = rowAt(op, index.integers()[index.at(r, j)], rows.count, false);
      if (!from)
        return from.takeError();
      for (int64_t i = 0; *from >= 0 && i < rows.width; ++i)
        result.row(r)[j] += source.floats()[*from * rows.width + i] * row.row(r)[i];
    }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateGatherSum(Evaluator &e, GatherSumOp op) {
  const Tensor &source = e.get(op.getSource()), &index = e.get(op.getIndex());
  const Tensor &coefficient = e.get(op.getCoefficient());
  IndexedRows rows(op.getSource().getType(), source.size());
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  for (int64_t r = 0; r < result.rows; ++r)
    for (int64_t j = 0; j < coefficient.width; ++j) {
      llvm::Expected<int64_t> from = rowAt(op, index.integers()[index.at(r, j)], rows.count, false);
      if (!from)
        return from.takeError();
      for (int64_t i = 0; *from >= 0 && i < rows.width; ++i)
        result.row(r)[i] +=
            coefficient.floats()[coefficient.at(r, j)] * source.floats()[*from * rows.width + i];
    }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateAccumulate(Evaluator &e, AccumulateOp op) {
  const Tensor &value = e.get(op.getValue());
  const Tensor *index = op.getIndex() ? &e.get(op.getIndex()) : nullptr;
  const Tensor *coefficient = op.getCoefficient() ? &e.get(op.getCoefficient()) : nullptr;
  Tensor &accumulator = e.accumulator(op.getAccumulator());
  int64_t count = accumulator.size() / value.width, draws = index ? index->width : 1;
  for (int64_t row = 0; row < e.kernelRows->count; ++row)
    for (int64_t j = 0; j < draws; ++j) {
      int64_t target = 0;
      if (index) {
        llvm::Expected<int64_t> found =
            rowAt(op, index->integers()[index->at(row, j)], count, op.getClamp());
        if (!found)
          return found.takeError();
        target = *found;
      }
      double factor = coefficient ? coefficient->floats()[coefficient->at(row, j)] : 1.0;
      for (int64_t i = 0; target >= 0 && i < value.width; ++i)
        if (value.isFloat()) {
          double &sum = accumulator.floats()[target * value.width + i];
          sum = e.perturbed(sum + factor * value.row(row)[i]);
        } else
          accumulator.integers()[target * value.width + i] += value.integers()[value.at(row, i)];
    }
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static Error evaluateKeepMask(Evaluator &e, KeepMaskOp op) {
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  double rate = op.getRate().convertToDouble();
  size_t next = 0;
  forEachElement(result, [&](int64_t row, int64_t column) {
    result.integers()[next++] = e.keeps(rate, op.getStream(), e.kernelRows->identity[row], column);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowUniform(Evaluator &e, RowUniformOp op) {
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  size_t next = 0;
  forEachElement(result, [&](int64_t row, int64_t column) {
    result.floats()[next++] = e.uniform(op.getStream(), e.kernelRows->identity[row], column);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowBits(Evaluator &e, RowBitsOp op) {
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  size_t next = 0;
  forEachElement(result, [&](int64_t row, int64_t column) {
    result.integers()[next++] = e.half(op.getStream(), e.kernelRows->identity[row], column);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowRound(Evaluator &e, RowRoundOp op) {
  const Tensor &x = e.get(op.getX()), &bits = e.get(op.getBits());
  Tensor result = makeTensor(op.getResult().getType(), x.rows);
  for (int64_t i = 0; i < x.size(); ++i)
    result.floats()[i] = e.storedBf16(x.floats()[i], static_cast<uint16_t>(bits.integers()[i]));
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowHot(Evaluator &e, RowHotOp op) {
  const Tensor &rows = e.get(op.getRow());
  Tensor result = makeTensor(op.getResult().getType(), rows.rows);
  for (int64_t row = 0; row < rows.rows; ++row)
    result.integers()[row] = rows.handles()[row].isHot;
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRandomIndex(Evaluator &e, RandomIndexOp op) {
  IndexedRows rows(op.getSource().getType(), e.get(op.getSource()).size());
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  if (result.rows > 0 && rows.count == 0)
    return fail(op, "draws from a source without rows");
  size_t next = 0;
  forEachElement(result, [&](int64_t row, int64_t column) {
    uint64_t identity = op.getShared() ? 0 : e.kernelRows->identity[row];
    uint64_t word = e.word(op.getStream(), identity, column);
    result.integers()[next++] = static_cast<int64_t>((word * uint64_t(rows.count)) >> 32);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Shapes
//===----------------------------------------------------------------------===//

static Error evaluateRowIota(Evaluator &e, RowIotaOp op) {
  Tensor result = makeTensor(op.getResult().getType(), 1);
  result.shared = true;
  for (int64_t i = 0; i < result.width; ++i)
    result.integers()[i] = i;
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowConcat(Evaluator &e, RowConcatOp op) {
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  int64_t offset = 0;
  for (Value part : op.getParts()) {
    copyColumns(e.get(part), 0, result, offset, e.get(part).width);
    offset += e.get(part).width;
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRowSlice(Evaluator &e, RowSliceOp op) {
  Tensor result = makeTensor(op.getResult().getType(), e.kernelRows->count);
  copyColumns(e.get(op.getX()), op.getOffset(), result, 0, result.width);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

void interpreter::addKernelOps(HandlerMap &map) {
  map.add<RowKernelOp, evaluateRowKernel>();
  map.add<RowLoadOp, evaluateRowLoad>();
  map.add<RowStoreOp, evaluateRowStore>();
  map.add<RowGatherOp, evaluateRowGather>();
  map.add<GatherDotOp, evaluateGatherDot>();
  map.add<GatherSumOp, evaluateGatherSum>();
  map.add<AccumulateOp, evaluateAccumulate>();
  map.add<KeepMaskOp, evaluateKeepMask>();
  map.add<RowUniformOp, evaluateRowUniform>();
  map.add<RowBitsOp, evaluateRowBits>();
  map.add<RowRoundOp, evaluateRowRound>();
  map.add<RowHotOp, evaluateRowHot>();
  map.add<RandomIndexOp, evaluateRandomIndex>();
  map.add<TransformColumnsOp, evaluateTransformColumns>();
  map.add<RowSearchOp, evaluateRowSearch>();
  map.add<RowIotaOp, evaluateRowIota>();
  map.add<RowConcatOp, evaluateRowConcat>();
  map.add<RowSliceOp, evaluateRowSlice>();
}
