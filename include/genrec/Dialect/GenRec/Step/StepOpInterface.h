//===- StepOpInterface.h - what an op of a step says of itself --*- C++ -*-===//
//
// Below `form-row-kernels` a program is a list of row kernels, calls of library kernels, and values
// that take no time. What planning, costs, reports and lowering need to know of each is its
// StepOpInterface. docs/adding-an-op.md shows one from end to end.
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
  declaration, ///< reached where it is used: a column, a parameter, a constant; no code of its own
  view,        ///< its results alias memory of its operands
  setup,       ///< code that takes no time: fills a descriptor, reports a number
  kernel,      ///< a generated kernel
  call,        ///< a call of a library kernel, or of the runtime
};

/// Memory that an op needs: `bytesPerRow` * capacity(domain) + bytes.
struct BufferSlot {
  mlir::FlatSymbolRefAttr domain; ///< null: a fixed size
  int64_t bytesPerRow = 0;
  int64_t bytes = 0;
  std::string name;
  bool needed = true;
  bool untilEnd = false; ///< lives to the end of the program: arrays of a domain
  int64_t stride = 0;    ///< elements from row to row; 0: rows lie densely
};

/// Buffer `slot` of those that `maker` needs beside its results'.
struct KeptBuffer {
  mlir::Operation *maker = nullptr;
  unsigned slot = 0;
};

/// How the rows of a view lie in the memory that it aliases.
struct AliasedRows {
  int64_t offset = 0;      ///< elements before the first
  bool keepsStride = true; ///< false: rows lie densely, whatever they are in the operand
};

/// A number of rows, as an expression of emitted C++ or evaluated.
struct SizeTerm {
  int64_t number = 0;
  mlir::Value value;
};

/// Builds formulas of sizes: one implementation emits C++, another one evaluates.
class SizeBuilder {
public:
  virtual ~SizeBuilder() = default;

  virtual SizeTerm constant(int64_t number) = 0;
  /// The bound on the rows of a domain, and on those of one of its lists.
  virtual SizeTerm rowsOf(mlir::FlatSymbolRefAttr domain) = 0;
  virtual SizeTerm longestOf(mlir::FlatSymbolRefAttr domain) = 0;
  virtual SizeTerm add(SizeTerm lhs, SizeTerm rhs) = 0;
  virtual SizeTerm mul(SizeTerm lhs, SizeTerm rhs) = 0;
  virtual SizeTerm min(SizeTerm lhs, SizeTerm rhs) = 0;
  virtual SizeTerm max(SizeTerm lhs, SizeTerm rhs) = 0;

  /// The sum over the domains of `values`: domains themselves, or rows of them.
  SizeTerm addRowsOf(mlir::ValueRange values);
};

/// How large a batch is.
class StepSizes {
public:
  virtual ~StepSizes() = default;

  virtual int64_t getRows(mlir::FlatSymbolRefAttr domain) const = 0;
  virtual int64_t getLongest(mlir::FlatSymbolRefAttr domain) const = 0;
  virtual int64_t getThreads() const = 0;
};

/// What a call that runs block by block takes from the runtime, in bytes.
struct BlockScratch {
  int64_t kept = 0;     ///< once, for all blocks
  int64_t perChunk = 0; ///< partial sums of each chunk of blocks
  int64_t scratch = 0;  ///< of each thread, shared by the calls of a run
};

/// Attaches the descriptions of the genrec dialect's ops.
void registerStepOpModels(mlir::DialectRegistry &registry);

} // namespace genrec

#include "genrec/Dialect/GenRec/Step/StepOpInterface.h.inc"

namespace genrec {

/// What `op` is; `call` where it says nothing of itself.
StepKind getStepKind(mlir::Operation *op);

/// Whether the results of `op` alias memory of its operands.
inline bool isView(mlir::Operation *op) { return getStepKind(op) == StepKind::view; }
/// Whether `op` has no code of its own in any stage.
inline bool isDeclaration(mlir::Operation *op) { return getStepKind(op) == StepKind::declaration; }
/// Whether a step spends time in `op`.
inline bool isStepOp(mlir::Operation *op) {
  StepKind kind = getStepKind(op);
  return kind == StepKind::kernel || kind == StepKind::call;
}

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_STEPOPINTERFACE_H
