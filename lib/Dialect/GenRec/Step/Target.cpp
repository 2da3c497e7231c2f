//===- Target.cpp - differences between targets ---------------------------===//

#include "genrec/Dialect/GenRec/Step/Target.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace genrec;

const Target &Target::get(TargetKind kind) {
  static constexpr Target cpu{TargetKind::cpu, /*hasRowBlocks=*/true, /*runsModels=*/true,
                              /*hasDevice=*/false};
  static constexpr Target cuda{TargetKind::cuda, /*hasRowBlocks=*/false, /*runsModels=*/false,
                               /*hasDevice=*/true};
  return kind == TargetKind::cuda ? cuda : cpu;
}

const Target &Target::of(Operation *op) {
  auto module = isa<ModuleOp>(op) ? op : op->getParentOfType<ModuleOp>();
  auto target = module ? module->getAttrOfType<TargetKindAttr>(
                             GenRecDialect::TargetAttrHelper::getNameStr())
                       : TargetKindAttr();
  return get(target ? target.getValue() : TargetKind::cpu);
}
