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
  int64_t ops = 14;          ///< random ops tried between features and losses
  int64_t longestRow = 9;    ///< widest row made by chance; attention adds its own
  int64_t lists = 4;         ///< most domains below the root
  int64_t features = 1;      ///< sets of columns per domain, each with tables of its own
  bool deep = false;         ///< lists hang below the last one rather than anywhere
  int64_t transforms = 1;    ///< longest chain of hash and mod between a column and its table
  int64_t fanouts = 0;       ///< fan-outs tried between features and random ops
  int64_t joinedLookups = 0; ///< layers over several lookups that nothing else reads
  bool itemColumns = false;  ///< a catalogue with lists, and columns that other rows read by id

  /// Most seeds give small models of the above; some give one that is wide in one way: many tables,
  /// a deep tree, long chains of transforms, fan-outs everywhere, layers over lookups, catalogues with
  /// lists.
  static RandomModelOptions ofSeed(uint64_t seed);
};

/// Model `attempt` of `seed`: the same numbers give the same model.
mlir::OwningOpRef<mlir::ModuleOp> makeRandomModel(mlir::MLIRContext *context, uint64_t seed,
                                                  const RandomModelOptions &options,
                                                  uint64_t attempt = 0);
inline mlir::OwningOpRef<mlir::ModuleOp> makeRandomModel(mlir::MLIRContext *context,
                                                         uint64_t seed) {
  return makeRandomModel(context, seed, RandomModelOptions::ofSeed(seed));
}

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_RANDOMMODEL_H
