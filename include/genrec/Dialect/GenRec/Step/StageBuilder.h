//===- StageBuilder.h - a stage of a program as a function ------*- C++ -*-===//
//
// Emits the function of one stage of a program, and gives access to what it reads: columns,
// parameters, buffers and domains of the step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_STAGEBUILDER_H
#define GENREC_DIALECT_GENREC_STEP_STAGEBUILDER_H

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/Costs.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"
#include "genrec/Dialect/GenRec/Step/Target.h"

namespace genrec {

/// A kernel or library call, as errors and profiles show it.
struct StepOp {
  std::string name;
  mlir::Location loc;
  std::string origin;
  Stage stage;
  llvm::SmallVector<OpCost> costs;
  bool bf16;    ///< factors of its products are rounded
  bool isFused; ///< from several lines
};

class StageBuilder {
public:
  StageBuilder(ProgramOp program, const ModelIndex &index, llvm::SmallVectorImpl<StepOp> &ops,
               mlir::OpBuilder &builder)
      : program(program), index(index), builder(builder), target(Target::of(program)),
        buffers(getBuffers(program)), ops(ops) {}

  /// Starts the function of `stage` at the builder's insertion point.
  void begin(Stage stage);
  void end();
  bool isEmpty() const { return opCount == 0; }

  /// Begins a separate function for the calls of `run`. When it ends, the stage's function gets a
  /// call that runs it block by block (row_blocks.h).
  void beginBlock(RowBlockAttr run);
  void endBlock();
  /// The run whose function is being built; null if there is none.
  RowBlockAttr getBlock() const { return block; }
  mlir::emitc::FuncOp getFunction() const { return current.function; }

  /// A builder at the location of `op`.
  EmitCBuilder at(mlir::Operation *op);
  EmitCBuilder at(mlir::Location loc) { return {builder, loc}; }

  mlir::Value getStep() const { return current.step; }
  /// `genrec_rt_pool *`.
  mlir::Value getPool();
  /// A `genrec_domain *` for the domain of this step.
  mlir::Value getDomain(mlir::FlatSymbolRefAttr domain);
  mlir::Value getDomain(mlir::Value domain);
  /// The domain of `tensor`'s rows.
  mlir::Value getDomainOf(mlir::Value tensor);
  /// The number of `tensor`'s rows. On a device that is known for domains that were read and for
  /// fixed rows only.
  mlir::Value getCount(mlir::Value tensor);
  /// How library calls take the number of `tensor`'s rows: the number, or on a device the domain,
  /// whose descriptor there has it.
  mlir::Value getRowsArgument(mlir::Value tensor);
  /// Operands of a call that needs the step on a device only, to queue its work.
  llvm::SmallVector<mlir::Value> withStep(llvm::ArrayRef<mlir::Value> operands);
  /// A pointer to the first element of `tensor`.
  mlir::Value getPointer(mlir::Value tensor);
  /// The same for part `part` of `tensor`, whose rows are those of the stack_domains `stack`.
  mlir::Value getPartPointer(mlir::Value tensor, mlir::Value stack, int64_t part);
  /// A pointer to the first element of a new local array.
  mlir::Value makeArray(const EmitCBuilder &b, mlir::Type element, mlir::ValueRange values);
  /// Like getPointer, but a null pointer of type `element` if `tensor` is null.
  mlir::Value getOptionalPointer(mlir::Value tensor, mlir::Type element);
  /// The number of elements from one row of `tensor` to the next.
  mlir::Value getStride(mlir::Value tensor);
  /// `step->buffers[number]` as a pointer to `element`.
  mlir::Value getBuffer(int64_t number, mlir::Type element, llvm::StringRef name);
  /// `rows` of `domain`; in a block's function, a pointer to the block's first row.
  mlir::Value getBlockRows(const EmitCBuilder &b, mlir::Value rows, mlir::FlatSymbolRefAttr domain,
                           int64_t bytesPerRow);
  mlir::Value getColumnMember(int64_t feature, llvm::StringRef member, mlir::Type element);
  /// `step->parameters[number].member`.
  mlir::Value getParameterMember(int64_t number, llvm::StringRef member);
  /// The number of `op` in the runtime's list of step ops.
  mlir::Value getOpNumber(mlir::Operation *op);
  /// Emits the check of --check-finite that `value`, made by `op`, has no NaN and no infinity; none
  /// where it does not hold floats.
  void checkFinite(mlir::Operation *op, mlir::Value value);

  ProgramOp program;
  const ModelIndex &index;
  mlir::OpBuilder &builder;
  const Target &target;

private:
  /// A function that is being built, with the values that its code has loaded so far.
  struct Function {
    mlir::emitc::FuncOp function;
    mlir::Value step, pool;
    llvm::DenseMap<mlir::Attribute, mlir::Value> domains;
    /// By stacked domain: the array of offsets, or on a device the offset of each part.
    llvm::DenseMap<mlir::Attribute, llvm::SmallVector<mlir::Value>> partOffsets;
    llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  };

  void makeFunction(const llvm::Twine &name, llvm::StringRef stepType);
  mlir::Value makePointer(mlir::Value tensor);
  mlir::Value getPartOffset(mlir::Value stack, int64_t part);

  Function current, stageFunction;
  llvm::SmallVector<PlannedBuffer> buffers;
  RowBlockAttr block;
  int64_t firstOpOfBlock = 0;
  llvm::SmallVectorImpl<StepOp> &ops;
  llvm::DenseMap<mlir::Operation *, int64_t> opNumbers;
  int64_t opCount = 0;
};

} // namespace genrec

#endif // GENREC_DIALECT_GENREC_STEP_STAGEBUILDER_H
