//===- StepValues.h - what a step holds, as values of emitted C++ -*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_STEP_STEPVALUES_H
#define GENREC_DIALECT_GENREC_STEP_STEPVALUES_H

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

namespace genrec {

/// The C type of an element in a buffer.
mlir::Type getBufferElement(const EmitCBuilder &b, mlir::Type element);

/// The parameter whose rows `value` holds; null for anything else.
ParameterOp getRowsParameter(mlir::Value value);

/// `&step->domains[number]`.
mlir::Value getDomainPointer(const EmitCBuilder &b, mlir::Value step, int64_t number);

/// Floats that one chunk of rows adds up for `result`, as a C value.
mlir::Value getAccumulatorSize(const EmitCBuilder &b, mlir::Value step, const ModelIndex &index,
                               mlir::Value result);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_STEPVALUES_H
