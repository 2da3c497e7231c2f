//===- FormRowBlocks.cpp - runs of calls for a block of lists at a time ---===//

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

/// The domain over whose lists `op` can run block by block; null if it cannot.
static FlatSymbolRefAttr getBlockDomain(Operation *op) {
  auto step = dyn_cast<StepOpInterface>(op);
  FlatSymbolRefAttr domain = step ? step.getBlockDomain() : FlatSymbolRefAttr();
  if (!domain || getStage(op) != Stage::compute || !lookupDomain(op, domain).getParentAttr())
    return {};
  // A view whose offset is known only at run time cannot be split into blocks.
  auto isUnknownAddress = [](Value root) {
    Operation *maker = root.getDefiningOp();
    return maker && isView(maker);
  };
  bool readsPart = llvm::any_of(op->getOperands(), [&](Value operand) {
    return isa<RankedTensorType>(operand.getType()) &&
           isUnknownAddress(getRowAddress(operand).root);
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

  /// Marks and orders the ops of all profitable runs; returns their number.
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
  llvm::DenseMap<Operation *, FlatSymbolRefAttr> domains; ///< of ops that can be in a run
  llvm::DenseMap<Operation *, int64_t> levels;
};
} // namespace

/// The op that makes a value's rows, ignoring slices, which are views.
static Operation *getMaker(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && isa<SliceColumnsOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op;
}

/// The lowest level at which an op over `domain` (null: an op in no run) may read `operand`. It is
/// one more than the level of the run that makes `operand` if the op needs rows of all lists.
int64_t RunFinder::getLevelAfter(Value operand, FlatSymbolRefAttr domain) {
  Operation *maker = getMaker(operand);
  if (!maker)
    return 0;
  FlatSymbolRefAttr made = domains.lookup(maker);
  bool flows = made && made == domain && isRowsOf(operand, domain);
  return levels.lookup(maker) + (made && !flows);
}

void RunFinder::computeLevels() {
  int64_t most = 0, least = 0, lastSink = 0;
  levels.clear();
  for (Operation &op : body) {
    FlatSymbolRefAttr domain = domains.lookup(&op);
    int64_t level = least;
    for (Value operand : op.getOperands())
      level = std::max(level, getLevelAfter(operand, domain));
    // An op that stores rows of a table or parameter must not be reordered with ops that load rows.
    if (storesRows(&op))
      least = level = std::max(level, most);
    // Losses, metrics and outputs are numbered by their order, which is that of the model.
    if (isa<SinkOpInterface>(op))
      level = lastSink = std::max(level, lastSink);
    levels[&op] = level;
    most = std::max(most, level + (domain ? 1 : 0));
  }
}

/// Takes kernels out of runs that only reduce values made outside of runs. Otherwise a run that
/// reads the reduced value would have to come after the run with the kernel.
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

/// Whether a run is profitable: it has a matrix product or attention, and values of at least a
/// cache line per row that only its own ops read.
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

/// Moves the ops of each run next to each other, after the ops they depend on.
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
  // A slice directly follows the op that makes its operand, so that it does not split a run.
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
  // Dissolves unprofitable runs. That changes levels and may allow larger runs, hence the loop.
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
