//===- FormRowBlocks.cpp - which calls run for a block of lists at a time --===//

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Passes.h"
#include "genrec/Dialect/GenRec/Step/Target.h"

#include "llvm/ADT/DenseSet.h"

#include <map>
#include <tuple>

namespace genrec {
#define GEN_PASS_DEF_FORMROWBLOCKS
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

//===----------------------------------------------------------------------===//
// Ops that may run for a block of lists
//===----------------------------------------------------------------------===//

static bool isRowsOf(Value value, FlatSymbolRefAttr domain) {
  return isa<RankedTensorType>(value.getType()) && getRowDomain(value.getType()) == domain;
}

/// The domain over whose lists `op` may run block by block; null for none.
static FlatSymbolRefAttr getBlockDomain(Operation *op) {
  auto step = dyn_cast<StepOpInterface>(op);
  FlatSymbolRefAttr domain = step ? step.getBlockDomain() : FlatSymbolRefAttr();
  if (!domain || getStage(op) != Stage::compute || !lookupDomain(op, domain).getParentAttr())
    return {};
  // A view whose place is known only when the step runs cannot be cut into blocks.
  auto isUnknownPlace = [](Value root) {
    Operation *maker = root.getDefiningOp();
    return maker && isView(maker);
  };
  bool readsPart = llvm::any_of(op->getOperands(), [&](Value operand) {
    return isa<RankedTensorType>(operand.getType()) &&
           isUnknownPlace(getRowPlace(operand).root);
  });
  return readsPart ? FlatSymbolRefAttr() : domain;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {
/// Finds the runs of one program.
class RunFinder {
public:
  explicit RunFinder(ProgramOp program) : body(program.getBody().front()) {}

  /// Marks and orders the ops of all runs worth it; their number.
  int64_t run();

  int64_t callCount = 0;

private:
  using RunKey = std::pair<int64_t, Attribute>; ///< level and domain
  using Runs = llvm::MapVector<RunKey, SmallVector<Operation *>>;

  void computeLevels();
  int64_t getLevelAfter(Value operand, FlatSymbolRefAttr domain);
  void dropLoneSums();
  Runs collect() const;
  bool isWorthIt(const RunKey &key, ArrayRef<Operation *> ops) const;
  void order(const Runs &runs);

  Block &body;
  llvm::DenseMap<Operation *, FlatSymbolRefAttr> domains; ///< of ops that may be in a run
  llvm::DenseMap<Operation *, int64_t> levels;
};
} // namespace

/// A slice of columns is where the rows are that it is taken from.
static Operation *getMaker(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && isa<SliceColumnsOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// The least level of an op over `domain` (null: of no run) that reads `operand`: one more than
/// that of a run whose results it needs of all lists.
int64_t RunFinder::getLevelAfter(Value operand, FlatSymbolRefAttr domain) {
  Operation *maker = getMaker(operand);
  if (!maker)
    return 0;
  FlatSymbolRefAttr made = domains.lookup(maker);
  bool flows = made && made == domain && isRowsOf(operand, domain);
  return levels.lookup(maker) + (made && !flows);
}

void RunFinder::computeLevels() {
  int64_t most = 0, least = 0;
  levels.clear();
  for (Operation &op : body) {
    FlatSymbolRefAttr domain = domains.lookup(&op);
    int64_t level = least;
    for (Value operand : op.getOperands())
      level = std::max(level, getLevelAfter(operand, domain));
    // What was read before rows are stored stays before, what was read after stays after.
    if (storesRows(&op))
      least = level = std::max(level, most);
    levels[&op] = level;
    most = std::max(most, level + (domain ? 1 : 0));
  }
}

/// A kernel that only adds up what no run makes may go first: a run that reads its sum
/// would have to wait for it.
void RunFinder::dropLoneSums() {
  SmallVector<Operation *> lone;
  for (auto [op, domain] : domains) {
    bool isPart =
        llvm::any_of(op->getResults(), [&, d = domain](Value v) { return isRowsOf(v, d); }) ||
        llvm::any_of(op->getOperands(), [&, d = domain](Value v) {
          Operation *maker = getMaker(v);
          return maker && isRowsOf(v, d) && domains.count(maker);
        });
    if (!isPart)
      lone.push_back(op);
  }
  for (Operation *op : lone)
    domains.erase(op);
}

RunFinder::Runs RunFinder::collect() const {
  Runs runs;
  for (Operation &op : body)
    if (FlatSymbolRefAttr domain = domains.lookup(&op))
      runs[{levels.lookup(&op), domain}].push_back(&op);
  return runs;
}

/// Whether `ops` hold more than row kernels, and values of at least a cache line per row that
/// only they read.
bool RunFinder::isWorthIt(const RunKey &key, ArrayRef<Operation *> ops) const {
  constexpr int64_t kLeastBytes = 64;
  llvm::DenseSet<Operation *> inside(ops.begin(), ops.end());
  std::function<bool(Value)> staysInside = [&](Value value) {
    return llvm::all_of(value.getUsers(), [&](Operation *user) {
      return isa<SliceColumnsOp>(user) ? staysInside(user->getResult(0)) : inside.contains(user);
    });
  };
  int64_t bytes = 0;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (isRowsOf(result, cast<FlatSymbolRefAttr>(key.second)) && staysInside(result)) {
        auto type = cast<RankedTensorType>(result.getType());
        bytes += getRowSize(type) * getElementBytes(type.getElementType());
      }
  bool hasProduct = llvm::any_of(ops, [](Operation *op) { return !isa<RowKernelOp>(op); });
  return hasProduct && bytes >= kLeastBytes;
}

/// Puts the ops of each run next to each other, behind what they need.
void RunFinder::order(const Runs &runs) {
  llvm::DenseMap<Attribute, size_t> ranks;
  std::map<std::tuple<int64_t, size_t, size_t>, Operation *> places;
  for (auto [number, op] : llvm::enumerate(body)) {
    FlatSymbolRefAttr domain = domains.lookup(&op);
    size_t rank = domain ? ranks.try_emplace(domain, ranks.size() + 1).first->second : 0;
    places[{levels.lookup(&op), rank, number}] = &op;
  }
  SmallVector<Operation *> ops =
      llvm::map_to_vector(places, [](auto &place) { return place.second; });
  for (Operation *op : ops)
    op->moveBefore(&body, body.end());
  // A slice is taken where its rows are made, as nothing in between may be of no run.
  for (Operation *op : ops)
    if (isa<SliceColumnsOp>(op))
      if (Operation *maker = op->getOperand(0).getDefiningOp())
        op->moveAfter(maker);
}

int64_t RunFinder::run() {
  for (Operation &op : body)
    if (FlatSymbolRefAttr domain = getBlockDomain(&op))
      domains[&op] = domain;
  dropLoneSums();
  // Ops of runs that are not worth it no longer hold up others.
  for (bool changed = true; changed;) {
    changed = false;
    computeLevels();
    for (const auto &[key, ops] : collect())
      if (!isWorthIt(key, ops)) {
        for (Operation *op : ops)
          domains.erase(op);
        changed = true;
      }
  }
  Runs runs = collect();
  if (runs.empty())
    return 0;
  order(runs);
  Builder builder(body.front().getContext());
  int64_t number = 0;
  for (const auto &[key, ops] : runs) {
    auto run = RowBlockAttr::get(builder.getContext(), cast<FlatSymbolRefAttr>(key.second), number++);
    for (Operation *op : ops)
      op->setDiscardableAttr(GenRecDialect::RowBlockAttrHelper::getNameStr(), run);
    callCount += static_cast<int64_t>(ops.size());
  }
  return number;
}

namespace {
struct FormRowBlocksPass : genrec::impl::FormRowBlocksBase<FormRowBlocksPass> {
  void runOnOperation() override {
    if (!Target::of(getOperation()).hasRowBlocks)
      return;
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      RunFinder finder(program);
      runs += finder.run();
      calls += finder.callCount;
    }
  }
};
} // namespace
