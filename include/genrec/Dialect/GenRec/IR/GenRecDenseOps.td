//===- GenRecDenseOps.td - dense layers and embeddings ----------*- tablegen -*-===//

#ifndef GENREC_DENSE_OPS_TD
#define GENREC_DENSE_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecRowOps.td"

def GenRec_DenseOpsDocs : OpDocGroup {
  let summary = "Dense layers, embeddings";
  let description = [{
    Matrix products, feature interactions, and lookups of rows.
  }];
}

let opDocGroup = GenRec_DenseOpsDocs in {

//===-- dense layers --------------------------------------------------------===//

def GenRec_LinearOp : GenRec_Op<"linear", [GenRec_Product, GenRec_IsLinearIn, GenRec_IsColumnProduct, GenRec_ReadsStrided, GenRec_RowLocal, Pure, Differentiable]> {
  let summary = "x · weight + bias";
  let description = [{
    x: rows [k]; weight: shared [k, n], or [n, k] with `transposed`; bias: shared
    [n]; result rows [n]. All of one float type. With `bf16` (`ProductOpInterface`) x and weight are
    rounded to bfloat16; the bias is not. Then x may have been rounded before: of type bf16, with the
    others of f32 (`round-factors`).

    ```mlir
    %scores = genrec.linear %user_vector, %weight bias %bias
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<8x4xf32>, tensor<4xf32>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Shared:$weight,
                       Optional<GenRec_Shared>:$bias, UnitAttr:$transposed, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `,` $weight (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_WeightGradientOp : GenRec_Op<"weight_gradient", [GenRec_Product, GenRec_IsLinearIn, GenRec_IsColumnProduct, GenRec_ReadsStrided, Pure]> {
  let summary = "xᵀ · y, contracted over all rows";
  let description = [{
    x: rows [k], y: rows [n] of one domain; result: shared [k, n]. The gradient of a linear layer's
    weight. Rows are summed in fixed chunks, so the result is bitwise equal for any number of
    threads. With `bf16` x and y are rounded to bfloat16; each may have been rounded before, of type
    bf16 (`round-factors`).

    ```mlir
    %dweight = genrec.weight_gradient %shown_vector, %logits
        : (tensor<?x8xf32, #genrec.rows<@impression>>, tensor<?x4xf32, #genrec.rows<@impression>>) -> tensor<8x4xf32>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Rows:$y, UnitAttr:$bf16);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ReduceRowsOp : GenRec_Op<"reduce_rows", [GenRec_IsLinear, GenRec_KernelPart, Pure]> {
  let summary = "sum over all rows";
  let description = [{
    Rows [d] give a shared [d], rows [] a shared scalar; no rows give 0. Numbers only. Chunks and
    the order of summation are fixed.

    ```mlir
    %dbias = genrec.reduce_rows %logits : (tensor<?x4xf32, #genrec.rows<@impression>>) -> tensor<4xf32>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- layers of ranking models --------------------------------------------===//

def GenRec_DotInteractionOp : GenRec_Op<"dot_interaction", [GenRec_Product, GenRec_RowLocal, GenRec_ReadsStrided, Pure, Differentiable]> {
  let summary = "dot products of all pairs of vectors in a row";
  let description = [{
    x: f32 rows [n * d], n = `count` concatenated vectors. The result holds v_i · v_j for all j < i
    in the order (1,0), (2,0), (2,1), (3,0), …: rows [n(n-1)/2]. With `self` also j = i, after the
    pairs of each i: rows [n(n+1)/2]. With `bf16` the vectors are rounded to bfloat16. Naumov et al. 2019 (DLRM).

    ```mlir
    %products = genrec.dot_interaction %user_vector {count = 4 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x6xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, ConfinedAttr<I64Attr, [IntPositive]>:$count, UnitAttr:$self,
                       UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DotInteractionGradOp : GenRec_Op<"dot_interaction_grad", [GenRec_Product, GenRec_ReadsStrided, Pure]> {
  let summary = "gradient of dot_interaction";
  let description = [{
    x is that of the forward op, `gradient` that of its result. Vector i of a row of the result is
    Σ_j g_ij v_j over all pairs with i (twice for the pair of i with itself). With `bf16` vectors and
    gradient are rounded to bfloat16.

    ```mlir
    %dx = genrec.dot_interaction_grad %user_vector, %pair_scores {count = 2 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x1xf32, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Rows:$gradient,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count, UnitAttr:$self, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `,` $gradient attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_CrossLayerOp : GenRec_Op<"cross_layer", [GenRec_Product, Pure, Composite]> {
  let summary = "one cross layer of DCN v2";
  let description = [{
    x0 ∘ (x · weight + bias) + x; with `reduce` (low rank): x0 ∘ (x · reduce · weight + bias) + x.
    x0, x: rows [d] of one domain; bias: shared [d]; weight: shared [d, d], or shared [r, d] with
    reduce: shared [d, r]. `bf16` is that of its matrix products. Wang et al. 2021, eq. 1 and 2.

    ```mlir
    %full = genrec.cross_layer %user_vector, %user_vector, %square_weight, %scale
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<8x8xf32>, tensor<8xf32>)
        -> tensor<?x8xf32, #genrec.rows<@request>>
    %low = genrec.cross_layer %user_vector, %full, %expand, %scale reduce %weight
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<4x8xf32>, tensor<8xf32>, tensor<8x4xf32>)
        -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x0, GenRec_Rows:$x, GenRec_Shared:$weight,
                       GenRec_Shared:$bias, Optional<GenRec_Shared>:$reduce, UnitAttr:$bf16);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x0 `,` $x `,` $weight `,` $bias (`reduce` $reduce^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_MixtureOp : GenRec_Op<"mixture", [Pure, Composite]> {
  let summary = "mixture of experts: a sum of expert outputs, weighted by a softmax gate";
  let description = [{
    `experts`: rows [n * d], the concatenated outputs of n experts; `logits`: rows [n] of the same
    domain; result: rows [d], Σ_e softmax(logits)_e * expert_e. With `top_k` k > 0, the softmax is
    over the k largest logits of the row (ties: the lower expert); other experts have weight 0 and
    their logits gradient 0. An MMoE has one such op per task (Ma et al. 2018, eq. 6 and 7; top-k:
    Shazeer et al. 2017).

    ```mlir
    %mixed = genrec.mixture %user_vector, %pair_gate {top_k = 1 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x2xf32, #genrec.rows<@request>>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$experts, GenRec_Rows:$logits,
                       DefaultValuedAttr<I64Attr, "0">:$top_k);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$experts `,` $logits attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- embeddings ----------------------------------------------------------===//

def GenRec_LookupOp : GenRec_Op<"lookup", [GenRec_TableReadOpInterface, GenRec_NeedsRunningStep, GenRec_RowLocal, GenRec_SymbolUser, Pure, Differentiable]> {
  let summary = "rows of an embedding table by id";
  let description = [{
    `ids`: i64 rows []; result: f32 rows [dim], with the table's dim. `valid` (i1 rows [] of the
    same domain) is false for null ids: they give a vector of zeros, insert no row and get no
    gradient. In training, a new id is inserted with its initial value; evaluation reads the initial
    value and inserts nothing. The gradient goes to the table's update, which sums duplicate ids in
    a fixed order.

    ```mlir
    %vector = genrec.lookup %movie valid %movie_valid in @item
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>) -> tensor<?x8xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$ids, Optional<GenRec_Rows>:$valid,
                       FlatSymbolRefAttr:$table);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$ids (`valid` $valid^)? `in` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_EmbeddingOp : GenRec_Op<"embedding", [GenRec_RoundsNothing, Pure, Differentiable,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface, ["isGatherSource"]>]> {
  let summary = "rows of a dense parameter by index";
  let description = [{
    `index`: i64 rows []; `weight`: shared f32 [n, d]; result: f32 rows [d]. Position embeddings are
    `embedding(position(domain), weight)`. An index outside of [0, n) is clamped: positions beyond
    the last share its vector.

    ```mlir
    %place = genrec.position %history : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    %encoded = genrec.embedding %place of %positions
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<200x8xf32>) -> tensor<?x8xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$index, GenRec_Shared:$weight);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$index `of` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_EmbeddingGradOp : GenRec_Op<"embedding_grad", [GenRec_IsLinear, GenRec_KernelPart, Pure]> {
  let summary = "scatters rows into a dense parameter's gradient by index";
  let description = [{
    The adjoint of `genrec.embedding`: row i of the result, shared f32 [n, d], is the sum of the
    rows of y with (clamped) index i.

    ```mlir
    %dpositions = genrec.embedding_grad %movie, %movie_vector
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<?x8xf32, #genrec.rows<@history>>) -> tensor<200x8xf32>
    ```
  }];
  let arguments = (ins GenRec_Rows:$index, GenRec_Rows:$y);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$index `,` $y attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_DENSE_OPS_TD
