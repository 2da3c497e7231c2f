//===- KernelOutliner.h - one row kernel as a function ----------*- C++ -*-===//

#ifndef GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H
#define GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H

#include "RowBodyEmitter.h"

#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"

namespace genrec {

/// What a kernel function is given, in this order: the step, per input one
/// pointer (two for rows of a parameter: values and states), per result that is not
/// accumulated one pointer, and the partial sums where any result is.
/// `lower-to-runtime` hands over the same.
llvm::SmallVector<KernelArgument> getKernelArguments(const EmitCBuilder &b, mlir::ValueRange inputs,
                                                     mlir::ValueRange results,
                                                     llvm::ArrayRef<int64_t> accumulators,
                                                     const KernelTarget &target);

/// Builds the function of one row kernel.
class KernelOutliner {
public:
  KernelOutliner(RowKernelOp kernel, const ModelIndex &index, const KernelTarget &target,
                 mlir::OpBuilder &builder);

  /// Makes the function at the builder's insertion point.
  mlir::FailureOr<mlir::emitc::FuncOp> outline(llvm::StringRef name);

  /// The domain whose rows are handed out to threads.
  mlir::FlatSymbolRefAttr getLaunchDomain() const;
  /// The least number of those rows per chunk.
  int64_t getGrain() const;
  llvm::SmallVector<int64_t> getAccumulatedResults() const;

  int64_t loopCount = 0, arrayCount = 0;

private:
  class Writer;
  friend class Writer;
  /// A loop of the nest: over the rows of `domain` below the row of the loop around it.
  struct NestLoop {
    DomainOp domain;
    mlir::Value row, begin, end;
    mlir::Operation *loop = nullptr;
  };
  /// A pooled result: where it is added up for the row of loop `nest`.
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
  /// Whether rows are computed from their own elements, each result one element, so that the
  /// loop over rows may run in vectors.
  bool isElementwise();
  /// A loop in vectors over the rows for the columns of `schedule`.
  mlir::LogicalResult outlineColumns(const BodySchedule &schedule);
  void hintRowVectors();
  void enterNest();
  void leaveNest();
  void clearPooled(Pooled &pooled);
  void finishPooled(const Pooled &pooled);
  /// Binds what columns read, or all that is read by others.
  void bindInputs(const BodySchedule &schedule, bool ofColumns);
  void bindInput(unsigned input);
  /// Whether the input gives each row of the innermost loop a table row of its own.
  bool hasTableRows(unsigned input);
  void prefetchTableRow(unsigned input, mlir::Value row);
  /// Whether the kernel adds up the input's rows itself, out of gradients.
  bool isSegmentSum(unsigned input);
  mlir::Value getRowIndex(DomainOp domain);
  /// Where row `row` starts.
  mlir::Value getOffset(mlir::Value row, int64_t stride) const;
  mlir::Value getSourceRows(mlir::RankedTensorType type);

  RowKernelOp kernel;
  const ModelIndex &index;
  const KernelTarget &target;
  mlir::OpBuilder &builder;
  EmitCBuilder b;
  llvm::SmallVector<DomainOp> path; ///< from the kernel's domain to its root
  llvm::SmallVector<Pooled> pooled;
  llvm::SmallVector<NestLoop> nest; ///< from the outside in
  KernelFunction function;
  llvm::SmallVector<mlir::Value> inputPointers, resultPointers;
  mlir::Value tableRowCount; ///< rows of the innermost loop's domain, where they have table rows
  llvm::SmallVector<mlir::Value> statePointers; ///< by input; null but for parameter rows
  llvm::SmallVector<SourcePlace> accumulators;  ///< by accumulated result
  llvm::DenseMap<mlir::Operation *, mlir::Value> parents, offsets;
  llvm::DenseMap<unsigned, mlir::Value> sums; ///< by input that is a segment sum: room for a row
  mlir::Value identities, step;
  BodyBindings bindings;
};

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H
