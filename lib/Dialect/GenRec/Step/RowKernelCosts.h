//===- RowKernelCosts.h - lower bounds on kernels' work ---------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_STEP_ROWKERNELCOSTS_H
#define GENREC_LIB_DIALECT_GENREC_STEP_ROWKERNELCOSTS_H

#include "genrec/Dialect/GenRec/Step/Costs.h"

namespace genrec {

/// Adds what a row kernel reads, gathers, computes and writes.
void addKernelCosts(RowKernelOp kernel, StepCosts &costs);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_STEP_ROWKERNELCOSTS_H
