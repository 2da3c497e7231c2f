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

#endif // GENREC_INTERFACES_TD
