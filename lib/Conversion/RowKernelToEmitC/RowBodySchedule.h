//===- RowBodySchedule.h - schedule of a kernel's body ----------*- C++ -*-===//
//
// The body of a row kernel is a list of ops on the scalars and vectors of one row. The schedule
// assigns ops to levels. A level runs its scalar ops first, then one loop over elements per vector
// size, then calls that work on whole vectors (reductions, gathers, random draws). An op gets a
// later level only if it depends on a call, such as an elementwise op on the result of a reduction.
//
// *Column ops* are scalar ops whose results are only written to elements of results. On a target
// with row vectors they run before the levels, in loops of their own that are vectorised over rows.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYSCHEDULE_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYSCHEDULE_H

#include "genrec/Dialect/GenRec/IR/GenRec.h"

#include "llvm/ADT/SetVector.h"

#include <functional>

namespace genrec {

/// A write in a loop: element i of `value` is written to the memory of `owner`.
struct ElementSink {
  mlir::Operation *owner; ///< row_store, accumulate, row_concat or row_yield
  unsigned index;         ///< operand number of the value
  mlir::Value value;
};

/// A loop over the elements of vectors of one size.
struct ElementLoop {
  int64_t extent;
  llvm::SmallVector<mlir::Value> stored; ///< values to store in local arrays
  llvm::SmallVector<ElementSink> sinks;
};

struct BodyLevel {
  llvm::SmallVector<mlir::Operation *> scalars; ///< scalar and address ops
  llvm::SmallVector<RowConcatOp> concats;       ///< joins whose scalar parts are computed
  std::vector<ElementLoop> loops;
  llvm::SmallVector<mlir::Operation *> calls;

  /// The first loop of that size, which is made if there is none.
  ElementLoop &getLoop(int64_t extent);
};

/// A loop over rows that column ops have.
struct ColumnLoop {
  llvm::DenseSet<mlir::Operation *> ops; ///< and the constants that they read
  llvm::DenseSet<mlir::Value> written;   ///< of their results
};

class BodySchedule {
public:
  explicit BodySchedule(RowKernelOp kernel) : kernel(kernel) {}

  /// Takes column ops out of the levels if there are enough of them. Call it before `analyse`.
  void splitColumns();
  /// The code of a call does not read its operand, a vector: it need not be computed for that. Call
  /// it before `analyse`.
  void leaveOut(mlir::OpOperand &operand) { unread.insert(&operand); }
  /// Assigns ops to levels. Fails with an error at an op that has no loop form.
  mlir::LogicalResult analyse();
  /// Splits levels so that loops store at most `most` elements for calls before these are made, of
  /// values that are as well computed later, and what becomes of calls is computed behind them.
  /// Call it behind `analyse`.
  void splitLevels(int64_t most);
  /// Splits loops that write more than `most` vectors into several, where these are made of
  /// different ones. Call it behind `analyse`.
  void splitLoops(size_t most);

  std::vector<BodyLevel> levels;

  RowKernelOp getKernel() const { return kernel; }

  /// Whether `op` was taken out of the levels.
  bool isColumn(mlir::Operation *op) const { return columns.contains(op); }
  /// The loops that column ops have. Several where one would have many ops: a C++ compiler takes
  /// time with the square of them. An op that several loops need is in each of them.
  std::vector<ColumnLoop> getColumnLoops() const;
  BodyKind getKind(mlir::Operation *op) const { return nodes.lookup(op).kind; }
  /// Whether a vector is in memory: in an input, a result or a local array.
  bool isStored(mlir::Value value) const;
  /// Whether `value` is an input that lies where the kernel joins rows.
  bool isThere(mlir::Value value) const;
  /// Whether loops recompute `value` rather than load it from a local array.
  bool isCheap(mlir::Value value) const;
  /// The operand number of the yield in whose result's memory the joined row is built; none if it
  /// needs a local array.
  std::optional<unsigned> getJoinTarget(RowConcatOp concat) const;
  /// A rough number of operations per row, which sets the size of chunks.
  int64_t estimateCost() const;

private:
  struct Node {
    BodyKind kind = BodyKind::scalar;
    int64_t level = 0;
    int64_t cheapCost = -1; ///< ops to recompute an element; -1: not cheap
  };

  bool isReadByColumns(mlir::Value value) const;
  bool isColumnOrElement(mlir::OpOperand &use) const;
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
  /// The values of `level` that are as well computed right before `call`, which alone reads them.
  llvm::SmallVector<mlir::Value> getOwnValues(const BodyLevel &level, mlir::Operation *call) const;
  /// The level in parts, in each of which loops store at most `most` elements for calls.
  void splitCalls(BodyLevel level, int64_t most, std::vector<BodyLevel> &parts);
  /// The numbers of what `loop` makes, those together that have ops in common.
  llvm::SmallVector<llvm::SmallVector<size_t>> getParts(const ElementLoop &loop) const;
  /// Moves scalars of the level behind `parts` to these, as soon as what they read is computed.
  void moveScalars(BodyLevel &level, std::vector<BodyLevel> &parts) const;
  BodyLevel &getLevel(int64_t level);

  RowKernelOp kernel;
  llvm::DenseMap<mlir::Operation *, Node> nodes;
  llvm::DenseSet<mlir::Value> storedValues;
  llvm::DenseSet<mlir::Operation *> columns;
  llvm::DenseSet<mlir::OpOperand *> unread;
};

/// The ops of a body that `value` is made of, each behind those that it reads: those that `filter`
/// lets pass, and not what is behind others.
llvm::SetVector<mlir::Operation *> getMakers(mlir::Value value,
                                             std::function<bool(mlir::Operation *)> filter = {});

/// The result of `kernel` that operand `number` of its yield belongs to.
int64_t getYieldedResult(RowKernelOp kernel, unsigned number);

inline bool isVector(mlir::Value value) { return mlir::isa<mlir::VectorType>(value.getType()); }

/// The number of elements of a vector.
int64_t getExtent(mlir::Value value);

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYSCHEDULE_H
