//===- Ranks.cpp - a step on several ranks, in lockstep -------------------===//
//
// Every portion of a batch has an evaluator of its own, and every rank a state of its own. All
// evaluators run an op before any runs the next. What goes from rank to rank is moved here: table
// rows when they are looked up (a copy, as over a network: a store into it is lost), and sums.
//
// Of a replicated table every rank has all rows: what one looks up all insert, and each updates
// every row that any portion has touched.
//
//===----------------------------------------------------------------------===//

#include "genrec/Interpreter/Evaluator.h"

#include <cmath>

using namespace mlir;
using namespace genrec;
using namespace genrec::interpreter;

using llvm::Error;

//===----------------------------------------------------------------------===//
// One rank, one portion
//===----------------------------------------------------------------------===//

/// `contribute`, and `collect` of one portion.
template <class OpT> static Error passValuesOn(Evaluator &e, OpT op) {
  for (auto [value, result] : llvm::zip_equal(op.getValues(), op.getResults()))
    e.set(result, e.get(value));
  return Error::success();
}

static Error evaluateContributeRows(Evaluator &e, ContributeRowsOp op) {
  e.set(op.getResult(), e.get(op.getSums()));
  return Error::success();
}

static Error evaluateCollectRows(Evaluator &e, CollectRowsOp op) {
  e.setRows(op.getOwned(), e.rowsOf(op.getDomain()));
  e.set(op.getOwnedRows(), e.get(op.getRows()));
  e.set(op.getOwnedSums(), e.get(op.getSums()));
  return Error::success();
}

static Error evaluateExactSum(Evaluator &e, ExactSumOp op) {
  for (auto [rows, sum] : llvm::zip_equal(op.getValues(), op.getResults())) {
    Tensor result = makeTensor(sum.getType(), 1);
    for (double value : e.get(rows).floats())
      result.floats().front() += value;
    e.set(sum, std::move(result));
  }
  return Error::success();
}

void interpreter::addRankOps(HandlerMap &map) {
  map.add<ContributeOp, passValuesOn<ContributeOp>>();
  map.add<CollectOp, passValuesOn<CollectOp>>();
  map.add<ContributeRowsOp, evaluateContributeRows>();
  map.add<CollectRowsOp, evaluateCollectRows>();
  map.add<ExactSumOp, evaluateExactSum>();
}

//===----------------------------------------------------------------------===//
// Cutting a batch
//===----------------------------------------------------------------------===//

static Column sliceColumn(const Column &column, int64_t begin, int64_t end) {
  Column slice{column.width, column.isVector, {}, {}};
  std::visit(
      [&](const auto &values) {
        slice.values = std::decay_t<decltype(values)>(values.begin() + begin * column.width,
                                                      values.begin() + end * column.width);
      },
      column.values);
  if (!column.valid.empty())
    slice.valid.assign(column.valid.begin() + begin, column.valid.begin() + end);
  return slice;
}

namespace {
/// Cuts the root rows [begin, end), with their lists, out of a batch. Catalogues stay whole.
class BatchSlice {
public:
  BatchSlice(ModelOp model, const Batch &batch, int64_t begin, int64_t end)
      : model(model), batch(batch), begin(begin), end(end) {}

  Batch take() {
    for (const auto &[name, rows] : batch.domains)
      slice.domains[name] = takeRows(model.lookupSymbol<DomainOp>(name), rows);
    return std::move(slice);
  }

private:
  std::pair<int64_t, int64_t> rangeOf(DomainOp domain) const {
    if (!domain.getParentAttr())
      return {begin, end};
    auto [first, last] = rangeOf(lookupDomain(domain, domain.getParentAttr()));
    const std::vector<int64_t> &offsets = batch.domains.find(domain.getSymName())->second.offsets;
    return {offsets[first], offsets[last]};
  }

  BatchRows takeRows(DomainOp domain, const BatchRows &rows) {
    if (!domain || isOfCatalogue(domain, FlatSymbolRefAttr::get(domain.getSymNameAttr())))
      return rows;
    auto [first, last] = rangeOf(domain);
    BatchRows taken;
    taken.count = last - first;
    if (domain.getParentAttr()) {
      auto [above, endAbove] = rangeOf(lookupDomain(domain, domain.getParentAttr()));
      for (int64_t list = above; list <= endAbove; ++list)
        taken.offsets.push_back(rows.offsets[list] - first);
    } else {
      for (int64_t row = first; row < last; ++row)
        slice.positions.push_back(batch.positions.empty() ? row : batch.positions[row]);
    }
    for (const auto &[path, column] : rows.columns)
      taken.columns.emplace(path, sliceColumn(column, first, last));
    return taken;
  }

  ModelOp model;
  const Batch &batch;
  int64_t begin, end;
  Batch slice;
};
} // namespace

static int64_t countRootRows(ModelOp model, const Batch &batch) {
  for (auto domain : model.getOps<DomainOp>())
    if (auto rows = batch.domains.find(domain.getSymName()); rows != batch.domains.end() &&
                                                             domain.getKind() == DomainKind::data &&
                                                             !domain.getParentAttr())
      return rows->second.count;
  return 0;
}

//===----------------------------------------------------------------------===//
// Ranks
//===----------------------------------------------------------------------===//

namespace {
/// One training step on several ranks.
class RankedStep : public RowSource {
public:
  RankedStep(ProgramOp program, const Batch &batch, State &state, const RunOptions &options);

  llvm::Expected<Results> run();
  llvm::Expected<RowHandle> findRow(Evaluator &evaluator, Operation *op, StringRef table,
                                    int64_t id) override;
  RowRange getOwnRows(const Evaluator &evaluator, int64_t rows) const override;

private:
  using RowKey = std::pair<std::string, int64_t>; ///< logical table and id
  /// The copy of a row that a portion has looked up.
  struct Copy {
    RowKey key;
    std::vector<RowHandle> held; ///< by holder
    std::vector<double> value;
  };
  struct Portion {
    Batch batch;
    int64_t rank;
    std::unique_ptr<Evaluator> evaluator;
    std::map<RowKey, std::unique_ptr<Copy>> copies;
    std::map<const double *, Copy *> byAddress;
  };

  int64_t ownerOf(StringRef table, int64_t id) const;
  /// Whom the others take for the owner.
  int64_t askedFor(StringRef table, int64_t id) const {
    bool isWrong = options.rankFault == RankFault::wrongOwner;
    return (ownerOf(table, id) + isWrong) % options.ranks;
  }
  /// The ranks that have a row.
  SmallVector<int64_t> holdersOf(StringRef table, int64_t id) const {
    if (!isReplicated(table))
      return {askedFor(table, id)};
    return llvm::to_vector(llvm::seq<int64_t>(0, options.ranks));
  }
  bool isReplicated(StringRef table) const {
    return options.replicated.count(std::string_view(table.data(), table.size())) != 0;
  }
  void cutState();
  Error joinState();
  Error joinReplicas(StringRef name, TableState &table);
  Error joinParameter(StringRef name, ParameterState &parameter);
  Error evaluate(Operation &op);
  void collect(CollectOp op);
  Error collectRows(CollectRowsOp op);
  void sumExactly(ExactSumOp op);
  Results joinResults();

  ProgramOp program;
  State &state;
  RunOptions options;
  std::vector<State> ranks;
  std::vector<Portion> portions;
  /// The rows that each rank updates, by domain, in order.
  DenseMap<Attribute, std::vector<SmallVector<RowKey>>> updated;
};
} // namespace

/// Of no relation to the runtime's owners.
int64_t RankedStep::ownerOf(StringRef table, int64_t id) const {
  uint64_t mixed = (static_cast<uint64_t>(id) + table.size()) * 0x9E3779B97F4A7C15ull;
  return static_cast<int64_t>((mixed >> 32) % static_cast<uint64_t>(options.ranks));
}

RankedStep::RankedStep(ProgramOp program, const Batch &batch, State &state,
                       const RunOptions &options)
    : program(program), state(state), options(options), portions(options.portions) {
  ModelOp model = getModel(program);
  int64_t rows = countRootRows(model, batch), count = options.portions;
  cutState();
  for (int64_t number = 0; number < count; ++number) {
    Portion &portion = portions[number];
    portion.rank = number * options.ranks / count;
    portion.batch =
        BatchSlice(model, batch, rows * number / count, rows * (number + 1) / count).take();
    RunOptions own = options;
    own.portion = number;
    own.portionsInOne = 1;
    portion.evaluator = std::make_unique<Evaluator>(program, portion.batch, ranks[portion.rank],
                                                    Mode::train, own, this);
  }
}

/// Gives each rank its rows.
void RankedStep::cutState() {
  State empty = state;
  for (auto &[name, table] : empty.tables) {
    table.rows.clear();
    table.seen.clear();
    table.waiting.clear();
  }
  ranks.assign(options.ranks, empty);
  for (auto &[name, table] : state.tables) {
    auto own = [&, &name = name](int64_t id) -> TableState & {
      return ranks[ownerOf(name, id)].tables.find(name)->second;
    };
    for (auto &[id, row] : table.rows) {
      if (isReplicated(name))
        for (State &rank : ranks)
          rank.tables.find(name)->second.rows.emplace(id, row);
      else
        own(id).rows.emplace(id, std::move(row));
    }
    for (auto [id, sighting] : table.seen)
      own(id).seen.emplace(id, sighting);
    for (auto [id, sighting] : table.waiting)
      own(id).waiting.emplace(id, sighting);
  }
}

/// All ranks must have the same rows.
Error RankedStep::joinReplicas(StringRef name, TableState &table) {
  table.rows = ranks.front().tables.find(name)->second.rows;
  for (const State &other : ranks)
    if (other.tables.find(name)->second.rows != table.rows)
      return fail(program, "has copies of table @" + name + " that differ between ranks");
  return Error::success();
}

/// Back into one state. Every row must be at its owner, or be the same on all ranks.
Error RankedStep::joinState() {
  for (auto &[name, table] : state.tables) {
    table.rows.clear();
    table.seen.clear();
    table.waiting.clear();
    if (isReplicated(name)) {
      if (Error error = joinReplicas(name, table))
        return error;
      continue;
    }
    for (auto [rank, part] : llvm::enumerate(ranks)) {
      TableState &own = part.tables.find(name)->second;
      for (auto &[id, row] : own.rows) {
        if (ownerOf(name, id) != static_cast<int64_t>(rank))
          return fail(program, "has row " + Twine(id) + " of table @" + name + " on rank " +
                                   Twine(rank) + ", which does not own it");
        table.rows.emplace(id, std::move(row));
      }
      table.seen.insert(own.seen.begin(), own.seen.end());
      table.waiting.insert(own.waiting.begin(), own.waiting.end());
    }
  }
  for (auto &[name, parameter] : state.parameters)
    if (Error error = joinParameter(name, parameter))
      return error;
  return Error::success();
}

/// Each rank has the new values of the rows that it updates, and no others.
Error RankedStep::joinParameter(StringRef name, ParameterState &parameter) {
  const std::vector<double> before = parameter.memory;
  for (const Portion &portion : portions) {
    const std::vector<double> &after =
        ranks[portion.rank].parameters.find(name.str())->second.memory;
    int64_t width = parameter.width;
    RowRange own = getOwnRows(*portion.evaluator, parameter.size / width);
    for (size_t i = 0; i < after.size(); ++i) {
      int64_t row = static_cast<int64_t>(i) % parameter.size / width;
      if (row >= own.first && row < own.first + own.count)
        parameter.memory[i] = after[i];
      else if (after[i] != before[i] && !std::isnan(before[i]))
        return fail(program, "changes row " + Twine(row) + " of parameter @" + name + " on rank " +
                                 Twine(portion.rank) + ", which does not update it");
    }
  }
  return Error::success();
}

RowRange RankedStep::getOwnRows(const Evaluator &evaluator, int64_t rows) const {
  int64_t rank = portions[evaluator.options.portion].rank, first = rows * rank / options.ranks;
  return {first, rows * (rank + 1) / options.ranks - first};
}

llvm::Expected<RowHandle> RankedStep::findRow(Evaluator &evaluator, Operation *op, StringRef table,
                                              int64_t id) {
  Portion &portion = portions[evaluator.options.portion];
  std::unique_ptr<Copy> &copy = portion.copies[{table.str(), id}];
  if (!copy) {
    copy = std::make_unique<Copy>(Copy{{table.str(), id}, {}, {}});
    for (int64_t holder : holdersOf(table, id)) {
      State &of = ranks[holder];
      llvm::Expected<RowHandle> found =
          evaluator.findRowIn(op, of, of.tables.find(table)->second, id);
      if (!found)
        return found.takeError();
      copy->held.push_back(*found);
    }
    const TableState &rows = ranks[portion.rank].tables.find(table)->second;
    const RowHandle &from = copy->held[isReplicated(table) ? portion.rank : 0];
    copy->value.assign(from.value, from.value + rows.dim + rows.stateFloats);
    portion.byAddress[copy->value.data()] = copy.get();
  }
  const RowHandle &held = copy->held.front();
  return RowHandle{copy->value.data(), held.slotStride, held.identity, held.isHot};
}

void RankedStep::collect(CollectOp op) {
  for (auto [value, result] : llvm::zip_equal(op.getValues(), op.getResults())) {
    Tensor sum = portions.front().evaluator->get(value);
    for (Portion &portion : llvm::drop_begin(portions)) {
      const Tensor &given = portion.evaluator->get(value);
      for (auto [to, from] : llvm::zip_equal(sum.floats(), given.floats()))
        to += from;
    }
    for (Portion &portion : portions)
      portion.evaluator->set(result, sum);
  }
}

Error RankedStep::collectRows(CollectRowsOp op) {
  struct Sum {
    RowHandle row;
    std::vector<double> gradient;
  };
  std::vector<std::map<RowKey, Sum>> owned(options.ranks);
  for (Portion &portion : portions) {
    const Tensor &rows = portion.evaluator->get(op.getRows());
    const Tensor &sums = portion.evaluator->get(op.getSums());
    for (int64_t row = 0; row < rows.rows; ++row) {
      auto copy = portion.byAddress.find(rows.handles()[row].value);
      if (copy == portion.byAddress.end())
        return fail(op, "has a row that was not looked up");
      const RowKey &key = copy->second->key;
      if (row == 0 && options.rankFault == RankFault::lostTouch)
        continue;
      double times = row == 0 && options.rankFault == RankFault::doubledTouch ? 2 : 1;
      for (auto [held, holder] :
           llvm::zip_equal(copy->second->held, holdersOf(key.first, key.second))) {
        if (row == 0 && holder > 0 && holder == options.ranks - 1 && isReplicated(key.first) &&
            options.rankFault == RankFault::lostReplica)
          continue;
        Sum &sum = owned[holder][key];
        sum.row = held;
        sum.gradient.resize(sums.width);
        for (int64_t column = 0; column < sums.width; ++column)
          sum.gradient[column] += times * sums.row(row)[column];
      }
    }
  }
  std::vector<SmallVector<RowKey>> &keys = updated[op.getOwned().getType().getDomain()];
  for (const std::map<RowKey, Sum> &mine : owned)
    keys.push_back(llvm::to_vector(llvm::make_first_range(mine)));
  for (Portion &portion : portions) {
    std::map<RowKey, Sum> &mine = owned[portion.rank];
    auto count = static_cast<int64_t>(mine.size());
    Tensor rows = makeTensor(op.getOwnedRows().getType(), count);
    Tensor sums = makeTensor(op.getOwnedSums().getType(), count);
    for (auto [row, entry] : llvm::enumerate(mine)) {
      rows.as<RowHandle>()[row] = entry.second.row;
      llvm::copy(entry.second.gradient, sums.row(static_cast<int64_t>(row)));
    }
    portion.evaluator->setRows(op.getOwned(), stepRows(rows.handles()));
    portion.evaluator->set(op.getOwnedRows(), std::move(rows));
    portion.evaluator->set(op.getOwnedSums(), std::move(sums));
  }
  return Error::success();
}

void RankedStep::sumExactly(ExactSumOp op) {
  for (auto [rows, result] : llvm::zip_equal(op.getValues(), op.getResults())) {
    Tensor sum = makeTensor(result.getType(), 1);
    int64_t last = -1;
    for (Portion &portion : portions) {
      if (portion.rank == last) // the portions of a rank have the same rows
        continue;
      last = portion.rank;
      const auto &values = portion.evaluator->get(rows).floats();
      auto keys = updated.find(getRowDomain(rows.getType()));
      for (auto [row, value] : llvm::enumerate(values)) {
        // Rows of a parameter are on one rank each; those of a replica count at their owners.
        const RowKey *key = keys == updated.end() ? nullptr : &keys->second[portion.rank][row];
        if (!key || !isReplicated(key->first) || ownerOf(key->first, key->second) == portion.rank)
          sum.floats().front() += value;
      }
    }
    for (Portion &portion : portions)
      portion.evaluator->set(result, sum);
  }
}

Error RankedStep::evaluate(Operation &op) {
  if (auto sum = dyn_cast<CollectOp>(op)) {
    collect(sum);
    return Error::success();
  }
  if (auto rows = dyn_cast<CollectRowsOp>(op))
    return collectRows(rows);
  if (auto sum = dyn_cast<ExactSumOp>(op)) {
    sumExactly(sum);
    return Error::success();
  }
  // A rank updates its rows once.
  bool updates = isa<RowKernelOp>(op) && op.getNumResults() == 0;
  int64_t last = -1;
  for (Portion &portion : portions) {
    if (updates && portion.rank == last)
      continue;
    last = portion.rank;
    if (Error error = portion.evaluator->evaluate(&op))
      return error;
  }
  return Error::success();
}

Results RankedStep::joinResults() {
  Results joined;
  for (Portion &portion : portions) {
    Results own = portion.evaluator->finish();
    if (joined.losses.empty())
      joined.losses = own.losses;
    else
      for (auto [loss, more] : llvm::zip_equal(joined.losses, own.losses)) {
        loss.sum += more.sum;
        loss.weight += more.weight;
      }
    if (portion.evaluator->options.portion == 0)
      joined.parameterGradients = std::move(own.parameterGradients);
    joined.tableGradients.merge(own.tableGradients);
  }
  return joined;
}

llvm::Expected<Results> RankedStep::run() {
  for (Portion &portion : portions)
    if (Error error = portion.evaluator->begin())
      return error;
  for (Operation &op : program.getBody().front()) {
    if (!portions.front().evaluator->isNeeded(op))
      continue;
    if (Error error = evaluate(op))
      return error;
    for (Portion &portion : portions)
      portion.evaluator->release(op);
  }
  Results results = joinResults();
  if (Error error = joinState())
    return error;
  ++state.stepsDone;
  state.evict(state.stepsDone);
  return results;
}

llvm::Expected<Results> interpreter::runOnRanks(ProgramOp program, const Batch &batch, State &state,
                                                const RunOptions &options) {
  assert(options.ranks >= 1 && options.ranks <= options.portions && "a rank without a portion");
  return RankedStep(program, batch, state, options).run();
}
