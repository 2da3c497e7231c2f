//===- StepOpModels.h - StepOpInterface of the dialect's ops ----*- C++ -*-===//
//
// One file per family of ops. Each has a function that attaches the interface to the family's ops.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_DIALECT_GENREC_STEP_STEPOPMODELS_H
#define GENREC_LIB_DIALECT_GENREC_STEP_STEPOPMODELS_H

#include "StepCalls.h"

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

namespace genrec {

/// Elements of a row of `value`, as costs count them.
inline double getRowWidth(mlir::Value value) {
  return static_cast<double>(getRowSize(value.getType()));
}

/// The StepOpInterface of `OpT`, implemented by `ModelT`. `lower` calls the overload of `lowerCall`
/// for the op, if there is one.
template <typename ModelT, typename OpT>
struct StepModel : StepOpInterface::ExternalModel<ModelT, OpT> {
  mlir::LogicalResult lower(mlir::Operation *op, StageBuilder &stage) const {
    if constexpr (requires { lowerCall(mlir::cast<OpT>(op), stage); })
      return lowerCall(mlir::cast<OpT>(op), stage);
    else
      return StepOpInterface::ExternalModel<ModelT, OpT>::lower(op, stage);
  }
};

/// A call for which all defaults of the interface are right.
template <typename OpT> struct PlainCall : StepModel<PlainCall<OpT>, OpT> {};

/// An op without code of its own.
template <typename ModelT, typename OpT> struct DeclarationModel : StepModel<ModelT, OpT> {
  StepKind getStepKind(mlir::Operation *) const { return StepKind::declaration; }
};
template <typename OpT> struct Declaration : DeclarationModel<Declaration<OpT>, OpT> {};

/// An op whose code takes no time.
template <typename OpT> struct Setup : StepModel<Setup<OpT>, OpT> {
  StepKind getStepKind(mlir::Operation *) const { return StepKind::setup; }
};

/// Attaches `ModelT<OpT>` to each op class.
template <template <typename> typename ModelT, typename... OpT>
void attachModels(mlir::MLIRContext *context) {
  (OpT::template attachInterface<ModelT<OpT>>(*context), ...);
}

void attachDomainModels(mlir::MLIRContext *context);
void attachTableModels(mlir::MLIRContext *context);
void attachDenseModels(mlir::MLIRContext *context);
void attachKernelModels(mlir::MLIRContext *context);
void attachSinkModels(mlir::MLIRContext *context);
void attachPickModels(mlir::MLIRContext *context);
void attachRankModels(mlir::MLIRContext *context);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_STEP_STEPOPMODELS_H
