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
  // How many numbers there are: a device counts them, so it gets domains and numbers per row.
  bool counts = !stage.target.hasDevice;
  Type genrecDomain = b.pointer(b.opaque("const genrec_domain"));
  SmallVector<Value> numbers, domains, sizes, picked;
  for (auto [from, to] : llvm::zip_equal(op.getNumbers(), op.getPicked())) {
    Value size = b.integer(getRowSize(from.getType()));
    bool isOfRows = static_cast<bool>(getRowDomain(from.getType()));
    numbers.push_back(stage.getPointer(from));
    sizes.push_back(counts && isOfRows ? b.mul(stage.getCount(from), size) : size);
    if (!counts)
      domains.push_back(isOfRows ? b.cast(stage.getDomainOf(from), genrecDomain)
                                 : b.literal("nullptr", genrecDomain));
    picked.push_back(stage.getPointer(to));
  }
  Value identity =
      stage.getBuffer(getOwnBuffer(op, kPickedIdentitySlot), b.u64(), name + "_identity");
  Value memory =
      stage.getBuffer(getOwnBuffer(op, kPickedBitsSlot), b.opaque("void"), name + "_bits");
  SmallVector<Value> operands = {
      stage.getStep(), stage.getDomain(op.getSource()), stage.getDomain(op.getDomain()),
      b.integer(numbers.size()),
      stage.makeArray(b.named(name + "_numbers"), b.pointer(b.opaque("const int64_t")), numbers)};
  if (!counts)
    operands.push_back(stage.makeArray(b.named(name + "_domains"), genrecDomain, domains));
  operands.append({stage.makeArray(b.named(name + (counts ? "_counts" : "_widths")), b.i64(), sizes),
                   stage.makeArray(b.named(name + "_places"), b.pointer(b.i64()), picked),
                   stage.getPointer(op.getRows()), identity, memory});
  b.callVoid("kernels::pickRows", operands);
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
