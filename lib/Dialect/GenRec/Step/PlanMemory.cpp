//===- PlanMemory.cpp - plans the buffers of a program --------------------===//

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/Passes.h"
#include "genrec/Dialect/GenRec/Step/Target.h"

#include <map>

namespace genrec {
#define GEN_PASS_DEF_PLANMEMORY
#include "genrec/Dialect/GenRec/Step/Passes.h.inc"
} // namespace genrec

using namespace mlir;
using namespace genrec;

namespace {

/// Plans one program.
class Planner {
public:
  explicit Planner(ProgramOp program) : program(program) {}

  void run();

  SmallVector<PlannedBuffer> buffers;
  int64_t viewCount = 0, padded = 0, joined = 0;

private:
  void orderByStage();
  void plan(Operation *op);
  /// Extends the live range of the memory that holds `value`, or that it aliases, to op number
  /// `last`.
  void extend(Value value, int64_t last);
  void extendKept(Operation *op, int64_t last);
  void planBlocks();
  void planJointLaunches();
  void placeInBlock(int64_t block, int64_t begin, int64_t end, FlatSymbolRefAttr domain);

  ProgramOp program;
  llvm::DenseMap<Operation *, int64_t> numbers, extended; ///< by op; to where its operands live
  int64_t opCount = 0, firstComputeOp = 0, firstUpdateOp = 0;
};

} // namespace

// For a batch, stages run one after another, so ops of an earlier stage come first; they never
// depend on a later stage. Ops without code of their own come before all stages, as any stage may
// use them. Nothing of a program reads what updates of parameters write, so they may come last in
// their stage; on a device they do, as they are one launch.
void Planner::orderByStage() {
  Block &body = program.getBody().front();
  constexpr unsigned kStages = getMaxEnumValForStage() + 1;
  SmallVector<Operation *> leaves, stages[kStages], updates[kStages];
  const bool areJoint = Target::of(program).hasDevice;
  for (Operation &op : body) {
    if (isDeclaration(&op)) {
      leaves.push_back(&op);
      continue;
    }
    auto &ofStages = areJoint && isParameterUpdate(&op) ? updates : stages;
    ofStages[static_cast<unsigned>(getStage(&op))].push_back(&op);
  }
  for (auto [ops, last] : llvm::zip(stages, updates))
    llvm::append_range(ops, last);
  firstComputeOp = leaves.size() + stages[0].size() + stages[1].size();
  firstUpdateOp = firstComputeOp + stages[2].size();
  auto place = [&](ArrayRef<Operation *> ops) {
    for (Operation *op : ops) {
      op->moveBefore(&body, body.end());
      numbers[op] = opCount++;
    }
  };
  place(leaves);
  for (ArrayRef<Operation *> ops : stages)
    place(ops);
}

void Planner::plan(Operation *op) {
  int64_t number = numbers[op];
  if (isView(op))
    ++viewCount;
  SmallVector<int64_t> ids;
  for (BufferSlot &slot : getBufferSlots(op)) {
    if (!slot.needed) {
      ids.push_back(-1);
      continue;
    }
    if (slot.sharedWith) {
      ids.push_back(getResultBuffer(slot.sharedWith));
      ++joined;
      continue;
    }
    ids.push_back(buffers.size());
    buffers.push_back({slot.domain, slot.bytesPerRow, slot.stride, slot.bytes, number,
                       slot.untilEnd ? opCount - 1 : number, slot.name, -1, 0});
    padded += slot.stride != 0;
  }
  if (llvm::any_of(ids, [](int64_t id) { return id >= 0; }))
    op->setAttr(GenRecDialect::BufferIdsAttrHelper::getNameStr(),
                DenseI64ArrayAttr::get(op->getContext(), ids));
}

void Planner::extend(Value value, int64_t last) {
  auto result = dyn_cast<OpResult>(value);
  if (!result)
    return;
  Operation *op = result.getOwner();
  // A call may alias its operands as well: it changes them in place.
  auto step = dyn_cast<StepOpInterface>(op);
  bool aliases =
      isView(op) || (step && !isDeclaration(op) && !step.ownsResult(result.getResultNumber()));
  if (aliases) {
    // What it aliases lives as long already: sums of all parameters are one op, which aliases all.
    int64_t &before = extended.try_emplace(op, -1).first->second;
    if (before >= last)
      return;
    before = last;
    extendKept(op, last);
    for (Value operand : cast<StepOpInterface>(op).getAliasedOperands())
      extend(operand, last);
    return;
  }
  if (int64_t id = getResultBuffer(result); id >= 0)
    buffers[id].last = std::max(buffers[id].last, last);
}

/// Extends the live range of the buffer that another op keeps for `op`.
void Planner::extendKept(Operation *op, int64_t last) {
  auto step = dyn_cast<StepOpInterface>(op);
  KeptBuffer kept = step ? step.getKeptBuffer() : KeptBuffer();
  if (int64_t id = kept.maker ? getOwnBuffer(kept.maker, kept.slot) : -1; id >= 0)
    buffers[id].last = std::max(buffers[id].last, last);
}

/// Extends a live range that begins or ends inside of the run of ops [begin, end] to the whole run.
static void extendToRun(PlannedBuffer &buffer, int64_t begin, int64_t end) {
  if (buffer.first >= begin && buffer.first <= end)
    buffer.first = begin;
  if (buffer.last >= begin && buffer.last <= end)
    buffer.last = end;
}

/// Buffers that are live only inside of the run of ops [begin, end] over `domain` get offsets in
/// the run's own memory: each the lowest at which it overlaps no buffer with an overlapping live
/// range. The live ranges of other buffers that a run uses are extended to the whole run.
void Planner::placeInBlock(int64_t block, int64_t begin, int64_t end, FlatSymbolRefAttr domain) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    PlannedBuffer &buffer = buffers[i];
    if (buffer.first < begin || buffer.last > end || buffer.domain != domain) {
      extendToRun(buffer, begin, end);
      continue;
    }
    buffer.block = block;
    for (bool moved = true; moved;) {
      moved = false;
      for (const PlannedBuffer &other : ArrayRef(buffers).take_front(i)) {
        bool meets =
            other.block == block && other.first <= buffer.last && buffer.first <= other.last;
        if (meets && buffer.offset < other.offset + other.bytesPerRow &&
            other.offset < buffer.offset + buffer.bytesPerRow) {
          buffer.offset = other.offset + other.bytesPerRow;
          moved = true;
        }
      }
    }
  }
}

void Planner::planBlocks() {
  struct Run {
    int64_t begin, end;
    FlatSymbolRefAttr domain;
  };
  std::map<int64_t, Run> runs;
  for (Operation &op : program.getBody().front())
    if (RowBlockAttr block = getRowBlock(&op)) {
      int64_t number = numbers[&op];
      runs.try_emplace(block.getNumber(), Run{number, number, block.getDomain()})
          .first->second.end = number;
    }
  for (const auto &[block, run] : runs)
    placeInBlock(block, run.begin, run.end, run.domain);
}

/// Kernels of one launch run at the same time: what one of them makes may not lie where another's
/// operand has been.
void Planner::planJointLaunches() {
  for (const JointLaunch &launch : getJointLaunches(program)) {
    RowKernelOp first = launch.kernels.front(), last = launch.kernels.back();
    const int64_t begin = numbers[first], end = numbers[last];
    for (PlannedBuffer &buffer : buffers)
      extendToRun(buffer, begin, end);
  }
}

void Planner::run() {
  orderByStage();
  for (Operation &op : program.getBody().front())
    plan(&op);
  for (Operation &op : program.getBody().front()) {
    // Ids are sent to other ranks once all portions have run the dispatch stage.
    bool isDispatch = !isDeclaration(&op) && getStage(&op) == Stage::dispatch;
    int64_t last = isDispatch ? firstComputeOp - 1 : numbers[&op];
    for (Value operand : op.getOperands())
      extend(operand, last);
    extendKept(&op, last);
  }
  planBlocks();
  planJointLaunches();
  SmallVector<Attribute> attributes;
  for (const PlannedBuffer &buffer : buffers)
    attributes.push_back(buffer.toAttribute(program.getContext()));
  program->setAttr(GenRecDialect::BuffersAttrHelper::getNameStr(),
                   ArrayAttr::get(program.getContext(), attributes));
  program->setAttr(GenRecDialect::FirstComputeOpAttrHelper::getNameStr(),
                   Builder(program.getContext()).getI64IntegerAttr(firstComputeOp));
  if (firstUpdateOp < opCount)
    program->setAttr(GenRecDialect::FirstUpdateOpAttrHelper::getNameStr(),
                     Builder(program.getContext()).getI64IntegerAttr(firstUpdateOp));
}

namespace {
struct PlanMemoryPass : genrec::impl::PlanMemoryBase<PlanMemoryPass> {
  void runOnOperation() override {
    for (auto program : getOperation().getBody().front().getOps<ProgramOp>()) {
      Planner planner(program);
      planner.run();
      buffers += planner.buffers.size();
      views += planner.viewCount;
      paddedBuffers += planner.padded - planner.joined; // parts have a stride, too
      joinedParts += planner.joined;
    }
  }
};
} // namespace
