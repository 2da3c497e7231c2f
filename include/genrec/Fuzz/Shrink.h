//===- Shrink.h - reduces a failing model -----------------------*- C++ -*-===//

#ifndef GENREC_FUZZ_SHRINK_H
#define GENREC_FUZZ_SHRINK_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>

namespace genrec::fuzz {

/// Removes as much as possible from `module` such that `fails` remains true: losses, metrics and
/// outputs; ops, replaced by another value of the same type; then whatever has no users. Tries at
/// most `attempts` models.
mlir::OwningOpRef<mlir::ModuleOp> shrink(mlir::ModuleOp module,
                                         const std::function<bool(mlir::ModuleOp)> &fails,
                                         int64_t attempts = 2000);

/// Removes unused values, then unused tables and parameters.
void removeUnused(mlir::ModuleOp module);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_SHRINK_H
