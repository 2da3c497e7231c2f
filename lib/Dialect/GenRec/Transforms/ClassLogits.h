//===- ClassLogits.h - what makes the logits of many classes ----*- C++ -*-===//
//
// The product whose result a softmax cross entropy reads: a linear layer, or
// scores of a catalogue; built anew for a block of classes at a time.
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

  /// The product behind `loss`, if it and what follows `gradient` (which may be null)
  /// can be built in blocks; else null, and `reason` says what stands against it.
  static std::unique_ptr<ClassLogits> find(SoftmaxCrossEntropyOp loss,
                                           SoftmaxCrossEntropyGradOp gradient, std::string &reason);

  /// The rows that are multiplied.
  mlir::Value getInput() const { return product->getOperand(0); }
  int64_t getClasses() const { return getRowSize(product->getResult(0).getType()); }

  /// The logits of a block, of `input` instead of `getInput()`.
  virtual mlir::Value buildBlock(const GradientBuilder &b, mlir::Value input,
                                 const ClassBlock &block) = 0;
  /// Adds what a block's gradient contributes; called from the last block to the
  /// first. Returns the values that are then made, of this block and all before.
  virtual llvm::SmallVector<mlir::Value>
  addGradients(const GradientBuilder &b, mlir::Value gradient, const ClassBlock &block) = 0;
  /// Puts the gradients of all blocks in the place of those there were.
  virtual void finishGradients(const GradientBuilder &b) = 0;

  /// Erases what blocks have replaced.
  void eraseReplaced(SoftmaxCrossEntropyOp loss, SoftmaxCrossEntropyGradOp gradient);

protected:
  explicit ClassLogits(mlir::Operation *product) : product(product) {}

  mlir::Operation *product;
  /// What reads the gradient of the logits.
  llvm::SmallVector<mlir::Operation *> readers;
};

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_CLASSLOGITS_H
