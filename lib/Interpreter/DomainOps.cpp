//===- DomainOps.cpp - batches, features, moves between domains -----------===//

#include "Random.h"
#include "genrec/Interpreter/Evaluator.h"
#include "genrec_rt/pool_pieces.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// Values of domains
//===----------------------------------------------------------------------===//

// Evaluator::run builds these rows before the first op.
static Error evaluateBatch(Evaluator &, BatchOp) { return Error::success(); }
static Error evaluateCatalogue(Evaluator &, CatalogueOp) { return Error::success(); }

static Error evaluateTruncate(Evaluator &e, TruncateOp op) {
  const DomainRows &source = e.rowsOf(op.getSource());
  int64_t count = op.getCount();
  DomainRows rows;
  rows.above = source.above;
  source.forEachList([&](int64_t begin, int64_t end) {
    rows.offsets.push_back(rows.count);
    int64_t surplus = std::max<int64_t>(end - begin - count, 0);
    if (op.getKeep() == KeepKind::last)
      begin += surplus;
    else
      end -= surplus;
    for (int64_t row = begin; row < end; ++row) {
      rows.parent.push_back(source.parent[row]);
      rows.identity.push_back(source.identity[row]);
      rows.source.push_back(row);
      ++rows.count;
    }
  });
  rows.offsets.push_back(rows.count);
  e.setRows(op.getResult(), std::move(rows));
  return Error::success();
}

static Error evaluateConcatDomains(Evaluator &e, ConcatDomainsOp op) {
  DomainOp declaration = lookupDomain(op, cast<DomainType>(op.getResult().getType()).getDomain());
  llvm::Expected<const DomainRows *> above = e.domain(op, declaration.getParentAttr());
  if (!above)
    return above.takeError();
  DomainRows rows;
  rows.above = *above;
  for (int64_t list = 0; list < rows.above->count; ++list) {
    rows.offsets.push_back(rows.count);
    for (auto [part, sourceValue] : llvm::enumerate(op.getSources())) {
      const DomainRows &source = e.rowsOf(sourceValue);
      bool isParent = &source == rows.above;
      int64_t begin = isParent ? list : source.offsets[list];
      int64_t end = isParent ? list + 1 : source.offsets[list + 1];
      for (int64_t row = begin; row < end; ++row) {
        rows.parent.push_back(list);
        rows.identity.push_back(childIdentity(source.identity[row], part));
        rows.source.push_back(row);
        rows.part.push_back(static_cast<int32_t>(part));
        ++rows.count;
      }
    }
  }
  rows.offsets.push_back(rows.count);
  e.setRows(op.getResult(), std::move(rows));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Features
//===----------------------------------------------------------------------===//

template <class OpT> static llvm::Expected<const Column *> findColumn(Evaluator &e, OpT op) {
  StringRef domain = cast<DomainType>(op.getDomain().getType()).getDomain().getValue();
  const BatchRows &rows = e.batch.domains.find(domain)->second;
  auto column = rows.columns.find(op.getColumn());
  if (column == rows.columns.end())
    return fail(op, "reads column '" + op.getColumn() + "' of @" + domain +
                        ", which the batch does not have");
  return &column->second;
}

/// The error for a column whose type is not the feature's.
static Error wrongType(FeatureOp op) {
  std::string type = describe(op.getType());
  return fail(op, "reads column '" + op.getColumn() + "' as " + type +
                      ", but the batch holds values of another type");
}

static Error checkInteger(FeatureOp op, int64_t value, int64_t row) {
  Type element = getElementTypeOrSelf(op.getType());
  auto outside = [&](const Twine &rule) {
    return fail(op, "reads " + Twine(value) + " in row " + Twine(row) + " of column '" +
                        op.getColumn() + "', " + rule);
  };
  if (element.isInteger(1) && value != 0 && value != 1)
    return outside("which is no boolean");
  if (element.isInteger(32) && value != static_cast<int32_t>(value))
    return outside("beyond 32 bits");
  if (int64_t bits = op.getIdBits(); bits > 0 && (value < 0 || (value >> bits) != 0))
    return outside("beyond its " + Twine(bits) + " bits");
  return Error::success();
}

static Error evaluateFeature(Evaluator &e, FeatureOp op) {
  llvm::Expected<const Column *> found = findColumn(e, op);
  if (!found)
    return found.takeError();
  const Column &column = **found;
  const DomainRows &rows = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), rows.count);
  bool isFloat32 = getElementTypeOrSelf(op.getType()).isF32();
  auto *integers = std::get_if<std::vector<int64_t>>(&column.values);
  auto *floats = std::get_if<std::vector<double>>(&column.values);
  auto *strings = std::get_if<std::vector<std::string>>(&column.values);
  if (column.width != result.width || (result.isInteger() && !integers) ||
      (result.isFloat() && !floats) || (result.isString() && !strings))
    return wrongType(op);
  for (int64_t row = 0; row < rows.count; ++row) {
    int64_t from = rows.sourceOf(row);
    if (!column.valid.empty() && !column.valid[from]) {
      if (!op.getNullable())
        return fail(op, "reads a null in row " + Twine(from) + " of column '" + op.getColumn() +
                            "', which is not nullable");
      continue;
    }
    if (integers) {
      if (Error error = checkInteger(op, (*integers)[from], from))
        return error;
      result.integers()[row] = (*integers)[from];
    } else if (floats) {
      for (int64_t i = 0; i < result.width; ++i) {
        double value = (*floats)[from * result.width + i];
        result.row(row)[i] = isFloat32 ? static_cast<float>(value) : value;
      }
    } else {
      result.as<std::string>()[row] = (*strings)[from];
    }
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateFeatureValid(Evaluator &e, FeatureValidOp op) {
  llvm::Expected<const Column *> column = findColumn(e, op);
  if (!column)
    return column.takeError();
  const DomainRows &rows = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), rows.count);
  for (int64_t row = 0; row < rows.count; ++row)
    result.integers()[row] = (*column)->valid.empty() || (*column)->valid[rows.sourceOf(row)];
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateParam(Evaluator &e, ParamOp op) {
  Tensor result = makeTensor(op.getType(), 1);
  llvm::copy(e.parameterBefore(op.getParameter()), result.floats().begin());
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateConstant(Evaluator &e, ConstantOp op) {
  auto value = dyn_cast<DenseElementsAttr>(op.getValue());
  if (!value)
    return fail(op, "has a value that is not dense");
  Tensor result = makeTensor(op.getType(), 1);
  if (result.isFloat())
    llvm::transform(value.getValues<APFloat>(), result.floats().begin(), [](APFloat x) {
      bool losesInfo;
      x.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &losesInfo);
      return x.convertToDouble();
    });
  else
    llvm::transform(value.getValues<APInt>(), result.integers().begin(),
                    [](const APInt &x) { return x.getSExtValue(); });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Derived domains
//===----------------------------------------------------------------------===//

static Error evaluateDerive(Evaluator &e, DeriveOp op) {
  const DomainRows &rows = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), rows.count);
  // Rows that pad_domain added have no source and stay 0.
  for (int64_t row = 0; row < rows.count; ++row)
    if (rows.source[row] >= 0)
      copyRow(e.get(op.getX()), rows.source[row], result, row);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateDeriveGrad(Evaluator &e, DeriveGradOp op) {
  const DomainRows &derived = e.rowsOf(op.getX().getType());
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  for (int64_t row = 0; row < derived.count; ++row)
    if (derived.source[row] >= 0)
      copyRow(e.get(op.getX()), row, result, derived.source[row]);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateConcatRows(Evaluator &e, ConcatRowsOp op) {
  const DomainRows &rows = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), rows.count);
  for (int64_t row = 0; row < rows.count; ++row)
    copyRow(e.get(op.getParts()[rows.part[row]]), rows.source[row], result, row);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateSplitRows(Evaluator &e, SplitRowsOp op) {
  const DomainRows &joined = e.rowsOf(op.getX().getType());
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  for (int64_t row = 0; row < joined.count; ++row)
    if (joined.part[row] == static_cast<int64_t>(op.getPart()))
      copyRow(e.get(op.getX()), row, result, joined.source[row]);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Pooling and fan-out
//===----------------------------------------------------------------------===//

static Error evaluateFanout(Evaluator &e, FanoutOp op) {
  const DomainRows &rows = e.rowsOf(op.getDomain());
  const DomainRows &from = e.rowsOf(op.getX().getType());
  Tensor result = makeTensor(op.getType(), rows.count);
  for (int64_t row = 0; row < rows.count; ++row)
    copyRow(e.get(op.getX()), rows.ancestorRow(row, from), result, row);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static double rounded(const Evaluator &e, double sum) { return e.perturbed(sum); }
static int64_t rounded(const Evaluator &, int64_t sum) { return sum; }

/// Combines x, the next row of a list, with the result of the rows before it. A sum may be far
/// smaller than its terms: each addition is rounded.
template <class T>
static T combine(const Evaluator &e, PoolKind kind, T before, T x, bool isFirst) {
  switch (kind) {
  case PoolKind::sum:
  case PoolKind::mean:
    return isFirst ? before + x : rounded(e, before + x);
  case PoolKind::max:
    // NaN propagates.
    return isFirst || x > before || x != x ? x : before;
  case PoolKind::first:
    return isFirst ? x : before;
  case PoolKind::last:
    return x;
  }
  llvm_unreachable("every kind of pool is handled");
}

/// Sums have the order of pool_pieces.h: `result` is that of the current piece of each list, and
/// `before` that of the pieces before it.
template <class T>
static void poolInto(const Evaluator &e, PoolKind kind, const Tensor &x, const DomainRows &from,
                     const DomainRows &to, Tensor &result) {
  const bool isSum = kind == PoolKind::sum || kind == PoolKind::mean;
  std::vector<int64_t> lengths(to.count, 0);
  std::vector<T> before(to.count * x.width, T());
  auto addBefore = [&](int64_t element, int64_t length) {
    T piece = result.as<T>()[element];
    bool isFirst = length <= rt::kernels::kPoolPiece;
    return isFirst ? piece : rounded(e, before[element] + piece);
  };
  for (int64_t row = 0; row < from.count; ++row) {
    int64_t target = from.ancestorRow(row, to), length = lengths[target];
    bool isFirst = isSum ? length % rt::kernels::kPoolPiece == 0 : length == 0;
    for (int64_t column = 0; column < x.width; ++column) {
      int64_t element = target * x.width + column;
      T &place = result.as<T>()[element];
      if (isSum && isFirst && length > 0) {
        before[element] = addBefore(element, length);
        place = T();
      }
      place = combine(e, kind, place, x.as<T>()[row * x.width + column], isFirst);
    }
    ++lengths[target];
  }
  if (isSum)
    forEachElement(result, [&](int64_t row, int64_t column) {
      int64_t element = row * result.width + column;
      result.as<T>()[element] = addBefore(element, lengths[row]);
      if (kind == PoolKind::mean && lengths[row] > 0)
        result.as<T>()[element] /= static_cast<T>(lengths[row]);
    });
}

Tensor interpreter::poolRows(const Evaluator &e, PoolKind kind, const Tensor &x,
                             const DomainRows &from, const DomainRows &to, Type resultType) {
  Tensor result = makeTensor(resultType, to.count);
  if (x.isFloat())
    poolInto<double>(e, kind, x, from, to, result);
  else
    poolInto<int64_t>(e, kind, x, from, to, result);
  return result;
}

static Error evaluatePool(Evaluator &e, PoolOp op) {
  const DomainRows &from = e.rowsOf(op.getX().getType()), &to = e.rowsOf(op.getDomain());
  e.set(op.getResult(), poolRows(e, op.getKind(), e.get(op.getX()), from, to, op.getType()));
  return Error::success();
}

static Error evaluatePoolGrad(Evaluator &e, PoolGradOp op) {
  const Tensor &x = e.get(op.getX()), &gradient = e.get(op.getGradient());
  Tensor result = makeTensor(op.getType(), x.rows);
  int64_t list = 0;
  e.rowsOf(op.getType()).forEachList([&](int64_t begin, int64_t end) {
    for (int64_t column = 0; column < x.width && begin < end; ++column) {
      int64_t chosen = op.getKind() == PoolKind::last ? end - 1 : begin;
      for (int64_t row = begin; op.getKind() == PoolKind::max && row < end; ++row)
        if (x.row(row)[column] > x.row(chosen)[column])
          chosen = row;
      result.row(chosen)[column] = gradient.row(list)[column];
    }
    ++list;
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Lead, lag, gather
//===----------------------------------------------------------------------===//

template <class OpT> static Error shift(Evaluator &e, OpT op, int64_t distance) {
  const DomainRows &rows = e.rowsOf(op.getX().getType());
  Tensor result = makeTensor(op.getResult().getType(), rows.count);
  Tensor valid = makeTensor(op.getValid().getType(), rows.count);
  rows.forEachList([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      // Compares without adding: the distance may be any 64-bit number.
      if (distance > 0 ? distance >= end - row : distance < begin - row)
        continue;
      copyRow(e.get(op.getX()), row + distance, result, row);
      valid.integers()[row] = 1;
    }
  });
  e.set(op.getResult(), std::move(result));
  e.set(op.getValid(), std::move(valid));
  return Error::success();
}

static Error evaluateLead(Evaluator &e, LeadOp op) { return shift(e, op, op.getDistance()); }
static Error evaluateLag(Evaluator &e, LagOp op) {
  return shift(e, op, -static_cast<int64_t>(op.getDistance()));
}

static Error evaluatePosition(Evaluator &e, PositionOp op) {
  const DomainRows &rows = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), rows.count);
  rows.forEachList([&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      result.integers()[row] = op.getFromEnd() ? end - 1 - row : row - begin;
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateLength(Evaluator &e, LengthOp op) {
  for (auto [children, length] : llvm::zip_equal(op.getChildren(), op.getLengths())) {
    Tensor result = makeTensor(length.getType(), e.rowsOf(length.getType()).count);
    for (int64_t list : e.rowsOf(children).parent)
      ++result.integers()[list];
    e.set(length, std::move(result));
  }
  return Error::success();
}

static Error checkIndex(Operation *op, int64_t row, int64_t rows, StringRef of) {
  if (row >= -1 && row < rows)
    return Error::success();
  return fail(op, "has index " + Twine(row) + ", but " + of + " has " + Twine(rows) + " rows");
}

static Error evaluateGatherRows(Evaluator &e, GatherRowsOp op) {
  const Tensor &source = e.get(op.getSource()), &index = e.get(op.getIndex());
  // For a source of scalars, each element of an index row gathers one element of the result's row.
  Tensor result = makeTensor(op.getType(), index.rows);
  int64_t width = source.width;
  for (int64_t i = 0; i < index.size(); ++i) {
    int64_t row = index.integers()[i];
    if (Error error = checkIndex(op, row, source.rows, "'source'"))
      return error;
    for (int64_t column = 0; row >= 0 && column < width; ++column)
      if (source.isFloat())
        result.floats()[i * width + column] = source.floats()[row * width + column];
      else
        result.integers()[i * width + column] = source.integers()[row * width + column];
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateScatterRows(Evaluator &e, ScatterRowsOp op) {
  const Tensor &x = e.get(op.getX()), &index = e.get(op.getIndex());
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getType()).count);
  for (int64_t row = 0; row < x.rows; ++row) {
    int64_t to = index.integers()[row];
    if (Error error = checkIndex(op, to, result.rows, "the result"))
      return error;
    for (int64_t column = 0; to >= 0 && column < x.width; ++column)
      result.row(to)[column] += x.row(row)[column];
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

void interpreter::addDomainOps(HandlerMap &map) {
  map.add<BatchOp, evaluateBatch>();
  map.add<CatalogueOp, evaluateCatalogue>();
  map.add<TruncateOp, evaluateTruncate>();
  map.add<ConcatDomainsOp, evaluateConcatDomains>();
  map.add<FeatureOp, evaluateFeature>();
  map.add<FeatureValidOp, evaluateFeatureValid>();
  map.add<ParamOp, evaluateParam>();
  map.add<ConstantOp, evaluateConstant>();
  map.add<DeriveOp, evaluateDerive>();
  map.add<DeriveGradOp, evaluateDeriveGrad>();
  map.add<ConcatRowsOp, evaluateConcatRows>();
  map.add<SplitRowsOp, evaluateSplitRows>();
  map.add<FanoutOp, evaluateFanout>();
  map.add<PoolOp, evaluatePool>();
  map.add<PoolGradOp, evaluatePoolGrad>();
  map.add<LeadOp, evaluateLead>();
  map.add<LagOp, evaluateLag>();
  map.add<PositionOp, evaluatePosition>();
  map.add<LengthOp, evaluateLength>();
  map.add<GatherRowsOp, evaluateGatherRows>();
  map.add<ScatterRowsOp, evaluateScatterRows>();
}
