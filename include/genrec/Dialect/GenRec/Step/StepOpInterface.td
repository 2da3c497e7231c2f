//===- StepOpInterface.td - what an op of a step says of itself -*- tablegen -*-===//

#ifndef GENREC_STEP_OP_INTERFACE_TD
#define GENREC_STEP_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def GenRec_StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    Describes an op after `form-row-kernels` to planning, costs, reports and lowering, none of which
    knows op classes. The interface is attached to the ops as an external model
    (`registerStepOpModels`), so that the dialect does not depend on the runtime. Another dialect
    attaches it to its own ops.

    The default implementations are those of a library call that reads all of its operands once,
    writes each result into a buffer of its own, and makes no domain.
  }];
  let methods = [
    InterfaceMethod<"The kind of op: call, kernel, view, declaration or setup code.",
      "::genrec::StepKind", "getStepKind", (ins), [{}], [{
      return ::genrec::StepKind::call;
    }]>,

    //===-- memory ----------------------------------------------------------===//
    InterfaceMethod<[{
      Whether result `number` has memory of its own. Columns of the data, parameters, constants and
      views have none.
    }], "bool", "ownsResult", (ins "unsigned":$number), [{}], [{
      auto step = ::llvm::cast<::genrec::StepOpInterface>($_op.getOperation());
      ::genrec::StepKind kind = step.getStepKind();
      return kind != ::genrec::StepKind::view && kind != ::genrec::StepKind::declaration;
    }]>,
    InterfaceMethod<"Appends the buffers that the op needs besides those of its results.",
      "void", "addOwnSlots", (ins "::llvm::SmallVectorImpl<::genrec::BufferSlot> &":$slots), [{}],
      [{ (void)slots; }]>,
    InterfaceMethod<[{
      A buffer of another op that this op reads although it is not an operand. Its live range is
      extended to this op. `maker` is null if there is none.
    }], "::genrec::KeptBuffer", "getKeptBuffer", (ins), [{}], [{
      return {};
    }]>,
    InterfaceMethod<[{
      Whether the call takes the stride of operand `number`, so that its rows may be padded.
    }], "bool", "takesPaddedRows", (ins "unsigned":$number), [{}], [{
      return false;
    }]>,
    InterfaceMethod<[{
      Whether the call of a product on a device takes operand `number` rounded to bfloat16 before, so
      that `round-factors` may do so: a factor of what a library multiplies, of whole multiples of
      16 bytes.
    }], "bool", "takesRounded", (ins "unsigned":$number), [{}], [{
      return false;
    }]>,
    InterfaceMethod<[{
      The result that the call builds behind operand `number`, whose rows are its first columns, in
      one memory where nothing else reads the operand; null if there is none.
    }], "::mlir::OpResult", "getJoinedResult", (ins "unsigned":$number), [{}], [{
      return {};
    }]>,
    InterfaceMethod<"The operands of a view whose memory its results alias.",
      "::mlir::ValueRange", "getAliasedOperands", (ins), [{}], [{
      return $_op.getOperation()->getOperands().take_front(1);
    }]>,
    InterfaceMethod<[{
      The offset and stride of result `number` of a view in the memory of the first aliased operand;
      none if they are known only at run time.
    }], "::std::optional<::genrec::AliasedRows>", "getAliasedRows", (ins "unsigned":$number),
      [{}], [{
      return std::nullopt;
    }]>,

    //===-- domains ---------------------------------------------------------===//
    InterfaceMethod<[{
      The largest number of rows of `domain`, which the op makes, as a formula over the sizes of
      other domains; none for an op that makes no domain. The formula is emitted as C++ for the
      runtime and evaluated for `--explain`.
    }], "::std::optional<::genrec::SizeTerm>", "getDomainRows",
      (ins "::mlir::FlatSymbolRefAttr":$domain, "::genrec::SizeBuilder &":$sizes), [{}], [{
      return std::nullopt;
    }]>,
    InterfaceMethod<"The same for the rows of the longest list of that domain.",
      "::std::optional<::genrec::SizeTerm>", "getLongestList",
      (ins "::genrec::SizeBuilder &":$sizes), [{}], [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      The domain over whose rows the op iterates, if no row depends on rows of another list. The op
      can then run for a block of lists at a time. Null for other ops.
    }], "::mlir::FlatSymbolRefAttr", "getBlockDomain", (ins), [{}], [{
      return {};
    }]>,

    InterfaceMethod<[{
      The domain over whose rows the op iterates, for costs; null for an op that runs once.
    }], "::mlir::FlatSymbolRefAttr", "getStepDomain", (ins), [{}], [{
      return ::genrec::getFirstDomain($_op.getOperation());
    }]>,

    //===-- code ------------------------------------------------------------===//
    InterfaceMethod<[{
      Emits the op's code into the function that `stage` is building: a call, or a few statements.
      Declarations and views have no code.
    }], "::llvm::LogicalResult", "lower", (ins "::genrec::StageBuilder &":$stage), [{}], [{
      (void)stage;
      return $_op.getOperation()->emitOpError("has no lowering to a call of the runtime");
    }]>,
    InterfaceMethod<[{
      Emits a pointer to the first element of result `number`, if the result is neither in a buffer
      nor described by `getAliasedRows`; null otherwise.
    }], "::mlir::Value", "getAddress",
      (ins "::genrec::StageBuilder &":$stage, "unsigned":$number), [{}], [{
      return {};
    }]>,

    //===-- costs -----------------------------------------------------------===//
    InterfaceMethod<"Adds lower bounds on the op's work.",
      "void", "addCosts", (ins "::genrec::StepCosts &":$costs), [{}], [{
      costs.addOperandsAndResults($_op.getOperation());
    }]>,
    InterfaceMethod<[{
      The most scratch memory that the call takes from the runtime, in bytes, for a batch of the
      given sizes.
    }], "int64_t", "getScratchBytes", (ins "const ::genrec::StepSizes &":$sizes), [{}], [{
      return 0;
    }]>,
    InterfaceMethod<"The scratch memory of the call when it runs for a block of lists at a time.",
      "::genrec::BlockScratch", "getBlockScratch", (ins "const ::genrec::StepSizes &":$sizes),
      [{}], [{
      return {};
    }]>,
  ];
}

#endif // GENREC_STEP_OP_INTERFACE_TD
