//===- ColumnsKernel.h - the kernel of a launch of columns ------*- C++ -*-===//
//
// A device runs many columns, updates many parameters, or pools many lists, in one launch
// (genrec_rt/kernels/cuda/column_bodies.h).
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNSKERNEL_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNSKERNEL_H

#include "genrec/Target/EmitC/EmitCBuilder.h"

namespace genrec {

/// A column of a launch: ColumnShape of genrec_rt/kernels/cuda/row_mapping.h.
struct ColumnShape {
  int64_t program, rows, pointers, domain;
  int64_t leaves = -1, parts = -1; ///< of a column that splits lists
};

/// Emits the kernel of a launch of columns, whose bodies are the functions `bodies`. Of `columns`
/// it depends on how many they and their pointers are.
mlir::emitc::FuncOp emitColumnsKernel(const EmitCBuilder &b, llvm::StringRef name,
                                      llvm::ArrayRef<mlir::Attribute> bodies,
                                      llvm::ArrayRef<ColumnShape> columns);

/// Emits the description of the columns that a stage passes with the kernel.
void emitColumnShapes(const EmitCBuilder &b, llvm::StringRef name,
                      llvm::ArrayRef<ColumnShape> columns);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_COLUMNSKERNEL_H
