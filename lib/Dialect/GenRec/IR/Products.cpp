//===- Products.cpp - the precision of products ---------------------------===//

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace genrec;

LogicalResult genrec::verifyProduct(ProductOpInterface op) {
  if (!op.getBf16())
    return success();
  for (Type type : op->getOperandTypes())
    if (Type element = getElementTypeOrSelf(type); isa<FloatType>(element) && !element.isF32())
      return op->emitOpError() << "with 'bf16' has factors and results of f32, but got "
                               << describe(type);
  return success();
}

void genrec::inheritPrecision(Operation *op, Block::iterator first, Block::iterator last) {
  auto from = dyn_cast<ProductOpInterface>(op);
  if (!from || !from.getBf16())
    return;
  for (Operation &made : llvm::make_range(first, last))
    if (auto product = dyn_cast<ProductOpInterface>(made))
      product.setBf16(true);
}
