//===- KernelTarget.h - code of row kernels for a target --------*- C++ -*-===//
//
// CPU and CUDA kernels are emitted from the same schedule of a body. The differences are here: how
// rows and the elements of a loop are distributed, where local arrays are, which thread writes a
// scalar, and how phases are synchronised.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H

#include "RowMapping.h"

#include "genrec/Dialect/GenRec/Step/Target.h"
#include "genrec/Target/EmitC/EmitCBuilder.h"

#include "llvm/ADT/MapVector.h"

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

/// Loops over the elements of a row that one thread has. The builder is in the body of the
/// innermost.
struct ElementLoops {
  mlir::Operation *outermost = nullptr;
  mlir::Value index; ///< of the element
  mlir::Value slot;  ///< where an array that the thread keeps has the element
  int64_t extent = 0;

  /// Of a loop over packs: its first element; before `inside`, the loop over its elements, packs
  /// are loaded, and behind it stored.
  mlir::Value first, place;
  mlir::Operation *inside = nullptr, *insideHint = nullptr;
  int64_t pack = 1;
  llvm::DenseMap<mlir::Value, mlir::Value> loaded;
  llvm::MapVector<std::pair<mlir::Value, int64_t>, mlir::Value> stored; ///< by pointer and offset
};

/// Emits what differs between targets, for one row kernel.
class KernelTarget {
public:
  virtual ~KernelTarget() = default;

  /// Creates the function in the module of `builder` and moves the builder into it. Argument 0 is
  /// the step.
  virtual KernelFunction createFunction(const EmitCBuilder &b, llvm::StringRef name,
                                        llvm::ArrayRef<KernelArgument> arguments) = 0;
  /// Before everything else of a kernel that adds up `floats` sums over all rows, of which there
  /// are `count`: the number of the chunk whose rows this call has. Zeros for those sums that stay
  /// in memory, see `keepsSums`, are for `clearSums` to write.
  virtual mlir::Value enterChunk(const EmitCBuilder &b, KernelFunction &kernel, mlir::Value count,
                                 mlir::Value floats) = 0;
  /// Whether sums over all rows are kept in local arrays while a thread's rows are computed.
  virtual bool keepsSums() const { return false; }
  virtual void clearSums(const EmitCBuilder &, mlir::Value, mlir::Value) {}
  /// Whether rows of a chunk are computed at the same time: local arrays are then of one row, whose
  /// values go to what `createAddends` gives. Behind the row, whose end `leaveRow` is, `addRows`
  /// adds those of all rows to the chunk's `sums`, and `leaveRows` ends that.
  virtual bool spreadsRows() const { return false; }
  virtual mlir::Value createAddends(const EmitCBuilder &, int64_t) { return {}; }
  virtual void leaveRow(const EmitCBuilder &) {}
  virtual void addRows(const EmitCBuilder &, mlir::Value, mlir::Value, int64_t) {}
  virtual void leaveRows(const EmitCBuilder &) {}
  /// How rows leave the terms of result `result`, which are added behind the kernel; nothing where
  /// each chunk has its sum.
  virtual std::optional<RowTerms> getTerms(unsigned) const { return std::nullopt; }
  /// Where such terms of up to `rows` rows of domain number `domain` lie, from `memory` on.
  /// `stride`: floats from one row of the result to the next.
  virtual mlir::Value enterTerms(const EmitCBuilder &, const RowTerms &, mlir::Value memory,
                                 mlir::Value, int64_t, int64_t) {
    return memory;
  }
  /// The memory behind them.
  virtual mlir::Value skipTerms(const EmitCBuilder &, const RowTerms &, mlir::Value memory,
                                mlir::Value) {
    return memory;
  }
  /// Enters the loop over this call's rows, at most what `getCount` gives; returns the row.
  virtual mlir::Value enterRows(const EmitCBuilder &b, KernelFunction &kernel,
                                llvm::function_ref<mlir::Value()> getCount,
                                llvm::StringRef name) = 0;
  /// Whether pieces of long lists are pooled at the same time, in a second kernel.
  virtual bool splitsLists() const { return false; }
  /// Whether rows of tables are prefetched: `floats` of one that a later iteration uses. `others`
  /// is the number of table rows that one iteration uses.
  virtual bool prefetchesRows() const { return false; }
  virtual void prefetchRow(const EmitCBuilder &, mlir::Value, mlir::Value, mlir::Value, int64_t,
                           int64_t) {}

  /// Whether the loop over rows can be vectorised.
  virtual bool hasRowVectors() const { return false; }
  /// Declares that the iterations of the next loop are independent. `staysLoop`: it must not be
  /// unrolled before it is vectorised.
  virtual void hintVectors(const EmitCBuilder &, bool staysLoop = false) {}

  /// Elements of vectors that loops may store before the calls that read them.
  virtual int64_t getMostStored() const { return std::numeric_limits<int64_t>::max(); }
  /// Vectors that a loop may write, where it can be split.
  virtual size_t getMostStreams() const { return std::numeric_limits<size_t>::max(); }
  /// Enters the loops over the elements of a row; `leaveElements` leaves them.
  virtual ElementLoops enterElements(const EmitCBuilder &b, int64_t extent) = 0;
  virtual void leaveElements(const EmitCBuilder &b, ElementLoops &at);
  /// The current element of what `pointer` points at, or of a local array.
  virtual mlir::Value loadElement(const EmitCBuilder &b, mlir::Value pointer, ElementLoops &at);
  /// Writes the element `offset` behind the current one.
  virtual void storeElement(const EmitCBuilder &b, mlir::Value pointer, int64_t offset,
                            ElementLoops &at, mlir::Value value);
  /// An element at a constant position, for all threads of a row.
  virtual mlir::Value extractElement(const EmitCBuilder &b, mlir::Value pointer, int64_t position) {
    return b.loadElement(pointer, b.integer(position));
  }
  /// Whether threads read elements of the vector that others write.
  virtual bool isShared(mlir::Value) const { return false; }
  /// Creates a local array, outside of all loops. `isShared`: other threads read elements that this
  /// one writes.
  virtual mlir::Value createArray(const EmitCBuilder &b, mlir::Type element, int64_t size,
                                  bool isShared) = 0;
  /// Memory that a reduction takes as its last operand; null where it needs none.
  virtual mlir::Value createReductionMemory(const EmitCBuilder &) { return {}; }
  /// Whether the two gathers of a sampled softmax read their rows once (GatheredSoftmax.h).
  virtual bool gathersOnce() const { return false; }
  /// Calls a function of a whole row, a template over `sizes`, that has a form per mapping.
  mlir::Value callOnRow(const EmitCBuilder &b, llvm::StringRef callee, mlir::Type result,
                        mlir::ValueRange operands, llvm::ArrayRef<int64_t> sizes = {});
  /// Separates writes to shared arrays from later reads by other threads.
  virtual void separate(const EmitCBuilder &) {}
  /// Whether each scalar of a joined row is written where it is computed, and not all of them
  /// behind the last: a thread of a device keeps what it has computed in registers, of which
  /// hundreds of parts would take more than there are.
  virtual bool writesPartsOneByOne() const { return false; }
  /// Begins a write of a scalar. `leave` the returned op, if it is not null.
  virtual mlir::Operation *enterScalarWrite(const EmitCBuilder &) { return nullptr; }

  /// Ends the function: emits what stages need to launch it. Fails with an error at `b` where the
  /// target cannot run it.
  virtual mlir::LogicalResult finish(const EmitCBuilder &, KernelFunction &) {
    return mlir::success();
  }
  /// Whether the numbers of the domains that the function reads are among its pointers, and the
  /// domain whose number is pointer `pointer`.
  virtual bool takesDomains() const { return false; }
  virtual mlir::Value getDomain(const EmitCBuilder &, KernelFunction &, int64_t) { return {}; }
  /// Bytes of shared memory of a block that has rows of a column.
  virtual int64_t getColumnBytes() const { return 0; }
  /// Emits, behind the function `name`, what stages need to launch it.
  virtual void describe(const EmitCBuilder &, llvm::StringRef) {}

protected:
  /// What functions of a whole row take as template arguments behind their sizes.
  virtual llvm::SmallVector<int64_t> getRowArguments() const { return {}; }
};

/// What the function of a row kernel is.
enum class KernelForm {
  launched, ///< a kernel with a launch of its own
  column,   ///< a body of a launch of columns
  joint,    ///< such a body that several kernels share: it is passed the domains that they have
};

std::unique_ptr<KernelTarget> createKernelTarget(const Target &target, RowKernelOp kernel,
                                                 KernelForm form);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELTARGET_H
