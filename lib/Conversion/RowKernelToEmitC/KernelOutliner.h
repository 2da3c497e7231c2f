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
  /// Whether threads have pieces of long lists, which are pooled behind the kernel.
  bool splitsLists() const { return isSplit; }
  /// Emits, behind the function `name` of a kernel that splits lists, how.
  void describePools(llvm::StringRef name) const;
  /// The domain of the innermost loop's rows.
  mlir::FlatSymbolRefAttr getLeafDomain() const;
  /// The numbers of the domains that the function takes as pointers, behind the others.
  llvm::ArrayRef<int64_t> getPassedDomains() const { return passedDomains; }

  int64_t loopCount = 0, arrayCount = 0;

private:
  class Writer;
  friend class Writer;
  /// A loop of the nest, over the rows of `domain` below the row of the enclosing loop.
  struct NestLoop {
    DomainOp domain;
    mlir::Value row, begin, end;
    mlir::Value first; ///< the first row of the list, of which [begin, end) may be a part
    mlir::Operation *loop = nullptr;
  };
  /// A pooled result, which is added up for the row of loop `nest`.
  struct Pooled {
    unsigned result;
    PoolKind kind;
    size_t nest;
    mlir::Value place, pieces; ///< variables or arrays; `pieces`: the sum of earlier pieces
    int64_t word = 0;          ///< where a part's value is, of a split kernel
  };
  /// Where the pieces (pool_pieces.h) of the list below the row of a loop end.
  struct ListCut {
    mlir::Value isLong; ///< whether it has several
    mlir::Value next;   ///< a variable: the first row of the next piece
  };

  ResultRole getRole(unsigned result) const;
  void collectPooled();
  bool canSplit() const;
  /// Whether rows of the result are added as floats, so that their order matters.
  bool isAdded(const Pooled &pool) const;
  void createPooled();
  mlir::Value getDomain(const EmitCBuilder &b, mlir::FlatSymbolRefAttr domain);
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
  /// Creates an array for the sums of `result`, which go to `to`, or for what a row adds to them
  /// where rows are spread.
  mlir::Value keepSums(unsigned result, mlir::Value to);
  /// Zeros for the sums that are kept, before the rows.
  void clearKeptSums();
  /// Writes the sums of the chunk, behind its rows.
  void writeKeptSums();
  /// Of rows that are spread: adds to the sums of the chunk what rows have left.
  void addRowsSums();
  /// Whether each result is one element that is computed from the same row's inputs, so that the
  /// loop over rows can be vectorised.
  bool isElementwise();
  /// Emits a vectorised loop over the rows for column ops of `schedule`.
  mlir::LogicalResult outlineColumns(const BodySchedule &schedule, const ColumnLoop &loop);
  void hintRowVectors();
  /// Leaves vectors out of `schedule` for which calls take scalars in their place.
  void leaveOutUnread(BodySchedule &schedule);
  void clearBehindFactors();
  void enterNest();
  void leaveNest();
  std::string getRowName(const NestLoop &loop) const;
  /// The same for a kernel that splits lists: threads have units (pools.h of the runtime).
  void enterUnits();
  /// Before the loop over the lists below the row of loop `level`, and behind it.
  void enterLists(size_t level);
  void leaveLists(size_t level);
  /// In the body of the innermost loop: ends pieces whose last row was the one before.
  void cutLists();
  void clearPooled(Pooled &pooled);
  /// `place` = what an empty list begins with.
  void clear(const Pooled &pooled, mlir::Value place);
  /// `to` = the sum of the pieces before and the current one.
  void addPieces(const Pooled &pooled, mlir::Value to);
  /// Writes the value from element `first` of `to` on (null: 0), divided by `length` where there is
  /// one.
  void writePooled(const Pooled &pooled, mlir::Value length, mlir::Value to, mlir::Value first);
  void finishPooled(const Pooled &pooled);
  void finishUnit(const Pooled &pooled);
  /// Binds the inputs that ops read for which `isReader` holds.
  void bindInputs(const BodySchedule &schedule,
                  llvm::function_ref<bool(mlir::Operation *)> isReader);
  void bindRow(unsigned input, mlir::Value row);
  void bindInput(unsigned input);
  /// Whether the input has a table row for each row of the innermost loop.
  bool hasTableRows(unsigned input);
  void prefetchTableRow(unsigned input, mlir::Value row);
  /// Whether the kernel itself adds up the gradients of each of the input's rows.
  bool isSegmentSum(unsigned input);
  mlir::Value getRowCount();
  mlir::Value getRowIndex(DomainOp domain);
  /// The number that the row of the innermost loop has in the list that its domain was truncated
  /// from.
  mlir::Value getUntruncatedRow();
  /// The height from which on the parents of rows lead to `ancestor`, which is not in the nest.
  size_t getParentsBegin(mlir::FlatSymbolRefAttr ancestor) const;
  /// The offset of row `row`.
  mlir::Value getOffset(mlir::Value row, int64_t stride) const;
  mlir::Value getResultOffset(unsigned result);
  mlir::Value getSourceRows(mlir::RankedTensorType type);

  RowKernelOp kernel;
  const ModelIndex &index;
  KernelTarget &target;
  mlir::OpBuilder &builder;
  EmitCBuilder b;
  llvm::SmallVector<DomainOp> path; ///< from the kernel's domain to its root
  llvm::SmallVector<Pooled> pooled;
  llvm::SmallVector<NestLoop> nest;     ///< outermost first
  llvm::DenseMap<size_t, ListCut> cuts; ///< by loop
  bool isSplit = false;
  /// Of a split kernel: domains from its lists down to its rows, words of a part, the current unit
  /// and the memory of parts.
  int64_t listDepth = 0, partWords = 0;
  mlir::Value unit, parts;
  KernelFunction function;
  llvm::SmallVector<int64_t> passedDomains;
  llvm::SmallVector<mlir::Value> inputPointers, resultPointers;
  /// number of rows of the innermost loop's domain, if an input has table rows
  mlir::Value tableRowCount;
  llvm::SmallVector<mlir::Value> statePointers; ///< per input; null except for parameter rows
  std::vector<TensorAddress> accumulators;      ///< per accumulated result
  /// Where sums go that are kept in `accumulators` until the rows are done.
  struct KeptSum {
    unsigned result;
    mlir::Value array, to;
  };
  llvm::SmallVector<KeptSum> keptSums;
  llvm::DenseMap<mlir::Operation *, mlir::Value> parents, offsets;
  /// by input that is a segment sum: an array for one row
  llvm::DenseMap<unsigned, mlir::Value> sums;
  mlir::Value untruncated;    ///< offsets of the list that the domain was truncated from
  mlir::Value untruncatedRow; ///< what getUntruncatedRow gave in the current loop over rows
  mlir::Value identities, step;
  BodyBindings bindings;
};

} // namespace genrec

#endif // GENREC_LIB_CONVERSION_ROWKERNELTOEMITC_KERNELOUTLINER_H
