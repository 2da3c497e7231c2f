//===- ProgramOrder.cpp - topological order by position -------------------===//

#include "ProgramOrder.h"

#include "llvm/ADT/DenseSet.h"

#include <queue>

using namespace mlir;
using namespace genrec;

void genrec::orderProgram(ProgramOp program,
                          const DenseMap<Operation *, unsigned> &positions) {
  Block &body = program.getBody().front();
  using Entry = std::pair<unsigned, unsigned>; // position, index before sorting
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  SmallVector<Operation *> ops;
  DenseMap<Operation *, unsigned> indices, waiting;
  DenseMap<Operation *, SmallVector<Operation *, 4>> readers;
  for (Operation &op : body) {
    indices[&op] = ops.size();
    ops.push_back(&op);
  }
  for (Operation *op : ops) {
    DenseSet<Operation *> makers;
    for (Value operand : op->getOperands())
      if (Operation *maker = operand.getDefiningOp())
        makers.insert(maker);
    waiting[op] = makers.size();
    for (Operation *maker : makers)
      readers[maker].push_back(op);
    if (makers.empty())
      ready.push({positions.lookup(op), indices[op]});
  }
  while (!ready.empty()) {
    Operation *op = ops[ready.top().second];
    ready.pop();
    op->moveBefore(&body, body.end());
    for (Operation *reader : readers[op])
      if (--waiting[reader] == 0)
        ready.push({positions.lookup(reader), indices[reader]});
  }
}
