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
    What a program is for: a loss per row and its declaration, ranking over a
    catalogue, metrics, columns to be written.
  }];
}

let opDocGroup = GenRec_LossOpsDocs in {

//===-- per-row losses ------------------------------------------------------===//

def GenRec_BceWithLogitsOp : GenRec_Op<"bce_with_logits", [GenRec_RowLocal, Pure,
    DeclareOpInterfaceMethods<GenRec_CompositeOpInterface>]> {
  let summary = "binary cross entropy of a logit, per row";
  let description = [{
    softplus(logit) - label * logit; logit and label: float rows [] of one domain and
    type; label in [0, 1], which `genrec.require_range` sees to. The label gets no
    gradient.

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
    log Σ_c exp(logits_c) - Σ_c target_c * logits_c; logits: float rows [C], label: i64
    rows [] in [0, C). With ε = `label_smoothing` in [0, 1), target is 1 - ε at the label,
    plus ε / C everywhere (Szegedy et al. 2016, section 7). A row whose label is outside
    has loss 0 and gradient 0: that is for nulls, which the loss leaves out;
    `genrec.require_range` sees to all others.

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
    (softmax(logits) - target) * gradient; target and `label_smoothing` as there,
    gradient: rows [] of the loss. 0 where the label is outside [0, C).

    With `log_sum_exp` (rows []: log Σ exp of the logits of all classes) the logits
    are those of C classes from `first` on, a block of all: softmax is
    exp(logits - log_sum_exp), and a label outside the block is that of another one;
    there is no smoothing then.

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

def GenRec_SampledSoftmaxOp : GenRec_Op<"sampled_softmax", [GenRec_DrawOpInterface, GenRec_CatalogueOpInterface, GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface, ["isGatherSource"]>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "softmax over the positive item and uniform negatives, per row";
  let description = [{
    `query`: f32 rows [d]; `positive`: i64 rows [], a row number of the catalogue
    (`genrec.resolve`), -1 for none; `items`: f32 rows [d] of a catalogue domain.
    Draws `negatives` rows of the catalogue uniformly, with replacement, per row (or
    once for the whole step, with `shared`: row identity 0); a negative equal to the
    row's own positive is masked. With logits l = query · item / temperature:
    loss = log(exp(l_pos) + Σ_neg exp(l_neg)) - l_pos. A row without positive has
    loss 0 and gradient 0. Draw j is Philox element j of the row's `stream`.

    ```mlir
    %loss = genrec.sampled_softmax %user_vector, %target, %item_vectors
        {negatives = 128 : i64, temperature = 0.05 : f64, stream = 1024 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
        -> tensor<?xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$query, GenRec_Rows:$positive,
      GenRec_Rows:$items), SampledSoftmaxAttributes);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$query `,` $positive `,` $items attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SampledSoftmaxGradOp : GenRec_Op<"sampled_softmax_grad", [GenRec_KernelPart, GenRec_DrawOpInterface, GenRec_CatalogueOpInterface, GenRec_SymbolUser, Pure]> {
  let summary = "gradients of sampled_softmax for query and items";
  let description = [{
    `gradient`: f32 rows [], of the loss. Draws the same negatives again. `dquery` is
    aligned with query; `ditems` holds a row per catalogue row, exactly 0 where it
    was not used.

    ```mlir
    %dquery, %ditems = genrec.sampled_softmax_grad %user_vector, %target, %item_vectors, %age
        {negatives = 128 : i64, shared, temperature = 0.05 : f64, stream = 1024 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>,
           tensor<?xf32, #genrec.rows<@request>>) -> (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@items>>)
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$query, GenRec_Rows:$positive,
      GenRec_Rows:$items, GenRec_Rows:$gradient), SampledSoftmaxAttributes);
  let results = (outs GenRec_Rows:$dquery, GenRec_Rows:$ditems);
  let assemblyFormat = "$query `,` $positive `,` $items `,` $gradient attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- catalogues ----------------------------------------------------------===//

def GenRec_ResolveOp : GenRec_Op<"resolve", [GenRec_SymbolUser, Pure]> {
  let summary = "row numbers of ids in a catalogue";
  let description = [{
    `ids`: i64 rows []; `catalogue`: i64 rows [] of a catalogue domain, distinct. The
    result is the catalogue row of each id; -1 where `valid` is false. An id that the
    catalogue lacks is an error that names it, or -1 with `allow_missing`.

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
    `query`: f32 rows [d]; `items`: f32 rows [d] of a catalogue domain with at most n
    rows, where the result has rows [n]; a larger catalogue is an error of the run.
    Columns past the catalogue's end are -1e30. Meant for full-softmax losses, of
    which `genrec-split-classes` makes blocks of columns; `genrec.top_k` and
    `genrec.rank` never hold all scores.

    With `first` the columns are the items from row `first` on; with `partial` the
    catalogue may have more rows than they show.

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
def GenRec_ScoresGradOp : GenRec_Op<"scores_grad", [GenRec_SymbolUser, Pure]> {
  let summary = "gradients of genrec.scores for query and items";
  let description = [{
    dquery = gradient · items; ditems = gradientᵀ · query; columns past the
    catalogue's end are ignored. With `first` and `partial` as there, ditems is 0
    outside of the columns. With `onto`, a dquery and a ditems, the results are added
    to these.

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
    `query`: f32 rows [d]; `items`: f32 rows [d] of a catalogue domain; `exclude`:
    i64 rows [] (catalogue rows, -1 ignored) of a child of query's domain: these are
    left out. Results: `index` i64 rows [k] (best first; ties: the lower row first;
    -1 past the last item that is left) and `score` f32 rows [k] (-1e30 there; an
    output of them has `valid`). The scores of all items are never in memory at once.
    No gradient.

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
  let summary = "the rank of a target, or of several, among all catalogue rows";
  let description = [{
    1 + the number of rows, other than the target and not excluded, whose score is at
    least the target's: ties count against the model. i64 rows []; 0 where `target`
    (a catalogue row) is -1. A NaN score fails the run. `exclude` as in
    `genrec.top_k`; the target itself is never excluded.

    `target` may be rows of a child of query's domain: several targets per query. Their
    ranks are their places in one order of all items that are targets of the query or
    not excluded: by score, of equal ones the targets last, and of equal targets the
    first of the list first. A target that the list has had before has rank 0.

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
    `score`, `label`: f32 rows [] of a domain with a parent; label 0 or 1, anything
    else fails the run, as a NaN score does. The rows of each list are ordered by
    score, the highest first; of equal ones those of label 0 first (ties count against
    the model), then in the list's order. The result, i64 rows [], is a row's place in
    that order, from 1 on, where its label is 1; else 0. Rows where `valid` (i1 rows
    []) is false are not in the order and have rank 0.

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

def GenRec_LossOp : GenRec_Op<"loss", [GenRec_Sink, AttrSizedOperandSegments]> {
  let summary = "declares a loss: a weighted mean of a value per row";
  let description = [{
    x: f32 rows []. The task's loss is Σ w·x / Σ w over all rows of the batch; where
    Σ w = 0 there is none ("no rows"), and no gradient. w = `weight` (f32 rows [],
    default 1), 0 where `valid` (i1 rows []) is false. The model's loss adds `scale`
    times each task's.
    Each loss of a program has a name of its own. `differentiate` turns it into
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

def GenRec_ReportLossOp : GenRec_Op<"report_loss", [GenRec_Sink]> {
  let summary = "hands a loss's weighted sum and weight to the trainer";
  let description = [{
    Two shared f32 scalars: Σ w·x and Σ w. What `differentiate` leaves of
    `genrec.loss`.

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
  let summary = "ends the run where data lies outside of what a loss takes";
  let description = [{
    x: rows [] of numbers. Every row must lie in [`min`, `max`] (NaN lies nowhere) but
    those where `valid` (i1 rows []) is false or `weight` (f32 rows []) is 0, which no
    loss counts. With `items`, rows of a catalogue, x must be below their number too:
    classes are its rows. The first row that does not is an error of the run, which
    names `what`, the value, the data's file and row, the column where x is one, and
    the op's line. Programs that train and evaluate keep the op, others drop it.

    ```mlir
    genrec.require_range "the label of the loss 'click'" %label {min = 0.0 : f64, max = 1.0 : f64}
        : tensor<?xf32, #genrec.rows<@impression>>
    genrec.require_range "the class" %movie valid %movie_valid items %item_ids {min = 0.0 : f64, max = 2999.0 : f64}
        : tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>, tensor<?xi64, #genrec.rows<@items>>
    ```
  }];
  let arguments = (ins StrAttr:$what, GenRec_Rows:$x, Optional<GenRec_Rows>:$weight,
                       Optional<GenRec_Rows>:$valid, Optional<GenRec_Rows>:$items,
                       F64Attr:$min, F64Attr:$max);
  let assemblyFormat = "$what $x (`weight` $weight^)? (`valid` $valid^)? (`items` $items^)? attr-dict `:` type(operands)";
  let hasVerifier = 1;
}

def GenRec_MetricOp : GenRec_Op<"metric", [GenRec_Sink, GenRec_SymbolUser, AttrSizedOperandSegments]> {
  let summary = "adds rows to an evaluation metric";
  let description = [{
    With w = `weight` (f32 rows [], finite and not negative; 1 unless given), 0 where
    `valid` (i1 rows []) is false. Rows of weight 0 count nowhere and are not looked
    at. A metric whose rows have no weight is undefined: it says "no rows".

    | kind | x | value |
    | --- | --- | --- |
    | ranking | ranks (i64 rows [], 0 = no target, skipped) | HR@n = Σ w [rank ≤ n] / Σ w and NDCG@n = Σ w [rank ≤ n] / log2(rank + 1) / Σ w for each n of `at` (positive, ascending), and MRR = Σ w / rank / Σ w |
    | ranking `per_list` | ranks of the rows of lists, of `genrec.rank` or `genrec.rank_in_list` | per list that has a rank, with P ranks and `weight` of the parent's rows: HR@n = [a rank ≤ n], recall@n = ranks ≤ n / P, NDCG@n = Σ over ranks ≤ n of 1 / log2(rank + 1), divided by the same of the ranks 1 to min(P, n), MRR = 1 / the lowest rank; averaged over lists by w |
    | auc | scores (f32 rows []) | Σ w⁺w⁻ over pairs of a positive and a negative row that are in order, half where their scores are equal, divided by that over all pairs |
    | gauc | scores | the AUC within the rows of each `key` (i64 rows []), averaged by the groups' weight; groups of one class are skipped and counted in the value <name>.skipped |
    | ne | logits | Σ w · cross entropy / Σ w, divided by the entropy of Σ w · label / Σ w (He et al. 2014, eq. 1) |
    | rmse, mae | predictions | sqrt(Σ w (x - label)² / Σ w); Σ w ∣x - label∣ / Σ w |

    All but ranking need `label` (f32 rows []): 0 or 1, of rmse and mae any finite
    number. Another label, a NaN score or a weight that is none is an error of the run
    that names the row. `note` is printed beside the metric (which items are excluded,
    say). Each metric of a program has a name of its own.

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
  let summary = "a column of what `predict` writes";
  let description = [{
    One column per op, of the given name (top-k lists are rows [k]). Outputs of each
    domain are a table of their own. Where `valid` is false the column is null: i1
    rows [], or, to tell the elements of rows [k] apart, i1 rows [k].

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
