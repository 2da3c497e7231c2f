//===- IdBits.h - bounds on ids ---------------------------------*- C++ -*-===//

#ifndef GENREC_LIB_DIALECT_GENREC_TRANSFORMS_IDBITS_H
#define GENREC_LIB_DIALECT_GENREC_TRANSFORMS_IDBITS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// A number of bits that every element of `ids` is known to fit into, or 64 if it is unknown or an
/// element may be negative. For a feature it is the bound of `infer-domains`.
int64_t getIdBits(mlir::Value ids);

} // namespace genrec

#endif // GENREC_LIB_DIALECT_GENREC_TRANSFORMS_IDBITS_H
