//===- Target.cpp - differences between targets ---------------------------===//

#include "genrec/Dialect/GenRec/Step/Target.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace genrec;

ArrayRef<Target> Target::getAll() {
  static constexpr Target targets[] = {
      {"cpu", TargetKind::cpu, UnitCompiler::host, /*hasRowBlocks=*/true, /*hasDevice=*/false},
      {"cuda", TargetKind::cuda, UnitCompiler::nvcc, /*hasRowBlocks=*/false, /*hasDevice=*/true},
      {"cuda-emulated", TargetKind::cuda, UnitCompiler::emulator, /*hasRowBlocks=*/false,
       /*hasDevice=*/true},
  };
  return targets;
}

const Target &Target::get(TargetKind kind) {
  return *llvm::find_if(getAll(), [&](const Target &target) { return target.kind == kind; });
}

const Target *Target::find(StringRef name) {
  const Target *found =
      llvm::find_if(getAll(), [&](const Target &target) { return target.name == name; });
  return found == getAll().end() ? nullptr : found;
}

std::string Target::getNames() {
  std::string names;
  for (const Target &target : getAll()) {
    if (!names.empty())
      names += &target == &getAll().back() ? " or " : ", ";
    names += target.name;
  }
  return names;
}

const Target &Target::of(Operation *op) {
  auto module = isa<ModuleOp>(op) ? op : op->getParentOfType<ModuleOp>();
  auto target = module ? module->getAttrOfType<TargetKindAttr>(
                             GenRecDialect::TargetAttrHelper::getNameStr())
                       : TargetKindAttr();
  return get(target ? target.getValue() : TargetKind::cpu);
}
