//===- GenRecDistinctOps.td - work per distinct looked-up row ---*- tablegen -*-===//

#ifndef GENREC_DISTINCT_OPS_TD
#define GENREC_DISTINCT_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_DistinctOpsDocs : OpDocGroup {
  let summary = "Computation per distinct row";
  let description = [{
    `factor-lookups` rewrites a linear layer over lookups into these ops. The lookups of a batch
    find few distinct rows, and what depends on a row alone is computed once per distinct row. Front
    ends do not use these ops.
  }];
}

let opDocGroup = GenRec_DistinctOpsDocs in {

def GenRec_DistinctRowsOp : GenRec_Op<"distinct_rows", [GenRec_NeedsRunningStep, Pure]> {
  let summary = "the distinct rows of each of several lookups";
  let description = [{
    `rows`: tensors of `!genrec.row` of one width and one domain, one per lookup. `domain` is a
    `step` domain with one row per distinct row of each lookup: those of the first lookup, in the
    order of first occurrence, then those of the second, and so on. A row that two lookups find is
    in the domain twice. `result` holds the handles. The row of zeros counts like any other.

    ```mlir
    %distinct, %handles = genrec.distinct_rows (%user_rows)
        : (tensor<?x!genrec.row<8>, #genrec.rows<@request>>)
        -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>)
    ```
  }];
  let arguments = (ins Variadic<GenRec_Rows>:$rows);
  let results = (outs GenRec_DomainType:$domain, GenRec_Rows:$result);
  let assemblyFormat = "`(` $rows `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DistinctLinearOp : GenRec_Op<"distinct_linear", [GenRec_Product, Pure]> {
  let summary = "a linear layer over lookups, computed per distinct row";
  let description = [{
    `domain` is the result of a `genrec.distinct_rows` of p lookups, and `values` are the values of
    its distinct rows (f32 rows [d]); weight: shared [k, n]. The values of lookup i are multiplied
    by the d rows of the weight from `columns[i]` on. The result has f32 rows [n] of the domain of
    the lookups: row r is the sum of the p products for the rows that the lookups found for r, added
    in the order of the lookups. With `bf16` values and weight are rounded to bfloat16.

    ```mlir
    %distinct, %handles = genrec.distinct_rows (%user_rows)
        : (tensor<?x!genrec.row<8>, #genrec.rows<@request>>)
        -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>)
    %values = genrec.row_kernel %distinct(%handles) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
        : (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>) -> tensor<?x8xf32, #genrec.rows<@step_rows>> {
    ^bb0(%row: !genrec.row<8>):
      %value = genrec.row_load %row : (!genrec.row<8>) -> vector<8xf32>
      genrec.row_yield %value : vector<8xf32>
    }
    %sums = genrec.distinct_linear %distinct(%values, %weight) columns [0]
        : (!genrec.domain<@step_rows>, tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```

    Source: A. Kumar, J. Naughton, J. Patel, "Learning Generalized Linear Models Over Normalized
    Data", SIGMOD 2015; L. Chen et al., "Towards Linear Algebra over Normalized Data", VLDB 2017.
  }];
  let arguments = (ins GenRec_DomainType:$domain, GenRec_Rows:$values, GenRec_Shared:$weight,
                       DenseI64ArrayAttr:$columns, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain `(` $values `,` $weight `)` `columns` $columns attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DistinctLinearGradOp : GenRec_Op<"distinct_linear_grad", [GenRec_Product, GenRec_IsLinearIn, Pure]> {
  let summary = "the gradients of genrec.distinct_linear";
  let description = [{
    Operands as for `genrec.distinct_linear`; `gradient` is that of its result. `dvalues` are the
    gradients of the distinct rows, each summed over the rows of the batch that found it. `dweight`,
    shared [p · d, n], holds the gradients of the weight's rows for lookup 0, then for lookup 1, and
    so on. With `bf16` values, weight and the sums of `gradient` per distinct row are rounded to
    bfloat16.

    ```mlir
    %distinct, %handles = genrec.distinct_rows (%user_rows)
        : (tensor<?x!genrec.row<8>, #genrec.rows<@request>>)
        -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>)
    %values = genrec.row_kernel %distinct(%handles) attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
        : (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>) -> tensor<?x8xf32, #genrec.rows<@step_rows>> {
    ^bb0(%row: !genrec.row<8>):
      %value = genrec.row_load %row : (!genrec.row<8>) -> vector<8xf32>
      genrec.row_yield %value : vector<8xf32>
    }
    %sums = genrec.distinct_linear %distinct(%values, %weight) columns [0]
        : (!genrec.domain<@step_rows>, tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>) -> tensor<?x4xf32, #genrec.rows<@request>>
    %dvalues, %dweight = genrec.distinct_linear_grad %distinct(%values, %weight, %sums) columns [0]
        : (!genrec.domain<@step_rows>, tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>, tensor<?x4xf32, #genrec.rows<@request>>)
        -> (tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>)
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, GenRec_Rows:$values, GenRec_Shared:$weight,
                       GenRec_Rows:$gradient, DenseI64ArrayAttr:$columns, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$dvalues, GenRec_Shared:$dweight);
  let assemblyFormat = "$domain `(` $values `,` $weight `,` $gradient `)` `columns` $columns attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_DISTINCT_OPS_TD
