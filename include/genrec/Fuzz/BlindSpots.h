//===- BlindSpots.h - ops whose faults are invisible ------------*- C++ -*-===//

#ifndef GENREC_FUZZ_BLINDSPOTS_H
#define GENREC_FUZZ_BLINDSPOTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "genrec/Fuzz/RandomModel.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>

namespace genrec::fuzz {

/// The ops of a model whose faults no comparison of its values would detect.
struct BlindSpots {
  int64_t ops = 0; ///< number of ops of the program that compute a value
  /// Of these, the ops whose injected fault (`RunOptions::faulty`) changes no observed value by
  /// more than compiled code may differ, on the batches of the model's seed.
  std::vector<mlir::Operation *> blind;
};

/// Injects a fault into each op of an imported model, one op at a time.
BlindSpots findBlindSpots(ModelOp model, uint64_t seed);

/// Which random models are wanted.
struct ModelChoice {
  /// Whether a model can be looked at; null: every model.
  std::function<bool(mlir::ModuleOp)> accepts = nullptr;
  bool forDevice = false; ///< RandomModelOptions::forDevice
};

/// A random model and its blind spots.
struct ObservableModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  BlindSpots spots;
};

/// The model to test for `seed`: the first of a few random models without blind spots, or else the
/// one with the fewest. No model where `choice` accepts none of the first that the seed makes.
ObservableModel makeObservableModel(mlir::MLIRContext *context, uint64_t seed,
                                    const ModelChoice &choice = {});

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_BLINDSPOTS_H
