//===- InitAllDialects.h - registration of dialects -------------*- C++ -*-===//
//
// The one place where dialects are registered; tools and tests call it and add nothing by hand.
//
//===----------------------------------------------------------------------===//
#ifndef GENREC_INITALLDIALECTS_H
#define GENREC_INITALLDIALECTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"
#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/EmitC/IR/EmitC.h"
#include "mlir/Dialect/Func/Extensions/AllExtensions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/DialectRegistry.h"

namespace genrec {

/// Registers the genrec dialect and the upstream dialects of models, row kernels and emitted code.
inline void registerAllDialects(mlir::DialectRegistry &registry) {
  registry.insert<GenRecDialect, mlir::arith::ArithDialect, mlir::emitc::EmitCDialect,
                  mlir::func::FuncDialect, mlir::linalg::LinalgDialect, mlir::math::MathDialect,
                  mlir::memref::MemRefDialect, mlir::scf::SCFDialect, mlir::tensor::TensorDialect,
                  mlir::ub::UBDialect, mlir::vector::VectorDialect>();
  mlir::func::registerAllExtensions(registry);
  registerStepOpModels(registry);
}

} // namespace genrec

#endif // GENREC_INITALLDIALECTS_H
