//===- Damage.h - models made wrong on purpose ------------------*- C++ -*-===//
//
// What shows that a check catches defects: the check runs on damaged models and
// must fail.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_DAMAGE_H
#define GENREC_FUZZ_DAMAGE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec::fuzz {

/// Multiplies one gradient that an update of the differentiated `model` takes, number `choice`
/// (modulo their count), by `factor`. False where the model has none.
bool scaleGradient(ModelOp model, uint64_t choice, double factor);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_DAMAGE_H
