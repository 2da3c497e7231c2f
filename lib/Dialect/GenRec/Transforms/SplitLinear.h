//===- SplitLinear.h - splits linear layers by domain -----------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPLITLINEAR_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPLITLINEAR_H

#include "Spreads.h"

namespace genrec {

/// Splits a linear layer over concatenated columns, of which at least `leastWidth` are broadcast
/// from other rows, into one layer per domain. Each layer runs over the rows before the broadcast;
/// the products are then broadcast and added. False if the layer is not split.
bool splitLinear(LinearOp linear, SpreadBuilder &spreads, unsigned leastWidth);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPLITLINEAR_H
