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

def GenRec_DistinctRowsOp : GenRec_Op<"distinct_rows", [GenRec_NeedsRunningStep, Pure, SameVariadicResultSize]> {
  let summary = "the distinct rows of each of several lookups";
  let description = [{
    `rows`: tensors of `!genrec.row` of one domain, one per lookup, in groups; those of a group have
    one width. Each group has a domain in `domains`, a `step` domain with one row per distinct row of
    each of its lookups: those of the first lookup, in the order of first occurrence, then those of
    the second, and so on. A row that two lookups find is in the domain twice. `handles[g]` are those
    of its rows. The row of zeros counts like any other.

    ```mlir
    %distinct, %handles = genrec.distinct_rows (%user_rows)
        : (tensor<?x!genrec.row<8>, #genrec.rows<@request>>)
        -> (!genrec.domain<@step_rows>, tensor<?x!genrec.row<8>, #genrec.rows<@step_rows>>)
    ```
  }];
  let arguments = (ins VariadicOfVariadic<GenRec_Rows, "lookups">:$rows, DenseI32ArrayAttr:$lookups);
  let results = (outs Variadic<GenRec_DomainType>:$domains, Variadic<GenRec_Rows>:$handles);
  let assemblyFormat = "$rows attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The lookups of all groups, one after the other.
    mlir::OperandRange getAllRows() { return getOperands(); }
    /// The lookups whose distinct rows `result` has.
    mlir::OperandRange getRowsOf(mlir::Value result) {
      unsigned number = mlir::cast<mlir::OpResult>(result).getResultNumber();
      return getRows()[number % getRows().size()];
    }
  }];
}

def GenRec_DistinctLinearOp : GenRec_Op<"distinct_linear", [GenRec_Product, Pure, SameVariadicOperandSize]> {
  let summary = "a linear layer over lookups, computed per distinct row";
  let description = [{
    `domains` are those of a `genrec.distinct_rows` of p lookups, and `values[g]` are the values of
    the distinct rows of group g (f32 rows [d_g]); weight: shared [k, n]. The values of lookup i, of
    all groups, are multiplied by the d_g rows of the weight from `columns[i]` on. The result has f32
    rows [n] of the domain of the lookups: row r is the sum of the p products for the rows that the
    lookups found for r, added in the order of the lookups. With `bf16` values and weight are rounded
    to bfloat16.

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
    %sums = genrec.distinct_linear %distinct(%values) times %weight columns [0]
        : (!genrec.domain<@step_rows>, tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```

    Source: A. Kumar, J. Naughton, J. Patel, "Learning Generalized Linear Models Over Normalized
    Data", SIGMOD 2015; L. Chen et al., "Towards Linear Algebra over Normalized Data", VLDB 2017.
  }];
  let arguments = (ins Variadic<GenRec_DomainType>:$domains, Variadic<GenRec_Rows>:$values, GenRec_Shared:$weight,
                       DenseI64ArrayAttr:$columns, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domains `(` $values `)` `times` $weight `columns` $columns attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The op that made the domains.
    DistinctRowsOp getDistinctRows();
  }];
}

def GenRec_DistinctLinearGradOp : GenRec_Op<"distinct_linear_grad", [GenRec_Product, GenRec_IsLinearIn, Pure, SameVariadicOperandSize]> {
  let summary = "the gradients of genrec.distinct_linear";
  let description = [{
    Operands as for `genrec.distinct_linear`; `gradient` is that of its result. `dvalues[g]` are the
    gradients of the distinct rows of group g, each summed over the rows of the batch that found it.
    `dweight`, shared [the sum of the lookups' widths, n], holds the gradients of the weight's rows
    for lookup 0, then for lookup 1, and so on. With `bf16` values, weight and the sums of `gradient`
    per distinct row are rounded to bfloat16.

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
    %sums = genrec.distinct_linear %distinct(%values) times %weight columns [0]
        : (!genrec.domain<@step_rows>, tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>) -> tensor<?x4xf32, #genrec.rows<@request>>
    %dvalues, %dweight = genrec.distinct_linear_grad %distinct(%values) times %weight gradient %sums columns [0]
        : (!genrec.domain<@step_rows>, tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>, tensor<?x4xf32, #genrec.rows<@request>>)
        -> (tensor<?x8xf32, #genrec.rows<@step_rows>>, tensor<8x4xf32>)
    ```
  }];
  let arguments = (ins Variadic<GenRec_DomainType>:$domains, Variadic<GenRec_Rows>:$values, GenRec_Shared:$weight,
                       GenRec_Rows:$gradient, DenseI64ArrayAttr:$columns, UnitAttr:$bf16);
  let results = (outs Variadic<GenRec_Rows>:$dvalues, GenRec_Shared:$dweight);
  let assemblyFormat = "$domains `(` $values `)` `times` $weight `gradient` $gradient `columns` $columns attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The op that made the domains.
    DistinctRowsOp getDistinctRows();
  }];
}

} // opDocGroup

#endif // GENREC_DISTINCT_OPS_TD
