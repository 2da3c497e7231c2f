//===- CppInlining.cpp - values printed in expressions --------------------===//

#include "CppInlining.h"

#include "genrec/Target/EmitC/EmitCBuilder.h"

using namespace mlir;
using namespace genrec;

bool genrec::isPlaceOrConstant(Operation *op) {
  return isa<emitc::ConstantOp, emitc::LiteralOp, emitc::SubscriptOp, emitc::MemberOp,
             emitc::DereferenceOp, emitc::GetGlobalOp>(op);
}

/// Whether the op reads memory or calls a function that may.
static bool isRead(Operation *op) { return isa<emitc::LoadOp, emitc::CallOpaqueOp>(op); }

static bool isWrite(Operation *op) {
  if (isa<emitc::CallOpaqueOp>(op))
    return op->getNumResults() == 0;
  return isa<emitc::AssignOp, emitc::ForOp, emitc::IfOp>(op);
}

CppInlining::CppInlining(Operation *function) {
  function->walk([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        decideBlock(block);
  });
}

void CppInlining::decideBlock(Block &block) {
  unsigned count = 0;
  for (Operation &op : block) {
    writes[&op] = count;
    count += isWrite(&op);
  }
  // Users first: where a value is printed depends on where its user is.
  for (Operation &op : llvm::reverse(block))
    if (decide(&op))
      inlined.insert(&op);
  // Splits expressions that are too long.
  constexpr unsigned kMostOps = 8;
  for (Operation &op : block) {
    unsigned size = isa<emitc::ConstantOp, emitc::LiteralOp>(op) ? 0 : 1;
    for (Value operand : op.getOperands())
      if (Operation *maker = operand.getDefiningOp(); maker && isInlined(maker))
        size += sizes.lookup(maker);
    sizes[&op] = size;
    if (size > kMostOps && isInlined(&op) && !isPlaceOrConstant(&op) &&
        !isa<emitc::AddressOfOp>(op)) {
      inlined.erase(&op);
      sizes[&op] = 0;
    }
  }
}

Operation *CppInlining::getStatement(Operation *op) const {
  Block *block = op->getBlock();
  while (isInlined(op)) {
    if (!op->hasOneUse())
      return nullptr;
    Operation *user = *op->user_begin();
    if (user->getBlock() != block)
      return nullptr;
    op = user;
  }
  return op;
}

bool CppInlining::decide(Operation *op) {
  if (isPlaceOrConstant(op))
    return true;
  if (op->getNumResults() != 1 || isa<emitc::VariableOp>(op))
    return false;
  for (StringRef name : {kVariableAttrName, kConstAttrName, kRestrictAttrName})
    if (op->hasAttr(name))
      return false;
  if (isa<emitc::AddressOfOp>(op))
    return true;
  if (!op->hasOneUse())
    return false;
  Operation *user = *op->user_begin();
  if (!isRead(op))
    // If the user is printed more than once, inlining would evaluate this op more than once.
    return !isInlined(user) || user->hasOneUse() || op->getNumOperands() <= 1;
  if (user->getBlock() != op->getBlock())
    return false;
  Operation *statement = getStatement(user);
  return statement && writes.lookup(statement) == writes.lookup(op);
}
