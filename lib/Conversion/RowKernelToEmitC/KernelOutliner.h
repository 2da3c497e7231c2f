//===- KernelOutliner.h - one row kernel as a function ----------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H

#include "RowBodyEmitter.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"

namespace genrec {

/// The arguments of a kernel function: the step; a pointer per input, or two for rows of a
/// parameter (values and states); a pointer per result that is not accumulated; and, if any result
/// is accumulated, the partial sums. `lower-to-runtime` passes the same.
llvm::SmallVector<KernelArgument> getKernelArguments(const EmitCBuilder &b, mlir::ValueRange inputs,
                                                     mlir::ValueRange results,
                                                     llvm::ArrayRef<int64_t> accumulators);

/// Builds the function of one row kernel.
class KernelOutliner {
public:
  KernelOutliner(RowKernelOp kernel, const ModelIndex &index, KernelTarget &target,
                 mlir::OpBuilder &builder);

  /// Creates the function at the builder's insertion point.
  mlir::FailureOr<mlir::emitc::FuncOp> outline(llvm::StringRef name);

  /// The domain whose rows are distributed to threads.
  mlir::FlatSymbolRefAttr getLaunchDomain() const;
  /// The smallest number of those rows per chunk.
  int64_t getGrain() const;
  llvm::SmallVector<int64_t> getAccumulatedResults() const;

  int64_t loopCount = 0, arrayCount = 0;

private:
  class Writer;
  friend class Writer;
  /// A loop of the nest, over the rows of `domain` below the row of the enclosing loop.
  struct NestLoop {
    DomainOp domain;
    mlir::Value row, begin, end;
    mlir::Operation *loop = nullptr;
  };
  /// A pooled result, which is added up for the row of loop `nest`.
  struct Pooled {
    unsigned result;
    PoolKind kind;
    size_t nest;
    mlir::Value place; ///< a variable or an array
  };

  ResultRole getRole(unsigned result) const;
  void collectPooled();
  mlir::Value getDomainMember(DomainOp domain, llvm::StringRef member, mlir::Type element);
  void preparePlaces();
  void prepareAccumulators();
  /// The accumulator of `result`, whose terms of up to `rows` rows lie in `memory`.
  TensorAddress prepareTerms(unsigned result, const RowTerms &terms, mlir::Value memory,
                             mlir::Value rows);
  /// How many rows leave terms at most.
  mlir::Value getRoom();
  /// Elements from one row of an accumulated result to the next.
  int64_t getAccumulatorStride(unsigned result);
  /// Creates an array for the sums of `result`, which go to `to`.
  mlir::Value keepSums(unsigned result, mlir::Value to);
  void writeKeptSums();
  /// Whether each result is one element that is computed from the same row's inputs, so that the
  /// loop over rows can be vectorised.
  bool isElementwise();
  /// Emits the vectorised loop over the rows for the column ops of `schedule`.
  mlir::LogicalResult outlineColumns(const BodySchedule &schedule);
  void hintRowVectors();
  void enterNest();
  void leaveNest();
  void clearPooled(Pooled &pooled);
  void finishPooled(const Pooled &pooled);
  /// Binds the inputs of column ops, or those of other ops.
  void bindInputs(const BodySchedule &schedule, bool ofColumns);
  void bindInput(unsigned input);
  /// Whether the input has a table row for each row of the innermost loop.
  bool hasTableRows(unsigned input);
  void prefetchTableRow(unsigned input, mlir::Value row);
  /// Whether the kernel itself adds up the gradients of each of the input's rows.
  bool isSegmentSum(unsigned input);
  mlir::Value getRowCount();
  mlir::Value getRowIndex(DomainOp domain);
  /// The offset of row `row`.
  mlir::Value getOffset(mlir::Value row, int64_t stride) const;
  mlir::Value getSourceRows(mlir::RankedTensorType type);

  RowKernelOp kernel;
  const ModelIndex &index;
  KernelTarget &target;
  mlir::OpBuilder &builder;
  EmitCBuilder b;
  llvm::SmallVector<DomainOp> path; ///< from the kernel's domain to its root
  llvm::SmallVector<Pooled> pooled;
  llvm::SmallVector<NestLoop> nest; ///< outermost first
  KernelFunction function;
  llvm::SmallVector<mlir::Value> inputPointers, resultPointers;
  /// number of rows of the innermost loop's domain, if an input has table rows
  mlir::Value tableRowCount;
  llvm::SmallVector<mlir::Value> statePointers;  ///< per input; null except for parameter rows
  llvm::SmallVector<TensorAddress> accumulators; ///< per accumulated result
  /// Where sums go that are kept in `accumulators` until the rows are done.
  struct KeptSum {
    unsigned result;
    mlir::Value array, to;
  };
  llvm::SmallVector<KeptSum> keptSums;
  llvm::DenseMap<mlir::Operation *, mlir::Value> parents, offsets;
  /// by input that is a segment sum: an array for one row
  llvm::DenseMap<unsigned, mlir::Value> sums;
  mlir::Value identities, step;
  BodyBindings bindings;
};

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H
