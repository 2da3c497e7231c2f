//===- JointLaunches.cpp - kernels that a device runs in one launch -------===//

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"
#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec_rt/device_limits.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace genrec;

/// Whether an element of what an op of a body makes depends on the same element of its operands, or
/// on scalars: no thread of a row reads or writes what others have.
static bool isElementwise(Operation &op) {
  auto body = dyn_cast<BodyOpInterface>(op);
  return !body || (body.getBodyKind() != BodyKind::call && !body.readsOtherLanes() &&
                   !body.writesOtherLanes());
}

/// Whether `value` is, or aliases, a parameter other than `own`.
static bool readsParameter(Value value, FlatSymbolRefAttr own) {
  Operation *maker = value.getDefiningOp();
  if (auto param = dyn_cast_or_null<ParamOp>(maker))
    return param.getParameterAttr() != own;
  if (auto rows = dyn_cast_or_null<ParameterRowsOp>(maker))
    return rows.getParameterAttr() != own;
  return maker && isView(maker) &&
         llvm::any_of(cast<StepOpInterface>(maker).getAliasedOperands(),
                      [&](Value aliased) { return readsParameter(aliased, own); });
}

/// Whether one op alone has rows of the parameter.
static bool areReadOnce(ParameterRowsOp rows) {
  auto isOfParameter = [&](ParameterRowsOp other) {
    return other.getParameterAttr() == rows.getParameterAttr();
  };
  return rows.getResult().hasOneUse() &&
         llvm::count_if(rows->getBlock()->getOps<ParameterRowsOp>(), isOfParameter) == 1;
}

/// Whether each row of `kernel` reads its own rows of inputs, or what all rows share.
static bool readsOwnRows(RowKernelOp kernel) {
  return llvm::all_of(
      kernel.getOperandRoles().getAsRange<OperandRoleAttr>(), [](OperandRoleAttr role) {
        return role.getValue() == OperandRole::aligned || role.getValue() == OperandRole::shared;
      });
}

bool genrec::isParameterUpdate(Operation *op) {
  auto kernel = dyn_cast<RowKernelOp>(op);
  if (!kernel || kernel.getNumResults() > 0 || !storesRows(kernel))
    return false;
  auto rows = kernel.getDomain().getDefiningOp<ParameterRowsOp>();
  if (!rows || !areReadOnce(rows))
    return false;
  auto type = cast<RowType>(cast<RankedTensorType>(rows.getResult().getType()).getElementType());
  if (type.getWidth() > rt::kMostColumnWidth)
    return false;
  if (!readsOwnRows(kernel) || llvm::any_of(kernel.getInputs(), [&](Value input) {
        return readsParameter(input, rows.getParameterAttr());
      }))
    return false;
  return llvm::all_of(kernel.getBody().front(), isElementwise);
}

/// Whether a block of a device has room for a row of values of `type` as a column: of floats, which
/// are reduced in 32 KiB of shared memory at most.
static bool fitsColumn(Type type) {
  if (auto row = dyn_cast<RowType>(type))
    return row.getWidth() <= rt::kMostColumnWidth;
  auto vector = dyn_cast<VectorType>(type);
  return !vector ||
         (vector.getElementType().isF32() && vector.getNumElements() <= rt::kMostColumnWidth);
}

bool genrec::fitsColumn(Operation &op) {
  return (isElementwise(op) || isa<vector::ReductionOp>(op)) &&
         llvm::all_of(op.getResultTypes(), [](Type type) { return ::fitsColumn(type); });
}

static bool fitInputs(RowKernelOp kernel) {
  return llvm::all_of(kernel.getBody().getArgumentTypes(),
                      [](Type type) { return fitsColumn(type); });
}

static bool fitOps(RowKernelOp kernel) {
  return llvm::all_of(kernel.getBody().front(),
                      [](Operation &op) { return genrec::fitsColumn(op); });
}

Operation *genrec::getReductionReader(Operation *op) {
  auto kernel = dyn_cast<RowKernelOp>(op);
  if (!kernel || kernel.getNumResults() != 1 || storesRows(kernel) || getRowBlock(kernel) ||
      !kernel.getDomain().getDefiningOp<ParameterRowsOp>() || !readsOwnRows(kernel) ||
      !fitInputs(kernel) || !fitOps(kernel))
    return nullptr;
  OpResult result = kernel->getResult(0);
  if (kernel.getKernelResultRole(0) != ResultRole::aligned ||
      !getRowShape(cast<RankedTensorType>(result.getType())).empty() || result.use_empty() ||
      !llvm::all_equal(result.getUsers()))
    return nullptr;
  Operation *reader = *result.user_begin();
  return getStage(reader) == getStage(kernel) ? reader : nullptr;
}

bool genrec::makesRowsAlone(RowKernelOp kernel) {
  if (storesRows(kernel) || getRowBlock(kernel) ||
      kernel.getDomain().getDefiningOp<ParameterRowsOp>())
    return false;
  auto mayTake = [](Value input, OperandRole role) {
    return (role == OperandRole::aligned || role == OperandRole::shared ||
            role == OperandRole::ancestor) &&
           !isAddedByReader(input) && !getRowsParameter(input);
  };
  for (auto [input, role] :
       llvm::zip(kernel.getInputs(), kernel.getOperandRoles().getAsRange<OperandRoleAttr>()))
    if (!mayTake(input, role.getValue()))
      return false;
  // Rows of factors end in zeros, which the kernel writes behind the last of them.
  return fitInputs(kernel) && llvm::none_of(kernel.getResultTypes(), [](Type type) {
           return getElementTypeOrSelf(type).isBF16();
         });
}

/// Whether a kernel may run with others that do the same for other lists, which are columns then:
/// it makes rows of its own, or pools them into those of one domain.
static bool isListKernel(RowKernelOp kernel) {
  if (kernel.getNumResults() == 0 || !makesRowsAlone(kernel))
    return false;
  FlatSymbolRefAttr pooled;
  for (auto [number, result] : llvm::enumerate(kernel.getResults())) {
    const ResultRole role = kernel.getKernelResultRole(number);
    FlatSymbolRefAttr domain = getRowDomain(result.getType());
    const bool isPooled = role == ResultRole::pooled;
    if ((!isPooled && role != ResultRole::aligned) || (isPooled && pooled && pooled != domain))
      return false;
    pooled = isPooled ? domain : pooled;
  }
  return fitOps(kernel);
}

/// How many domains the rows of an operand or result are above those of `kernel`; 0, too, for what
/// has no rows.
static size_t getHeight(RowKernelOp kernel, Value value) {
  FlatSymbolRefAttr domain = getRowDomain(value.getType());
  if (!domain)
    return 0;
  return getHeight(getDomainPath(kernel, kernel.getDomain().getType().getDomain()), domain);
}

/// Whether two kernels do the same, each with its own lists and operands.
static bool areAlike(RowKernelOp one, RowKernelOp other) {
  auto areEqual = [&](std::tuple<Value, Value> pair) {
    auto [a, b] = pair;
    auto first = cast<RankedTensorType>(a.getType()), second = cast<RankedTensorType>(b.getType());
    return first.getShape() == second.getShape() &&
           first.getElementType() == second.getElementType() &&
           getHeight(one, a) == getHeight(other, b);
  };
  return one.getOperandRoles() == other.getOperandRoles() &&
         one.getResultRoles() == other.getResultRoles() &&
         one.getPoolKinds() == other.getPoolKinds() &&
         llvm::all_of(llvm::zip_equal(one.getInputs(), other.getInputs()), areEqual) &&
         llvm::all_of(llvm::zip_equal(one.getResults(), other.getResults()), areEqual) &&
         OperationEquivalence::isRegionEquivalentTo(&one.getBody(), &other.getBody(),
                                                    OperationEquivalence::IgnoreLocations);
}

namespace {
/// Collects the kernels of each launch, in the order of the program.
class LaunchCollector {
public:
  void add(Operation &op);
  SmallVector<JointLaunch> take();

private:
  /// What kernels over rows of parameters that share a launch have in common.
  using Key = std::pair<Stage, Operation *>;
  static std::optional<Key> getKey(Operation *op);
  void addListKernel(RowKernelOp kernel, int64_t ready);

  SmallVector<JointLaunch> launches;
  std::optional<Key> last;
  size_t ofLast = 0; ///< the launch of the kernels with that key
  /// Launches that more kernels over lists may join, and the place of each.
  SmallVector<std::pair<size_t, int64_t>> open;
  int64_t place = 0; ///< of the current op
  /// By op, the place behind which there is what it makes; -1: from the beginning.
  llvm::DenseMap<Operation *, int64_t> made;
};
} // namespace

std::optional<LaunchCollector::Key> LaunchCollector::getKey(Operation *op) {
  if (isParameterUpdate(op))
    return Key(getStage(op), nullptr);
  if (Operation *reader = getReductionReader(op))
    return Key(getStage(op), reader);
  return std::nullopt;
}

/// A launch is where its first kernel is: `ready`, the place of what a kernel reads, is before it.
void LaunchCollector::addListKernel(RowKernelOp kernel, int64_t ready) {
  auto *launch = llvm::find_if(open, [&](std::pair<size_t, int64_t> candidate) {
    RowKernelOp first = launches[candidate.first].getPlace();
    return ready < candidate.second && getStage(first) == getStage(kernel) &&
           areAlike(first, kernel);
  });
  if (launch == open.end()) {
    launch = open.insert(launch, {launches.size(), place});
    launches.push_back({JointLaunch::Kind::lists, {}});
  }
  launches[launch->first].kernels.push_back(kernel);
  made[kernel] = launch->second;
}

void LaunchCollector::add(Operation &op) {
  int64_t ready = -1;
  for (Value operand : op.getOperands())
    if (Operation *maker = operand.getDefiningOp())
      ready = std::max(ready, made.lookup(maker));
  // What has no code may be anywhere behind what it reads.
  if (isDeclaration(&op) || isView(&op)) {
    made[&op] = ready;
    return;
  }
  made[&op] = ++place;
  std::optional<Key> key = getKey(&op);
  auto kernel = dyn_cast<RowKernelOp>(op);
  // What writes nothing that a kernel reads may run before all of them, or behind them: so do
  // kernels, and so do outputs, metrics and losses for those over lists.
  const bool mayMove = kernel && !storesRows(&op);
  if (!mayMove && !isa<SinkOpInterface>(op))
    open.clear();
  if (!key && mayMove) {
    if (isListKernel(kernel))
      addListKernel(kernel, ready);
    return;
  }
  if (key && key != last) {
    ofLast = launches.size();
    launches.push_back(
        {key->second ? JointLaunch::Kind::reductions : JointLaunch::Kind::updates, {}});
  }
  if (key) {
    launches[ofLast].kernels.push_back(kernel);
    made[&op] = std::numeric_limits<int64_t>::max(); // where the last of them is
  }
  last = key;
}

SmallVector<JointLaunch> LaunchCollector::take() {
  llvm::erase_if(launches, [](const JointLaunch &launch) {
    return launch.kernels.size() == 1 && launch.kind != JointLaunch::Kind::updates;
  });
  return std::move(launches);
}

SmallVector<JointLaunch> genrec::getJointLaunches(ProgramOp program) {
  LaunchCollector collector;
  if (Target::of(program).hasDevice)
    for (Operation &op : program.getBody().front())
      collector.add(op);
  return collector.take();
}
