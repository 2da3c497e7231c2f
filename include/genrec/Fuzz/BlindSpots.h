//===- BlindSpots.h - ops whose faults show nowhere --------------*- C++ -*-===//

#ifndef GENREC_FUZZ_BLINDSPOTS_H
#define GENREC_FUZZ_BLINDSPOTS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace genrec::fuzz {

/// What can go wrong in a model without anybody seeing it.
struct BlindSpots {
  int64_t ops = 0; ///< ops of the program that compute a value
  /// Of these, whose results can be wrong (`RunOptions::faulty`) and nothing that the model shows
  /// on the batches of its seed moves by more than a binary may differ by.
  std::vector<mlir::Operation *> blind;
};

/// Makes each op of an imported model wrong, one after another.
BlindSpots findBlindSpots(ModelOp model, uint64_t seed);

/// A random model and its blind spots.
struct ObservableModel {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  BlindSpots spots;
};

/// The model of `seed` that is tried: of a few random ones the first without blind spots, or the
/// one with the fewest.
ObservableModel makeObservableModel(mlir::MLIRContext *context, uint64_t seed);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_BLINDSPOTS_H
