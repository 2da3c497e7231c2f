//===- RowBodies.h - bodies of ops that need an accumulator -----*- C++ -*-===//
//
// Most row-wise ops define their body through `RowwiseOpInterface`. The gradient of sampled_softmax
// also scatters into the items, for which it needs an accumulator of a row kernel;
// `form-row-kernels` builds it by this function.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_IR_ROWBODIES_H
#define GENREC_DIALECT_GENREC_IR_ROWBODIES_H

#include "mlir/IR/Builders.h"

namespace genrec {

/// The negatives of a sampled_softmax op.
struct SampledSoftmaxDraw {
  mlir::Value drawn; ///< vector<mxi64>: their rows; null: the body draws them
  int64_t negatives;
  int64_t stream;
  bool shared;
  double temperature;
};

/// Appends one row of sampled_softmax_grad: adds the gradients of the items to `accumulator`
/// (unless it is null) and returns the gradient of the query. `query`: vector<dxf32>, `positive`:
/// i64, `items`: the source tensor, `gradient`: f32.
mlir::Value buildSampledSoftmaxGradient(mlir::OpBuilder &builder,
                                        mlir::Location loc, mlir::Value query,
                                        mlir::Value positive, mlir::Value items,
                                        mlir::Value gradient,
                                        const SampledSoftmaxDraw &draw,
                                        mlir::Value accumulator);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_IR_ROWBODIES_H
