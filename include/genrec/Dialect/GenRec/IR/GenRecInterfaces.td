//===- GenRecInterfaces.td - what passes ask of an op -----------*- tablegen -*-===//

#ifndef GENREC_INTERFACES_TD
#define GENREC_INTERFACES_TD

include "mlir/IR/OpBase.td"

def GenRec_RowwiseOpInterface : OpInterface<"RowwiseOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op whose every result row depends on the same row of its operands (and
    on shared tensors). `form-row-kernels` wraps such ops into
    `genrec.row_kernel` and merges them. An op states its semantics for one row
    once, in `arith`, `math`, `vector` and the body ops of this dialect; the CPU
    and the CUDA target both lower that body.
  }];
  let methods = [
    InterfaceMethod<[{
      Appends the computation of one row at the builder's insertion point.
      `operands` holds, per operand of the op, its row: a scalar for a row shape
      of rank 0, `vector<dxT>` for rank 1; a shared operand is a scalar or vector
      too (its whole value), unless `isGatherSource` says it is left a tensor.
      Pushes one scalar or vector per result.
    }], "::llvm::LogicalResult", "buildRowBody",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$results)>,
    InterfaceMethod<[{
      True when operand `index` is read by gathering (it stays a tensor, whole,
      inside the body).
    }], "bool", "isGatherSource", (ins "unsigned":$index), [{}], [{
      return false;
    }]>,
  ];
}

def GenRec_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    Reverse mode. An op that implements it knows, from the gradients of its
    results, the gradients of its operands, as ops of this dialect.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands at the builder's insertion point.
      `resultGradients[i]` is null where nothing depends on result i.
      Pushes one value per operand; null for an operand that has no gradient
      (integers, masks, domains) or whose gradient is zero.
    }], "::llvm::LogicalResult", "buildGradient",
      (ins "::mlir::OpBuilder &":$builder,
           "::mlir::ValueRange":$resultGradients,
           "::llvm::SmallVectorImpl<::mlir::Value> &":$operandGradients)>,
  ];
}

def GenRec_CompositeOpInterface : OpInterface<"CompositeOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    A block that stays whole until `decompose-blocks`, so that earlier passes
    may see it as a block; then it is rewritten into simpler ops.
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
    An op without results for whose sake a program runs: a loss, a metric, an output, a check.
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
    InterfaceMethod<"Which one.", "::genrec::Activation", "getActivation", (ins)>,
  ];
}

def GenRec_CatalogueOpInterface : OpInterface<"CatalogueOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that compares queries with the vectors of a catalogue's rows.
  }];
  let methods = [
    InterfaceMethod<"The vectors.", "::mlir::Value", "getItemVectors", (ins), [{}], [{
      return $_op.getItems();
    }]>,
  ];
}

def GenRec_TableReadOpInterface : OpInterface<"TableReadOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op that finds rows of a table by keys. }];
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

def GenRec_DrawOpInterface : OpInterface<"DrawOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op that may draw random numbers. }];
  let methods = [
    InterfaceMethod<"Whether it draws for each row, by the row's identity.",
      "bool", "drawsPerRow", (ins), [{}], [{
      return true;
    }]>,
  ];
}

def GenRec_StridedReadOpInterface : OpInterface<"StridedReadOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    A library op that can read some columns of wider rows where they lie, without a copy.
  }];
  let methods = [
    InterfaceMethod<"Whether it does so for operand `index`.",
      "bool", "readsColumnsInPlace", (ins "unsigned":$index)>,
  ];
}

def GenRec_KernelPartOpInterface : OpInterface<"KernelPartOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{
    An op that becomes part of a row kernel though it is not row-wise: it reads rows of other
    domains, or adds rows up. Of a row-wise op (`RowwiseOpInterface`), the defaults are true.
  }];
  let methods = [
    InterfaceMethod<"The domain over whose rows the kernel runs; null: over none.",
      "::mlir::FlatSymbolRefAttr", "getKernelDomain", (ins)>,
    InterfaceMethod<"How the kernel reads operand `index`.",
      "::genrec::OperandRole", "getKernelOperandRole", (ins "unsigned":$index)>,
    InterfaceMethod<"Where the kernel writes result `index`.",
      "::genrec::ResultRole", "getKernelResultRole", (ins "unsigned":$index)>,
  ];
}

def GenRec_IdBitsOpInterface : OpInterface<"IdBitsOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op that bounds the integers it makes. }];
  let methods = [
    InterfaceMethod<[{
      The number of bits that hold every element of the result, `kUnknownIdBits` where that is
      unknown or an element may be negative; `bitsOf` tells of operands.
    }], "int64_t", "inferIdBits", (ins "::llvm::function_ref<int64_t(::mlir::Value)>":$bitsOf)>,
  ];
}

def GenRec_BodyOpInterface : OpInterface<"BodyOpInterface"> {
  let cppNamespace = "::genrec";
  let description = [{ An op of this dialect in the body of a row kernel. }];
  let methods = [
    InterfaceMethod<"The form that it takes in a kernel's loops.",
      "::genrec::BodyKind", "getBodyKind", (ins)>,
  ];
}

def GenRec_Sink : DeclareOpInterfaceMethods<GenRec_SinkOpInterface>;
def GenRec_Activates : DeclareOpInterfaceMethods<GenRec_ActivationOpInterface>;
def GenRec_MayDraw : DeclareOpInterfaceMethods<GenRec_DrawOpInterface, ["drawsPerRow"]>;
def GenRec_ReadsStrided : DeclareOpInterfaceMethods<GenRec_StridedReadOpInterface>;
def GenRec_KernelPart : DeclareOpInterfaceMethods<GenRec_KernelPartOpInterface>;
def GenRec_BoundsIds : DeclareOpInterfaceMethods<GenRec_IdBitsOpInterface>;
def GenRec_Body : DeclareOpInterfaceMethods<GenRec_BodyOpInterface>;

//===-- facts without an argument ---------------------------------------------===//

class GenRec_Trait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::genrec";
}
// GenRecTraits.h says what each means.
def GenRec_PassesRowsOn : GenRec_Trait<"PassesRowsOn">;
def GenRec_ReadsDomains : GenRec_Trait<"ReadsDomains">;
def GenRec_CopiesElements : GenRec_Trait<"CopiesElements">;
def GenRec_IsOperandRow : GenRec_Trait<"IsOperandRow">;
def GenRec_RowLocal : GenRec_Trait<"RowLocal">;
def GenRec_ListLocal : GenRec_Trait<"ListLocal">;
def GenRec_ReducesLists : GenRec_Trait<"ReducesLists">;
def GenRec_NeedsRunningStep : GenRec_Trait<"NeedsRunningStep">;
def GenRec_FansOut : GenRec_Trait<"FansOut">;
def GenRec_IsSum : GenRec_Trait<"IsSum">;
def GenRec_IsColumnProduct : GenRec_Trait<"IsColumnProduct">;
def GenRec_MakesMergedKeys : GenRec_Trait<"MakesMergedKeys">;
def GenRec_MakesUniqueRows : GenRec_Trait<"MakesUniqueRows">;
def GenRec_ElementwiseBody : GenRec_Trait<"ElementwiseBody">;

#endif // GENREC_INTERFACES_TD
