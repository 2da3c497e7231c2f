//===- Passes.td - passes over the genrec dialect ---------------*- tablegen -*-===//
//
// One record, one file in lib/Dialect/GenRec/Transforms, one test in
// test/Dialect/GenRec/Transforms, all of one stem. In the order of the pipeline.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_TRANSFORMS_PASSES_TD
#define GENREC_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

class GenRecPass<string flag> : Pass<flag, "::genrec::ModelOp"> {
  let dependentDialects = ["::genrec::GenRecDialect"];
}

def VerifyModel : GenRecPass<"genrec-verify-model"> {
  let summary = "rejects models that later passes could not compile";
  let description = [{
    The first pass of the pipeline. What it accepts, later passes may take for
    granted:

    - the model has exactly one program, of mode `all`;
    - there is something to do: at least one loss, metric or output;
    - every loss depends on a parameter or on a table;
    - rows of a `step` domain appear nowhere (only passes make them).

    What holds for every valid program, in any mode, is checked by the verifiers
    of the ops. The IR does not change.
  }];
  let statistics = [Statistic<"ops", "ops", "ops of the program that were checked">];
}

def InferDomains : GenRecPass<"genrec-infer-domains"> {
  let summary = "completes the batch and bounds the ids that features feed into tables";
  let description = [{
    Three things that a front end need not know:

    - `genrec.batch` gets a result for every ancestor of a domain it yields
      (nested lists cannot be read without the lists around them) and loses
      results of domains that nothing needs;
    - a feature whose values reach a table's ids unchanged (through `derive`,
      `fanout`, `lead`, `lag`, `concat_rows`, `split_rows`) gets the table's
      `id_bits`, so that an id out of range is an error that names the
      feature, the file and the row; the smallest, when it feeds several;
    - ids made by `hash` or `mod` must fit the table: more bits are an error here.

    ```mlir
    %ids = genrec.feature %user "user" : !genrec.domain<@user> -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %ids in @users : …
    // becomes
    %ids = genrec.feature %user "user" {id_bits = 52 : i64} : …
    ```
  }];
  let statistics = [
    Statistic<"domainsAdded", "domains-added", "ancestors added to the batch">,
    Statistic<"domainsDropped", "domains-dropped", "unused domains dropped from the batch">,
    Statistic<"featuresBounded", "features-bounded", "features that got a table's id_bits">];
}

def SpecializeModes : GenRecPass<"genrec-specialize-modes"> {
  let summary = "makes a program each for training, evaluation, prediction and item vectors";
  let description = [{
    Clones the imported program (mode `all`) into

    - `@train`: the losses;
    - `@evaluate`: losses and metrics; nothing is dropped out;
    - `@predict`: the outputs that belong to the data; nothing is dropped out;
    - `@items`: the outputs of catalogues; of a catalogue without any, the vectors that
      queries are compared with (`sampled_softmax`, `scores`, `top_k`, `rank`), as
      outputs `vectors`, `vectors_2`, … in the order of the program;

    and erases from each the losses, metrics and outputs of the others; what led to
    them alone is left to `prune-columns`. A feature with a padding id stays where its
    rows are needed. A mode with nothing to do gets no program. A program whose name
    something else has gets underscores; its `mode` tells.

    ```mlir
    %loss = genrec.sampled_softmax %query, %target, %normalized {…} : …
    // gives @items the line
    genrec.output "vectors" %normalized : tensor<?x50xf32, #genrec.rows<@movies>>
    ```
  }];
  let statistics = [
    Statistic<"programs", "programs", "programs made">,
    Statistic<"itemVectors", "item-vectors", "item vectors given out">,
    Statistic<"dropoutsRemoved", "dropouts-removed", "dropouts removed outside training">];
}

def PruneColumns : GenRecPass<"genrec-prune-columns"> {
  let summary = "neither reads nor computes what no loss, metric or output depends on";
  let description = [{
    Erases from every program the ops whose results nothing needs, down to the
    features they read and the domains of the batch. What is left says which columns
    a reader decodes: a column that no program reads may be missing from the file.
    Every column that a program drops is a decision of the model (`genrec.decisions`,
    which `--explain` prints).

    ```mlir
    %age = genrec.feature %user "age" : …
    %old = genrec.compare gt %age, %limit
    genrec.output "score" %score
    // becomes
    genrec.output "score" %score
    ```

    Runs after `specialize-modes`: what a label is to training, prediction does not
    need. Without it, later passes erase dead ops too, but say nothing.
  }];
  let statistics = [
    Statistic<"columns", "columns", "columns that a program no longer reads">,
    Statistic<"ops", "ops", "ops erased">,
    Statistic<"domains", "domains", "domains that a program no longer reads">];
}

def MergeTables : GenRecPass<"genrec-merge-tables"> {
  let summary = "puts logical tables of one spec into one physical table";
  let description = [{
    Tables that agree in all but name and `id_bits` (dimension, optimizer,
    initializer, kind, eviction) get one physical table: a `genrec.table` with
    `members`, in the order of their declaration. Table i of m owns the keys
    `(i << (63 - k)) | id`, k = ceil(log2(m + 1)), so no two of them can meet and ids
    lose nothing. The lookups of a program into one physical table become one
    `genrec.grouped_lookup` (a second one where ids depend on the first), and its
    gradients one update: per step one search for rows, one list of distinct rows, one
    reduction and one update kernel per physical table. Equal lookups are one part.

    Nothing that outlives a step knows: a row's initial value, checkpoints, exports
    and gradients speak of (table, id), and a row's gradients are added in the order
    they were, so results have the same bits. (With `clip_norm` the norm is a sum in
    another order.)

    Rules about rows (`bounded`, `ttl`, `admit_after`) are part of the spec, and each
    member of a merged table has them for itself: a bound counts its own rows.

    A table stays apart when no other has its spec, when its ids and the number of
    the table do not fit into 63 bits (as many tables as possible are kept together,
    narrow ones first), or when it is looked up for all rows of a catalogue, whose
    rows the runtime finds once and keeps. `genrec.decisions` names each with the
    reason.

    ```mlir
    genrec.table @user dim 8 {…}
    genrec.table @city dim 8 {…}
    %u = genrec.lookup %user in @user
    %c = genrec.lookup %city in @city
    // becomes
    genrec.table @user dim 8 {…}
    genrec.table @city dim 8 {…}
    genrec.table @merged_8 dim 8 {…, id_bits = 63, members = [@user, @city]}
    %all = genrec.stack_domains %request, %request
    %keys = genrec.merged_keys %user, %city in [@user, @city] of @merged_8 into %all
    %u, %c = genrec.grouped_lookup %keys in @merged_8 into %request, %request
    ```

    Runs before `differentiate`, which makes one update of a grouped lookup.
  }];
  let statistics = [
    Statistic<"merged", "merged", "physical tables made of several">,
    Statistic<"tables", "tables", "logical tables in them">,
    Statistic<"lookups", "lookups", "lookups that became part of a grouped one">,
    Statistic<"groupedLookups", "grouped-lookups", "grouped lookups made">];
}

def SinkFanout : GenRecPass<"genrec-sink-fanout"> {
  let summary = "does per request what is the same for all impressions of a request";
  let description = [{
    Moves `fanout` behind the ops that read it, so that they run over the rows of the
    ancestor: row-wise ops and blocks whose operands are all fanned out from one
    line of ancestors (or shared), linear layers and lookups. A sunk lookup gets
    `valid`, true where the ancestor has descendants at all: the others were never
    looked up. What draws random numbers per row is never moved.

    `pair_rows` is a copy too: below each row of the first list of
    `genrec.pair_domains` lies the same second list. Row-wise ops on second halves (and on
    what lies above both lists) run over the second list; attention without dropout,
    HSTU blocks, `lead`, `lag`, `position` run over its lists; `pool`, `tile` and `length`
    give a row per parent of the two lists:

    ```mlir
    %p = genrec.pair_rows %x into %pairs
    %h = genrec.hstu_block silu %p, %uvqk, %w, %b
    // becomes
    %e = genrec.hstu_block silu %x, %uvqk, %w, %b
    %h = genrec.pair_rows %e into %pairs
    ```

    Where the two halves of a pair meet, the pairs begin. A linear layer over joined columns of which some are fanned out is split:

    ```mlir
    %f = genrec.fanout %x to %impression
    %c = genrec.concat_columns %f, %y
    %z = genrec.linear %c, %w bias %b
    // becomes
    %wx, %wy = genrec.split_shared %w
    %zx = genrec.linear %x, %wx bias %b
    %zy = genrec.linear %y, %wy
    %f = genrec.fanout %zx to %impression
    %z = genrec.add %f, %zy
    ```

    where the fanned out columns are at least `least-width` in all. Neighbouring
    columns of one domain stay joined. A sum or difference of two kinds of copies among
    the columns is two products with one part of the weight. After `differentiate` the mirror images apply:

    ```mlir
    genrec.weight_gradient (genrec.fanout %x), %y    // becomes weight_gradient %x, (pool sum %y)
    genrec.pool sum (genrec.linear %y, %w)           // becomes linear (pool sum %y), %w
    genrec.weight_gradient (genrec.pair_rows %x), %y // becomes weight_gradient %x, (pair_sum %y)
    genrec.pair_sum (genrec.linear %y, %w)           // becomes linear (pair_sum %y), %w
    ```

    Sums change their order there and where a layer is split; everything else keeps
    its bits. Where a fanout stays although a matrix product, norm or lookup reads it,
    `genrec.decisions` names the op that stopped it. Runs before and after
    `decompose-blocks` and after `differentiate`.
  }];
  let options = [Option<"leastWidth", "least-width", "unsigned", /*default=*/"8",
                        "fanned out columns for which a linear layer is split">];
  let statistics = [
    Statistic<"sunk", "sunk", "ops that now run over an ancestor's rows">,
    Statistic<"split", "split", "linear layers split">,
    Statistic<"hoisted", "hoisted", "gradients pooled before a matrix product">,
    Statistic<"stopped", "stopped", "fanouts that an op stopped">];
}

def FuseTransforms : GenRecPass<"genrec-fuse-transforms"> {
  let summary = "computes the keys of all columns in one launch";
  let description = [{
    The chains of row-wise ops that lead from columns to `genrec.merged_keys` (hash,
    mod, bucketize, cross, …) and the keys themselves become one
    `genrec.transform_columns`: vertically, a chain runs in registers and writes keys
    straight into the buffer that the lookup reads; horizontally, all columns of all
    physical tables that do not depend on another lookup are one launch.

    Columns whose chains differ in constants only share a program: constants that
    differ within it (divisors, edges, numbers of tables) are operands of the column, the others
    stay in the code. There is no dispatch per value.

    The keys of a physical table are left to `merged_keys`, which checks them, where
    the bits of an id are not known to fit its table; `genrec.decisions` names it.

    ```mlir
    %h = genrec.hash xxh3 %name {bits = 52 : i64}
    %keys = genrec.merged_keys %user, %h in [@user, @name] of @merged_8 into %all
    // becomes
    %keys = genrec.transform_columns (%user, %name) into (%all) {programs = array<i64: 0, 1>} : … {
    ^bb0(%id: i64):
      genrec.row_yield %id : i64
    }, {
    ^bb0(%text: !genrec.string):
      %hash = genrec.row_hash xxh3 %text {bits = 52 : i64, seed = 0 : i64}
      %tag = arith.constant 2305843009213693952 : i64
      %key = arith.ori %hash, %tag : i64
      genrec.row_yield %key : i64
    }
    ```

    Runs after `merge-tables`.
  }];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
  let statistics = [
    Statistic<"columns", "columns", "columns whose keys are computed in a fused launch">,
    Statistic<"programs", "programs", "programs that they share">,
    Statistic<"transforms", "transforms", "ops that went into them">,
    Statistic<"launches", "launches", "fused launches">];
}

def VerifyOwnership : GenRecPass<"genrec-verify-ownership"> {
  let summary = "rejects a plan in which a table, column or id has no owner, or two";
  let description = [{
    Compares the plan with the model's declarations and with what the programs read:

    - every logical table is a member of at most one physical table, and a table that
      is a member is looked up and updated through that one only;
    - a program reads every column in one way (it is decoded once);
    - in a training program every physical table has at most one list of distinct
      rows and one update, every list of handles that the step found and that takes
      part in it does so once per gradient, and rows are stored through distinct
      handles only: no id is updated twice in a step;
    - the parts of stacked keys are looked up in the table that their tag stands for;
    - a program reads the columns and the logical tables that it read when it was
      differentiated, which `differentiate` wrote on it (`genrec.columns`,
      `genrec.tables`), and every table that its losses train (`genrec.trains`) has an
      update, of the gradients of the very rows that were found to be distinct.

    An error is at the op that breaks the rule, at the program where an op is missing.
    The IR does not change. Runs after `expand-updates`, and again after
    `factor-lookups`, which regroups gradients.
  }];
  let statistics = [
    Statistic<"tables", "tables", "logical tables whose owner was checked">,
    Statistic<"columns", "columns", "columns of programs that were checked">,
    Statistic<"updates", "updates", "tables whose updates were checked">];
}

def DecomposeBlocks : GenRecPass<"genrec-decompose-blocks"> {
  let summary = "rewrites composite blocks into simpler ops";
  let description = [{
    Rewrites every op with `CompositeOpInterface` (`hstu_block`, the norms,
    `bce_with_logits`) into what it stands for, until none is left.

    ```mlir
    %y = genrec.rms_norm %x {eps = 1.0e-6} : …
    // becomes
    %s = genrec.square %x
    %m = genrec.row_reduce mean %s
    %e = genrec.add %m, %eps
    %r = genrec.rsqrt %e
    %y = genrec.mul %x, %r
    ```
  }];
  let statistics = [Statistic<"blocks", "blocks", "composite ops rewritten">];
}

def Differentiate : GenRecPass<"genrec-differentiate"> {
  let summary = "turns losses into reports, gradients and updates";
  let description = [{
    In every program each `genrec.loss` becomes the two sums that
    `genrec.report_loss` hands to the trainer. In the training program, reverse
    mode through `DifferentiableOpInterface` then appends gradients, as ops of
    this dialect, and one `genrec.update_parameter` per trained parameter, one
    `genrec.update_table` per trained table (with one pair per lookup).

    The seed of a loss is scale * weight / Σ weight per row, 0 where Σ weight is 0.
    Only ops on a path from a parameter or a table to a loss are
    differentiated; an op on such a path without a gradient is an error. Gradients
    of several uses add up in the order of the uses; those of column slices that
    cover a row are joined instead.

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
  let summary = "computes a softmax over many classes without all logits in memory";
  let description = [{
    A linear layer or `genrec.scores` whose only reader is a softmax cross entropy, and
    its gradients, are computed for a block of classes at a time. Going forward, a
    block's logits leave their part of log Σ exp and the logit of the label if it is
    among them; going backward, the logits are computed again, the last block's apart,
    turned into their gradient and used up before the next block's (for rows of tokens:
    Wijmans et al., "Cut your losses in large-vocabulary language models", 2024). The
    price is nearly one more product in backward.

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

    `genrec.after` keeps the blocks apart: without it, `form-row-kernels` would make one
    kernel of all blocks, and CSE would keep the logits instead of computing them again.

    Split are logits of at least four blocks, into at most 16. Logits that something else
    reads too stay whole; `genrec.decisions` names who reads them. Runs after
    `differentiate`.
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
    - `lookup` becomes `table_rows` and a row kernel that loads the row; lookups
      and the update of the same ids share one `table_rows`;
    - `update_parameter` becomes a row kernel over `parameter_rows`, whose body is
      the optimizer's equations in `arith` and `math`;
    - `update_table` becomes `unique_rows`, `segment_sum` and such a kernel over
      the touched rows. A gradient fanned out from the parent (a pooled lookup's) is
      read from the parent's rows, so that it is never written once per list entry.

    With `clip_value` or `clip_norm` on the model the gradients go through
    ordinary ops first: clamped to [-v, v]; then scaled by min(1, c / norm), norm² the sum
    of squares of all parameters' gradients and of all tables' summed gradients.
    The limits are step values, so that flags of a binary can override them.

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

def FactorLookups : GenRecPass<"genrec-factor-lookups"> {
  let summary = "multiplies a looked-up row by a linear layer once, however often it was found";
  let description = [{
    A linear layer over joined columns of which many are looked up computes the same product for
    every row of the batch that found the same table row. It is split by columns: lookups that
    nothing else reads become `genrec.distinct_rows` (per width, the distinct rows of each
    lookup), `genrec.distinct_linear` (a product per distinct row, added where it was found) and
    `genrec.distinct_linear_grad`; the other columns stay a linear layer. Neither the joined
    columns nor their gradient are in memory any more, and `unique_rows` sees each distinct row
    once:

    ```mlir
    %x = genrec.concat_columns %a, %b, %c           // lookups a and c of rows %ra, %rc
    %y = genrec.linear %x, %w bias %bias
    %dw = genrec.weight_gradient %x, %g
    %dx = genrec.linear %g, %w {transposed}         // read by columns
    %touched, %rows = genrec.unique_rows (%ra, %rc) by (%da, %dc)
    // becomes
    %d, %r = genrec.distinct_rows (%ra, %rc)
    %v = genrec.row_kernel %d(%r)                   // loads the rows
    %ya = genrec.distinct_linear %d(%v, %w) columns [0, 12]
    %yb = genrec.linear %b, %wb bias %bias
    %y = genrec.add %ya, %yb
    %dv, %dwa = genrec.distinct_linear_grad %d(%v, %w, %g) columns [0, 12]
    %dwb = genrec.weight_gradient %b, %g
    %touched, %rows = genrec.unique_rows (%r) by (%dv)
    ```

    The sums are those of the linear layer in another order. Lookups stay columns of a layer where
    those of their table and width are less than `least-width` columns together (their sums are
    written and added apart), where the result has less than 4 columns, or where something else
    reads them. Runs after `expand-updates`.
  }];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::vector::VectorDialect"];
  let options = [
    Option<"leastWidth", "least-width", "int64_t", /*default=*/"16",
           "columns that lookups of one table and width must have in a layer">];
  let statistics = [
    Statistic<"layers", "layers", "linear layers split">,
    Statistic<"lookups", "lookups", "lookups multiplied by distinct row">,
    Statistic<"groups", "groups", "lists of distinct rows, one per layer, table and width">];
}

include "genrec/Dialect/GenRec/Transforms/KernelPasses.td"

#endif // GENREC_TRANSFORMS_PASSES_TD
