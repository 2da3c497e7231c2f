//===- GenRecRankOps.td - sums over the portions of a batch -----*- tablegen -*-===//

#ifndef GENREC_RANK_OPS_TD
#define GENREC_RANK_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_RankOpsDocs : OpDocGroup {
  let summary = "Portions and ranks";
  let description = [{
    A global batch consists of portions; each rank runs some consecutive ones, one after another,
    and owns some rows of each table. A value of one portion is *partial* if the step needs its sum
    over all portions. `distribute` inserts these ops where a partial value is complete and where
    its sum is needed. With one portion on one rank they do nothing.
  }];
}

let opDocGroup = GenRec_RankOpsDocs in {

def GenRec_ContributeOp : GenRec_Op<"contribute", [GenRec_GivesToSums, GenRec_RoundsNothing, GenRec_NeedsRunningStep, Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "gives partial values of one portion to the sums over all portions";
  let description = [{
    `values`: f32, shared or rows of a domain that has the same rows in every portion. The results
    alias them; only a `genrec.collect` of the same `number` reads them.

    ```mlir
    %given = genrec.contribute 0(%weight) : tensor<8x4xf32>
    ```
  }];
  let arguments = (ins I64Attr:$number, Variadic<GenRec_RowsOrShared>:$values);
  let results = (outs Variadic<GenRec_RowsOrShared>:$results);
  let assemblyFormat = "$number `(` $values `)` attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def GenRec_CollectOp : GenRec_Op<"collect", [GenRec_SumsPortions, GenRec_RoundsNothing, GenRec_NeedsRunningStep, Pure, DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "the sums of what all portions contributed";
  let description = [{
    `values` are the results of the `genrec.contribute` of the same `number`. Each result is the sum
    over all portions, added in one fixed binary tree over portions, so its bits do not depend on
    the number of ranks. All portions take part: an op that the step runs once.

    ```mlir
    %given = genrec.contribute 0(%weight) : tensor<8x4xf32>
    %sum = genrec.collect 0(%given) : tensor<8x4xf32>
    ```
  }];
  let arguments = (ins I64Attr:$number, Variadic<GenRec_RowsOrShared>:$values);
  let results = (outs Variadic<GenRec_RowsOrShared>:$results);
  let assemblyFormat = "$number `(` $values `)` attr-dict `:` type($values)";
  let hasVerifier = 1;
}

def GenRec_ContributeRowsOp : GenRec_Op<"contribute_rows", [GenRec_GivesToSums, GenRec_OfTouchedRows, GenRec_RoundsNothing, GenRec_NeedsRunningStep, Pure]> {
  let summary = "gives the gradients of one portion's distinct table rows to the sums over all portions";
  let description = [{
    `domain` and `rows` are made by a `genrec.unique_rows`; `sums`: f32 rows [dim], the gradient of
    each row in this portion. A row takes part even if its sum is 0. The result aliases `sums`; only
    a `genrec.collect_rows` reads it.

    ```mlir
    %summed = genrec.segment_sum %touched(%user_vector, %movie_vector)
        : (!genrec.domain<@touched>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@history>>)
        -> tensor<?x8xf32, #genrec.rows<@touched>>
    %given = genrec.contribute_rows %touched(%touched_rows, %summed) in @item
        : (!genrec.domain<@touched>, tensor<?x!genrec.row<8>, #genrec.rows<@touched>>, tensor<?x8xf32, #genrec.rows<@touched>>)
        -> tensor<?x8xf32, #genrec.rows<@touched>>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, GenRec_Rows:$rows, GenRec_Rows:$sums,
                       FlatSymbolRefAttr:$table);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain `(` $rows `,` $sums `)` `in` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_CollectRowsOp : GenRec_Op<"collect_rows", [GenRec_SumsPortions, GenRec_OfTouchedRows, GenRec_RoundsNothing, GenRec_MakesUniqueRows, GenRec_MakesOwnedRows, GenRec_NeedsRunningStep, Pure]> {
  let summary = "the table rows of this rank that any portion touched, and their summed gradients";
  let description = [{
    `domain` and `rows` are the operands of the `genrec.contribute_rows` that made `sums`. `owned`
    is a `step` domain with one row per row of the table that this rank owns and any portion of any
    rank contributed to; `owned_rows` are its handles in the table and `owned_sums` the sums of its
    gradients, added in the fixed tree over those portions that touched it.

    ```mlir
    %summed = genrec.segment_sum %touched(%user_vector, %movie_vector)
        : (!genrec.domain<@touched>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@history>>)
        -> tensor<?x8xf32, #genrec.rows<@touched>>
    %given = genrec.contribute_rows %touched(%touched_rows, %summed) in @item
        : (!genrec.domain<@touched>, tensor<?x!genrec.row<8>, #genrec.rows<@touched>>, tensor<?x8xf32, #genrec.rows<@touched>>)
        -> tensor<?x8xf32, #genrec.rows<@touched>>
    %owned, %rows, %sums = genrec.collect_rows %touched(%touched_rows, %given) in @item
        : (!genrec.domain<@touched>, tensor<?x!genrec.row<8>, #genrec.rows<@touched>>, tensor<?x8xf32, #genrec.rows<@touched>>)
        -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>, tensor<?x8xf32, #genrec.rows<@step_rows>>)
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, GenRec_Rows:$rows, GenRec_Rows:$sums,
                       FlatSymbolRefAttr:$table);
  let results = (outs GenRec_DomainType:$owned, GenRec_Rows:$owned_rows, GenRec_Rows:$owned_sums);
  let assemblyFormat = "$domain `(` $rows `,` $sums `)` `in` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ExactSumOp : GenRec_Op<"exact_sum", [GenRec_SumsPortions, GenRec_NeedsRunningStep, Pure]> {
  let summary = "sums over rows that ranks own, each rounded once";
  let description = [{
    `values`: f32 rows []; in a distributed program of domains whose rows belong to ranks
    (`genrec.collect_rows`, `genrec.parameter_rows`). Result i is a shared f32 scalar, the sum of
    values i over the rows of all ranks, exact before it is rounded: it does not depend on which rank
    owns a row, nor on the order of rows. Infinities and NaN propagate. All sums of an op take one
    exchange.

    ```mlir
    %squares = genrec.exact_sum %row_loss : (tensor<?xf32, #genrec.rows<@impression>>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<GenRec_Rows>:$values);
  let results = (outs Variadic<GenRec_Shared>:$results);
  let assemblyFormat = "$values attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_RANK_OPS_TD
