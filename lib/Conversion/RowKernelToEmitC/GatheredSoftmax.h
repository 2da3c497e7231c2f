//===- GatheredSoftmax.h - gathers that read the same rows ------*- C++ -*-===//
//
// A kernel with loss and gradient of a sampled softmax gathers the drawn rows twice: for their dot
// products, and once all logits are known for their sum by coefficients. Targets that read them
// from memory both times join the two (KernelTarget::gathersOnce): rows are added as they are read,
// weighted by exp(logit - the largest so far), and the sum is brought to its coefficients behind.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_GATHEREDSOFTMAX_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_GATHEREDSOFTMAX_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// `sum` of the rows that `dots` reads, by coefficients select(valid, factor * exps, 0), where
/// exps = exp(logits - largest) and logits = select(index == hit, masked, scale * dots).
struct GatheredSoftmax {
  GatherDotOp dots;
  GatherSumOp sum;
  mlir::Value hit; ///< a scalar argument of the body, and so known where `dots` is computed
  double scale = 0, masked = 0;
  mlir::Value factor, valid; ///< scalars; `valid` is null where all are
  mlir::Value most, largest; ///< scalars: of the logits, and of these and maybe others
};

/// Those of a kernel, at most one for each `dots`.
mlir::SmallVector<GatheredSoftmax, 1> findGatheredSoftmaxes(RowKernelOp kernel);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_GATHEREDSOFTMAX_H
