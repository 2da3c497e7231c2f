//===- GenRecInterfaces.td - what passes ask of an op -----------*- tablegen -*-===//

#ifndef GENREC_INTERFACES_TD
#define GENREC_INTERFACES_TD

include "mlir/IR/OpBase.td"

def GenRec_RowwiseOpInterface : OpInterface<"RowwiseOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op where each row of the results depends on the same row of the operands (and on shared
    tensors). `form-row-kernels` wraps such ops into `genrec.row_kernel` and fuses them. The op
    defines the computation of one row, in `arith`, `math`, `vector` and the body ops of this
    dialect; the CPU and CUDA targets both lower that body.
  }];
  let methods = [
    InterfaceMethod<[{
      Appends the computation of one row at the builder's insertion point. `operands` holds the row
      of each operand of the op: a scalar for row shape [], `vector<dxT>` for [d]. A shared operand
      is its whole value, as a scalar or vector, unless `isGatherSource` is true for it. Appends one
      scalar or vector per result to `results`.
    }], "::llvm::LogicalResult", "buildRowBody",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>,
    InterfaceMethod<[{
      Whether the body gathers rows of operand `index`, which then stays a tensor in the body.
    }], "bool", "isGatherSource", (ins "unsigned":$index), [{}], [{
      return false;
    }]>,
  ];
}

def GenRec_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    Reverse-mode differentiation. The op builds the gradients of its operands from those of its
    results, as ops of this dialect.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands at the builder's insertion point. `resultGradients[i]` is
      null if no loss depends on result i. Appends one value per operand: null if the operand has no
      gradient (integers, masks, domains) or its gradient is 0.
    }], "::llvm::LogicalResult", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder,
           "::mlir::ValueRange":$resultGradients,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>,
  ];
}

def GenRec_CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    A block that `decompose-blocks` rewrites into simpler ops. Earlier passes can match it as a
    whole.
  }];
  let methods = [
    InterfaceMethod<"Builds the replacement values of the op's results.",
      "::llvm::LogicalResult", "decompose",
      (ins "::mlir::OpBuilder &":$builder,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>,
  ];
}

//===-- what passes ask ------------------------------------------------------===//

def GenRec_SinkOpInterface : OpInterface<"SinkOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    A loss, metric, output or check: an op without results that a program runs for.
  }];
  let methods = [
    InterfaceMethod<"Whether a program of `mode` needs the op.",
      "bool", "isNeededIn", (ins "::genrec::ProgramMode":$mode)>,
  ];
}

def GenRec_ActivationOpInterface : OpInterface<"ActivationOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An elementwise function that a matrix product can apply to its result (`fold-epilogues`).
  }];
  let methods = [
    InterfaceMethod<"The activation.", "::genrec::Activation", "getActivation", (ins)>,
  ];
}

def GenRec_CatalogueOpInterface : OpInterface<"CatalogueOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that computes scores of queries and the vectors of a catalogue's items.
  }];
  let methods = [
    InterfaceMethod<"The vectors of the items.", "::mlir::Value", "getItemVectors", (ins), [{}], [{
      return $_op.getItems();
    }]>,
  ];
}

def GenRec_TableReadOpInterface : OpInterface<"TableReadOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op that looks up rows of a table. }];
  let methods = [
    InterfaceMethod<"The table.", "::mlir::FlatSymbolRefAttr", "getReadTable", (ins), [{}], [{
      return $_op.getTableAttr();
    }]>,
    InterfaceMethod<"Ids, or keys of a merged table.", "::mlir::Value", "getReadKeys", (ins),
      [{}], [{
      return $_op.getIds();
    }]>,
  ];
}

def GenRec_GathersRowsOpInterface : OpInterface<"GathersRowsOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that reads rows of one operand, the source, by row number only. `pick-catalogue-rows` gives
    it a source that has only the rows that the step reads.
  }];
  let methods = [
    InterfaceMethod<"The source.", "::mlir::Value", "getGatherSource", (ins)>,
    InterfaceMethod<[{
      The number of rows of the source that it reads for each row of its result, and how many besides
      for all rows together.
    }], "::genrec::GatheredRows", "countGatheredRows", (ins)>,
    InterfaceMethod<[{
      Appends the numbers of the rows that it reads: i64, per row of a domain or shared. What the op
      draws itself, the builder gets ops for that draw the same.
    }], "void", "buildRowNumbers",
      (ins "::mlir::OpBuilder &":$builder, "::llvm::SmallVectorImpl<::mlir::Value> &":$numbers)>,
    InterfaceMethod<[{
      Builds the op once more, with another source and with `numbers`, the numbers that the rows of
      `buildRowNumbers` have in that.
    }], "::mlir::Operation *", "buildGatherFrom",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$source, "::mlir::ValueRange":$numbers)>,
  ];
}

def GenRec_ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that multiplies matrices or vectors, or a block that decomposes into such ops. With its
    attribute `bf16` it rounds the factors to bfloat16, to nearest, ties to even; products are added
    up in f32, and results are f32. Gradients are computed as if nothing were rounded, by products
    that round their own factors. `mixed-precision` sets the attribute, differentiation and
    decomposition hand it on. Where an op says so, a factor may be of type bf16: `round-factors` has
    rounded it before, once for all products of the value.
  }];
  let methods = [
    InterfaceMethod<"Whether factors are rounded to bfloat16.", "bool", "getBf16", (ins)>,
    InterfaceMethod<"Sets whether factors are rounded to bfloat16.", "void", "setBf16",
      (ins "bool":$bf16)>,
    InterfaceMethod<[{
      Operands that `decompose-blocks` rounds by `genrec.round_factor`, each once for all rows of the
      result that multiply it, where the op itself becomes part of row kernels. It has no `bf16` then.
    }], "::llvm::SmallVector<unsigned>", "getFactorsRoundedByOps", (ins), [{}], [{
      return {};
    }]>,
  ];
  let verify = [{ return ::genrec::verifyProduct(::mlir::cast<ProductOpInterface>($_op)); }];
}

def GenRec_RoundedRowsOpInterface : OpInterface<"RoundedRowsOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    A part of a row kernel that gathers rows and can read them as bf16: for devices `round-factors`
    stores what `genrec.round_factor` makes of them so.
  }];
  let methods = [
    InterfaceMethod<"Whether operand `index` may be rows of bf16.", "bool", "takesRoundedRows",
      (ins "unsigned":$index)>,
  ];
}

def GenRec_DrawOpInterface : OpInterface<"DrawOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op that may draw random numbers. }];
  let methods = [
    InterfaceMethod<"Whether it draws random numbers per row, with the row's identity.",
      "bool", "drawsPerRow", (ins), [{}], [{
      return true;
    }]>,
  ];
}

def GenRec_StridedReadOpInterface : OpInterface<"StridedReadOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    A library op that can read a slice of wider rows in place, with a stride, without a copy.
  }];
  let methods = [
    InterfaceMethod<"Whether it can read a slice as operand `index`.",
      "bool", "readsColumnsInPlace", (ins "unsigned":$index)>,
  ];
}

def GenRec_KernelPartOpInterface : OpInterface<"KernelPartOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that becomes part of a row kernel without being row-wise: it reads rows of other domains,
    or sums rows. For a row-wise op (`RowwiseOpInterface`) the default roles are used.
  }];
  let methods = [
    InterfaceMethod<"Whether this op can be part of a kernel, as ops of its kind can.",
      "bool", "isKernelPart", (ins), [{}], [{
      return true;
    }]>,
    InterfaceMethod<"The domain over whose rows the kernel iterates, or null.",
      "::mlir::FlatSymbolRefAttr", "getKernelDomain", (ins)>,
    InterfaceMethod<"How the kernel reads operand `index`.",
      "::genrec::OperandRole", "getKernelOperandRole", (ins "unsigned":$index)>,
    InterfaceMethod<"Where the kernel writes result `index`.",
      "::genrec::ResultRole", "getKernelResultRole", (ins "unsigned":$index)>,
  ];
}

def GenRec_LinearOpInterface : OpInterface<"LinearOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that is linear in some of its operands. `distribute` lets partial sums pass through it and
    adds them up later; before other ops it adds them up first.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether the results are linear in the operands `varying` taken together, while the others stay
      as they are: f(a + b) = f(a) + f(b). By default if those are all float operands.
    }], "bool", "isLinearIn", (ins "const ::llvm::SmallBitVector &":$varying), [{}], [{
      return ::genrec::variesInAllFloats($_op.getOperation(), varying);
    }]>,
    InterfaceMethod<[{
      Whether operand `index` may be partial whatever the others are: it is added to a result, which is
      partial anyway, or its value is not read.
    }], "bool", "takesPartial", (ins "unsigned":$index), [{}], [{
      return false;
    }]>,
  ];
}

def GenRec_IdBitsOpInterface : OpInterface<"IdBitsOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op with a known bound on its integer results. }];
  let methods = [
    InterfaceMethod<[{
      A number of bits that every element of the result fits into; `kUnknownIdBits` if it is unknown
      or an element may be negative. `bitsOf` returns that of an operand.
    }], "int64_t", "inferIdBits", (ins "::llvm::function_ref<int64_t(::mlir::Value)>":$bitsOf)>,
  ];
}

def GenRec_BodyOpInterface : OpInterface<"BodyOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op of this dialect in the body of a row kernel. }];
  let methods = [
    InterfaceMethod<"How the op is emitted in the loops of a kernel.",
      "::genrec::BodyKind", "getBodyKind", (ins)>,
    InterfaceMethod<[{
      Whether, of a row that several threads (lanes) work on, a lane reads elements of the vector operand that another lane has.
    }], "bool", "readsOtherLanes", (ins), "", [{
      return $_op.getBodyKind() == ::genrec::BodyKind::call;
    }]>,
    InterfaceMethod<"Whether a lane writes elements of the result that another lane has.",
      "bool", "writesOtherLanes", (ins), "", [{ return false; }]>,
  ];
}

def GenRec_Sink : DeclareOpInterfaceMethods<GenRec_SinkOpInterface>;
def GenRec_GathersRows : DeclareOpInterfaceMethods<GenRec_GathersRowsOpInterface>;
def GenRec_Activates : DeclareOpInterfaceMethods<GenRec_ActivationOpInterface>;
def GenRec_Product : DeclareOpInterfaceMethods<GenRec_ProductOpInterface>;
def GenRec_ProductOfRows : DeclareOpInterfaceMethods<GenRec_ProductOpInterface, ["getFactorsRoundedByOps"]>;
def GenRec_TakesRoundedRows : DeclareOpInterfaceMethods<GenRec_RoundedRowsOpInterface>;
def GenRec_MayDraw : DeclareOpInterfaceMethods<GenRec_DrawOpInterface, ["drawsPerRow"]>;
def GenRec_ReadsStrided : DeclareOpInterfaceMethods<GenRec_StridedReadOpInterface>;
def GenRec_KernelPart : DeclareOpInterfaceMethods<GenRec_KernelPartOpInterface>;
def GenRec_IsLinear : DeclareOpInterfaceMethods<GenRec_LinearOpInterface>;
def GenRec_TakesPartial : DeclareOpInterfaceMethods<GenRec_LinearOpInterface, ["takesPartial"]>;
def GenRec_IsLinearIn : DeclareOpInterfaceMethods<GenRec_LinearOpInterface, ["isLinearIn"]>;
def GenRec_BoundsIds : DeclareOpInterfaceMethods<GenRec_IdBitsOpInterface>;
def GenRec_Body : DeclareOpInterfaceMethods<GenRec_BodyOpInterface>;
def GenRec_ReadsLanes : DeclareOpInterfaceMethods<GenRec_BodyOpInterface, ["readsOtherLanes"]>;
def GenRec_WritesLanes : DeclareOpInterfaceMethods<GenRec_BodyOpInterface, ["writesOtherLanes"]>;

//===-- facts without an argument ---------------------------------------------===//

class GenRec_Trait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::genrec";
}
// GenRecTraits.h documents each trait.
def GenRec_PassesRowsOn : GenRec_Trait<"PassesRowsOn">;
def GenRec_ReadsDomains : GenRec_Trait<"ReadsDomains">;
def GenRec_CopiesElements : GenRec_Trait<"CopiesElements">;
def GenRec_IsOperandRow : GenRec_Trait<"IsOperandRow">;
def GenRec_RowLocal : GenRec_Trait<"RowLocal">;
def GenRec_ListLocal : GenRec_Trait<"ListLocal">;
def GenRec_TreeLocal : GenRec_Trait<"TreeLocal">;
def GenRec_ReadsColumn : GenRec_Trait<"ReadsColumn">;
def GenRec_ReadsStepNumber : GenRec_Trait<"ReadsStepNumber">;
def GenRec_ReducesLists : GenRec_Trait<"ReducesLists">;
def GenRec_NeedsRunningStep : GenRec_Trait<"NeedsRunningStep">;
def GenRec_FansOut : GenRec_Trait<"FansOut">;
def GenRec_IsSum : GenRec_Trait<"IsSum">;
def GenRec_IsColumnProduct : GenRec_Trait<"IsColumnProduct">;
def GenRec_MakesMergedKeys : GenRec_Trait<"MakesMergedKeys">;
def GenRec_MakesUniqueRows : GenRec_Trait<"MakesUniqueRows">;
def GenRec_MakesOwnedRows : GenRec_Trait<"MakesOwnedRows">;
def GenRec_SelectsElements : GenRec_Trait<"SelectsElements">;
def GenRec_GivesToSums : GenRec_Trait<"GivesToSums">;
def GenRec_SumsPortions : GenRec_Trait<"SumsPortions">;
def GenRec_OfTouchedRows : GenRec_Trait<"OfTouchedRows">;
def GenRec_RoundsNothing : GenRec_Trait<"RoundsNothing">;
def GenRec_DerivesDomain : GenRec_Trait<"DerivesDomain">;
def GenRec_DeclaresWeights : GenRec_Trait<"DeclaresWeights">;
def GenRec_UpdatesWeights : GenRec_Trait<"UpdatesWeights">;
def GenRec_IsLoss : GenRec_Trait<"IsLoss">;
def GenRec_ElementwiseRows : GenRec_Trait<"ElementwiseRows">;
def GenRec_ElementwiseBody : GenRec_Trait<"ElementwiseBody">;

#endif // GENREC_INTERFACES_TD
