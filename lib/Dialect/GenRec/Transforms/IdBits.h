//===- IdBits.h - how many bits an id has ------------------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_IDBITS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_IDBITS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// A number of bits that every integer of `ids` is known to fit in, not negative;
/// 64 where nothing is known. A feature has those that `infer-domains` gave it.
int64_t getIdBits(mlir::Value ids);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_IDBITS_H
