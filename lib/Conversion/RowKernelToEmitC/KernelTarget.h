//===- KernelTarget.h - code of row kernels for a target --------*- C++ -*-===//
//
// CPU and CUDA kernels are emitted from the same schedule of a body. The differences are here: how
// the elements of a loop are distributed, where local arrays are, which thread writes a scalar, and
// how phases are synchronised.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H

#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

#include <memory>

namespace genrec {

/// An argument of a kernel: a pointer to `pointee`, or a value of type `value`.
struct KernelArgument {
  std::string name;
  mlir::Type pointee;
  bool isConst = true; ///< never written through
};

/// The function of a kernel under construction. After `enterRows` the builder is in the body of the
/// loop over rows.
struct KernelFunction {
  mlir::emitc::FuncOp function;
  llvm::SmallVector<mlir::Value> arguments; ///< pointers, per argument
  mlir::Operation *rows = nullptr;          ///< the loop over rows
};

class KernelTarget {
public:
  virtual ~KernelTarget() = default;

  /// Creates the function in the module of `builder` and moves the builder into it. Argument 0 is
  /// the step.
  virtual KernelFunction createFunction(const EmitCBuilder &b, llvm::StringRef name,
                                        llvm::ArrayRef<KernelArgument> arguments) const = 0;
  /// Enters the loop over this call's rows, at most `count`; returns the row.
  virtual mlir::Value enterRows(const EmitCBuilder &b, KernelFunction &kernel, mlir::Value count,
                                llvm::StringRef name) const = 0;
  /// Prefetches `floats` of a table row that a later iteration uses. `others` is the number of
  /// table rows that one iteration uses.
  virtual void prefetchRow(const EmitCBuilder &b, mlir::Value handles, mlir::Value row,
                           mlir::Value count, int64_t floats, int64_t others) const = 0;
  /// The chunk number, for accumulators.
  virtual mlir::Value getChunk(const EmitCBuilder &b, KernelFunction &kernel) const = 0;

  /// Whether the loop over rows can be vectorised.
  virtual bool hasRowVectors() const { return false; }
  /// Declares that the iterations of the next loop are independent. `staysLoop`: it must not be
  /// unrolled before it is vectorised.
  virtual void hintVectors(const EmitCBuilder &, bool staysLoop = false) const {}
  /// Enters a loop over the elements of a row.
  virtual mlir::emitc::ForOp enterElements(const EmitCBuilder &b, int64_t extent) const = 0;
  /// Creates a local array, outside of all loops.
  virtual mlir::Value createArray(const EmitCBuilder &b, mlir::Type element,
                                  int64_t size) const = 0;
  /// Separates writes to local arrays from later reads by other threads.
  virtual void separate(const EmitCBuilder &b) const = 0;
  /// Begins a write of a scalar. `leave` the returned op, if it is not null.
  virtual mlir::Operation *enterScalarWrite(const EmitCBuilder &b) const = 0;
};

std::unique_ptr<KernelTarget> createKernelTarget(const Target &target);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H
