//===- GenRecPassOps.td - small ops that only passes make -------*- tablegen -*-===//
//
// Ops that differentiation and fusion need and that models do not use: the adjoint of
// slice_columns, the broadcast of a shared value, a matrix product with fused epilogue, and views
// of shared tensors as rows and back.
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
    Only passes create these ops.
  }];
}

let opDocGroup = GenRec_PassOpsDocs in {

def GenRec_PadColumnsOp : GenRec_Op<"pad_columns", [GenRec_IsLinear, GenRec_CopiesElements, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "pads each row with zeros";
  let description = [{
    The adjoint of `genrec.slice_columns`: a row [k] becomes elements [offset, offset + k) of a row
    [d]; other elements are 0.

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

def GenRec_BroadcastRowsOp : GenRec_Op<"broadcast_rows", [GenRec_IsLinear, GenRec_CopiesElements, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "broadcasts a shared value to every row of a domain";
  let description = [{
    `x`: shared scalar or shared [d]; the result has that row shape. The gradient is
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

def GenRec_DetachOp : GenRec_Op<"detach", [GenRec_IsLinear, GenRec_PassesRowsOn, Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "the identity, without a gradient";
  let description = [{
    Used for labels of a loss, for example. `differentiate` removes it.

    ```mlir
    %fixed = genrec.detach %user_vector : tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
}

def GenRec_FusedLinearOp : GenRec_Op<"fused_linear", [GenRec_Product, GenRec_ReadsStrided, Pure, AttrSizedOperandSegments]> {
  let summary = "activation(x · weight + bias) + residual";
  let description = [{
    `genrec.linear` with a fused epilogue: x, weight, bias, `transposed` and `bf16` are those of
    `genrec.linear`; `residual`, rows [n] of the same domain, is added last. A second result, `pre`,
    stores the operand of the activation for its gradient. Created by `fold-epilogues`, after
    differentiation.

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
                       GenRec_ActivationAttr:$activation, UnitAttr:$transposed, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result, Optional<GenRec_Rows>:$pre);
  let assemblyFormat = "$x `,` $weight (`bias` $bias^)? (`residual` $residual^)? `activation` $activation attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SplitSharedOp : GenRec_Op<"split_shared", [GenRec_IsLinear, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "splits a shared matrix into blocks of rows";
  let description = [{
    Result p is the next block of rows of the shared [k, n] matrix x; together the results are x.
    The results alias x. The gradient is `genrec.concat_shared`.

    ```mlir
    %upper, %lower = genrec.split_shared %weight : (tensor<8x4xf32>) -> (tensor<3x4xf32>, tensor<5x4xf32>)
    ```
  }];
  let arguments = (ins GenRec_Shared:$x);
  let results = (outs Variadic<GenRec_Shared>:$parts);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ConcatSharedOp : GenRec_Op<"concat_shared", [GenRec_IsLinear, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "concatenates shared matrices along their rows";
  let description = [{
    The inverse of `genrec.split_shared`: shared [k1, n], [k2, n], … give [k1 + k2 + …, n].

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
    One list of `count` rows. Row kernels that compute with shared tensors iterate over such a
    domain (`genrec.shared_rows`).

    ```mlir
    %eight = genrec.fixed_rows 8 : !genrec.domain<@step_rows>
    ```
  }];
  let arguments = (ins ConfinedAttr<I64Attr, [IntPositive]>:$count);
  let results = (outs GenRec_DomainType:$domain);
  let assemblyFormat = "$count attr-dict `:` type(results)";
}

def GenRec_RowsAsSharedOp : GenRec_Op<"rows_as_shared", [GenRec_RoundsNothing, GenRec_IsLinear, GenRec_SymbolUser, Pure]> {
  let summary = "a view of rows of a fixed step domain as a shared tensor";
  let description = [{
    The inverse of `genrec.shared_rows`: rows [w] of a domain with n rows give shared [n, w]; one
    row [w] or [] gives shared [w] or a shared scalar. The result aliases the operand.

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

//===-- negatives that rows share ----------------------------------------------===//

defvar SampledCrossEntropyOperands = (ins GenRec_Rows:$dot, GenRec_Rows:$dots,
    GenRec_Rows:$positive, GenRec_RowsOrShared:$drawn);

def GenRec_SampledCrossEntropyOp : GenRec_Op<"sampled_cross_entropy", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "cross entropy of a positive among drawn negatives, of dot products, per row";
  let description = [{
    `genrec.sampled_softmax` of products that are there: `dot`, f32 rows [], is that of the query and
    its positive, and `dots`, rows [n], are those with the n negatives. `positive` (rows [], -1 for
    none) and `drawn` (rows [n], or shared [n]) are their i64 numbers. Logits are products /
    temperature, a negative that is the positive is masked, and a row without a positive has loss 0.
    `multiply-negatives` makes the op.

    ```mlir
    %negatives = genrec.draw_rows %items {count = 8 : i64, stream = 2048 : i64} : (!genrec.domain<@items>) -> tensor<8xi64>
    %loss = genrec.sampled_cross_entropy %age, %user_vector, %target, %negatives {temperature = 0.05 : f64}
        : (tensor<?xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>,
           tensor<8xi64>) -> tensor<?xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = !con(SampledCrossEntropyOperands, (ins F64Attr:$temperature));
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$dot `,` $dots `,` $positive `,` $drawn attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SampledCrossEntropyGradOp : GenRec_Op<"sampled_cross_entropy_grad", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "gradients of sampled_cross_entropy for the dot products";
  let description = [{
    `gradient`: f32 rows [], of the loss. All results of a row without a positive are 0. That of `dot` is
    minus what the negatives get; its probability minus 1 would cancel where it is near 1.

    ```mlir
    %negatives = genrec.draw_rows %items {count = 8 : i64, stream = 2048 : i64} : (!genrec.domain<@items>) -> tensor<8xi64>
    %ddot, %ddots = genrec.sampled_cross_entropy_grad %age, %user_vector, %target, %negatives, %age {temperature = 0.05 : f64}
        : (tensor<?xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>,
           tensor<8xi64>, tensor<?xf32, #genrec.rows<@request>>)
        -> (tensor<?xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>)
    ```
  }];
  let arguments = !con(SampledCrossEntropyOperands, (ins GenRec_Rows:$gradient, F64Attr:$temperature));
  let results = (outs GenRec_Rows:$ddot, GenRec_Rows:$ddots);
  let assemblyFormat = "$dot `,` $dots `,` $positive `,` $drawn `,` $gradient attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- classes in blocks ---------------------------------------------------===//

def GenRec_LogSumExpOp : GenRec_Op<"log_sum_exp", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "log Σ exp of each row, combined with that of other columns";
  let description = [{
    x: float rows [k]; `before`: rows [], log Σ exp of other columns, which the result includes. The
    largest element is subtracted before exp, to avoid overflow.

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

def GenRec_PickColumnOp : GenRec_Op<"pick_column", [GenRec_RoundsNothing, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "picks one element of each row by index";
  let description = [{
    x: float rows [k], the columns from `first` on of a wider row; index: i64 rows [], a column of
    the wider row. 0 if x does not have that column.

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

def GenRec_AfterOp : GenRec_Op<"after", [GenRec_RoundsNothing, GenRec_TakesPartial, Pure]> {
  let summary = "the identity, ordered after other ops";
  let description = [{
    The result aliases x. Its readers run after `others` have been computed and stored. So buffers
    that would otherwise be live at the same time can share memory, and an op that recomputes an
    earlier result is not merged with the earlier op.

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
