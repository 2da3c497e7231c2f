//===- StageBuilder.h - a stage of a program as a function ------*- C++ -*-===//
//
// Where the values of a program are when its stage functions run: columns,
// parameters, buffers and domains of the step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_STAGEBUILDER_H
#define GENREC_DIALECT_GENREC_STEP_STAGEBUILDER_H

#include "genrec/Analysis/ModelIndex.h"
#include "genrec/Dialect/GenRec/Step/Costs.h"
#include "genrec/Dialect/GenRec/Step/MemoryPlan.h"
#include "genrec/Dialect/GenRec/Step/StepValues.h"

namespace genrec {

/// A kernel or library call, as errors and profiles name it.
struct StepOp {
  std::string name;
  mlir::Location loc;
  std::string origin;
  Stage stage;
  llvm::SmallVector<OpCost> costs;
};

class StageBuilder {
public:
  StageBuilder(ProgramOp program, const ModelIndex &index, llvm::SmallVectorImpl<StepOp> &ops,
               mlir::OpBuilder &builder)
      : program(program), index(index), builder(builder), buffers(getBuffers(program)), ops(ops) {}

  /// Starts the function of `stage` at the builder's insertion point.
  void begin(Stage stage);
  void end();
  bool isEmpty() const { return opCount == 0; }

  /// Starts a function, before the stage's own, of the calls of `run`, and ends it with a call
  /// in the stage that runs it (row_blocks.h).
  void beginBlock(RowBlockAttr run);
  void endBlock();
  /// The run whose function has begun; null for none.
  RowBlockAttr getBlock() const { return block; }
  mlir::emitc::FuncOp getFunction() const { return current.function; }

  /// A builder for the code of `op`.
  EmitCBuilder at(mlir::Operation *op);
  EmitCBuilder at(mlir::Location loc) { return {builder, loc}; }

  mlir::Value getStep() const { return current.step; }
  /// `genrec_rt_pool *`.
  mlir::Value getPool();
  /// `genrec_domain *` of a domain's instance.
  mlir::Value getDomain(mlir::FlatSymbolRefAttr domain);
  mlir::Value getDomain(mlir::Value domain);
  /// The domain whose rows `tensor` holds.
  mlir::Value getDomainOf(mlir::Value tensor);
  /// Its number of rows.
  mlir::Value getCount(mlir::Value tensor);
  /// The first element of `tensor`, as a pointer to its element type.
  mlir::Value getPointer(mlir::Value tensor);
  /// The same for part `part` of rows of `stack`, made by stack_domains.
  mlir::Value getPartPointer(mlir::Value tensor, mlir::Value stack, int64_t part);
  /// A local array of `element`, as a pointer to its first.
  mlir::Value makeArray(const EmitCBuilder &b, mlir::Type element, mlir::ValueRange values);
  /// The same, or a null pointer where `tensor` is null.
  mlir::Value getOptionalPointer(mlir::Value tensor, mlir::Type element);
  /// Elements from row to row of `tensor`.
  mlir::Value getStride(mlir::Value tensor);
  /// `step->buffers[number]` as a pointer to `element`.
  mlir::Value getBuffer(int64_t number, mlir::Type element, llvm::StringRef name);
  /// `rows` of `domain`, or, in a block's function, where the block's begin.
  mlir::Value getBlockRows(const EmitCBuilder &b, mlir::Value rows, mlir::FlatSymbolRefAttr domain,
                           int64_t bytesPerRow);
  mlir::Value getColumnMember(int64_t feature, llvm::StringRef member, mlir::Type element);
  /// `step->parameters[number].member`.
  mlir::Value getParameterMember(int64_t number, llvm::StringRef member);
  /// The number under which the runtime knows the op that is being lowered.
  mlir::Value getOpNumber(mlir::Operation *op);

  ProgramOp program;
  const ModelIndex &index;
  mlir::OpBuilder &builder;

private:
  /// A function that is being built, and what its code has fetched.
  struct Function {
    mlir::emitc::FuncOp function;
    mlir::Value step, pool;
    llvm::DenseMap<mlir::Attribute, mlir::Value> domains, partOffsets;
    llvm::DenseMap<mlir::Value, mlir::Value> pointers;
  };

  void makeFunction(const llvm::Twine &name, llvm::StringRef stepType);
  mlir::Value makePointer(mlir::Value tensor);

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
