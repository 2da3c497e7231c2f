//===- MemoryPlan.h - what plan-memory leaves on a program ------*- C++ -*-===//
//
// A program carries its buffers as attributes; this is how they are read.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_MEMORYPLAN_H
#define GENREC_DIALECT_GENREC_STEP_MEMORYPLAN_H

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h"

namespace genrec {


/// A planned buffer, `bytesPerRow` * capacity(domain) + bytes, as `#genrec.buffer` keeps it.
struct PlannedBuffer {
  mlir::FlatSymbolRefAttr domain; ///< null: a fixed size
  int64_t bytesPerRow = 0;
  int64_t stride = 0;             ///< elements from row to row; 0: rows lie densely
  int64_t bytes = 0;
  int64_t first = 0, last = 0;    ///< numbers of ops of the program
  std::string name;
  int64_t block = -1;             ///< the run of calls that alone knows of it; -1: none
  int64_t place = 0;              ///< then: bytes per row before it, among those of the run

  BufferAttr toAttribute(mlir::MLIRContext *context) const;
  static PlannedBuffer fromAttribute(BufferAttr attribute);
};

/// The buffers of a program; empty before `plan-memory`.
llvm::SmallVector<PlannedBuffer> getBuffers(ProgramOp program);

/// The run of calls that `op` belongs to; null for none.
RowBlockAttr getRowBlock(mlir::Operation *op);
/// Bytes per row that the buffers of run `block` alone take together.
int64_t getBlockBytes(llvm::ArrayRef<PlannedBuffer> buffers, int64_t block);

/// Slots after those of the results of ops that make a domain from others.
enum DomainSlot { kOffsetsSlot = 0, kParentSlot = 1, kIdentitySlot = 2 };
/// stack_domains: where each part begins, and where the last ends.
enum StackDomainsSlot { kPartOffsetsSlot = 0 };
/// unique_rows: scratch that says which gradients belong to which row.
enum UniqueRowsSlot { kSegmentsSlot = 0 };
/// distinct_rows: scratch that says where the rows of each lookup are among the distinct ones.
enum DistinctRowsSlot { kPlacesSlot = 0 };
/// attention with softmax scores: log of the sum of exponentials per row and head.
enum AttentionSlot { kLogSumExpSlot = 0 };

/// The memory that an op needs. Slot i of the first `getNumResults()` slots belongs to
/// result i and is empty (not needed) where the result has no memory of its own; further slots
/// are those of `StepOpInterface::addOwnSlots`.
llvm::SmallVector<BufferSlot> getBufferSlots(mlir::Operation *op);

/// The number of the buffer in `slot` after the results' slots; -1 for none.
int64_t getOwnBuffer(mlir::Operation *op, unsigned slot);
/// The number of the buffer that holds result `result`; -1 for none.
int64_t getResultBuffer(mlir::OpResult result);

/// Whether `op` is a row kernel that stores into rows of tables or parameters.
bool storesRows(mlir::Operation *op);
/// Whether `value` is a segment_sum that one kernel reads, on a target whose kernels then add up the
/// gradients of a row when they get there, out of `kSegmentSumsType`.
bool isAddedByReader(mlir::Value value);
inline constexpr llvm::StringLiteral kSegmentSumsType = "kernels::SegmentSums";

/// What a variable or buffer that holds `value` is called: after the user's name, else
/// after what makes it. A C identifier.
std::string getValueName(mlir::Value value);

/// Where the rows of a value lie: row r starts at element `offset` + r * `stride` of
/// the memory of `root`, which is no view.
struct RowPlace {
  mlir::Value root;
  int64_t offset = 0;
  int64_t stride = 0;
};
RowPlace getRowPlace(mlir::Value value);

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_MEMORYPLAN_H
