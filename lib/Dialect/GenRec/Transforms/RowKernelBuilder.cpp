//===- RowKernelBuilder.cpp - creates row kernels -------------------------===//

#include "RowKernelBuilder.h"

using namespace mlir;
using namespace genrec;

RowKernelOp genrec::createRowKernel(OpBuilder &builder, Location loc,
                                    Value domain, ArrayRef<KernelInput> inputs,
                                    ArrayRef<KernelResult> results,
                                    StringRef name) {
  MLIRContext *context = builder.getContext();
  SmallVector<Value> values;
  SmallVector<Attribute> operandRoles, resultRoles, poolKinds;
  SmallVector<Type> argumentTypes, resultTypes;
  for (const KernelInput &input : inputs) {
    values.push_back(input.value);
    operandRoles.push_back(OperandRoleAttr::get(context, input.role));
    Type type = input.value.getType();
    argumentTypes.push_back(input.role == OperandRole::source
                                ? type
                                : getBodyType(type));
  }
  for (const KernelResult &result : results) {
    resultTypes.push_back(result.type);
    resultRoles.push_back(ResultRoleAttr::get(context, result.role));
    if (result.role == ResultRole::pooled)
      poolKinds.push_back(PoolKindAttr::get(context, result.pool));
    if (isAccumulated(result.role))
      argumentTypes.push_back(
          AccumulatorType::get(context, cast<RankedTensorType>(result.type)));
  }
  auto kernel = RowKernelOp::create(
      builder, loc, resultTypes, domain, values,
      builder.getArrayAttr(operandRoles), builder.getArrayAttr(resultRoles),
      poolKinds.empty() ? ArrayAttr() : builder.getArrayAttr(poolKinds),
      name.empty() ? StringAttr() : builder.getStringAttr(name));
  Block &body = kernel.getBody().emplaceBlock();
  for (Type type : argumentTypes)
    body.addArgument(type, loc);
  return kernel;
}
