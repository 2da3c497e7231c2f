//===- GenRecUpdateOps.td - parameter and table updates ---------*- tablegen -*-===//

#ifndef GENREC_UPDATE_OPS_TD
#define GENREC_UPDATE_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_UpdateOpsDocs : OpDocGroup {
  let summary = "Updates";
  let description = [{
    `differentiate` creates updates from gradients, and `expand-updates` lowers them. Front ends do
    not use these ops.
  }];
}

let opDocGroup = GenRec_UpdateOpsDocs in {

def GenRec_UpdateParameterOp : GenRec_Op<"update_parameter", [GenRec_UpdatesWeights, GenRec_SymbolUser]> {
  let summary = "one optimizer step of a dense parameter";
  let description = [{
    `gradient`: shared, of the parameter's type. It is clipped first if the model says so. Created
    by `differentiate`, lowered by `expand-updates`.

    ```mlir
    genrec.update_parameter @bias by %bias : tensor<4xf32>
    ```
  }];
  let arguments = (ins GenRec_Shared:$gradient, FlatSymbolRefAttr:$parameter);
  let assemblyFormat = "$parameter `by` $gradient attr-dict `:` type($gradient)";
  let hasVerifier = 1;
}

def GenRec_UpdateTableOp : GenRec_Op<"update_table", [GenRec_UpdatesWeights, GenRec_SymbolUser, SameVariadicOperandSize]> {
  let summary = "one optimizer step of the looked-up rows of a table";
  let description = [{
    The rows of `ids[i]` (i64 rows []) have the gradients `gradients[i]` (f32 rows [dim], same
    domain). A gradient that is exactly 0 in every element does not count (those of invalid ids and
    of items that were not drawn are 0). All gradients of an id are summed in the order (operand,
    row), and each row with a gradient is updated once.

    ```mlir
    genrec.update_table @item ids (%user, %movie) by (%user_vector, %movie_vector)
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@history>>,
           tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@history>>) -> ()
    ```
  }];
  let arguments = (ins Variadic<GenRec_Rows>:$ids, Variadic<GenRec_Rows>:$gradients,
                       FlatSymbolRefAttr:$table);
  let assemblyFormat = "$table `ids` `(` $ids `)` `by` `(` $gradients `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- what updates and lookups become -------------------------------------===//

def GenRec_TableRowsOp : GenRec_Op<"table_rows", [GenRec_TableReadOpInterface, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure]> {
  let summary = "finds table rows, and inserts them in training";
  let description = [{
    `ids`: i64 rows []; result: `!genrec.row<dim>` rows []. If `valid` is false, the result is the
    row of zeros, which updates skip. A new id outside of training, or an id that is not admitted
    yet, gives a temporary row with the initial value.

    ```mlir
    %handles = genrec.table_rows %movie valid %movie_valid in @item
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>) -> tensor<?x!genrec.row<8>, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$ids, Optional<GenRec_Rows>:$valid,
                       FlatSymbolRefAttr:$table);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$ids (`valid` $valid^)? `in` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_UniqueRowsOp : GenRec_Op<"unique_rows", [GenRec_OfTouchedRows, GenRec_MakesUniqueRows, GenRec_ReadsStrided, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure, SameVariadicOperandSize]> {
  let summary = "the distinct rows of several lookups that have gradients";
  let description = [{
    `rows`: tensors of `!genrec.row` found by `genrec.table_rows` in one table. `gradients`: their
    gradients, f32 rows [width] of the same domain, or of its parent domain: then every row takes
    the gradient of its parent row (for a pooled lookup, whose gradient is not stored per list
    entry). `domain` is a `step` domain with one row per distinct row that has a gradient other than
    exactly 0. `result` holds the handles, in the order of first occurrence in (operand, row).
    `genrec.segment_sum` sums the gradients of each. With `all`, every distinct row is included: for
    optimizer steps that do nothing on a gradient of 0.

    ```mlir
    %distinct, %handles = genrec.unique_rows (%user_rows) by (%user_vector)
        : (tensor<?x!genrec.row<8>, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>)
        -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>)
    ```
  }];
  let arguments = (ins Variadic<GenRec_Rows>:$rows, Variadic<GenRec_Rows>:$gradients, UnitAttr:$all);
  let results = (outs GenRec_DomainType:$domain, GenRec_Rows:$result);
  let assemblyFormat = "`(` $rows `)` `by` `(` $gradients `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_SegmentSumOp : GenRec_Op<"segment_sum", [GenRec_OfTouchedRows, GenRec_ReadsStrided, GenRec_NeedsRunningStep, Pure]> {
  let summary = "the sum of the gradients of each distinct row";
  let description = [{
    `domain` is made by a `genrec.unique_rows`, and `gradients` have the types of that op's
    gradients (they may be scaled or clipped). Row r of the result is the sum of the gradients of
    distinct row r, in the order (operand, row).

    ```mlir
    %summed = genrec.segment_sum %touched (%user_vector, %movie_vector)
        : (!genrec.domain<@touched>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@history>>)
        -> tensor<?x8xf32, #genrec.rows<@touched>>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, Variadic<GenRec_Rows>:$gradients);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain `(` $gradients `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ParameterRowsOp : GenRec_Op<"parameter_rows", [GenRec_MakesUniqueRows, GenRec_MakesOwnedRows, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure]> {
  let summary = "a dense parameter as row handles, for updates in place";
  let description = [{
    [n, w] gives n handles `!genrec.row<w>`; [w] gives one, and a scalar one `!genrec.row<1>`.
    `domain` is a `step` domain with that many rows. Where ranks share the updates of parameters
    (`--shard-optimizer`), they are those that this rank updates, from some row on; the others get
    their new values after the update stage.

    ```mlir
    %eight, %handles = genrec.parameter_rows @weight
        : () -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<4>, #genrec.rows<@step_rows>>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs GenRec_DomainType:$domain, GenRec_Rows:$result);
  let assemblyFormat = "$parameter attr-dict `:` functional-type(operands, results)";
}

def GenRec_SharedRowsOp : GenRec_Op<"shared_rows", [GenRec_RoundsNothing, GenRec_IsLinear, GenRec_SymbolUser, Pure]> {
  let summary = "a view of a shared tensor as rows of a step domain";
  let description = [{
    Shared [n, w] gives rows [w] of a domain with n rows; shared [n] gives one row [n] or n rows [], a
    scalar one row [] or [1]. `domain` is a `step` domain with that many rows, from `genrec.fixed_rows` or
    `genrec.parameter_rows`. Of the latter, rows are those that the domain has of the parameter. The
    result aliases x.

    ```mlir
    %row = genrec.shared_rows %bias as %one : (tensor<4xf32>, !genrec.domain<@one>) -> tensor<?x4xf32, #genrec.rows<@one>>
    ```
  }];
  let arguments = (ins GenRec_Shared:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `as` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_StepValueOp : GenRec_Op<"step_value", [GenRec_NeedsRunningStep, Pure]> {
  let summary = "a scalar that the trainer supplies each step";
  let description = [{
    A shared f32 scalar, identified by `name`:

    - `learning_rate`: `argument` is the base learning rate; the value is the scheduled rate.
    - `bias_correction`: 1 - argument^t with the 1-based step t, computed in double; argument is in
      [0, 1).
    - `first_portion`: 1 in the first portion of a batch, 0 in the others.
    - `clip_norm`, `clip_value`: `argument` is the model's limit of gradients; the value is that
      limit or the one that a flag sets. 0: no clipping.

    ```mlir
    %rate = genrec.step_value "learning_rate"(1.0e-3) : tensor<f32>
    ```
  }];
  let arguments = (ins StrAttr:$name, F64Attr:$argument);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$name `(` $argument `)` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_UPDATE_OPS_TD
