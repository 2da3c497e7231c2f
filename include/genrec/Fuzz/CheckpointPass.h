//===- CheckpointPass.h - calls a function between two passes ---*- C++ -*-===//

#ifndef GENREC_FUZZ_CHECKPOINTPASS_H
#define GENREC_FUZZ_CHECKPOINTPASS_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "mlir/Pass/Pass.h"

#include <functional>

namespace genrec::fuzz {

/// A pass that calls a function on the model and fails if the function does.
std::unique_ptr<mlir::Pass> makeCheckpoint(std::function<llvm::LogicalResult(ModelOp)> check);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_CHECKPOINTPASS_H
