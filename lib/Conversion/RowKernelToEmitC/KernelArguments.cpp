//===- KernelArguments.cpp - the arguments of a kernel function -----------===//

#include "KernelOutliner.h"

using namespace mlir;
using namespace genrec;

SmallVector<KernelArgument> genrec::getKernelArguments(const EmitCBuilder &b, ValueRange inputs,
                                                       ValueRange results,
                                                       ArrayRef<int64_t> accumulators) {
  SmallVector<KernelArgument> arguments;
  arguments.push_back({"step", b.opaque("genrec_step"), true});
  for (Value input : inputs) {
    auto type = cast<RankedTensorType>(input.getType());
    if (ParameterOp parameter = getRowsParameter(input)) {
      std::string name = makeIdentifier(parameter.getSymName());
      arguments.push_back({name, b.f32(), false});
      arguments.push_back({name + "_state", b.f32(), false});
      continue;
    }
    Type pointee = isAddedByReader(input) ? b.opaque(kSegmentSumsType)
                                          : getBufferElement(b, type.getElementType());
    arguments.push_back({getValueName(input), pointee, true});
  }
  for (auto [number, result] : llvm::enumerate(results)) {
    auto type = cast<RankedTensorType>(result.getType());
    if (!llvm::is_contained(accumulators, static_cast<int64_t>(number)))
      arguments.push_back(
          {"out_" + getValueName(result), getBufferElement(b, type.getElementType()), false});
  }
  if (!accumulators.empty())
    arguments.push_back({"partial_sums", b.f32(), false});
  return arguments;
}
