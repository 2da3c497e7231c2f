//===- RowBodySchedule.h - phases of a row kernel's body --------*- C++ -*-===//
//
// The body of a row kernel is a list of ops on scalars and vectors of one row.
// The schedule cuts it into levels; each level runs scalars first, then one loop
// per extent over elements, then calls (reductions, gathers, draws) that work on
// whole vectors. A value moves to a later level only where it must: elementwise
// ops on the result of a reduction, say.
//
// Scalars that only become columns of results need no other element of their row: where
// a target has vectors, they run before the levels, many rows at a time.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYSCHEDULE_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYSCHEDULE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

namespace genrec {

/// A part of a loop that writes: element i of `value` to where `owner` says.
struct ElementSink {
  mlir::Operation *owner; ///< row_store, accumulate, row_concat or row_yield
  unsigned index;         ///< operand number of the value
  mlir::Value value;
};

/// A loop over the elements of vectors of one size.
struct ElementLoop {
  int64_t extent;
  llvm::SmallVector<mlir::Value> stored; ///< kept in local arrays
  llvm::SmallVector<ElementSink> sinks;
};

struct BodyLevel {
  llvm::SmallVector<mlir::Operation *> scalars; ///< and addresses
  llvm::SmallVector<RowConcatOp> concats;       ///< whose scalar parts are ready
  std::vector<ElementLoop> loops;
  llvm::SmallVector<mlir::Operation *> calls;
};

class BodySchedule {
public:
  explicit BodySchedule(RowKernelOp kernel) : kernel(kernel) {}

  /// Takes columns out of the levels, where there are enough; before `analyse`.
  void splitColumns();
  /// Fills the levels; fails with an error at an op that has no loop form.
  mlir::LogicalResult analyse();

  std::vector<BodyLevel> levels;

  RowKernelOp getKernel() const { return kernel; }

  /// Whether `op` was taken out of the levels.
  bool isColumn(mlir::Operation *op) const { return columns.contains(op); }
  bool hasColumns() const { return !columns.empty(); }
  BodyKind getKind(mlir::Operation *op) const { return nodes.lookup(op).kind; }
  /// True for a vector that is in memory, at the place or in a local array.
  bool isStored(mlir::Value value) const;
  /// True when a loop computes `value` again rather than loading it.
  bool isCheap(mlir::Value value) const;
  /// The operand number of the yield whose result's memory the joined row is
  /// built in; none where it takes a local array.
  std::optional<unsigned> getJoinTarget(RowConcatOp concat) const;
  /// A rough number of operations per row, for the size of chunks.
  int64_t estimateCost() const;

private:
  struct Node {
    BodyKind kind = BodyKind::scalar;
    int64_t level = 0;
    int64_t cheapCost = -1; ///< ops to compute an element again; -1: not cheap
  };

  bool isReadByColumns(mlir::Value value) const;
  bool isColumnOrPlace(mlir::OpOperand &use) const;
  mlir::FailureOr<BodyKind> classify(mlir::Operation *op) const;
  /// The first level at which an op of `kind` may use `value`.
  int64_t getReady(mlir::Value value, BodyKind kind) const;
  int64_t getWritable(mlir::Operation *address, bool isWhole) const;
  bool isJoinedInPlace(mlir::OpOperand &operand) const;
  int64_t getCheapCost(mlir::Operation *op) const;
  void place(mlir::Operation *op, BodyKind kind);
  void placeSinks();
  void addSink(mlir::Operation *owner, unsigned index, int64_t level);
  void storeWhereNeeded();
  ElementLoop &getLoop(int64_t level, int64_t extent);
  BodyLevel &getLevel(int64_t level);

  RowKernelOp kernel;
  llvm::DenseMap<mlir::Operation *, Node> nodes;
  llvm::DenseSet<mlir::Value> storedValues;
  llvm::DenseSet<mlir::Operation *> columns;
};

/// The result of `kernel` that operand `number` of its yield is for.
int64_t getYieldedResult(RowKernelOp kernel, unsigned number);

/// The size of a vector value.
int64_t getExtent(mlir::Value value);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYSCHEDULE_H
