//===- Damage.h - scales a gradient, to test the checks ---------*- C++ -*-===//
//
// A check must fail on a model that this has changed.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_DAMAGE_H
#define GENREC_FUZZ_DAMAGE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec::fuzz {

/// Multiplies a gradient operand of an update of the differentiated `model` by `factor`: number
/// `choice`, modulo the number of such operands. False if the model has none.
bool scaleGradient(ModelOp model, uint64_t choice, double factor);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_DAMAGE_H
