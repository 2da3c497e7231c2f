//===- StepCallsPick.cpp - rows picked from a catalogue as calls ----------===//
//
// Lowers to genrec_rt/kernels/cpu/picked_rows.h.
//
//===----------------------------------------------------------------------===//

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StageBuilder.h"

using namespace mlir;
using namespace genrec;

LogicalResult genrec::lowerCall(DrawRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  Value domain = op.getDomain() ? stage.getDomain(op.getDomain())
                                : b.literal("nullptr", b.pointer(b.opaque("const genrec_domain")));
  b.callVoid("kernels::drawRowNumbers",
             {stage.getStep(), stage.getDomain(op.getSource()), domain, b.integer(op.getStream()),
              b.integer(op.getCount()), stage.getPointer(op.getResult())});
  return success();
}

LogicalResult genrec::lowerCall(PickRowsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  std::string name = makeIdentifier(op.getDomain().getType().getDomain().getValue());
  SmallVector<Value> numbers, counts, picked;
  for (auto [from, to] : llvm::zip_equal(op.getNumbers(), op.getPicked())) {
    Value size = b.integer(getRowSize(from.getType()));
    numbers.push_back(stage.getPointer(from));
    counts.push_back(getRowDomain(from.getType()) ? b.mul(stage.getCount(from), size) : size);
    picked.push_back(stage.getPointer(to));
  }
  Value identity =
      stage.getBuffer(getOwnBuffer(op, kPickedIdentitySlot), b.u64(), name + "_identity");
  Value memory =
      stage.getBuffer(getOwnBuffer(op, kPickedBitsSlot), b.opaque("void"), name + "_bits");
  b.callVoid(
      "kernels::pickRows",
      {stage.getStep(), stage.getDomain(op.getSource()), stage.getDomain(op.getDomain()),
       b.integer(numbers.size()),
       stage.makeArray(b.named(name + "_numbers"), b.pointer(b.opaque("const int64_t")), numbers),
       stage.makeArray(b.named(name + "_counts"), b.i64(), counts),
       stage.makeArray(b.named(name + "_places"), b.pointer(b.i64()), picked),
       stage.getPointer(op.getRows()), identity, memory});
  return success();
}

LogicalResult genrec::lowerCall(PickListsOp op, StageBuilder &stage) {
  EmitCBuilder b = stage.at(op);
  std::string name = makeIdentifier(op.getDomain().getType().getDomain().getValue());
  SmallVector<Value> operands = {
      stage.getStep(), stage.getDomain(op.getSource()), stage.getDomainOf(op.getParents()),
      stage.getPointer(op.getParents()), stage.getDomain(op.getDomain())};
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kOffsetsSlot), b.i64(), name + "_offsets"));
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kParentSlot), b.i64(), name + "_parent"));
  operands.push_back(stage.getBuffer(getOwnBuffer(op, kIdentitySlot), b.u64(), name + "_identity"));
  operands.push_back(stage.getPointer(op.getRows()));
  b.callVoid("kernels::pickLists", operands);
  return success();
}
