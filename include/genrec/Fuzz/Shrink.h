//===- Shrink.h - the smallest model that still fails -----------*- C++ -*-===//

#ifndef GENREC_FUZZ_SHRINK_H
#define GENREC_FUZZ_SHRINK_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <functional>

namespace genrec::fuzz {

/// Removes what it can from `module` while `fails` stays true of it: losses, metrics and
/// outputs; ops, by putting another value of the same type in their place; what nobody
/// then uses. Tries at most `attempts` models.
mlir::OwningOpRef<mlir::ModuleOp> shrink(mlir::ModuleOp module,
                                         const std::function<bool(mlir::ModuleOp)> &fails,
                                         int64_t attempts = 2000);

/// Drops what nobody uses: values first, then tables and parameters.
void removeUnused(mlir::ModuleOp module);

} // namespace genrec::fuzz

#endif // GENREC_FUZZ_SHRINK_H
