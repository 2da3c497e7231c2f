//===- ListOps.cpp - padded lists, pairs, tiles ---------------------------===//

#include "genrec/Interpreter/Evaluator.h"
#include "Random.h"

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

static Error evaluatePad(Evaluator &e, PadOp op) {
  constexpr uint64_t kFirstNewOrdinal = uint64_t(1) << 32;
  const DomainRows &source = e.rowsOf(op.getSource());
  DomainRows rows;
  rows.above = source.above;
  int64_t list = 0;
  auto add = [&](int64_t from, uint64_t identity) {
    rows.parent.push_back(list);
    rows.source.push_back(from);
    rows.identity.push_back(identity);
    ++rows.count;
  };
  source.forEachList([&](int64_t begin, int64_t end) {
    rows.offsets.push_back(rows.count);
    auto addNew = [&] {
      for (int64_t i = 0; i < static_cast<int64_t>(op.getCount()) - (end - begin); ++i)
        add(-1, childIdentity(source.above->identity[list], kFirstNewOrdinal + i));
    };
    if (op.getSide() == PadSide::front)
      addNew();
    for (int64_t row = begin; row < end; ++row)
      add(row, source.identity[row]);
    if (op.getSide() == PadSide::back)
      addNew();
    ++list;
  });
  rows.offsets.push_back(rows.count);
  e.setRows(op.getResult(), std::move(rows));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Pairs
//===----------------------------------------------------------------------===//

static Error evaluatePairDomains(Evaluator &e, PairDomainsOp op) {
  const DomainRows &first = e.rowsOf(op.getFirst()), &second = e.rowsOf(op.getSecond());
  DomainRows rows;
  rows.above = &first;
  for (int64_t row = 0; row < first.count; ++row) {
    int64_t list = first.parent[row];
    int64_t begin = second.offsets[list], end = second.offsets[list + 1];
    rows.offsets.push_back(rows.count);
    for (int64_t other = begin; other < end; ++other) {
      rows.parent.push_back(row);
      rows.source.push_back(other);
      rows.identity.push_back(childIdentity(first.identity[row], other - begin));
      ++rows.count;
    }
  }
  rows.offsets.push_back(rows.count);
  e.setRows(op.getResult(), std::move(rows));
  return Error::success();
}

static Error evaluatePairRows(Evaluator &e, PairRowsOp op) {
  const DomainRows &pairs = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), pairs.count);
  for (int64_t row = 0; row < pairs.count; ++row)
    copyRow(e.get(op.getX()), pairs.source[row], result, row);
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluatePairSum(Evaluator &e, PairSumOp op) {
  const Tensor &x = e.get(op.getX());
  const DomainRows &pairs = e.rowsOf(op.getX().getType());
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  forEachElement(x, [&](int64_t row, int64_t column) {
    result.row(pairs.source[row])[column] += x.row(row)[column];
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// Calls `body(list, row, place)` for every row that `op` keeps: row `row` is copied to position
/// `place` of its list's row.
template <class OpT, class Body>
static void forEachTiled(OpT op, const DomainRows &lists, Body body) {
  int64_t count = op.getCount(), list = 0;
  lists.forEachList([&](int64_t begin, int64_t end) {
    int64_t kept = std::min(count, end - begin);
    int64_t from = op.getKeep() == KeepKind::last ? end - kept : begin;
    for (int64_t place = 0; place < kept; ++place)
      body(list, from + place, place);
    ++list;
  });
}

/// Copies `width` elements of a row, for any element type.
static void copyPart(const Tensor &x, size_t from, Tensor &result, size_t to, int64_t width) {
  std::visit(
      [&](const auto &source) {
        using Values = std::decay_t<decltype(source)>;
        auto &target = result.as<typename Values::value_type>();
        std::copy_n(source.begin() + from, width, target.begin() + to);
      },
      x.data);
}

static Error evaluateTile(Evaluator &e, TileOp op) {
  const Tensor &x = e.get(op.getX());
  Tensor result = makeTensor(op.getType(), e.rowsOf(op.getDomain()).count);
  forEachTiled(op, e.rowsOf(op.getX().getType()), [&](int64_t list, int64_t row, int64_t place) {
    copyPart(x, row * x.width, result, list * result.width + place * x.width, x.width);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateTileGrad(Evaluator &e, TileGradOp op) {
  const Tensor &x = e.get(op.getX());
  const DomainRows &lists = e.rowsOf(op.getDomain());
  Tensor result = makeTensor(op.getType(), lists.count);
  forEachTiled(op, lists, [&](int64_t list, int64_t row, int64_t place) {
    copyPart(x, list * x.width + place * result.width, result, row * result.width, result.width);
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

void interpreter::addListOps(HandlerMap &map) {
  map.add<PadOp, evaluatePad>();
  map.add<PairDomainsOp, evaluatePairDomains>();
  map.add<PairRowsOp, evaluatePairRows>();
  map.add<PairSumOp, evaluatePairSum>();
  map.add<TileOp, evaluateTile>();
  map.add<TileGradOp, evaluateTileGrad>();
}
