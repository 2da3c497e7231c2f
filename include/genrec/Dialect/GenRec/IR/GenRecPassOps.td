//===- GenRecPassOps.td - small ops that only passes make -------*- tablegen -*-===//
//
// Differentiation and the forming of row kernels need a few ops that no user
// writes: the adjoint of slice_columns, a shared value given to every row, a
// matrix product with what follows it, and shared tensors seen as rows and back.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_PASS_OPS_TD
#define GENREC_PASS_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_Activation : GenRec_Enum<"Activation", "an activation that a matrix product applies", [
  I32EnumAttrCase<"none", 0>, I32EnumAttrCase<"relu", 1>, I32EnumAttrCase<"silu", 2>,
  I32EnumAttrCase<"gelu", 3>, I32EnumAttrCase<"sigmoid", 4>, I32EnumAttrCase<"tanh", 5>]>;
def GenRec_ActivationAttr : GenRec_EnumAttr<GenRec_Activation, "activation">;

def GenRec_PassOpsDocs : OpDocGroup {
  let summary = "Small ops that passes make";
  let description = [{
    No user writes these.
  }];
}

let opDocGroup = GenRec_PassOpsDocs in {

def GenRec_PadColumnsOp : GenRec_Op<"pad_columns", [GenRec_CopiesElements, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "widens each row with zeros";
  let description = [{
    The adjoint of `genrec.slice_columns`: rows [k] become elements
    [offset, offset + k) of rows [d]; the others are 0.

    ```mlir
    %wide = genrec.pad_columns %logits at 2
        : (tensor<?x4xf32, #genrec.rows<@impression>>) -> tensor<?x8xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, I64Attr:$offset);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x `at` $offset attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_BroadcastRowsOp : GenRec_Op<"broadcast_rows", [GenRec_CopiesElements, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "a shared value given to every row of a domain";
  let description = [{
    `x`: shared scalar or shared [d]; the result has that row shape. Its gradient is
    `genrec.reduce_rows`.

    ```mlir
    %repeated = genrec.broadcast_rows %bias to %request
        : (tensor<4xf32>, !genrec.domain<@request>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Shared:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DetachOp : GenRec_Op<"detach", [GenRec_PassesRowsOn, Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "its operand, through which no gradient flows";
  let description = [{
    What a label is to a loss. `differentiate` removes it.

    ```mlir
    %fixed = genrec.detach %user_vector : tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def GenRec_FusedLinearOp : GenRec_Op<"fused_linear", [GenRec_ReadsStrided, Pure, AttrSizedOperandSegments]> {
  let summary = "activation(x · weight + bias) + residual";
  let description = [{
    `genrec.linear` with what follows it done before anything is stored: x, weight,
    bias and `transposed` as there; `residual`: rows [n] of the same domain, added
    last. With a second result, `pre`, what the activation was applied to is stored
    too, for its gradient. Made by `fold-epilogues`, after differentiation.

    ```mlir
    %y, %pre = genrec.fused_linear %user_vector, %weight bias %bias activation silu
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<8x4xf32>, tensor<4xf32>)
        -> (tensor<?x4xf32, #genrec.rows<@request>>, tensor<?x4xf32, #genrec.rows<@request>>)
    %z = genrec.fused_linear %user_vector, %weight residual %y activation none
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<8x4xf32>, tensor<?x4xf32, #genrec.rows<@request>>)
        -> tensor<?x4xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Shared:$weight,
                       Optional<GenRec_Shared>:$bias, Optional<GenRec_Rows>:$residual,
                       GenRec_ActivationAttr:$activation, UnitAttr:$transposed);
  let results = (outs GenRec_Rows:$result, Optional<GenRec_Rows>:$pre);
  let assemblyFormat = "$x `,` $weight (`bias` $bias^)? (`residual` $residual^)? `activation` $activation attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SplitSharedOp : GenRec_Op<"split_shared", [Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "the rows of a shared matrix, in several parts";
  let description = [{
    Result p holds the next rows of the shared [k, n] matrix x; together the results
    are x. No copy. Its gradient is `genrec.concat_shared`.

    ```mlir
    %upper, %lower = genrec.split_shared %weight : (tensor<8x4xf32>) -> (tensor<3x4xf32>, tensor<5x4xf32>)
    ```
  }];
  let arguments = (ins GenRec_Shared:$x);
  let results = (outs Variadic<GenRec_Shared>:$parts);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ConcatSharedOp : GenRec_Op<"concat_shared", [Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "shared matrices, one below the other";
  let description = [{
    The inverse of `genrec.split_shared`: shared [k1, n], [k2, n], … give
    [k1 + k2 + …, n].

    ```mlir
    %upper, %lower = genrec.split_shared %weight : (tensor<8x4xf32>) -> (tensor<3x4xf32>, tensor<5x4xf32>)
    %whole = genrec.concat_shared %upper, %lower : (tensor<3x4xf32>, tensor<5x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins Variadic<GenRec_Shared>:$parts);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_FixedRowsOp : GenRec_Op<"fixed_rows", [Pure]> {
  let summary = "a step domain with a fixed number of rows";
  let description = [{
    One list of `count` rows: what shared tensors are rows of when a row kernel
    computes with them (`genrec.shared_rows`).

    ```mlir
    %eight = genrec.fixed_rows 8 : !genrec.domain<@step_rows>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$count);
  let results = (outs GenRec_DomainType:$domain);
  let assemblyFormat = "$count attr-dict `:` type(results)";
}

def GenRec_RowsAsSharedOp : GenRec_Op<"rows_as_shared", [GenRec_SymbolUser, Pure]> {
  let summary = "rows of a fixed step domain seen as a shared tensor";
  let description = [{
    The inverse of `genrec.shared_rows`: rows [w] of a domain of n rows give shared
    [n, w]; one row [w] or [] gives shared [w] or a shared scalar. No copy.

    ```mlir
    %row = genrec.shared_rows %bias as %one : (tensor<4xf32>, !genrec.domain<@one>) -> tensor<?x4xf32, #genrec.rows<@one>>
    %back = genrec.rows_as_shared %row : (tensor<?x4xf32, #genrec.rows<@one>>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- classes in blocks ---------------------------------------------------===//

def GenRec_LogSumExpOp : GenRec_Op<"log_sum_exp", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "log Σ exp of each row, and of what came before it";
  let description = [{
    x: float rows [k]; `before`: rows [], the log Σ exp of other columns, which are
    counted as well. Without overflow: the largest is subtracted before exp.

    ```mlir
    %sum = genrec.log_sum_exp %logits : (tensor<?x4xf32, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>
    %more = genrec.log_sum_exp %shown_vector before %sum
        : (tensor<?x8xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, Optional<GenRec_Rows>:$before);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x (`before` $before^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PickColumnOp : GenRec_Op<"pick_column", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "one element of each row";
  let description = [{
    x: float rows [k], columns `first`, `first` + 1, … of something wider; index: i64
    rows [], the column. 0 where it is none of these.

    ```mlir
    %chosen = genrec.pick_column %logits at %shown {first = 4 : i64}
        : (tensor<?x4xf32, #genrec.rows<@impression>>, tensor<?xi64, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Rows:$index,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$first);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `at` $index attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_AfterOp : GenRec_Op<"after", [Pure]> {
  let summary = "its operand, for ops that must wait until others are done";
  let description = [{
    The result is x, without a copy. What reads it runs after `others` are in memory:
    so buffers that the two would hold at once can share their place, and an op that
    repeats an earlier one, rather than keep its result, is not merged with it.

    ```mlir
    %later = genrec.after %shown_vector on %logit
        : (tensor<?x8xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>) -> tensor<?x8xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, Variadic<GenRec_RowsOrShared>:$others);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `on` $others attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_PASS_OPS_TD
