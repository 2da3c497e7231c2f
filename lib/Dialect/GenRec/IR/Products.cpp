//===- Products.cpp - the precision of products ---------------------------===//

#include "genrec/Dialect/GenRec/IR/VerifierRules.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;

LogicalResult genrec::verifyProduct(ProductOpInterface op) {
  if (!op.getBf16())
    return success();
  for (Type type : op->getOperandTypes()) {
    Type element = getElementTypeOrSelf(type);
    if (isa<FloatType>(element) && !element.isF32() && !element.isBF16())
      return op->emitOpError() << "with 'bf16' has factors and results of f32, but got "
                               << describe(type);
  }
  return success();
}

Type rules::unroundedType(ProductOpInterface product, Value factor) {
  auto type = cast<RankedTensorType>(factor.getType());
  if (!product.getBf16() || !type.getElementType().isBF16())
    return type;
  return type.clone(Float32Type::get(type.getContext()));
}

void genrec::inheritPrecision(Operation *op, Block::iterator first, Block::iterator last) {
  auto from = dyn_cast<ProductOpInterface>(op);
  if (!from || !from.getBf16())
    return;
  for (Operation &made : llvm::make_range(first, last))
    if (auto product = dyn_cast<ProductOpInterface>(made))
      product.setBf16(true);
}
