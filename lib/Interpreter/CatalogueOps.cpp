//===- CatalogueOps.cpp - sampled and in-batch softmax, scores, ranking ---===//

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;
using llvm::Expected;

static double dotRows(const Tensor &x, int64_t row, const Tensor &y, int64_t other) {
  double sum = 0;
  for (int64_t column = 0; column < x.width; ++column)
    sum += x.row(row)[column] * y.row(other)[column];
  return sum;
}

//===----------------------------------------------------------------------===//
// Sampled softmax
//===----------------------------------------------------------------------===//

namespace {

/// The candidates of one row: its positive first, then the negatives that are
/// not masked, each with its logit.
struct Candidates {
  std::vector<int64_t> items;
  std::vector<double> logits;
  double total = 0; ///< log Σ exp of all logits

  template <class OpT>
  Candidates(Evaluator &e, OpT op, const Tensor &query, const Tensor &items, int64_t row,
             int64_t positive) {
    const Tensor *drawn = op.getDrawn() ? &e.get(op.getDrawn()) : nullptr;
    bool isIdentified = !op.getShared() && !drawn;
    uint64_t identity = isIdentified ? e.rowsOf(op.getQuery().getType()).identity[row] : 0;
    auto add = [&](int64_t item) {
      this->items.push_back(item);
      logits.push_back(dotRows(query, row, items, item) / op.getTemperature().convertToDouble());
    };
    add(positive);
    for (uint64_t draw = 0; draw < op.getNegatives(); ++draw) {
      int64_t item;
      if (drawn) {
        item = drawn->integers()[drawn->at(row, static_cast<int64_t>(draw))];
      } else {
        uint64_t word = e.word(op.getStream(), identity, draw);
        item = static_cast<int64_t>((word * static_cast<uint64_t>(items.rows)) >> 32);
      }
      if (item != positive)
        add(item);
    }
    total = logSumExp(logits);
  }
};

} // namespace

static Error checkPositive(Operation *op, int64_t positive, const Tensor &items) {
  if (positive >= -1 && positive < items.rows)
    return Error::success();
  return fail(op, "has the positive " + Twine(positive) + ", but the catalogue has " +
                      Twine(items.rows) + " rows");
}

static Error evaluateSampledSoftmax(Evaluator &e, SampledSoftmaxOp op) {
  const Factor queries(e, op, e.get(op.getQuery())), vectors(e, op, e.get(op.getItems()));
  const Tensor &query = queries, &items = vectors;
  Tensor result = makeTensor(op.getType(), query.rows);
  for (int64_t row = 0; row < query.rows; ++row) {
    int64_t positive = e.get(op.getPositive()).integers()[row];
    if (Error error = checkPositive(op, positive, items))
      return error;
    if (positive < 0)
      continue;
    Candidates candidates(e, op, query, items, row, positive);
    result.floats()[row] = candidates.total - candidates.logits.front();
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateSampledSoftmaxGrad(Evaluator &e, SampledSoftmaxGradOp op) {
  const Tensor &query = e.get(op.getQuery()), &items = e.get(op.getItems());
  Tensor dquery = makeTensor(op.getDquery().getType(), query.rows);
  Tensor ditems = makeTensor(op.getDitems().getType(), items.rows);
  for (int64_t row = 0; row < query.rows; ++row) {
    int64_t positive = e.get(op.getPositive()).integers()[row];
    if (Error error = checkPositive(op, positive, items))
      return error;
    if (positive < 0)
      continue;
    Candidates candidates(e, op, query, items, row, positive);
    double seed = e.get(op.getGradient()).floats()[row] / op.getTemperature().convertToDouble();
    std::vector<double> dlogits(candidates.items.size());
    for (size_t c = 1; c < dlogits.size(); ++c) {
      dlogits[c] = std::exp(candidates.logits[c] - candidates.total) * seed;
      // Not the probability minus 1, which cancels where it is near 1.
      dlogits[0] -= dlogits[c];
    }
    for (auto [c, exact] : llvm::enumerate(dlogits)) {
      // Each has an error of its own: they add up to 0 where all candidates are one row of a table.
      double dlogit = e.perturbed(exact);
      for (int64_t column = 0; column < query.width; ++column) {
        dquery.row(row)[column] += dlogit * items.row(candidates.items[c])[column];
        ditems.row(candidates.items[c])[column] += dlogit * query.row(row)[column];
      }
    }
  }
  e.set(op.getDquery(), std::move(dquery));
  e.set(op.getDitems(), std::move(ditems));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// In-batch softmax
//===----------------------------------------------------------------------===//

/// The rows of each portion, in order: consecutive ones, as portions have consecutive root rows.
template <class OpT> static Expected<std::vector<int64_t>> findPortions(Evaluator &e, OpT op) {
  FlatSymbolRefAttr domain = getRowDomain(op.getQuery().getType());
  std::vector<int64_t> roots(e.get(op.getQuery()).rows);
  std::iota(roots.begin(), roots.end(), 0);
  while (true) {
    Expected<const DomainRows *> rows = e.domain(op, domain);
    if (!rows)
      return rows.takeError();
    FlatSymbolRefAttr parent = lookupDomain(op, domain).getParentAttr();
    int64_t count = (*rows)->count, portions = e.options.portionsInOne;
    for (int64_t &root : roots)
      if (parent) {
        root = (*rows)->parent[root];
      } else {
        int64_t portion = 0;
        while (count * (portion + 1) / portions <= root)
          ++portion;
        root = portion;
      }
    if (!parent)
      return roots;
    domain = parent;
  }
}

namespace {
/// The rows that a row's softmax is over, itself among them.
template <class OpT> class Compared {
public:
  Compared(Evaluator &e, OpT op, std::vector<int64_t> portions)
      : ids(e.get(op.getId()).integers()), valid(op.getValid() ? &e.get(op.getValid()) : nullptr),
        portions(std::move(portions)) {}

  std::vector<int64_t> with(int64_t row) const {
    std::vector<int64_t> others;
    for (int64_t other = 0; counts(row) && other < static_cast<int64_t>(ids.size()); ++other)
      if (other == row ||
          (counts(other) && ids[other] != ids[row] && portions[other] == portions[row]))
        others.push_back(other);
    return others;
  }

private:
  bool counts(int64_t row) const { return !valid || valid->integers()[row]; }

  const std::vector<int64_t> &ids;
  const Tensor *valid;
  std::vector<int64_t> portions;
};
} // namespace

/// The logit of a row's query and another row's item.
template <class OpT> static double inBatchLogit(Evaluator &e, OpT op, int64_t row, int64_t other) {
  double score = dotRows(e.get(op.getQuery()), row, e.get(op.getItem()), other);
  return score / op.getTemperature().convertToDouble() -
         (op.getLogQ() ? e.get(op.getLogQ()).floats()[other] : 0.0);
}

static Error evaluateInBatchSoftmax(Evaluator &e, InBatchSoftmaxOp op) {
  int64_t rows = e.get(op.getQuery()).rows;
  Tensor result = makeTensor(op.getResult().getType(), rows);
  Tensor kept = makeTensor(op.getKept().getType(), rows);
  Expected<std::vector<int64_t>> portions = findPortions(e, op);
  if (!portions)
    return portions.takeError();
  const Compared all(e, op, std::move(*portions));
  for (int64_t row = 0; row < rows; ++row) {
    std::vector<int64_t> compared = all.with(row);
    if (compared.empty())
      continue;
    std::vector<double> logits;
    for (int64_t other : compared)
      logits.push_back(inBatchLogit(e, op, row, other));
    double largest = *llvm::max_element(logits), own = inBatchLogit(e, op, row, row);
    double ofOthers = 0;
    for (auto [other, logit] : llvm::zip_equal(compared, logits))
      ofOthers += other == row ? 0 : std::exp(logit - largest);
    double sum = ofOthers + std::exp(own - largest);
    // Where the row's own logit is the largest, the others may have a share far below 1's rounding.
    result.floats()[row] = own == largest ? std::log1p(ofOthers) : largest - own + std::log(sum);
    kept.row(row)[0] = largest + std::log(sum);
    kept.row(row)[1] = ofOthers / sum;
  }
  e.set(op.getResult(), std::move(result));
  e.set(op.getKept(), std::move(kept));
  return Error::success();
}

static Error evaluateInBatchSoftmaxGrad(Evaluator &e, InBatchSoftmaxGradOp op) {
  const Tensor &query = e.get(op.getQuery()), &item = e.get(op.getItem());
  const Tensor &kept = e.get(op.getKept());
  Tensor dquery = makeTensor(op.getDquery().getType(), query.rows);
  Tensor ditem = makeTensor(op.getDitem().getType(), query.rows);
  Expected<std::vector<int64_t>> portions = findPortions(e, op);
  if (!portions)
    return portions.takeError();
  const Compared compared(e, op, std::move(*portions));
  for (int64_t row = 0; row < query.rows; ++row) {
    double seed = e.get(op.getGradient()).floats()[row] / op.getTemperature().convertToDouble();
    for (int64_t other : compared.with(row)) {
      double share = other == row ? -kept.row(row)[1]
                                  : std::exp(inBatchLogit(e, op, row, other) - kept.row(row)[0]);
      // Each has an error of its own: they add up to 0 where all items have one vector.
      double dlogit = e.perturbed(share * seed);
      for (int64_t column = 0; column < query.width; ++column) {
        dquery.row(row)[column] += dlogit * item.row(other)[column];
        ditem.row(other)[column] += dlogit * query.row(row)[column];
      }
    }
  }
  e.set(op.getDquery(), std::move(dquery));
  e.set(op.getDitem(), std::move(ditem));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Ids and scores
//===----------------------------------------------------------------------===//

static Error evaluateResolve(Evaluator &e, ResolveOp op) {
  const Tensor &ids = e.get(op.getIds()), &catalogue = e.get(op.getCatalogue());
  std::map<int64_t, int64_t> rows;
  for (int64_t row = 0; row < catalogue.rows; ++row) {
    auto [place, isNew] = rows.try_emplace(catalogue.integers()[row], row);
    if (!isNew)
      return fail(op, "has id " + Twine(place->first) + " twice in the catalogue, in rows " +
                          Twine(place->second) + " and " + Twine(row));
  }
  Tensor result = makeTensor(op.getType(), ids.rows);
  for (int64_t row = 0; row < ids.rows; ++row) {
    int64_t &found = result.integers()[row] = -1;
    if (op.getValid() && !e.get(op.getValid()).integers()[row])
      continue;
    auto place = rows.find(ids.integers()[row]);
    if (place != rows.end())
      found = place->second;
    else if (!op.getAllowMissing())
      return fail(op, "has id " + Twine(ids.integers()[row]) + " in row " + Twine(row) +
                          ", which the catalogue lacks");
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

/// The score of columns beyond the last item of the catalogue.
constexpr double kNoItem = -1e30;

/// Checks that `scores`, a type of score rows, has a column for each of the items [first, first +
/// columns).
template <typename OpT> static Error checkColumns(OpT op, const Tensor &items, Type scores) {
  int64_t end = static_cast<int64_t>(op.getFirst()) + getRowSize(scores);
  if (items.rows <= end || op.getPartial())
    return Error::success();
  return fail(op, "has scores for " + Twine(end) + " items, but the catalogue has " +
                      Twine(items.rows) + " rows");
}

static Error evaluateScores(Evaluator &e, ScoresOp op) {
  const Tensor &query = e.get(op.getQuery()), &items = e.get(op.getItems());
  if (Error error = checkColumns(op, items, op.getType()))
    return error;
  Tensor result = makeTensor(op.getType(), query.rows);
  forEachElement(result, [&](int64_t row, int64_t column) {
    int64_t item = static_cast<int64_t>(op.getFirst()) + column;
    result.row(row)[column] = item < items.rows ? dotRows(query, row, items, item) : kNoItem;
  });
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateScoresGrad(Evaluator &e, ScoresGradOp op) {
  const Tensor &query = e.get(op.getQuery()), &items = e.get(op.getItems());
  const Tensor &gradient = e.get(op.getGradient());
  if (Error error = checkColumns(op, items, op.getGradient().getType()))
    return error;
  bool adds = !op.getOnto().empty();
  Tensor dquery = adds ? e.get(op.getOnto()[0]) : makeTensor(op.getDquery().getType(), query.rows);
  Tensor ditems = adds ? e.get(op.getOnto()[1]) : makeTensor(op.getDitems().getType(), items.rows);
  int64_t first = op.getFirst(), end = std::min(items.rows, first + gradient.width);
  for (int64_t row = 0; row < query.rows; ++row)
    for (int64_t item = first; item < end; ++item)
      for (int64_t column = 0; column < query.width; ++column) {
        double seed = gradient.row(row)[item - first];
        dquery.row(row)[column] += seed * items.row(item)[column];
        ditems.row(item)[column] += seed * query.row(row)[column];
      }
  e.set(op.getDquery(), std::move(dquery));
  e.set(op.getDitems(), std::move(ditems));
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Ranking
//===----------------------------------------------------------------------===//

namespace {

/// The scores of all items for one query row, and which items are excluded.
class Scored {
public:
  template <class OpT>
  Scored(Evaluator &e, OpT op) : op(op), query(e.get(op.getQuery())), items(e.get(op.getItems())) {
    if (!op.getExclude())
      return;
    exclude = &e.get(op.getExclude());
    excludeRows = &e.rowsOf(op.getExclude().getType());
  }

  Error score(int64_t row) {
    scores.clear();
    for (int64_t item = 0; item < items.rows; ++item) {
      scores.push_back(dotRows(query, row, items, item));
      if (std::isnan(scores.back()))
        return fail(op, "has a NaN score for row " + Twine(row) + " and item " + Twine(item));
    }
    excluded.assign(items.rows, false);
    for (int64_t r = 0; excludeRows && r < excludeRows->count; ++r)
      if (int64_t item = exclude->integers()[r];
          excludeRows->parent[r] == row && item >= 0 && item < items.rows)
        excluded[item] = true;
    return Error::success();
  }

  std::vector<double> scores;
  std::vector<bool> excluded;

private:
  Operation *op;
  const Tensor &query, &items;
  const Tensor *exclude = nullptr;
  const DomainRows *excludeRows = nullptr;
};

} // namespace

static Error evaluateTopK(Evaluator &e, TopKOp op) {
  Scored scored(e, op);
  int64_t rows = e.get(op.getQuery()).rows;
  Tensor index = makeTensor(op.getIndex().getType(), rows);
  Tensor score = makeTensor(op.getScore().getType(), rows);
  for (int64_t row = 0; row < rows; ++row) {
    if (Error error = scored.score(row))
      return error;
    std::vector<int64_t> best;
    for (size_t item = 0; item < scored.scores.size(); ++item)
      if (!scored.excluded[item])
        best.push_back(static_cast<int64_t>(item));
    llvm::sort(best, [&](int64_t x, int64_t y) {
      return std::pair(-scored.scores[x], x) < std::pair(-scored.scores[y], y);
    });
    for (int64_t place = 0; place < index.width; ++place) {
      bool exists = place < static_cast<int64_t>(best.size());
      index.integers()[index.at(row, place)] = exists ? best[place] : -1;
      score.floats()[score.at(row, place)] = exists ? scored.scores[best[place]] : kNoItem;
    }
  }
  e.set(op.getIndex(), std::move(index));
  e.set(op.getScore(), std::move(score));
  return Error::success();
}

static Error checkTarget(RankOp op, int64_t target, int64_t items) {
  if (target >= -1 && target < items)
    return Error::success();
  return fail(op, "has the target " + Twine(target) + ", but the catalogue has " + Twine(items) +
                      " rows");
}

/// Ranks one target per query.
static Error rankTargets(Evaluator &e, RankOp op, Tensor &result) {
  Scored scored(e, op);
  const Tensor &targets = e.get(op.getTarget());
  for (int64_t row = 0; row < targets.rows; ++row) {
    int64_t target = targets.integers()[row];
    if (Error error = scored.score(row))
      return error;
    if (Error error = checkTarget(op, target, scored.scores.size()))
      return error;
    if (target < 0)
      continue;
    int64_t &rank = result.integers()[row] = 1;
    for (int64_t item = 0; item < static_cast<int64_t>(scored.scores.size()); ++item)
      rank +=
          item != target && !scored.excluded[item] && scored.scores[item] >= scored.scores[target];
  }
  return Error::success();
}

/// Ranks a list of targets per query: each target's position among all items that are not excluded.
static Error rankListedTargets(Evaluator &e, RankOp op, Tensor &result) {
  Scored scored(e, op);
  const std::vector<int64_t> &targets = e.get(op.getTarget()).integers();
  const DomainRows &rows = e.rowsOf(op.getTarget().getType());
  for (size_t list = 0; list + 1 < rows.offsets.size(); ++list) {
    if (Error error = scored.score(static_cast<int64_t>(list)))
      return error;
    std::map<int64_t, int64_t> firstRows; // by distinct target, its first row
    for (int64_t row = rows.offsets[list]; row < rows.offsets[list + 1]; ++row) {
      if (Error error = checkTarget(op, targets[row], scored.scores.size()))
        return error;
      if (targets[row] >= 0)
        firstRows.try_emplace(targets[row], row);
    }
    // Score, whether it is a target, the target's row. Sorted best first.
    std::vector<std::tuple<double, bool, int64_t>> order;
    for (int64_t item = 0; item < static_cast<int64_t>(scored.scores.size()); ++item) {
      auto target = firstRows.find(item);
      bool isTarget = target != firstRows.end();
      if (isTarget || !scored.excluded[item])
        order.emplace_back(-scored.scores[item], isTarget, isTarget ? target->second : 0);
    }
    llvm::sort(order);
    for (auto [place, item] : llvm::enumerate(order))
      if (std::get<1>(item))
        result.integers()[std::get<2>(item)] = static_cast<int64_t>(place) + 1;
  }
  return Error::success();
}

static Error evaluateRank(Evaluator &e, RankOp op) {
  Tensor result = makeTensor(op.getType(), e.get(op.getTarget()).rows);
  bool isOfLists = getRowDomain(op.getTarget().getType()) != getRowDomain(op.getQuery().getType());
  if (Error error = isOfLists ? rankListedTargets(e, op, result) : rankTargets(e, op, result))
    return error;
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

static Error evaluateRankInList(Evaluator &e, RankInListOp op) {
  const Tensor &score = e.get(op.getScore()), &label = e.get(op.getLabel());
  const DomainRows &rows = e.rowsOf(op.getScore().getType());
  Tensor result = makeTensor(op.getType(), score.rows);
  for (size_t list = 0; list + 1 < rows.offsets.size(); ++list) {
    std::vector<std::tuple<double, double, int64_t>> order;
    for (int64_t row = rows.offsets[list]; row < rows.offsets[list + 1]; ++row) {
      if (op.getValid() && !e.get(op.getValid()).integers()[row])
        continue;
      double own = e.label(label.floats()[row]);
      if (std::isnan(score.floats()[row]) || (own != 0 && own != 1))
        return fail(op,
                    "has a NaN score, or a label that is neither 0 nor 1, in row " + Twine(row));
      order.emplace_back(-score.floats()[row], own, row);
    }
    llvm::sort(order);
    for (auto [place, one] : llvm::enumerate(order))
      if (auto [negated, own, row] = one; own == 1)
        result.integers()[row] = static_cast<int64_t>(place) + 1;
  }
  e.set(op.getResult(), std::move(result));
  return Error::success();
}

void interpreter::addCatalogueOps(HandlerMap &map) {
  map.add<SampledSoftmaxOp, evaluateSampledSoftmax>();
  map.add<SampledSoftmaxGradOp, evaluateSampledSoftmaxGrad>();
  map.add<InBatchSoftmaxOp, evaluateInBatchSoftmax>();
  map.add<InBatchSoftmaxGradOp, evaluateInBatchSoftmaxGrad>();
  map.add<ResolveOp, evaluateResolve>();
  map.add<ScoresOp, evaluateScores>();
  map.add<ScoresGradOp, evaluateScoresGrad>();
  map.add<TopKOp, evaluateTopK>();
  map.add<RankOp, evaluateRank>();
  map.add<RankInListOp, evaluateRankInList>();
}
