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
    What `differentiate` makes of gradients, and `expand-updates` of updates. No
    front end writes these.
  }];
}

let opDocGroup = GenRec_UpdateOpsDocs in {

def GenRec_UpdateParameterOp : GenRec_Op<"update_parameter", [GenRec_SymbolUser]> {
  let summary = "one optimizer step of a dense parameter";
  let description = [{
    `gradient`: shared, the parameter's type. Clipping of the model op is applied
    before. Made by `differentiate`, expanded by `expand-updates`.

    ```mlir
    genrec.update_parameter @bias by %bias : tensor<4xf32>
    ```
  }];
  let arguments = (ins GenRec_Shared:$gradient, FlatSymbolRefAttr:$parameter);
  let assemblyFormat = "$parameter `by` $gradient attr-dict `:` type($gradient)";
  let hasVerifier = 1;
}

def GenRec_UpdateTableOp : GenRec_Op<"update_table", [GenRec_SymbolUser, SameVariadicOperandSize]> {
  let summary = "one optimizer step of the touched rows of a table";
  let description = [{
    Pair i says: the rows `ids[i]` (i64 rows []) have gradients `gradients[i]` (f32
    rows [dim]) of the same domain. A contribution whose gradient row is exactly 0 in
    every element does not touch its row (invalid and never drawn rows have such
    gradients). All gradients of an id are summed in the order (pair, row); each
    touched row is updated once.

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
  let summary = "finds (training: or inserts) table rows";
  let description = [{
    `ids`: i64 rows []. Result `!genrec.row<dim>` rows []. Where `valid` is false: a
    row of zeros that updates skip. Outside training an unseen id, and in training one
    that is not admitted yet, gives a temporary row holding its initial value.

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

def GenRec_UniqueRowsOp : GenRec_Op<"unique_rows", [GenRec_MakesUniqueRows, GenRec_ReadsStrided, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure, SameVariadicOperandSize]> {
  let summary = "the distinct touched rows among several lookups, with their segments";
  let description = [{
    `rows`: tensors of `!genrec.row` found by `genrec.table_rows` in one table;
    `gradients`: their gradients, f32 rows [width] of the same domains, or of the
    parent domain: then every row takes the gradient of its parent (a pooled lookup's,
    which nobody writes once per list entry). `domain` is a
    `step` domain with one row per distinct row that some gradient touches (is not
    exactly 0); `result` holds the handles, in the order of first appearance in
    (operand, row). `genrec.segment_sum` adds what belongs to each. With `all`, every row
    that was looked up counts as touched: for updates that leave a row as it is where its
    gradient is 0.

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
def GenRec_SegmentSumOp : GenRec_Op<"segment_sum", [GenRec_ReadsStrided, GenRec_NeedsRunningStep, Pure]> {
  let summary = "per distinct row, the sum of its gradients";
  let description = [{
    `domain` is made by a `genrec.unique_rows` op and `gradients` have the types of
    that op's gradients (scaled or clipped, say); row r of the result is the sum of
    those that belong to distinct row r, in the order (operand, row).

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

def GenRec_ParameterRowsOp : GenRec_Op<"parameter_rows", [GenRec_MakesUniqueRows, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure]> {
  let summary = "a dense parameter as rows that a kernel may update in place";
  let description = [{
    [n, w] gives n rows of `!genrec.row<w>`; [w] gives one, a scalar one of
    `!genrec.row<1>`. `domain` is a `step` domain with that many rows.

    ```mlir
    %eight, %handles = genrec.parameter_rows @weight
        : () -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<4>, #genrec.rows<@step_rows>>)
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs GenRec_DomainType:$domain, GenRec_Rows:$result);
  let assemblyFormat = "$parameter attr-dict `:` functional-type(operands, results)";
}

def GenRec_SharedRowsOp : GenRec_Op<"shared_rows", [GenRec_SymbolUser, Pure]> {
  let summary = "a shared tensor seen as rows of a step domain";
  let description = [{
    Shared [n, w] gives rows [w] of a domain with n rows; shared [w] one row [w], a
    scalar one row [] or [1]. `domain` is a `step` domain of that many rows, from
    `genrec.fixed_rows` or `genrec.parameter_rows`. No copy.

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
    A shared f32 scalar, by `name`:

    - `learning_rate`: `argument` is the declared base rate; the value is the
      scheduled one.
    - `bias_correction`: 1 - argument^t with t the 1-based step, computed in double;
      argument in [0, 1).
    - `clip_norm`, `clip_value`: `argument` is the model's bound of gradients; the
      value is the bound in force, which a flag may change. 0: no clipping.

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
