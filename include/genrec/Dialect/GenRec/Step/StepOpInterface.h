//===- StepOpInterface.h - planning and lowering of an op -------*- C++ -*-===//
//
// After `form-row-kernels`, a program consists of row kernels, calls of library kernels, and ops
// that take no time. Planning, costs, reports and lowering use the StepOpInterface of each.
// docs/adding-an-op.md has a complete example.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_STEPOPINTERFACE_H
#define GENREC_DIALECT_GENREC_STEP_STEPOPINTERFACE_H

#include "genrec/Dialect/GenRec/Step/Costs.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/OpDefinition.h"

#include <optional>
#include <string>

namespace genrec {

class StageBuilder;

enum class StepKind {
  declaration, ///< no code of its own: a column, a parameter, a constant
  view,        ///< its results alias memory of its operands
  setup,       ///< code that takes no time: it fills a descriptor or reports a number
  kernel,      ///< a generated kernel
  call,        ///< a call of a library kernel or of the runtime
};

/// Memory that an op needs: `bytesPerRow` * capacity(domain) + bytes bytes.
struct BufferSlot {
  mlir::FlatSymbolRefAttr domain; ///< null: a fixed size
  int64_t bytesPerRow = 0;
  int64_t bytes = 0;
  std::string name;
  bool needed = true;
  bool untilEnd = false; ///< live until the end of the program, as arrays of a domain are
  int64_t stride = 0;    ///< elements from one row to the next; 0: rows are contiguous
  /// The value whose buffer this is, too: the first part of joined rows, which is stored in them.
  mlir::OpResult sharedWith = {};
};

/// Own slot `slot` of op `maker`.
struct KeptBuffer {
  mlir::Operation *maker = nullptr;
  unsigned slot = 0;
};

/// The location of a view's rows in the memory that it aliases.
struct AliasedRows {
  int64_t offset = 0;      ///< elements before the first row
  bool keepsStride = true; ///< false: the view's rows are contiguous, whatever the operand's stride
};

/// A number of rows: an expression in emitted C++ or a number.
struct SizeTerm {
  int64_t number = 0;
  mlir::Value value;
};

/// Builds formulas for numbers of rows. One implementation emits C++, another evaluates them.
class SizeBuilder {
public:
  virtual ~SizeBuilder() = default;

  virtual SizeTerm constant(int64_t number) = 0;
  /// The largest number of rows of a domain, and of one of its lists.
  virtual SizeTerm rowsOf(mlir::FlatSymbolRefAttr domain) = 0;
  virtual SizeTerm longestOf(mlir::FlatSymbolRefAttr domain) = 0;
  virtual SizeTerm add(SizeTerm lhs, SizeTerm rhs) = 0;
  virtual SizeTerm mul(SizeTerm lhs, SizeTerm rhs) = 0;
  virtual SizeTerm min(SizeTerm lhs, SizeTerm rhs) = 0;
  virtual SizeTerm max(SizeTerm lhs, SizeTerm rhs) = 0;

  /// The sum over the domains of `values`, which are domains or tensors of their rows.
  SizeTerm addRowsOf(mlir::ValueRange values);
};

/// The sizes of a batch.
class StepSizes {
public:
  virtual ~StepSizes() = default;

  virtual int64_t getRows(mlir::FlatSymbolRefAttr domain) const = 0;
  virtual int64_t getLongest(mlir::FlatSymbolRefAttr domain) const = 0;
  virtual int64_t getThreads() const = 0;
};

/// Bytes that a call takes from the runtime when it runs block by block.
struct BlockScratch {
  int64_t kept = 0;     ///< once, for all blocks
  int64_t perChunk = 0; ///< partial sums of each chunk of blocks
  int64_t scratch = 0;  ///< per thread; the calls of a run share it
};

/// Attaches the StepOpInterface to the genrec dialect's ops.
void registerStepOpModels(mlir::DialectRegistry &registry);

} // namespace genrec

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h.inc"

namespace genrec {

/// The kind of `op`; `call` for an op without the interface.
StepKind getStepKind(mlir::Operation *op);

/// Whether the results of `op` alias memory of its operands.
inline bool isView(mlir::Operation *op) { return getStepKind(op) == StepKind::view; }
/// Whether `op` has no code of its own in any stage.
inline bool isDeclaration(mlir::Operation *op) { return getStepKind(op) == StepKind::declaration; }
/// Whether `op` takes time in a step.
inline bool isStepOp(mlir::Operation *op) {
  StepKind kind = getStepKind(op);
  return kind == StepKind::kernel || kind == StepKind::call;
}

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_STEPOPINTERFACE_H
