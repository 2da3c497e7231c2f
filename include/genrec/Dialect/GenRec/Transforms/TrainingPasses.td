//===- TrainingPasses.td - what makes a training step ----------*- tablegen -*-===//
//
// Gradients, updates and what ranks exchange. Included by Passes.td.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TRANSFORMS_TRAINING_PASSES_TD
#define GENREC_TRANSFORMS_TRAINING_PASSES_TD

include "mlir/Pass/PassBase.td"

def Differentiate : GenRecPass<"genrec-differentiate"> {
  let summary = "turns losses into reports, gradients and updates";
  let description = [{
    In every program, each `genrec.loss` becomes two sums and a `genrec.report_loss`, which passes
    them to the trainer. In the training program, reverse-mode differentiation by
    `DifferentiableOpInterface` then appends the gradients as ops of this dialect, one
    `genrec.update_parameter` per trained parameter, and one `genrec.update_table` per trained table
    (with the ids and gradients of each of its lookups).

    The gradient of a loss with respect to the value of a row is scale * weight / Σ weight, or 0 if
    Σ weight is 0. Only ops on a path from a parameter or table to a loss are differentiated; an op
    on such a path that has no gradient is an error. The gradients of several uses are added in the
    order of the uses. Gradients of slices that together cover a row are concatenated instead.

    ```mlir
    genrec.loss "bce" %x : tensor<?xf32, #genrec.rows<@user>>
    // becomes
    %sum = genrec.reduce_rows %x
    %weight = genrec.reduce_rows %ones
    genrec.report_loss "bce" %sum, %weight
    …
    genrec.update_parameter @w by %dw
    genrec.update_table @users ids(%ids) by(%dx)
    ```

    Runs after `decompose-blocks`; composite ops are an error.
  }];
  let statistics = [
    Statistic<"losses", "losses", "losses turned into reports">,
    Statistic<"differentiated", "differentiated", "ops whose gradient was built">,
    Statistic<"parameters", "parameters", "parameters updated">,
    Statistic<"tables", "tables", "tables updated">,
    Statistic<"joined", "joined", "sums of padded columns replaced by one concat_columns">];
}

def SplitClasses : GenRecPass<"genrec-split-classes"> {
  let summary = "computes a softmax over many classes without storing all logits";
  let description = [{
    If a softmax cross entropy is the only reader of a linear layer or `genrec.scores`, the logits
    and their gradients are computed for a block of classes at a time. In the forward pass, each
    block contributes to log Σ exp, and gives the logit of the label if the label is in the block.
    In the backward pass, the logits of a block are recomputed (except those of the last block),
    turned into gradients, and used before the next block is computed. (For tokens: Wijmans et al.,
    "Cut your losses in large-vocabulary language models", 2024.) This costs nearly one more matrix
    product in the backward pass.

    ```mlir
    %l = genrec.scores %q, %items                     // rows [3000]
    %y = genrec.softmax_cross_entropy %l, %label
    // becomes
    %l0 = genrec.scores %q, %items {partial}          // rows [500]
    %s0 = genrec.log_sum_exp %l0
    %p0 = genrec.pick_column %l0 at %label
    %q1 = genrec.after %q on %s0, %p0
    %l1 = genrec.scores %q1, %items {first = 500, partial}
    %s1 = genrec.log_sum_exp %l1 before %s0
    …
    %y = genrec.sub %s5, %p5                          // 0 where the label is no class
    ```

    `genrec.after` orders the blocks: without it, `form-row-kernels` would fuse all blocks into one
    kernel, and CSE would keep the logits instead of recomputing them.

    Logits are split if they have at least four blocks, into at most 16 blocks. They are not split
    if another op reads them; `genrec.decisions` records the readers. Runs after `differentiate`.
  }];
  let options = [Option<"block", "block", "unsigned", /*default=*/"512",
                        "columns of logits in memory at a time; more where there would be more than 16 blocks">];
  let statistics = [
    Statistic<"losses", "losses", "softmax cross entropies split">,
    Statistic<"blocks", "blocks", "blocks of classes they were split into">,
    Statistic<"whole", "whole", "those of many classes that stay whole">];
}

def ExpandUpdates : GenRecPass<"genrec-expand-updates"> {
  let summary = "expands lookups and updates into row handles and row kernels";
  let description = [{
    - `lookup` becomes `table_rows` and a row kernel that loads the rows. Lookups and the update of
      the same ids share one `table_rows`;
    - `update_parameter` becomes a row kernel over `parameter_rows`. Its body is the optimizer's
      equations in `arith` and `math`;
    - `update_table` becomes `unique_rows`, `segment_sum` and such a kernel over the distinct rows.
      A gradient that is fanned out from the parent (that of a pooled lookup) is read from the
      parent's rows instead of being stored per list entry.

    With `clip_value` or `clip_norm` on the model, gradients are first clamped to [-v, v], then
    scaled by min(1, c / norm). norm² is the sum of squares of the gradients of all parameters and
    of the summed gradients of all table rows. The limits are step values, so that flags of a binary
    can change them.

    ```mlir
    %x = genrec.lookup %ids in @users : …
    // becomes
    %rows = genrec.table_rows %ids in @users : …
    %x = genrec.row_kernel %user(%rows) … { ^bb0(%row: !genrec.row<8>): %v = genrec.row_load %row … }
    ```
  }];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"lookups", "lookups", "lookups expanded">,
    Statistic<"parameterUpdates", "parameter-updates", "parameter updates expanded">,
    Statistic<"tableUpdates", "table-updates", "table updates expanded">,
    Statistic<"gradientsOfParents", "gradients-of-parents", "gradients of lookups read from the parent's rows">,
    Statistic<"handlesShared", "handles-shared", "lookups and updates that reused handles">];
}

def Distribute : GenRecPass<"genrec-distribute"> {
  let summary = "adds up over all portions of a batch what each portion computes";
  let description = [{
    A global batch consists of portions, and ranks own rows of the tables (docs/ranks.md). The pass
    marks each value of a program:

    - *local*: rows of the portion's own data;
    - *replicated*: the same in all portions: parameters, constants, rows of a catalogue and what
      depends on those only;
    - *partial*: the step needs its sum over all portions: a sum over local rows, for example.

    A partial value passes through ops that are linear in it (`LinearOpInterface`) and stays
    partial. Where another op reads it, `contribute` and `collect` add it up first. The gradients of
    all parameters are added up by one pair of ops, before they are clipped. After each
    `segment_sum`, `contribute_rows` and `collect_rows` bring the sums to the owners of the rows, and
    a sum over those rows (for the norm of all gradients) becomes `exact_sum`. A replicated value that
    is added to a partial one counts in the first portion only.

    A program with a sum that would have to be added up but cannot be gets `genrec.single_rank`, with
    the reason: it runs on one rank. One that needs a sum, or rows by ids that it makes, before its
    portions have computed runs on any number of ranks: `assign-stages` notes the first such place as
    `genrec.meeting`, where the portions of a rank wait for each other. With one portion on one rank,
    the new ops do nothing.

    ```mlir
    %weight = genrec.reduce_rows %ones : …
    %rate = genrec.div %one, %weight : …
    // becomes
    %weight = genrec.reduce_rows %ones : …
    %given = genrec.contribute 0(%weight) : tensor<f32>
    %total = genrec.collect 0(%given) : tensor<f32>
    %rate = genrec.div %one, %total : …
    ```
  }];
  let statistics = [
    Statistic<"sums", "sums", "shared values that are added up over portions">,
    Statistic<"tables", "tables", "tables whose gradients go to the owners of the rows">,
    Statistic<"exactSums", "exact-sums", "sums over rows that ranks own">];
}

def FactorLookups : GenRecPass<"genrec-factor-lookups"> {
  let summary = "computes a linear layer of lookups once per distinct table row";
  let description = [{
    A linear layer over concatenated lookups computes the same product for every row of the batch
    with the same table row. The pass splits the layer by columns. Lookups without other users
    become `genrec.distinct_rows` (the distinct rows of lookups, in a group for each table and
    width), `genrec.distinct_linear` (a product per distinct row, gathered and added per row of the
    batch) and `genrec.distinct_linear_grad`; other columns remain a linear layer. The concatenation
    and its gradient are no longer stored, and `unique_rows` gets each distinct row once:

    ```mlir
    %x = genrec.concat_columns %a, %b, %c           // lookups a and c of rows %ra, %rc
    %y = genrec.linear %x, %w bias %bias
    %dw = genrec.weight_gradient %x, %g
    %dx = genrec.linear %g, %w {transposed}         // read by columns
    %touched, %rows = genrec.unique_rows (%ra, %rc) by (%da, %dc)
    // becomes
    %d, %r = genrec.distinct_rows (%ra, %rc)
    %v = genrec.row_kernel %d(%r)                   // loads the rows
    %ya = genrec.distinct_linear %d(%v) times %w columns [0, 12]
    %yb = genrec.linear %b, %wb bias %bias
    %y = genrec.add %ya, %yb
    %dv, %dwa = genrec.distinct_linear_grad %d(%v) times %w gradient %g columns [0, 12]
    %dwb = genrec.weight_gradient %b, %g
    %touched, %rows = genrec.unique_rows (%r) by (%dv)
    ```

    The order of summation changes. A lookup stays in the linear layer if another op reads it; all
    of them, if they have less than `least-width` columns together (their sum is stored and added
    separately), or if the result has less than 4 columns. Runs after `expand-updates`.
  }];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::vector::VectorDialect"];
  let options = [
    Option<"leastWidth", "least-width", "int64_t", /*default=*/"16",
           "columns that lookups must have together in a layer">];
  let statistics = [
    Statistic<"layers", "layers", "linear layers split">,
    Statistic<"lookups", "lookups", "lookups multiplied by distinct row">,
    Statistic<"groups", "groups", "lists of distinct rows, one per layer, table and width">];
}

#endif // GENREC_TRANSFORMS_TRAINING_PASSES_TD
