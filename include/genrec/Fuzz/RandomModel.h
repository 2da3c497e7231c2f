//===- RandomModel.h - random well-typed models -----------------*- C++ -*-===//
//
// Models for `genrec-fuzz`: a random tree of domains, features, tables and parameters, a random
// graph of model ops over them, losses, metrics and outputs. Every model passes the verifier, and
// its values stay in a range where float and double can be compared.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_FUZZ_RANDOMMODEL_H
#define GENREC_FUZZ_RANDOMMODEL_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace genrec::fuzz {

struct RandomModelOptions {
  int64_t ops = 14;       ///< number of random ops to try, between features and losses
  int64_t longestRow = 9; ///< largest row size to draw; attention may need larger rows
  int64_t lists = 4;      ///< largest number of domains below the root
  int64_t features = 1;   ///< sets of columns per domain, each with its own tables
  bool deep = false;      ///< a new list becomes the child of the last one instead of a random one
  int64_t transforms = 1; ///< longest chain of hash and mod ops between a column and its table
  int64_t fanouts = 0;    ///< number of fan-outs to try, between features and random ops
  int64_t joinedLookups = 0; ///< number of layers over several lookups that have no other users
  int64_t joinedScalars = 0; ///< number of rows joined of scalars alone to try
  int64_t wideJoins = 0;     ///< number of rows joined of many parts to try
  bool alikeLists = false;   ///< the same for each list of a parent
  bool bf16 = false;         ///< products round their factors to bfloat16: all, or half of them
  bool itemColumns = false;  ///< a catalogue with lists, and columns that other rows look up by id
  /// With bf16 a block as wide as what a device does differently: products by its library, heads of
  /// whole words whose factors are rounded before.
  bool forDevice = false;

  /// Most seeds give small models with the defaults above. Some give a model that is large in one
  /// respect: many tables, a deep tree, long chains of transforms, many fan-outs, layers over
  /// lookups, catalogues with lists, long rows, lists that are alike, rows of many parts. Others have
  /// products of bfloat16.
  static RandomModelOptions ofSeed(uint64_t seed);
};

/// Random model number `attempt` of `seed`; the same numbers give the same model.
mlir::OwningOpRef<mlir::ModuleOp> makeRandomModel(mlir::MLIRContext *context, uint64_t seed,
                                                  const RandomModelOptions &options,
                                                  uint64_t attempt = 0);
inline mlir::OwningOpRef<mlir::ModuleOp> makeRandomModel(mlir::MLIRContext *context,
                                                         uint64_t seed) {
  return makeRandomModel(context, seed, RandomModelOptions::ofSeed(seed));
}

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_RANDOMMODEL_H
