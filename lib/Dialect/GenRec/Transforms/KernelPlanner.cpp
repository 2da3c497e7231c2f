//===- KernelPlanner.cpp - assigns row ops to row kernels -----------------===//

#include "KernelPlanner.h"
#include "RecomputeCost.h"
#include "RowOps.h"
#include "genrec/Dialect/GenRec/IR/ColumnPrograms.h"
#include "genrec/Dialect/GenRec/IR/NumberedNames.h"
#include "genrec/Dialect/GenRec/IR/StepDomains.h"

#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace genrec;

KernelPlanner::KernelPlanner(ProgramOp program, bool recompute, bool wideJoins)
    : program(program), recompute(recompute), wideJoins(wideJoins) {
  for (auto [index, op] : llvm::enumerate(program.getBody().front()))
    positions[&op] = index;
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// Arithmetic on shared scalars is repeated in each kernel that needs it.
static bool isScalarMath(Operation *op) {
  auto isScalar = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0;
  };
  return isa<RowwiseOpInterface>(op) && llvm::all_of(op->getOperandTypes(), isScalar) &&
         llvm::all_of(op->getResultTypes(), isScalar);
}

static bool storesRows(Operation *op) { return op->getNumResults() == 0; }

/// The number of an op's (domain, stage): ops with the same number iterate over the same rows in
/// the same stage.
unsigned KernelPlanner::getIteration(Operation *op) {
  FlatSymbolRefAttr domain = getRowOpDomain(op);
  int64_t rows = domain ? 0 : getSharedRowCount(op->getResult(0).getType());
  Iteration iteration{{domain, rows},
                      op->getDiscardableAttr(GenRecDialect::StageAttrHelper::getNameStr())};
  return iterations.try_emplace(iteration, iterations.size()).first->second;
}

/// Whether `use` can read its value in the body that computes it.
bool KernelPlanner::flows(OpOperand &use) {
  Operation *reader = use.getOwner();
  auto result = dyn_cast<OpResult>(use.get());
  if (!result || !isRowOp(reader) || !isRowOp(result.getOwner()) ||
      ends.contains(result.getOwner()))
    return false;
  std::optional<OperandRole> role = getOperandRole(reader, use.getOperandNumber());
  if (role != OperandRole::aligned && role != OperandRole::shared)
    return false;
  Operation *maker = result.getOwner();
  if (getResultRole(maker, result.getResultNumber()) != ResultRole::aligned)
    return false;
  return isScalarMath(maker) || getIteration(maker) == getIteration(reader);
}

/// Stores the result of an op after so many fused ops in a chain: passes recurse along the chains
/// of a body, and a C++ compiler is slow on long ones.
void KernelPlanner::endLongChains() {
  constexpr unsigned kLongestChain = 256;
  llvm::DenseMap<Operation *, unsigned> lengths;
  for (Operation &op : program.getBody().front()) {
    unsigned length = 0;
    for (OpOperand &use : op.getOpOperands())
      if (flows(use))
        length = std::max(length, lengths.lookup(use.get().getDefiningOp()));
    lengths[&op] = length + 1;
    if (length + 1 == kLongestChain && op.getNumResults() > 0)
      ends.insert(&op);
  }
}

/// Stores a scalar that is made of many, if several ops read it: each of their kernels would read
/// all of these, as of the factor of a clipped norm a sum of every parameter.
void KernelPlanner::endWideScalars() {
  constexpr unsigned kMostScalars = 8;
  llvm::DenseMap<Operation *, unsigned> read; // scalars in memory that an op is made of
  for (Operation &op : program.getBody().front()) {
    if (!isRowOp(&op) || !isScalarMath(&op))
      continue;
    unsigned count = 0;
    for (OpOperand &use : op.getOpOperands())
      if (flows(use))
        count += read.lookup(use.get().getDefiningOp());
      else if (!isa_and_nonnull<ConstantOp>(use.get().getDefiningOp()))
        ++count;
    read[&op] = count;
    if (count > kMostScalars && op.getResult(0).hasNUsesOrMore(2))
      ends.insert(&op);
  }
}

/// Stores a rounded part of a joined row where it is computed, if a kernel before the joining one
/// can: half of the bytes of one of the rows that it is computed of.
void KernelPlanner::endRoundedParts() {
  computeLevels();
  for (Operation &op : program.getBody().front())
    if (isa<ConcatColumnsOp>(op))
      for (Value part : op.getOperands())
        if (auto cast = part.getDefiningOp<CastOp>();
            cast && getElementTypeOrSelf(part.getType()).isBF16() &&
            levels.lookup(cast) < levels.lookup(&op))
          ends.insert(cast);
}

static bool isWideJoin(Operation *op) {
  return isa<ConcatColumnsOp>(op) && op->getNumOperands() >= kFewestColumns;
}

/// Stores what a wide join makes: whoever reads it would make all of its parts, and a device makes
/// them side by side.
void KernelPlanner::endWideJoins() {
  for (Operation &op : program.getBody().front())
    if (isWideJoin(&op))
      ends.insert(&op);
}

/// Stores what truncated lists keep: all columns of a list by one kernel. Whoever reads them then
/// has rows of its own, which blocks of rows need, and finds each of them once.
void KernelPlanner::endTruncations() {
  for (Operation &op : program.getBody().front())
    if (isa<DeriveOp>(op) && isRowOp(&op))
      ends.insert(&op);
}

void KernelPlanner::computeLevels() {
  for (Operation &op : program.getBody().front()) {
    unsigned level = 0;
    for (OpOperand &use : op.getOpOperands()) {
      Operation *maker = use.get().getDefiningOp();
      if (!maker)
        continue;
      bool leavesKernel = isRowOp(maker) && !flows(use);
      level = std::max(level, levels.lookup(maker) + leavesKernel);
    }
    levels[&op] = level;
  }
}

//===----------------------------------------------------------------------===//
// Roots
//===----------------------------------------------------------------------===//

void KernelPlanner::addRootOp(Operation *op) {
  GroupKey key{levels.lookup(op), getIteration(op), storesRows(op)};
  groups[key].roots.insert(op);
}

void KernelPlanner::addRoot(Value value) {
  materialised.insert(value);
  addRootOp(value.getDefiningOp());
}

void KernelPlanner::collectRoots() {
  for (Operation &op : program.getBody().front()) {
    if (!isRowOp(&op))
      continue;
    if (storesRows(&op))
      addRootOp(&op);
    for (OpResult result : op.getResults())
      for (OpOperand &use : result.getUses()) {
        if (flows(use))
          continue;
        // A slice that is read in place is a view, so its operand must be stored.
        Value needed = result;
        if (isa<SliceColumnsOp>(op) && readsColumnsInPlace(use))
          needed = op.getOperand(0);
        Operation *maker = needed.getDefiningOp();
        if (maker && isRowOp(maker))
          addRoot(needed);
      }
  }
}

/// The domain that an op pools into; null if it does not pool.
static Value getPoolDomain(Operation *op) {
  auto pool = dyn_cast<PoolOp>(op);
  return pool ? pool.getDomain() : Value();
}

/// Whether an op adds up values of all rows.
static bool addsAllRows(Operation *op) {
  return llvm::any_of(op->getResults(), [&](OpResult result) {
    return isAccumulated(getResultRole(op, result.getResultNumber()));
  });
}

/// Splits the roots of a kernel that would pool and also add up all rows, or pool into two domains,
/// and those of one that would make a wide join and something else.
void KernelPlanner::separateRoots() {
  std::map<GroupKey, Group> separated;
  for (auto &[key, group] : groups) {
    // The reductions of the group: the domains that it pools into, then sums over all rows.
    llvm::SetVector<Value> reductions;
    for (Operation *root : group.roots)
      if (Value domain = getPoolDomain(root))
        reductions.insert(domain);
    unsigned last = reductions.size();
    for (Operation *root : group.roots) {
      GroupKey own = key;
      if (Value domain = getPoolDomain(root))
        own.part = llvm::find(reductions, domain) - reductions.begin();
      else if (addsAllRows(root))
        own.part = reductions.size();
      else if (wideJoins && isWideJoin(root))
        own.part = ++last;
      separated[own].roots.insert(root);
    }
  }
  groups = std::move(separated);
}

//===----------------------------------------------------------------------===//
// Bodies
//===----------------------------------------------------------------------===//

/// Ops that cost nothing in a body, even if another kernel computes them too. A slice of a stored
/// value reads only its own columns.
bool KernelPlanner::mustInclude(Operation *op) {
  if (isa<SliceColumnsOp>(op))
    return isInMemory(op->getOperand(0));
  return isScalarMath(op) || isa<BroadcastRowsOp>(op);
}

bool KernelPlanner::isInMemory(Value value) const {
  Operation *op = value.getDefiningOp();
  return !op || !isRowOp(op) || materialised.contains(value);
}

double KernelPlanner::getOperandCost(OpOperand &use, Group &group) {
  Operation *reader = use.getOwner();
  if (isa<DomainType>(use.get().getType()) || group.loaded.contains(use.get()))
    return 0.0;
  if (isa<SliceColumnsOp>(reader) && isInMemory(use.get()))
    return getRowBytes(reader->getResult(0).getType());
  if (flows(use))
    return getCost(use.get().getDefiningOp(), group);
  return getReadCost(reader, use.getOperandNumber());
}

/// The cost per row for `group` to have the result of `op`.
double KernelPlanner::getCost(Operation *op, Group &group) {
  if (group.body.contains(op) || isScalarMath(op) || isa<BroadcastRowsOp>(op))
    return 0.0;
  auto [it, isNew] = group.costs.try_emplace(op, 0.0);
  if (!isNew)
    return it->second;
  double bytes = getRowBytes(op->getResult(0).getType());
  double cost = getArithmeticCost(op);
  if (materialised.contains(op->getResult(0))) {
    cost = group.loaded.contains(op->getResult(0)) ? 0.0 : bytes;
  } else {
    for (OpOperand &use : op->getOpOperands())
      cost += getOperandCost(use, group);
    if (owners.contains(op))
      cost = std::min(cost, 2.0 * bytes);
  }
  group.costs[op] = cost;
  return cost;
}

/// Decides whether to recompute an op of an earlier kernel. `cost`: of recomputing it.
bool KernelPlanner::shouldRecompute(Operation *op, Group &group, double &cost) {
  if (!recompute || !isRecomputable(op))
    return false;
  cost = getArithmeticCost(op);
  for (OpOperand &use : op->getOpOperands())
    cost += getOperandCost(use, group);
  return cost <= 2.0 * getRowBytes(op->getResult(0).getType());
}

void KernelPlanner::include(Operation *op, Group &group) {
  group.body.insert(op);
  group.costs.clear();
  for (OpOperand &use : op->getOpOperands())
    if (!flows(use))
      group.loaded.insert(use.get());
}

static std::string formatBytes(double bytes) { return llvm::formatv("{0:F0}", bytes).str(); }

/// Marks a value of an earlier kernel as stored and loaded.
void KernelPlanner::keep(Value value, double recomputeCost, Group &group) {
  group.loaded.insert(value);
  group.costs.clear();
  if (!materialised.insert(value).second)
    return;
  Operation *maker = value.getDefiningOp();
  plans[owners.lookup(maker)].outputs.insert(value);
  keepReasons[value] = isRecomputable(maker)
                           ? "computing it again would cost " + formatBytes(recomputeCost) +
                                 " bytes per row, keeping it " +
                                 formatBytes(2.0 * getRowBytes(value.getType()))
                           : "it is computed once";
}

/// Adds `op` and the ops it depends on that only this kernel can compute. Values that could be
/// loaded or recomputed are added to `choices`, in program order.
void KernelPlanner::includeWithNeeds(Operation *first, Group &group,
                                     std::map<unsigned, Value> &choices) {
  SmallVector<Operation *> pending{first};
  while (!pending.empty()) {
    Operation *op = pending.pop_back_val();
    if (group.body.contains(op))
      continue;
    include(op, group);
    for (OpOperand &use : op->getOpOperands()) {
      if (!flows(use))
        continue;
      Operation *maker = use.get().getDefiningOp();
      if (mustInclude(maker) || (!owners.contains(maker) && !materialised.contains(use.get())))
        pending.push_back(maker);
      else
        choices[positions.lookup(maker)] = use.get();
    }
  }
}

void KernelPlanner::formGroup(const GroupKey &key, Group &group) {
  std::map<unsigned, Value> choices;
  for (Operation *root : group.roots)
    includeWithNeeds(root, group, choices);
  while (!choices.empty()) {
    // The earliest first, as its decision affects the values computed from it.
    Value value = choices.begin()->second;
    choices.erase(choices.begin());
    Operation *maker = value.getDefiningOp();
    if (group.body.contains(maker))
      continue;
    double cost = 0.0;
    if (!materialised.contains(value) && shouldRecompute(maker, group, cost))
      includeWithNeeds(maker, group, choices);
    else
      keep(value, cost, group);
  }
  splitGroup(key, group);
}

/// Splits ops without common ops and inputs into separate kernels. What reads rows of the list that
/// the domain was truncated from has the offsets of both lists in common; a kernel has only so many
/// arguments.
void KernelPlanner::splitGroup(const GroupKey &key, Group &group) {
  constexpr size_t kMostTruncations = 256;
  // Other arithmetic on shared scalars is repeated in every kernel that reads it.
  auto isOfOneKernel = [&](Operation *op) { return !isScalarMath(op) || group.roots.contains(op); };
  llvm::EquivalenceClasses<void *> classes;
  Operation *first = nullptr; // of those that read such rows together
  size_t together = 0;
  for (Operation *op : group.body) {
    if (!isOfOneKernel(op))
      continue;
    classes.insert(op);
    // What repeated arithmetic reads is in the kernel, too.
    SmallVector<Operation *> repeated{op};
    addScalarMath(repeated);
    for (Operation *scalar : ArrayRef(repeated).drop_front())
      for (OpOperand &use : scalar->getOpOperands())
        if (Operation *maker = use.get().getDefiningOp();
            flows(use) && group.body.contains(maker) && isOfOneKernel(maker))
          classes.unionSets(op, maker);
    for (OpOperand &use : op->getOpOperands()) {
      Value value = use.get();
      std::optional<OperandRole> role = getOperandRole(op, use.getOperandNumber());
      if (!role || isa_and_nonnull<ConstantOp>(value.getDefiningOp()))
        continue;
      if (flows(use) && group.body.contains(value.getDefiningOp())) {
        if (isOfOneKernel(value.getDefiningOp()))
          classes.unionSets(op, value.getDefiningOp());
      } else if (*role != OperandRole::shared) {
        classes.unionSets(op, value.getAsOpaquePointer());
        if (*role == OperandRole::untruncated) {
          first = together++ % kMostTruncations ? first : op;
          classes.unionSets(op, first);
        }
      }
    }
  }
  llvm::MapVector<void *, SmallVector<Operation *>> components;
  for (Operation *op : group.body)
    if (isOfOneKernel(op))
      components[classes.getLeaderValue(op)].push_back(op);
  for (auto &[leader, ops] : components)
    addPlan(key, ops, group);
}

/// Adds the arithmetic on shared scalars that `ops` need.
void KernelPlanner::addScalarMath(SmallVectorImpl<Operation *> &ops) {
  llvm::SmallSetVector<Operation *, 8> all(ops.begin(), ops.end());
  for (unsigned index = 0; index < all.size(); ++index)
    for (OpOperand &use : all[index]->getOpOperands())
      if (flows(use) && isScalarMath(use.get().getDefiningOp()))
        all.insert(use.get().getDefiningOp());
  ops.assign(all.begin(), all.end());
}

void KernelPlanner::addPlan(const GroupKey &key, ArrayRef<Operation *> members,
                            const Group &group) {
  SmallVector<Operation *> ops(members);
  addScalarMath(ops);
  llvm::sort(ops, [&](Operation *lhs, Operation *rhs) {
    return positions.lookup(lhs) < positions.lookup(rhs);
  });
  KernelPlan plan;
  const Iteration &iteration = (iterations.begin() + key.iteration)->first;
  plan.domain = cast_or_null<FlatSymbolRefAttr>(iteration.first.first);
  plan.sharedRows = iteration.first.second;
  plan.stage = iteration.second;
  for (Operation *op : ops) {
    plan.ops.insert(op);
    if (!owners.try_emplace(op, plans.size()).second && !isScalarMath(op))
      ++recomputed;
    if (!group.roots.contains(op))
      continue;
    for (Value result : op->getResults())
      if (materialised.contains(result))
        plan.outputs.insert(result);
  }
  plans.push_back(std::move(plan));
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// Why `value` is stored although another kernel of the same domain and stage reads it.
std::string KernelPlanner::describeKept(Value value) {
  if (auto it = keepReasons.find(value); it != keepReasons.end())
    return it->second;
  for (OpOperand &use : value.getUses())
    if (!flows(use))
      return (use.getOwner()->getName().getStringRef() + " reads it too").str();
  return "a view of it is read in place";
}

/// Lists every value that one kernel stores for another of the same domain and stage.
void KernelPlanner::noteKept() {
  for (const KernelPlan &plan : plans) {
    llvm::SmallSetVector<Value, 8> read;
    for (Operation *op : plan.ops)
      for (OpOperand &use : op->getOpOperands())
        if (flows(use) && !plan.ops.contains(use.get().getDefiningOp()))
          read.insert(use.get());
    for (Value value : read)
      kept.push_back({value, plans[owners.lookup(value.getDefiningOp())].name, plan.name,
                      describeKept(value)});
  }
}

/// Names kernels `<domain>_<ops of the first and the last root>`, unique in the program.
static void namePlans(std::vector<KernelPlan> &plans) {
  llvm::StringMap<unsigned> used;
  for (KernelPlan &plan : plans) {
    SmallVector<StringRef> names;
    for (Operation *op : plan.ops) {
      bool isRoot = storesRows(op) || llvm::any_of(op->getResults(), [&](Value v) {
                      return plan.outputs.contains(v);
                    });
      StringRef name = op->getName().stripDialect();
      if (auto kernel = dyn_cast<RowKernelOp>(op))
        name = kernel.getName().value_or("kernel");
      if (isRoot && !llvm::is_contained(names, name))
        names.push_back(name);
    }
    std::string name = plan.domain ? plan.domain.getValue().str() : "shared";
    if (names.size() > 2)
      names = {names.front(), names.back()};
    for (StringRef part : names)
      name += "_" + part.str();
    plan.name = nameWithNumber(name, ++used[name]);
  }
}

std::vector<KernelPlan> KernelPlanner::run() {
  endLongChains();
  endWideScalars();
  endTruncations();
  endRoundedParts();
  if (wideJoins)
    endWideJoins();
  computeLevels();
  collectRoots();
  separateRoots();
  for (auto &[key, group] : groups)
    formGroup(key, group);
  namePlans(plans);
  noteKept();
  return std::move(plans);
}
