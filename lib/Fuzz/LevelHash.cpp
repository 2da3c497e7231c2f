//===- LevelHash.cpp - whether levels are the same ------------------------===//

#include "genrec/Fuzz/LevelHash.h"

#include "llvm/ADT/Hashing.h"

using namespace mlir;
using namespace genrec;

/// An op apart from what it reads and what lies in it.
static uint64_t hashAlone(Operation *op) {
  return static_cast<size_t>(OperationEquivalence::computeHash(
      op, OperationEquivalence::ignoreHashValue, OperationEquivalence::ignoreHashValue,
      OperationEquivalence::IgnoreLocations));
}

uint64_t fuzz::hashOp(Operation *top) {
  llvm::DenseMap<Value, uint64_t> numbers;
  llvm::hash_code hash(0);
  top->walk<WalkOrder::PreOrder>([&](Operation *op) {
    hash = llvm::hash_combine(hash, hashAlone(op), op->getNumOperands(), op->getNumRegions());
    for (Value operand : op->getOperands())
      hash = llvm::hash_combine(hash, numbers.lookup(operand));
    for (Value result : op->getResults())
      numbers.try_emplace(result, numbers.size() + 1);
    for (Region &region : op->getRegions())
      for (Block &block : region) {
        hash = llvm::hash_combine(hash, block.getOperations().size(), block.getNumArguments());
        for (Value argument : block.getArguments()) {
          hash = llvm::hash_combine(hash, argument.getType());
          numbers.try_emplace(argument, numbers.size() + 1);
        }
      }
  });
  return static_cast<size_t>(hash);
}

uint64_t fuzz::hashDeclarations(ModelOp model) {
  llvm::hash_code hash(hashAlone(model));
  for (Operation &op : model.getBody().front())
    if (!isa<ProgramOp>(op))
      hash = llvm::hash_combine(hash, hashOp(&op));
  return static_cast<size_t>(hash);
}
