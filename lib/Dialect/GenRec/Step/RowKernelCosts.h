//===- RowKernelCosts.h - what a row kernel has to do at least --*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_STEP_ROWKERNELCOSTS_H
#define GENREC_LIB_DIALECT_GENREC_STEP_ROWKERNELCOSTS_H

#include "genrec/Dialect/GenRec/Step/Costs.h"

namespace genrec {

/// What a row kernel reads, gathers, computes and writes.
void addKernelCosts(RowKernelOp kernel, StepCosts &costs);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_STEP_ROWKERNELCOSTS_H
