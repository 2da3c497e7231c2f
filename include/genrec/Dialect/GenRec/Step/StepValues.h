//===- StepValues.h - values of a step in emitted C++ -----------*- C++ -*-===//

#ifndef GENREC_DIALECT_GENREC_STEP_STEPVALUES_H
#define GENREC_DIALECT_GENREC_STEP_STEPVALUES_H

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

namespace genrec {

/// The C type of an element in a buffer.
mlir::Type getBufferElement(const EmitCBuilder &b, mlir::Type element);

/// The parameter whose rows `value` holds, or null.
ParameterOp getRowsParameter(mlir::Value value);

/// The rows of a parameter for whose update alone the sum of `given` is read, a result of a
/// `contribute`; null where others read it.
ParameterRowsOp getRowsUpdatedBy(mlir::Value given);

/// `&step->domains[number]`.
mlir::Value getDomainPointer(const EmitCBuilder &b, mlir::Value step, int64_t number);

/// The number of floats in one chunk's partial sum for `result`, as a C value; on a device for as
/// many rows as there can be.
mlir::Value getAccumulatorSize(const EmitCBuilder &b, mlir::Value step, const ModelIndex &index,
                               mlir::Value result);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_STEPVALUES_H
