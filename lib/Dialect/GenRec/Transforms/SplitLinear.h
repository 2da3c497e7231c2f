//===- SplitLinear.h - a linear layer by the domains of its columns -*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPLITLINEAR_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPLITLINEAR_H

#include "Spreads.h"

namespace genrec {

/// Splits a linear layer over joined columns, of which at least `leastWidth` are copies
/// of other rows, into a layer per domain: each runs over the rows that were copied, and
/// the products are copied and added. False where there is nothing to split.
bool splitLinear(LinearOp linear, SpreadBuilder &spreads, unsigned leastWidth);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_SPLITLINEAR_H
