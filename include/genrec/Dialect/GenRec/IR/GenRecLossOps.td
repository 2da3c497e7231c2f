//===- GenRecLossOps.td - losses, catalogues, metrics, outputs --*- tablegen -*-===//

#ifndef GENREC_LOSS_OPS_TD
#define GENREC_LOSS_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_LossOpsDocs : OpDocGroup {
  let summary = "Losses, catalogues, metrics, outputs";
  let description = [{
    The results of a program: losses per row and their declaration, ranking over a catalogue,
    metrics, output columns.
  }];
}

let opDocGroup = GenRec_LossOpsDocs in {

//===-- per-row losses ------------------------------------------------------===//

def GenRec_BceWithLogitsOp : GenRec_Op<"bce_with_logits", [GenRec_RowLocal, Pure,
    DeclareOpInterfaceMethods<GenRec_CompositeOpInterface>]> {
  let summary = "binary cross entropy of a logit, per row";
  let description = [{
    softplus(logit) - label * logit. logit and label: float rows [] of one domain and type. The
    label must be in [0, 1], which `genrec.require_range` checks, and gets no gradient.

    ```mlir
    %loss = genrec.bce_with_logits %logit, %label
        : (tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$logit, GenRec_Rows:$label);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$logit `,` $label attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SoftmaxCrossEntropyOp : GenRec_Op<"softmax_cross_entropy", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "cross entropy of logits against a class, per row";
  let description = [{
    log Σ_c exp(logits_c) - Σ_c target_c * logits_c. logits: float rows [C]; label: i64 rows [] in
    [0, C). With ε = `label_smoothing` in [0, 1), the target is 1 - ε at the label plus ε / C for
    every class (Szegedy et al. 2016, section 7). A row with a label out of range, which stands for
    a null, has loss 0 and gradient 0. `genrec.require_range` rejects other labels out of range.

    ```mlir
    %loss = genrec.softmax_cross_entropy %logits, %shown
        : (tensor<?x4xf32, #genrec.rows<@impression>>, tensor<?xi64, #genrec.rows<@impression>>) -> tensor<?xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$logits, GenRec_Rows:$label,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$logits `,` $label attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SoftmaxCrossEntropyGradOp : GenRec_Op<"softmax_cross_entropy_grad", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>]> {
  let summary = "gradient of softmax_cross_entropy with respect to the logits";
  let description = [{
    (softmax(logits) - target) * gradient, with target and `label_smoothing` as in the forward op.
    gradient: rows [], of the loss. 0 for a label outside of [0, C).

    With `log_sum_exp` (rows []: log Σ exp of the logits of all classes), the logits are those of a
    block of C classes from class `first` on. softmax is then exp(logits - log_sum_exp), a label
    outside of the block belongs to another block, and there is no label smoothing.

    ```mlir
    %dlogits = genrec.softmax_cross_entropy_grad %logits, %shown, %row_loss
        : (tensor<?x4xf32, #genrec.rows<@impression>>, tensor<?xi64, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>)
        -> tensor<?x4xf32, #genrec.rows<@impression>>
    %dblock = genrec.softmax_cross_entropy_grad %logits, %shown, %row_loss log_sum_exp %logit {first = 4 : i64}
        : (tensor<?x4xf32, #genrec.rows<@impression>>, tensor<?xi64, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>,
           tensor<?xf32, #genrec.rows<@impression>>) -> tensor<?x4xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$logits, GenRec_Rows:$label, GenRec_Rows:$gradient,
                       Optional<GenRec_Rows>:$log_sum_exp,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$first,
                       DefaultValuedAttr<F64Attr, "0.0">:$label_smoothing);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$logits `,` $label `,` $gradient (`log_sum_exp` $log_sum_exp^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

defvar SampledSoftmaxAttributes = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$negatives, UnitAttr:$shared,
    F64Attr:$temperature, I64Attr:$stream);

def GenRec_SampledSoftmaxOp : GenRec_Op<"sampled_softmax", [GenRec_ProductOfRows, GenRec_TakesRoundedRows, GenRec_GathersRows, GenRec_MayDraw, GenRec_CatalogueOpInterface, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface, ["isGatherSource"]>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "softmax over the positive item and uniform negatives, per row";
  let description = [{
    `query`: f32 rows [d]; `positive`: i64 rows [], a row number of the catalogue (`genrec.resolve`)
    or -1 for none; `items`: f32 rows [d] of a catalogue domain. Draws `negatives` rows of the
    catalogue uniformly, with replacement, per row (or, with `shared`, once per step, with row
    identity 0). A negative that equals the row's own positive is masked. With logits l = query ·
    item / temperature: loss = log(exp(l_pos) + Σ_neg exp(l_neg)) - l_pos. A row without a positive
    has loss 0 and gradient 0. Draw j is Philox element j of the row's `stream`.

    With `drawn`, the negatives are given: i64 rows [negatives] of query's domain, or shared
    [negatives] with `shared`, such as `genrec.draw_rows` and `genrec.pick_rows` make them. `items` may
    then have rows of any domain, and the op draws nothing.

    With `bf16` (`ProductOpInterface`) query and items are rounded to bfloat16 where they are
    multiplied, in the gradient, too; coefficients and sums are f32. `decompose-blocks` makes
    `genrec.round_factor` of it. `items` may be rows of bf16, rounded before (`round-factors`).

    ```mlir
    %loss = genrec.sampled_softmax %user_vector, %target, %item_vectors
        {negatives = 128 : i64, temperature = 0.05 : f64, stream = 1024 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    %negatives = genrec.draw_rows %items {count = 16 : i64, stream = 2048 : i64} : (!genrec.domain<@items>) -> tensor<16xi64>
    %same = genrec.sampled_softmax %user_vector, %target, %item_vectors drawn %negatives
        {negatives = 16 : i64, shared, temperature = 0.05 : f64, stream = 2048 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>,
           tensor<16xi64>) -> tensor<?xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$query, GenRec_Rows:$positive,
      GenRec_Rows:$items, Optional<GenRec_RowsOrShared>:$drawn), SampledSoftmaxAttributes,
      (ins UnitAttr:$bf16));
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$query `,` $positive `,` $items (`drawn` $drawn^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The numbers of the negatives: `drawn`, or those that it makes the program draw.
    ::mlir::Value buildDrawn(::mlir::OpBuilder &builder);
  }];
  let hasVerifier = 1;
}

def GenRec_SampledSoftmaxGradOp : GenRec_Op<"sampled_softmax_grad", [GenRec_TakesRoundedRows, GenRec_KernelPart, GenRec_MayDraw, GenRec_CatalogueOpInterface, GenRec_SymbolUser, Pure]> {
  let summary = "gradients of sampled_softmax for query and items";
  let description = [{
    `gradient`: f32 rows [], of the loss. Draws the same negatives as the forward op, or is given the
    same (`drawn`). `dquery` has query's rows; `ditems` has a row of f32 per row of `items`, which is
    exactly 0 if the row is neither a positive nor a negative. `items` may be rows of bf16, as there.

    ```mlir
    %dquery, %ditems = genrec.sampled_softmax_grad %user_vector, %target, %item_vectors, %age
        {negatives = 128 : i64, shared, temperature = 0.05 : f64, stream = 1024 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>,
           tensor<?xf32, #genrec.rows<@request>>) -> (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$query, GenRec_Rows:$positive,
      GenRec_Rows:$items, GenRec_Rows:$gradient, Optional<GenRec_RowsOrShared>:$drawn), SampledSoftmaxAttributes);
  let results = (outs GenRec_Rows:$dquery, GenRec_Rows:$ditems);
  let assemblyFormat = "$query `,` $positive `,` $items `,` $gradient (`drawn` $drawn^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    /// The numbers of the negatives: `drawn`, or those that it makes the program draw.
    ::mlir::Value buildDrawn(::mlir::OpBuilder &builder);
  }];
  let hasVerifier = 1;
}

defvar InBatchSoftmaxOperands = (ins GenRec_Rows:$query, GenRec_Rows:$item, GenRec_Rows:$id);
defvar InBatchSoftmaxOptions = (ins Optional<GenRec_Rows>:$log_q, Optional<GenRec_Rows>:$valid,
    F64Attr:$temperature);

def GenRec_InBatchSoftmaxOp : GenRec_Op<"in_batch_softmax", [GenRec_ReadsStrided, GenRec_SymbolUser, Pure, AttrSizedOperandSegments,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "softmax over the items of the other rows of a portion, per row";
  let description = [{
    `query`, `item`: f32 rows [d]; `id`: i64 rows [], the item's id; `log_q`: f32 rows [], the
    logarithm of how often the item is drawn; `valid`: i1 rows [], all of one domain that is no
    catalogue. With logits l_ij = query_i · item_j / temperature - log_q_j, over all rows j of the
    portion that are `valid`, of whatever list:

        loss_i = log Σ_j exp(l_ij) - l_ii        (Yi et al. 2019, eq. 3 and 5)

    where other rows that have row i's id are left out of the sum. A row that is not `valid` has loss
    0 and is no negative of others; one alone in its portion has loss 0, too. Results depend on how a
    batch is cut into portions. Of the scores, a block is in memory at a time. `log_q` gets no gradient.

    `kept`, f32 rows [2], is what the gradient op needs: log Σ_j exp(l_ij), and the share that the
    rows but i have of that sum. A loss may not depend on it.

    ```mlir
    %loss, %kept = genrec.in_batch_softmax %user_vector, %user_vector, %target log_q %age {temperature = 0.05 : f64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>,
           tensor<?xf32, #genrec.rows<@request>>) -> (tensor<?xf32, #genrec.rows<@request>>, tensor<?x2xf32, #genrec.rows<@request>>)
    ```
  }];
  let arguments = !con(InBatchSoftmaxOperands, InBatchSoftmaxOptions);
  let results = (outs GenRec_Rows:$result, GenRec_Rows:$kept);
  let assemblyFormat = "$query `,` $item `,` $id (`log_q` $log_q^)? (`valid` $valid^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_InBatchSoftmaxGradOp : GenRec_Op<"in_batch_softmax_grad", [GenRec_ReadsStrided, GenRec_SymbolUser, Pure, AttrSizedOperandSegments]> {
  let summary = "gradients of in_batch_softmax for query and item";
  let description = [{
    `kept` is that of the forward op, whose operands these are; `gradient`: f32 rows [], of the loss.
    Scores are computed again. A row that is not `valid` gets 0.

    ```mlir
    %loss, %kept = genrec.in_batch_softmax %user_vector, %user_vector, %target {temperature = 0.05 : f64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>)
        -> (tensor<?xf32, #genrec.rows<@request>>, tensor<?x2xf32, #genrec.rows<@request>>)
    %dquery, %ditem = genrec.in_batch_softmax_grad %user_vector, %user_vector, %target, %kept, %age {temperature = 0.05 : f64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>,
           tensor<?x2xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>)
        -> (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@request>>)
    ```
  }];
  let arguments = !con(InBatchSoftmaxOperands, (ins GenRec_Rows:$kept, GenRec_Rows:$gradient), InBatchSoftmaxOptions);
  let results = (outs GenRec_Rows:$dquery, GenRec_Rows:$ditem);
  let assemblyFormat = "$query `,` $item `,` $id `,` $kept `,` $gradient (`log_q` $log_q^)? (`valid` $valid^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- catalogues ----------------------------------------------------------===//

def GenRec_ResolveOp : GenRec_Op<"resolve", [GenRec_SymbolUser, Pure]> {
  let summary = "row numbers of ids in a catalogue";
  let description = [{
    `ids`: i64 rows []; `catalogue`: i64 rows [] of a catalogue domain, distinct. The result is the
    row number of each id in the catalogue, or -1 if `valid` is false. An id that the catalogue
    lacks is an error that names it, or -1 with `allow_missing`.

    ```mlir
    %rows = genrec.resolve %movie valid %movie_valid in %item_ids {allow_missing}
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>, tensor<?xi64, #genrec.rows<@items>>)
        -> tensor<?xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$ids, Optional<GenRec_Rows>:$valid,
                       GenRec_Rows:$catalogue, UnitAttr:$allow_missing);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$ids (`valid` $valid^)? `in` $catalogue attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ScoresOp : GenRec_Op<"scores", [GenRec_CatalogueOpInterface, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "query · item for every item of a catalogue";
  let description = [{
    `query`: f32 rows [d]; `items`: f32 rows [d] of a catalogue domain with at most n rows, where
    the result has rows [n]. A larger catalogue is an error at run time. Columns beyond the last
    item are -1e30. The op is meant for full-softmax losses, which `genrec-split-classes` computes
    in blocks of columns; `genrec.top_k` and `genrec.rank` never store all scores.

    With `first`, the columns are the items from row `first` on. With `partial`, the catalogue may
    have more rows than there are columns.

    ```mlir
    %all = genrec.scores %user_vector, %item_vectors
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>) -> tensor<?x3000xf32, #genrec.rows<@request>>
    %some = genrec.scores %user_vector, %item_vectors {first = 500 : i64, partial}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>) -> tensor<?x500xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$query, GenRec_Rows:$items,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$first,
                       UnitAttr:$partial);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$query `,` $items attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_ScoresGradOp : GenRec_Op<"scores_grad", [DeclareOpInterfaceMethods<GenRec_LinearOpInterface, ["isLinearIn", "takesPartial"]>, GenRec_SymbolUser, Pure]> {
  let summary = "gradients of genrec.scores for query and items";
  let description = [{
    dquery = gradient · items; ditems = gradientᵀ · query. Columns beyond the last item are ignored.
    `first` and `partial` are those of the forward op; ditems is 0 for items outside of the columns.
    With `onto`, a dquery and a ditems, the results are added to these.

    ```mlir
    %dquery, %ditems = genrec.scores_grad %user_vector, %item_vectors, %best_score
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>, tensor<?x4xf32, #genrec.rows<@request>>)
        -> (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
    %dquery2, %ditems2 = genrec.scores_grad %user_vector, %item_vectors, %best_score onto %dquery, %ditems {first = 4 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>, tensor<?x4xf32, #genrec.rows<@request>>,
           tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
    ```
  }];
  let arguments = (ins GenRec_Rows:$query, GenRec_Rows:$items, GenRec_Rows:$gradient,
                       Variadic<GenRec_Rows>:$onto,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntNonNegative]>, "0">:$first,
                       UnitAttr:$partial);
  let results = (outs GenRec_Rows:$dquery, GenRec_Rows:$ditems);
  let assemblyFormat = "$query `,` $items `,` $gradient (`onto` $onto^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_TopKOp : GenRec_Op<"top_k", [GenRec_CatalogueOpInterface, GenRec_SymbolUser, Pure]> {
  let summary = "the k best catalogue rows for each query";
  let description = [{
    `query`: f32 rows [d]; `items`: f32 rows [d] of a catalogue domain; `exclude`: i64 rows []
    (catalogue rows, -1 is ignored) of a child of query's domain: items to exclude. Results:
    `index`, i64 rows [k] (best first; ties: the lower row first; -1 beyond the last item), and
    `score`, f32 rows [k] (-1e30 there; an output of it has `valid`). The scores of all items are
    never stored at once. No gradient.

    ```mlir
    %index, %score = genrec.top_k %user_vector, %item_vectors exclude %seen
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@history>>)
        -> (tensor<?x10xi64, #genrec.rows<@request>>, tensor<?x10xf32, #genrec.rows<@request>>)
    ```
  }];
  let arguments = (ins GenRec_Rows:$query, GenRec_Rows:$items,
                       Optional<GenRec_Rows>:$exclude);
  let results = (outs GenRec_Rows:$index, GenRec_Rows:$score);
  let assemblyFormat = "$query `,` $items (`exclude` $exclude^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_RankOp : GenRec_Op<"rank", [GenRec_CatalogueOpInterface, GenRec_SymbolUser, Pure]> {
  let summary = "the rank of one or several targets among all catalogue rows";
  let description = [{
    1 + the number of other items, not excluded, whose score is at least the target's: ties count
    against the model. i64 rows []; 0 if `target` (a catalogue row) is -1. A NaN score is an error
    at run time. `exclude` is that of `genrec.top_k`; the target itself is never excluded.

    `target` may have rows of a child of query's domain: several targets per query. Their ranks are
    their positions in one order of all items that are targets of the query or not excluded. The
    order is by score; among equal scores other items come before targets, and targets are in the
    order of the list. A target that occurred earlier in the list has rank 0.

    ```mlir
    %place = genrec.rank %user_vector, %target, %item_vectors exclude %seen
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>,
           tensor<?xi64, #genrec.rows<@history>>) -> tensor<?xi64, #genrec.rows<@request>>
    %places = genrec.rank %user_vector, %seen, %item_vectors
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@history>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$query, GenRec_Rows:$target, GenRec_Rows:$items,
                       Optional<GenRec_Rows>:$exclude);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$query `,` $target `,` $items (`exclude` $exclude^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_RankInListOp : GenRec_Op<"rank_in_list", [GenRec_SymbolUser, Pure]> {
  let summary = "the ranks of the relevant rows of each list by score";
  let description = [{
    `score`, `label`: f32 rows [] of a domain with a parent. The label is 0 or 1; any other label,
    or a NaN score, is an error at run time. The rows of each list are ordered by descending score;
    among equal scores, rows with label 0 come first (ties count against the model), then the list's
    order decides. The result, i64 rows [], is the 1-based position of a row in that order if its
    label is 1, otherwise 0. Rows whose `valid` (i1 rows []) is false are left out and have rank 0.

    ```mlir
    %places = genrec.rank_in_list %logit, %label
        : (tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>) -> tensor<?xi64, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$score, GenRec_Rows:$label, Optional<GenRec_Rows>:$valid);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$score `,` $label (`valid` $valid^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- what leaves a program -----------------------------------------------===//

def GenRec_LossOp : GenRec_Op<"loss", [GenRec_IsLoss, GenRec_Sink, AttrSizedOperandSegments]> {
  let summary = "declares a loss: a weighted mean of a value per row";
  let description = [{
    x: f32 rows []. The loss of the task is Σ w·x / Σ w over all rows of the batch; if Σ w = 0,
    there is no loss ("no rows") and no gradient. w is `weight` (f32 rows [], default 1), and 0
    where `valid` (i1 rows []) is false. The model's loss is the sum over tasks of `scale` times the
    task's loss. Names of losses are unique in a program. `differentiate` replaces the op by
    gradients and a `genrec.report_loss`.

    ```mlir
    genrec.loss "click" %row_loss weight %label {scale = 0.5 : f64}
        : tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, Optional<GenRec_Rows>:$weight,
                       Optional<GenRec_Rows>:$valid, StrAttr:$name,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let assemblyFormat = "$name $x (`weight` $weight^)? (`valid` $valid^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def GenRec_ReportLossOp : GenRec_Op<"report_loss", [GenRec_IsLoss, GenRec_Sink]> {
  let summary = "passes a loss's weighted sum and weight to the trainer";
  let description = [{
    Two shared f32 scalars: Σ w·x and Σ w. `differentiate` makes this op from `genrec.loss`.

    ```mlir
    genrec.report_loss "click" %total, %half : tensor<f32>, tensor<f32>
    ```
  }];
  let arguments = (ins GenRec_Shared:$sum, GenRec_Shared:$weight, StrAttr:$name,
                       DefaultValuedAttr<F64Attr, "1.0">:$scale);
  let assemblyFormat = "$name $sum `,` $weight attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def GenRec_RequireRangeOp : GenRec_Op<"require_range", [GenRec_Sink, GenRec_SymbolUser, AttrSizedOperandSegments]> {
  let summary = "checks that data is in the range that a loss requires";
  let description = [{
    x: rows [] of numbers. Every row must be in [`min`, `max`] (NaN is not), or, without `max`, a
    number of at least `min` that f32 can hold, except rows whose `valid` (i1 rows []) is false or
    whose `weight` (f32 rows []) is 0, which losses ignore. With `items` (rows of a catalogue) x must
    also be below the number of items, which are the classes.
    The first row out of range is an error at run time that names `what`, the value, the file and
    row of the data, the column if x is one, and the op's source line. Programs for training and
    evaluation keep the op, others drop it.

    ```mlir
    genrec.require_range "the label of the loss 'click'" %label {min = 0.0 : f64, max = 1.0 : f64}
        : tensor<?xf32, #genrec.rows<@impression>>
    genrec.require_range "the class" %movie valid %movie_valid items %item_ids {min = 0.0 : f64, max = 2999.0 : f64}
        : tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>, tensor<?xi64, #genrec.rows<@items>>
    ```
  }];
  let arguments = (ins StrAttr:$what, GenRec_Rows:$x, Optional<GenRec_Rows>:$weight,
                       Optional<GenRec_Rows>:$valid, Optional<GenRec_Rows>:$items,
                       F64Attr:$min, OptionalAttr<F64Attr>:$max);
  let assemblyFormat = "$what $x (`weight` $weight^)? (`valid` $valid^)? (`items` $items^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def GenRec_MetricOp : GenRec_Op<"metric", [GenRec_Sink, GenRec_SymbolUser, AttrSizedOperandSegments]> {
  let summary = "adds rows to an evaluation metric";
  let description = [{
    With w = `weight` (f32 rows [], finite and not negative; default 1), and 0 where `valid` (i1
    rows []) is false. Rows of weight 0 are ignored and not checked. A metric without any weight is
    undefined and prints "no rows".

    | kind | x | value |
    | --- | --- | --- |
    | ranking | ranks (i64 rows [], 0 = no target, skipped) | HR@n = Σ w [rank ≤ n] / Σ w and NDCG@n = Σ w [rank ≤ n] / log2(rank + 1) / Σ w for each n of `at` (positive, ascending), and MRR = Σ w / rank / Σ w |
    | ranking `per_list` | ranks of the rows of lists, of `genrec.rank` or `genrec.rank_in_list` | per list that has a rank, with P ranks and `weight` of the parent's rows: HR@n = [a rank ≤ n], recall@n = ranks ≤ n / P, NDCG@n = Σ over ranks ≤ n of 1 / log2(rank + 1), divided by the same of the ranks 1 to min(P, n), MRR = 1 / the lowest rank; averaged over lists by w |
    | auc | scores (f32 rows []) | Σ w⁺w⁻ over pairs of a positive and a negative row that are in order, half where their scores are equal, divided by that over all pairs |
    | gauc | scores | the AUC within the rows of each `key` (i64 rows []), averaged by the groups' weight; groups of one class are skipped and counted in the value <name>.skipped |
    | ne | logits | Σ w · cross entropy / Σ w, divided by the entropy of Σ w · label / Σ w (He et al. 2014, eq. 1) |
    | rmse, mae | predictions | sqrt(Σ w (x - label)² / Σ w); Σ w ∣x - label∣ / Σ w |

    All kinds but ranking need `label` (f32 rows []): 0 or 1, or any finite number for rmse and mae.
    Any other label, a NaN score or an invalid weight is an error at run time that names the row.
    `note` is printed with the metric (it may say which items are excluded, for example). Names of
    metrics are unique in a program.

    ```mlir
    genrec.metric ranking "next" %target {at = array<i64: 10, 50>, note = "history excluded"} : tensor<?xi64, #genrec.rows<@request>>
    genrec.metric ranking "found" %seen weight %age {at = array<i64: 10>, per_list} : tensor<?xi64, #genrec.rows<@history>>, tensor<?xf32, #genrec.rows<@request>>
    genrec.metric auc "click" %logit label %label : tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>
    genrec.metric gauc "click_by_item" %logit label %label key %shown
        : tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>, tensor<?xi64, #genrec.rows<@impression>>
    genrec.metric ne "click_ne" %logit label %label : tensor<?xf32, #genrec.rows<@impression>>, tensor<?xf32, #genrec.rows<@impression>>
    genrec.metric rmse "age_rmse" %age label %age weight %age
        : tensor<?xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_MetricKindAttr:$kind, StrAttr:$name, GenRec_Rows:$x,
                       Optional<GenRec_Rows>:$label, Optional<GenRec_Rows>:$valid,
                       Optional<GenRec_Rows>:$key, Optional<GenRec_Rows>:$weight,
                       OptionalAttr<DenseI64ArrayAttr>:$at, UnitAttr:$per_list,
                       OptionalAttr<StrAttr>:$note);
  let assemblyFormat = "$kind $name $x (`label` $label^)? (`valid` $valid^)? (`key` $key^)? (`weight` $weight^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def GenRec_OutputOp : GenRec_Op<"output", [GenRec_Sink]> {
  let summary = "an output column of predict";
  let description = [{
    One column per op, of the given name (top-k lists are rows [k]). The outputs of each domain form
    a separate table. Where `valid` is false the output is null: i1 rows [], or i1 rows [k] for
    single elements of rows [k].

    ```mlir
    genrec.output "best" %best : tensor<?x4xi64, #genrec.rows<@request>>
    genrec.output "seen" %movie valid %movie_valid : tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins StrAttr:$name, GenRec_Rows:$x, Optional<GenRec_Rows>:$valid);
  let assemblyFormat = "$name $x (`valid` $valid^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_LOSS_OPS_TD
