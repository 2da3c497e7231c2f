//===- MemoryPlan.h - the result of plan-memory -----------------*- C++ -*-===//
//
// plan-memory stores the buffers of a program as attributes, which these functions read.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_MEMORYPLAN_H
#define GENREC_DIALECT_GENREC_STEP_MEMORYPLAN_H

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

namespace genrec {

/// A planned buffer of `bytesPerRow` * capacity(domain) + bytes bytes; `#genrec.buffer` stores it.
struct PlannedBuffer {
  mlir::FlatSymbolRefAttr domain; ///< null: a fixed size
  int64_t bytesPerRow = 0;
  int64_t stride = 0; ///< elements from one row to the next; 0: rows are contiguous
  int64_t bytes = 0;
  int64_t first = 0, last = 0; ///< live range, as op numbers in the program
  std::string name;
  int64_t block = -1; ///< the run of calls that alone uses the buffer; -1: none
  int64_t offset = 0; ///< offset in the memory of that run, in bytes per row

  BufferAttr toAttribute(mlir::MLIRContext *context) const;
  static PlannedBuffer fromAttribute(BufferAttr attribute);
};

/// The buffers of a program; empty before `plan-memory`.
llvm::SmallVector<PlannedBuffer> getBuffers(ProgramOp program);

/// The run of calls that `op` belongs to; null if it is in none.
RowBlockAttr getRowBlock(mlir::Operation *op);
/// Bytes per row of the buffers that only run `block` uses.
int64_t getBlockBytes(llvm::ArrayRef<PlannedBuffer> buffers, int64_t block);

/// Own slots of an op that makes a domain.
enum DomainSlot { kOffsetsSlot = 0, kParentSlot = 1, kIdentitySlot = 2 };
/// stack_domains: the offset of each part, and the end of the last.
enum StackDomainsSlot { kPartOffsetsSlot = 0 };
/// unique_rows: the gradients that belong to each row.
enum UniqueRowsSlot { kSegmentsSlot = 0 };
/// distinct_rows: for each row of each lookup the number of its distinct row.
enum DistinctRowsSlot { kPlacesSlot = 0 };
std::string getPlacesName(DistinctRowsOp op);
/// pick_rows: the identities of the rows, and which rows of the source are picked.
enum PickRowsSlot { kPickedIdentitySlot = 0, kPickedBitsSlot = 1 };
/// attention with softmax scores: log of the sum of exponentials, per row and head.
enum AttentionSlot { kLogSumExpSlot = 0 };

/// The result of `kernel` whose memory a joined row that begins with input `number` is built in,
/// where the body reads neither of them otherwise; null if there is none.
mlir::OpResult findJoinedResult(RowKernelOp kernel, unsigned number);
/// The joined rows that `part` lies in from the first column on: a kernel or call builds them in
/// the memory of its result, and reads of `part`, the first of what it joins, nothing else. The
/// kernel that makes `part` then stores it there. Null for other values.
mlir::OpResult getJoinedRows(mlir::OpResult part);
/// Whether `plan-memory` has put `part`, an operand of `op`, into the rows that it joins.
bool isJoinedInPlace(mlir::Operation *op, mlir::Value part);

/// The memory that an op needs. Slot i of the first `getNumResults()` slots is for result i, and
/// empty if that result has no memory of its own. The slots of `StepOpInterface::addOwnSlots`
/// follow.
llvm::SmallVector<BufferSlot> getBufferSlots(mlir::Operation *op);

/// The number of the buffer in own slot `slot`; -1 if there is none.
int64_t getOwnBuffer(mlir::Operation *op, unsigned slot);
/// The number of the buffer that holds `result`; -1 if there is none.
int64_t getResultBuffer(mlir::OpResult result);

/// Whether `op` is a row kernel that stores into rows of tables or parameters.
bool storesRows(mlir::Operation *op);
/// Whether `op` is a row kernel that updates the rows of a parameter element by element, makes
/// nothing else, and reads no other parameter; and the only one of that parameter.
bool isParameterUpdate(mlir::Operation *op);
/// Of a row kernel that makes nothing but a scalar of each row of a parameter, which one op of its
/// stage alone reads, that op; null for others. So a clipped norm has sums of squares.
mlir::Operation *getReductionReader(mlir::Operation *op);
/// Kernels that a device runs in one launch: updates of parameters, reductions that one op reads,
/// or kernels that do the same for several lists.
struct JointLaunch {
  enum class Kind { updates, reductions, lists } kind;
  llvm::SmallVector<RowKernelOp> kernels;

  /// The kernel in whose place the launch is.
  RowKernelOp getPlace() const { return kind == Kind::lists ? kernels.front() : kernels.back(); }
};
/// The launches of `program` that have several kernels or are of updates. Between those of one
/// there is no call, but for sinks where they are over lists, and no kernel that stores rows.
llvm::SmallVector<JointLaunch> getJointLaunches(ProgramOp program);
/// Whether each row of `kernel` is made of rows that it reads by itself: its own, those above it,
/// and what all rows share. A block of a device has room for each of them as a column.
bool makesRowsAlone(RowKernelOp kernel);
/// Whether a column has room for what `op` of a kernel's body makes: each element of the same one
/// of what `op` reads, or of all.
bool fitsColumn(mlir::Operation &op);
/// Whether the rows of a device's kernel leave terms of a scattered sum of this type, which are
/// read in the order of what they are added to; elsewhere each chunk of rows has a sum of its own.
bool leavesTerms(mlir::RankedTensorType sums);
/// Whether `value` is a segment_sum, or what collect_rows makes of one, without a buffer: exactly
/// one kernel reads it, and adds up a row's gradients itself, from a `kSegmentSumsType`.
bool isAddedByReader(mlir::Value value);
inline constexpr llvm::StringLiteral kSegmentSumsType = "kernels::SegmentSums";

/// The name of a variable or buffer that holds `value`: the user's name, or else one derived from
/// the op that makes it. A C identifier.
std::string getValueName(mlir::Value value);

/// The address of a value's rows: row r starts at element `offset` + r * `stride` of the memory of
/// `root`. `root` is not a view.
struct RowAddress {
  mlir::Value root;
  int64_t offset = 0;
  int64_t stride = 0;
};
RowAddress getRowAddress(mlir::Value value);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_MEMORYPLAN_H
