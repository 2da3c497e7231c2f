//===- LevelHash.h - whether levels are the same ----------------*- C++ -*-===//

#ifndef GENREC_FUZZ_LEVELHASH_H
#define GENREC_FUZZ_LEVELHASH_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec::fuzz {

/// What an op is, with all that lies in it and apart from locations: ops, their attributes and
/// types, and what they read of each other. Equal within a process only.
uint64_t hashOp(mlir::Operation *op);

/// The same of all of a model but its programs.
uint64_t hashDeclarations(ModelOp model);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_LEVELHASH_H
