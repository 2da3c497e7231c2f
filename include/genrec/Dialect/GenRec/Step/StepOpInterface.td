//===- StepOpInterface.td - what an op of a step says of itself -*- tablegen -*-===//

#ifndef GENREC_STEP_OP_INTERFACE_TD
#define GENREC_STEP_OP_INTERFACE_TD

include "mlir/IR/OpBase.td"

def GenRec_StepOpInterface : OpInterface<"StepOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    The one description of an op below `form-row-kernels`. Planning, costs, reports and
    lowering ask it; none of them knows an op class. It is attached to the ops as an external
    model (`registerStepOpModels`), so that the dialect does not know the runtime; an op of
    another dialect attaches its own.

    The defaults describe a library call that reads all of its operands once, writes each
    result into a buffer of its own, and makes no domain.
  }];
  let methods = [
    InterfaceMethod<"What the op is to planning, costs and lowering.",
      "::genrec::StepKind", "getStepKind", (ins), [{}], [{
      return ::genrec::StepKind::call;
    }]>,

    //===-- memory ----------------------------------------------------------===//
    InterfaceMethod<[{
      Whether result `number` lives in memory that the op asks for. Columns, parameters,
      constants and views do not.
    }], "bool", "ownsResult", (ins "unsigned":$number), [{}], [{
      auto step = ::llvm::cast<::genrec::StepOpInterface>($_op.getOperation());
      ::genrec::StepKind kind = step.getStepKind();
      return kind != ::genrec::StepKind::view && kind != ::genrec::StepKind::declaration;
    }]>,
    InterfaceMethod<"Appends the buffers that the op needs beside those of its results.",
      "void", "addOwnSlots", (ins "::llvm::SmallVectorImpl<::genrec::BufferSlot> &":$slots), [{}],
      [{ (void)slots; }]>,
    InterfaceMethod<[{
      A buffer of another op that this one reads though no operand shows it: it lives at
      least until here. Its `maker` is null where there is none.
    }], "::genrec::KeptBuffer", "getKeptBuffer", (ins), [{}], [{
      return {};
    }]>,
    InterfaceMethod<[{
      True where the call is told the distance of the rows of operand `number`, so that they
      may be padded.
    }], "bool", "takesPaddedRows", (ins "unsigned":$number), [{}], [{
      return false;
    }]>,
    InterfaceMethod<"The operands whose memory the results of a view alias.",
      "::mlir::ValueRange", "getAliasedOperands", (ins), [{}], [{
      return $_op.getOperation()->getOperands().take_front(1);
    }]>,
    InterfaceMethod<[{
      Where in the memory of the first aliased operand result `number` of a view begins and
      how its rows lie; none where that is known only when the step runs.
    }], "::std::optional<::genrec::AliasedRows>", "getAliasedRows", (ins "unsigned":$number),
      [{}], [{
      return std::nullopt;
    }]>,

    //===-- domains ---------------------------------------------------------===//
    InterfaceMethod<[{
      The bound on the rows of the domain that the op makes, in terms of the bounds of others;
      none for an op that makes none. The formula is emitted as C++, which the runtime
      calls, and evaluated for `--explain`.
    }], "::std::optional<::genrec::SizeTerm>", "getDomainRows",
      (ins "::genrec::SizeBuilder &":$sizes), [{}], [{
      return std::nullopt;
    }]>,
    InterfaceMethod<"The same for the rows of the longest list of that domain.",
      "::std::optional<::genrec::SizeTerm>", "getLongestList",
      (ins "::genrec::SizeBuilder &":$sizes), [{}], [{
      return std::nullopt;
    }]>,
    InterfaceMethod<[{
      The domain over whose rows the op runs, where no row needs one of another list: the op
      may then run for a block of lists at a time. Null for other ops.
    }], "::mlir::FlatSymbolRefAttr", "getBlockDomain", (ins), [{}], [{
      return {};
    }]>,

    InterfaceMethod<[{
      The domain over whose rows the op runs, for costs; null for an op that runs once.
    }], "::mlir::FlatSymbolRefAttr", "getStepDomain", (ins), [{}], [{
      return ::genrec::getFirstDomain($_op.getOperation());
    }]>,

    //===-- code ------------------------------------------------------------===//
    InterfaceMethod<[{
      Emits the op's code into the function that `stage` is building: a call, or a few
      statements. Declarations and views have none.
    }], "::llvm::LogicalResult", "lower", (ins "::genrec::StageBuilder &":$stage), [{}], [{
      (void)stage;
      return $_op.getOperation()->emitOpError("has no lowering to a call of the runtime");
    }]>,
    InterfaceMethod<[{
      Emits a pointer to the first element of result `number`, where that lies neither in a
      buffer nor where `getAliasedRows` says; null elsewhere.
    }], "::mlir::Value", "getAddress",
      (ins "::genrec::StageBuilder &":$stage, "unsigned":$number), [{}], [{
      return {};
    }]>,

    //===-- costs -----------------------------------------------------------===//
    InterfaceMethod<"Adds what the op has to do at least.",
      "void", "addCosts", (ins "::genrec::StepCosts &":$costs), [{}], [{
      costs.addOperandsAndResults($_op.getOperation());
    }]>,
    InterfaceMethod<[{
      Bytes of scratch that the call takes at most from the runtime; `sizes` tells how large the
      batch is.
    }], "int64_t", "getScratchBytes", (ins "const ::genrec::StepSizes &":$sizes), [{}], [{
      return 0;
    }]>,
    InterfaceMethod<"What the call takes where it runs for a block of lists at a time.",
      "::genrec::BlockScratch", "getBlockScratch", (ins "const ::genrec::StepSizes &":$sizes),
      [{}], [{
      return {};
    }]>,
  ];
}

#endif // GENREC_STEP_OP_INTERFACE_TD
