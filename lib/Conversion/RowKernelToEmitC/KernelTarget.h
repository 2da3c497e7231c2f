//===- KernelTarget.h - where a row kernel runs -----------------*- C++ -*-===//
//
// CPU and CUDA kernels come from one schedule of one body. What differs is
// here: who runs the elements of a loop, where local arrays live, who writes a
// scalar, and what separates the phases.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H

#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

#include <memory>

namespace genrec {

/// One argument of a kernel: a pointer to `pointee`, or a value of type `value`.
struct KernelArgument {
  std::string name;
  mlir::Type pointee;
  bool isConst = true; ///< never written through
};

/// The function of a kernel while it is built: the builder stands in the body of
/// the loop over rows once `enterRows` was called.
struct KernelFunction {
  mlir::emitc::FuncOp function;
  llvm::SmallVector<mlir::Value> arguments; ///< by argument, the pointers
  mlir::Operation *rows = nullptr;          ///< the loop over rows
};

class KernelTarget {
public:
  virtual ~KernelTarget() = default;

  /// Makes the function, in the module `builder` stands in, and moves the builder into it.
  /// Argument 0 is the step.
  virtual KernelFunction createFunction(const EmitCBuilder &b, llvm::StringRef name,
                                        llvm::ArrayRef<KernelArgument> arguments) const = 0;
  /// The loop over the rows this function is given, at most `count` of them; returns the row.
  virtual mlir::Value enterRows(const EmitCBuilder &b, KernelFunction &kernel, mlir::Value count,
                                llvm::StringRef name) const = 0;
  /// Asks for the `floats` of a table row that the loop reaches some rows after `row`, where there
  /// are so many; `others` is the number of table rows that a row of the loop reaches.
  virtual void prefetchRow(const EmitCBuilder &b, mlir::Value handles, mlir::Value row,
                           mlir::Value count, int64_t floats, int64_t others) const = 0;
  /// The chunk number, for accumulators.
  virtual mlir::Value getChunk(const EmitCBuilder &b, KernelFunction &kernel) const = 0;

  /// Whether a loop over rows may run in vectors, several rows at a time.
  virtual bool hasRowVectors() const { return false; }
  /// Says that the iterations of the loop made next have nothing to do with each other.
  /// `staysLoop`: that it must not be unrolled before vectors are made of it.
  virtual void hintVectors(const EmitCBuilder &, bool staysLoop = false) const {}
  /// A loop over the elements of a row.
  virtual mlir::emitc::ForOp enterElements(const EmitCBuilder &b, int64_t extent) const = 0;
  /// A local array, to be made outside of all loops.
  virtual mlir::Value createArray(const EmitCBuilder &b, mlir::Type element,
                                  int64_t size) const = 0;
  /// Separates writes of local arrays from reads by others.
  virtual void separate(const EmitCBuilder &b) const = 0;
  /// Writes of a scalar: `leave` what it returns, if it is not null.
  virtual mlir::Operation *enterScalarWrite(const EmitCBuilder &b) const = 0;
};

std::unique_ptr<KernelTarget> createKernelTarget(const Target &target);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H
