//===- ClassLogits.h - logits of many classes, in blocks --------*- C++ -*-===//
//
// The logits of a softmax cross entropy are the product of a linear layer or the scores of a
// catalogue. A ClassLogits builds that product for a block of classes at a time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLASSLOGITS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLASSLOGITS_H

#include "genrec/Dialect/GenRec/IR/GradientBuilder.h"

#include <memory>
#include <string>

namespace genrec {

/// Classes [first, first + size).
struct ClassBlock {
  int64_t first, size;
};

class ClassLogits {
public:
  virtual ~ClassLogits() = default;

  /// The product that computes the logits of `loss`, if it and the ops that depend on `gradient`
  /// (which may be null) can be built in blocks. Otherwise null, and `reason` says why.
  static std::unique_ptr<ClassLogits> find(SoftmaxCrossEntropyOp loss,
                                           SoftmaxCrossEntropyGradOp gradient, std::string &reason);

  /// The left operand of the product.
  mlir::Value getInput() const { return product->getOperand(0); }
  int64_t getClasses() const { return getRowSize(product->getResult(0).getType()); }

  /// The logits of a block, computed from `input` instead of `getInput()`.
  virtual mlir::Value buildBlock(const GradientBuilder &b, mlir::Value input,
                                 const ClassBlock &block) = 0;
  /// Adds the contribution of a block's gradient; called from the last block to the first. Returns
  /// the values computed so far, for this block and all earlier calls.
  virtual llvm::SmallVector<mlir::Value>
  addGradients(const GradientBuilder &b, mlir::Value gradient, const ClassBlock &block) = 0;
  /// Replaces the old gradients by those of all blocks.
  virtual void finishGradients(const GradientBuilder &b) = 0;

  /// Erases the ops that blocks have replaced.
  void eraseReplaced(SoftmaxCrossEntropyOp loss, SoftmaxCrossEntropyGradOp gradient);

protected:
  explicit ClassLogits(mlir::Operation *product) : product(product) {}

  mlir::Operation *product;
  /// The ops that read the gradient of the logits.
  llvm::SmallVector<mlir::Operation *> readers;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLASSLOGITS_H
