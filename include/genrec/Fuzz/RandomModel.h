//===- RandomModel.h - random well-typed models -----------------*- C++ -*-===//
//
// Models for `genrec-fuzz`: a random tree of domains, features, tables and
// parameters, a random graph of the dialect's model ops over them, losses, metrics
// and outputs. Every model passes the verifier and keeps its values in a range
// where float and double can be compared.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_RANDOMMODEL_H
#define GENREC_FUZZ_RANDOMMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace genrec::fuzz {

struct RandomModelOptions {
  int64_t ops = 14;      ///< random ops tried between features and losses
  int64_t longestRow = 9; ///< widest row made by chance; attention adds its own
};

/// The model of `seed`: the same seed gives the same model.
mlir::OwningOpRef<mlir::ModuleOp> makeRandomModel(mlir::MLIRContext *context, uint64_t seed,
                                                  const RandomModelOptions &options = {});

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_RANDOMMODEL_H
