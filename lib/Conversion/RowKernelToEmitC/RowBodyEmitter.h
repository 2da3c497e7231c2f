//===- RowBodyEmitter.h - emits loops from a body's schedule ----*- C++ -*-===//
//
// Emits the code of a row kernel for one row, level by level: scalars, loops over elements, and
// calls.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYEMITTER_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYEMITTER_H

#include "GatheredSoftmax.h"
#include "KernelTarget.h"
#include "RowBodySchedule.h"
#include "RowMapping.h"

namespace genrec {

/// The address of a tensor that a body gathers from, or an accumulator that it scatters into.
struct TensorAddress {
  mlir::Value pointer;
  int64_t stride = 1; ///< elements from one row to the next
  mlir::Value rows;   ///< number of rows

  /// Of an accumulator whose terms are left at `pointer` and added behind the kernel: what row
  /// `row` leaves.
  std::optional<RowTerms> terms;
  mlir::Value row;

  bool isOfRow = false; ///< of an accumulator: what this row adds alone, once
};

/// The values of a table or parameter row: slot 0 at `value`; slot k at
/// `states` + (k - 1) * `stateStride`.
struct RowHandle {
  mlir::Value value, states;
  int64_t stateStride = 0;
  /// Of a table with hot rows: the lower halves, those of the value where the row is not hot; and
  /// whether it is.
  mlir::Value lower = {}, isHot = {};
};

/// The C values of a body's arguments, for the current row.
struct BodyBindings {
  llvm::DenseMap<mlir::Value, mlir::Value> scalars; ///< scalar arguments
  /// vector arguments: a pointer to the first element
  llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  llvm::DenseMap<mlir::Value, TensorAddress> sources;
  llvm::DenseMap<mlir::Value, TensorAddress> accumulators;
  llvm::DenseMap<mlir::Value, RowHandle> rows;
  mlir::Value step;     ///< genrec_step *
  mlir::Value identity; ///< of the row, for random draws; null if the body has none
};

/// Where yielded values are written.
class YieldWriter {
public:
  virtual ~YieldWriter() = default;
  /// A pointer to the row of an aligned result.
  virtual mlir::Value getRow(unsigned result) = 0;
  virtual void writeElement(const EmitCBuilder &b, unsigned result, ElementLoops &at,
                            mlir::Value value) = 0;
  virtual void writeScalar(const EmitCBuilder &b, unsigned result, mlir::Value value) = 0;
};

class RowBodyEmitter {
public:
  RowBodyEmitter(const BodySchedule &schedule, KernelTarget &target, BodyBindings bindings,
                 YieldWriter &writer, mlir::Operation *arrayAnchor, mlir::OpBuilder &builder)
      : schedule(schedule), target(target), bindings(std::move(bindings)), writer(writer),
        arrayAnchor(arrayAnchor), builder(builder) {
    if (target.gathersOnce())
      softmaxes = findGatheredSoftmaxes(schedule.getKernel());
  }

  /// Emits the column ops of `loop`, in the current loop over rows.
  mlir::LogicalResult emitColumns(const ColumnLoop &loop);
  /// Emits all other ops.
  mlir::LogicalResult emit();

  int64_t loopCount = 0, arrayCount = 0;

private:
  using Memo = llvm::DenseMap<mlir::Value, mlir::Value>;

  EmitCBuilder at(mlir::Operation *op) const { return {builder, op->getLoc()}; }
  mlir::LogicalResult emitLevel(const BodyLevel &level);
  mlir::LogicalResult emitScalar(mlir::Operation *op);
  void emitAddress(mlir::Operation *op);
  void emitDraw(mlir::Operation *op);
  /// Writes the scalars of a joined row for which `which` holds.
  using ScalarParts = llvm::function_ref<bool(mlir::Value)>;
  void emitScalarParts(RowConcatOp concat, ScalarParts which);
  mlir::LogicalResult emitLoop(const ElementLoop &loop);
  /// `slot`: where the values go, of a row_store.
  void writeSink(const ElementSink &sink, mlir::Value slot, ElementLoops &at, mlir::Value value);
  void emitCall(mlir::Operation *op);
  void emitAccumulate(AccumulateOp op);
  /// Both gathers of a sampled softmax, at the first one; the second one makes the sum of the mix.
  void emitSoftmax(const GatheredSoftmax &softmax);
  void emitSoftmaxSum(const GatheredSoftmax &softmax);
  void emitReduction(mlir::Operation *op);
  /// Writes the scalars that are results for which `which` holds.
  void emitScalarYields(ScalarParts which);
  bool isColumn(mlir::Value value) const;

  mlir::Value getScalar(mlir::Value value) const { return bindings.scalars.lookup(value); }
  mlir::Value getPointer(mlir::Value value);
  /// A new local array for `value`, with elements of `element`.
  mlir::Value makeArray(mlir::Value value, mlir::Type element = {});
  mlir::Value getSlot(mlir::Value row, int64_t slot, mlir::Location loc);
  const RowHandle &getHandle(mlir::Value row) const { return bindings.rows.find(row)->second; }
  /// Memory for a reduction of elements of `element`; null where it needs none.
  mlir::Value getReductionMemory(mlir::Type element);
  mlir::Value getStream(const EmitCBuilder &b, int64_t stream);

  mlir::FailureOr<mlir::Value> evaluate(mlir::Value value, ElementLoops &at, Memo &memo);
  mlir::FailureOr<mlir::Value> compute(mlir::Operation *op, ElementLoops &at, Memo &memo);
  /// `op` on scalars.
  mlir::FailureOr<mlir::Value> scalarize(mlir::Operation *op, mlir::ValueRange operands);

  const BodySchedule &schedule;
  KernelTarget &target;
  BodyBindings bindings;
  YieldWriter &writer;
  mlir::Operation *arrayAnchor;
  mlir::OpBuilder &builder;
  llvm::SmallVector<GatheredSoftmax, 1> softmaxes;
  llvm::DenseMap<mlir::Operation *, mlir::Value> mixes; ///< arrays, by gather_sum
};

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_ROWBODYEMITTER_H
