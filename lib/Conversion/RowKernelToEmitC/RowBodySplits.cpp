//===- RowBodySplits.cpp - splits levels and loops of a schedule ----------===//

#include "RowBodySchedule.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"

#include "mlir/Analysis/SliceAnalysis.h"

#include "llvm/ADT/IntEqClasses.h"

using namespace mlir;
using namespace genrec;

llvm::SetVector<Operation *> genrec::getMakers(Value value,
                                               std::function<bool(Operation *)> filter) {
  llvm::SetVector<Operation *> makers;
  BackwardSliceOptions options;
  options.inclusive = options.omitBlockArguments = true;
  options.filter = std::move(filter);
  if (Operation *maker = value.getDefiningOp())
    (void)getBackwardSlice(maker, &makers, options);
  return makers;
}

//===----------------------------------------------------------------------===//
// Levels
//===----------------------------------------------------------------------===//

/// Makes a loop of `to` store the value in place of one of `from`.
static void moveStored(Value value, BodyLevel &from, BodyLevel &to) {
  llvm::erase(from.getLoop(getExtent(value)).stored, value);
  llvm::erase_if(from.loops,
                 [](const ElementLoop &loop) { return loop.stored.empty() && loop.sinks.empty(); });
  to.getLoop(getExtent(value)).stored.push_back(value);
}

SmallVector<Value> BodySchedule::getOwnValues(const BodyLevel &level, Operation *call) const {
  SmallVector<Value> own;
  for (Value operand : call->getOperands())
    if (operand.hasOneUse() && isCheap(operand) &&
        llvm::any_of(level.loops, [&](const ElementLoop &loop) {
          return llvm::is_contained(loop.stored, operand);
        }))
      own.push_back(operand);
  return own;
}

void BodySchedule::splitCalls(BodyLevel level, int64_t most, std::vector<BodyLevel> &parts) {
  SmallVector<Operation *> calls = std::move(level.calls);
  level.calls.clear();
  parts.push_back(std::move(level));
  int64_t stored = 0;
  for (Operation *call : calls) {
    SmallVector<Value> own = getOwnValues(parts.front(), call);
    int64_t elements = 0;
    for (Value value : own)
      elements += getExtent(value);
    if (stored > 0 && stored + elements > most) {
      parts.emplace_back();
      stored = 0;
    }
    stored += elements;
    if (parts.size() > 1)
      for (Value value : own)
        moveStored(value, parts.front(), parts.back());
    parts.back().calls.push_back(call);
  }
}

// Ops stay in order, so that sums of a row's terms do, too.
void BodySchedule::moveScalars(BodyLevel &level, std::vector<BodyLevel> &parts) const {
  llvm::DenseMap<Operation *, size_t> ready;
  for (auto [number, part] : llvm::enumerate(parts))
    for (Operation *call : part.calls)
      ready[call] = number + 1;
  size_t at = 0, moved = 0;
  for (Operation *op : level.scalars) {
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      const bool isElement = maker && nodes.lookup(maker).kind == BodyKind::element;
      at = isElement ? parts.size() : std::max(at, maker ? ready.lookup(maker) : 0);
    }
    if (at >= parts.size())
      break;
    parts[at].scalars.push_back(op);
    ++moved;
  }
  level.scalars.erase(level.scalars.begin(), level.scalars.begin() + moved);
}

void BodySchedule::splitLevels(int64_t most) {
  std::vector<BodyLevel> split, parts;
  for (BodyLevel &level : levels) {
    if (parts.size() > 1)
      moveScalars(level, parts);
    llvm::move(parts, std::back_inserter(split));
    parts.clear();
    splitCalls(std::move(level), most, parts);
  }
  llvm::move(parts, std::back_inserter(split));
  levels = std::move(split);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

SmallVector<SmallVector<size_t>> BodySchedule::getParts(const ElementLoop &loop) const {
  llvm::IntEqClasses classes(loop.stored.size() + loop.sinks.size());
  llvm::DenseMap<Operation *, unsigned> first;
  auto isElement = [&](Operation *op) { return getKind(op) == BodyKind::element; };
  auto add = [&](unsigned number, Value value) {
    for (Operation *op : getMakers(value, isElement))
      classes.join(first.try_emplace(op, number).first->second, number);
  };
  for (auto [number, value] : llvm::enumerate(loop.stored))
    add(number, value);
  for (auto [number, sink] : llvm::enumerate(loop.sinks))
    add(loop.stored.size() + number, sink.value);
  classes.compress();
  SmallVector<SmallVector<size_t>> parts(classes.getNumClasses());
  for (size_t number = 0; number < loop.stored.size() + loop.sinks.size(); ++number)
    parts[classes[number]].push_back(number);
  return parts;
}

// What stores rows may read these in the same loop, before it stores them.
void BodySchedule::splitLoops(size_t most) {
  if (storesRows(kernel))
    return;
  for (BodyLevel &level : levels) {
    std::vector<ElementLoop> split;
    for (ElementLoop &loop : level.loops) {
      if (loop.stored.size() + loop.sinks.size() <= most) {
        split.push_back(std::move(loop));
        continue;
      }
      size_t room = 0;
      for (ArrayRef<size_t> part : getParts(loop)) {
        if (room < part.size()) {
          split.push_back({loop.extent, {}, {}});
          room = most;
        }
        room -= std::min(room, part.size());
        for (size_t number : part)
          if (number < loop.stored.size())
            split.back().stored.push_back(loop.stored[number]);
          else
            split.back().sinks.push_back(loop.sinks[number - loop.stored.size()]);
      }
    }
    level.loops = std::move(split);
  }
}
