//===- Passes.td - passes over the genrec dialect ---------------*- tablegen -*-===//
//
// Each pass has a file in lib/Dialect/GenRec/Transforms and a test in
// test/Dialect/GenRec/Transforms with the same name. The order is that of the pipeline.
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
    The first pass of the pipeline. Later passes may assume what it checks:

    - the model has exactly one program, of mode `all`;
    - the program has at least one loss, metric or output;
    - every loss depends on a parameter or on a table;
    - no value has rows of a `step` domain (only passes make them).

    Rules for valid programs of any mode are checked by the verifiers of the ops. The IR does not
    change.
  }];
  let statistics = [Statistic<"ops", "ops", "ops of the program that were checked">];
}

def InferDomains : GenRecPass<"genrec-infer-domains"> {
  let summary = "adds missing ancestors to the batch and bounds the ids of features";
  let description = [{
    Does three things that a front end need not do:

    - `genrec.batch` gets a result for every ancestor of a domain it yields
      (nested lists cannot be read without the lists around them) and loses
      results of domains that nothing needs;
    - a feature whose values reach a table's ids unchanged (through `derive`,
      `fanout`, `lead`, `lag`, `concat_rows`, `split_rows`) gets the table's
      `id_bits`, so that an id out of range is an error that names the
      feature, the file and the row; the smallest, when it feeds several;
    - ids computed by `hash` or `mod` must fit the table: more bits are an error here.

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

def MixedPrecision : GenRecPass<"genrec-mixed-precision"> {
  let summary = "rounds the factors of all products to bfloat16";
  let description = [{
    Sets `bf16` on every op that multiplies matrices or vectors (`ProductOpInterface`): linear layers,
    attention, interactions, sampled softmax, and blocks that decompose into them. What is rounded, and
    what stays f32 (sums, parameters, optimizer state, norms, losses, scores of catalogues), is in
    docs/mixed-precision.md.

    ```mlir
    %y = genrec.linear %x, %w bias %b : …
    // becomes
    %y = genrec.linear %x, %w bias %b {bf16} : …
    ```

    An attribute, not element types: values keep their types, so that the pass inserts no casts for
    others to see through, and a product's gradients and pieces get the attribute from it. Runs only
    on request, before any pass that takes products apart. A front end sets the attribute itself where
    only some modules are to have it.
  }];
  let statistics = [Statistic<"products", "products", "products that got bf16">];
}

def SpecializeModes : GenRecPass<"genrec-specialize-modes"> {
  let summary = "creates a program each for training, evaluation, prediction and item vectors";
  let description = [{
    Clones the imported program (mode `all`) into

    - `@train`: the losses;
    - `@evaluate`: losses and metrics, without dropout;
    - `@predict`: the outputs of data domains, without dropout;
    - `@items`: the outputs of catalogue domains. A catalogue without outputs gets the vectors that
      queries are compared with (in `sampled_softmax`, `scores`, `top_k`, `rank`), as outputs
      `vectors`, `vectors_2`, … in program order;

    and erases from each program the losses, metrics and outputs of the other modes. `prune-columns`
    then removes ops that have become unused. A feature with a padding id is kept if its domain is
    needed. A mode without losses, metrics and outputs gets no program. If the name of a program is
    taken, it gets underscores; its `mode` is authoritative.

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
  let summary = "removes columns and ops that no loss, metric or output depends on";
  let description = [{
    Erases the ops of every program whose results are unused, up to the features they read and the
    domains of the batch. The remaining features are the columns that a reader decodes: a column
    that no program reads may be missing from the file. Every column that a program drops is
    recorded as a decision (`genrec.decisions`, which `--explain` prints).

    ```mlir
    %age = genrec.feature %user "age" : …
    %old = genrec.compare gt %age, %limit
    genrec.output "score" %score
    // becomes
    genrec.output "score" %score
    ```

    Runs after `specialize-modes`, as prediction does not need labels, for example. Later passes
    erase dead ops as well, but record no decisions.
  }];
  let statistics = [
    Statistic<"columns", "columns", "columns that a program no longer reads">,
    Statistic<"ops", "ops", "ops erased">,
    Statistic<"domains", "domains", "domains that a program no longer reads">];
}

def MergeTables : GenRecPass<"genrec-merge-tables"> {
  let summary = "merges logical tables with the same attributes into one table";
  let description = [{
    *Logical tables* are those of the user's model. Logical tables that differ only in name and
    `id_bits` (so they have the same dimension, optimizer, initializer, kind, eviction rules) get
    one *merged table*: a `genrec.table` with `members`, in the order of their declaration. Table i
    of m owns the keys `(i << (63 - k)) | id`, k = ceil(log2(m + 1)): keys of different tables never
    collide, and ids are not truncated. The lookups of a program in one merged table become one
    `genrec.grouped_lookup` (a second one if ids depend on the first), with one update. A step then
    has one search for rows, one list of distinct rows, one reduction and one update kernel per
    merged table. Equal lookups become one part of the grouped lookup.

    Merging does not change results. Initial values of rows, checkpoints, exports and gradients are
    identified by (logical table, id), and the gradients of a row are added in the same order, so
    results are bitwise equal. (Except with `clip_norm`: the norm is summed in another order.)

    Admission and eviction rules (`bounded`, `ttl`, `admit_after`) must agree as well. They apply to
    each member separately: a bound counts the member's own rows.

    A logical table is not merged if no other table has its attributes; if its ids and the number of
    the table do not fit into 63 bits (as many tables as possible are merged, those with the fewest
    bits first); or if it is looked up for all rows of a catalogue, whose rows the runtime finds
    once and keeps. `genrec.decisions` records the reason.

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

    Runs before `differentiate`, which creates one update per grouped lookup.
  }];
  let statistics = [
    Statistic<"merged", "merged", "merged tables made">,
    Statistic<"tables", "tables", "logical tables in them">,
    Statistic<"lookups", "lookups", "lookups that became part of a grouped one">,
    Statistic<"groupedLookups", "grouped-lookups", "grouped lookups made">];
}

def SinkFanout : GenRecPass<"genrec-sink-fanout"> {
  let summary = "moves work from below a fan-out to above it, such as from impressions to requests";
  let description = [{
    Moves `fanout` after its users, so that these run over the rows of the ancestor. It moves past
    row-wise ops and blocks whose operands are all fanned out along one path of ancestors (or
    shared), linear layers, and lookups. A lookup that is moved to the ancestor gets `valid`, which
    is true for rows with descendants: other rows were never looked up. Ops that draw random numbers
    per row are never moved.

    `pair_rows` copies rows too: for each row of the first list, a `genrec.pair_domains` repeats the
    whole second list. Row-wise ops on rows of the second list (and on values of common ancestors of
    both lists) are moved to the second list, as are attention without dropout, HSTU blocks, `lead`,
    `lag` and `position`. `pool`, `tile` and `length` are computed once per parent row of the two
    lists:

    ```mlir
    %p = genrec.pair_rows %x into %pairs
    %h = genrec.hstu_block silu %p, %uvqk, %w, %b
    // becomes
    %e = genrec.hstu_block silu %x, %uvqk, %w, %b
    %h = genrec.pair_rows %e into %pairs
    ```

    An op that combines values of both lists stays in the domain of pairs.

    A linear layer is split if some of the columns that it concatenates are fanned out:

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

    This is done if at least `least-width` columns are fanned out. Adjacent columns of one domain
    remain concatenated. A column that is a sum or difference of two broadcasts (of a `fanout`
    and a `pair_rows`, for example) becomes two products with the same rows of the weight. After
    `differentiate`, the transposed patterns apply:

    ```mlir
    genrec.weight_gradient (genrec.fanout %x), %y    // becomes weight_gradient %x, (pool sum %y)
    genrec.pool sum (genrec.linear %y, %w)           // becomes linear (pool sum %y), %w
    genrec.weight_gradient (genrec.pair_rows %x), %y // becomes weight_gradient %x, (pair_sum %y)
    genrec.pair_sum (genrec.linear %y, %w)           // becomes linear (pair_sum %y), %w
    ```

    The order of summation changes in these patterns and where a layer is split; all other results
    are bitwise equal. If a fanout is read by a matrix product, norm or lookup and cannot be moved,
    `genrec.decisions` records the op that prevents it. The pass runs before and after
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
  let summary = "computes the keys of merged tables for all columns in one launch";
  let description = [{
    The chains of row-wise ops from columns of the data to `genrec.merged_keys` (hash, mod,
    bucketize, cross, …), and the computation of the keys, become one `genrec.transform_columns`.
    Each chain is fused: it runs in registers and writes keys directly into the buffer that the
    lookup reads. All chains that do not depend on another lookup, of all merged tables, are one
    launch.

    Columns whose chains differ only in constants share a column program. Constants that differ
    between them (divisors, edges, numbers of tables) become operands of the column; others stay in
    the code. There is no dispatch per value.

    If the bits of an id are not known to fit its table, the keys of its merged table are left to
    `merged_keys`, which checks them. `genrec.decisions` records the id.

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
  let summary = "checks that every table, column and id has exactly one owner";
  let description = [{
    Checks the program against the model's declarations and against what the program read before:

    - every logical table is a member of at most one merged table, and is then looked up and updated
      only through that one;
    - a program reads every column of the data by one feature (it is decoded once);
    - in a training program, every table that has an update has one list of distinct rows and one
      update; every list of handles in it occurs once per gradient; and rows are stored only through
      distinct handles. So no id is updated twice in a step;
    - the parts of stacked keys are looked up in the table of their tag;
    - a program reads the columns and logical tables that it read when it was differentiated, which
      `differentiate` recorded (`genrec.columns`, `genrec.tables`); and every table that its losses
      train (`genrec.trains`, once per list of ids) has an update of the rows of as many lists, with
      the gradients of exactly its distinct rows;
    - in a distributed program (`distribute`), what depends on a sum over all portions reads that sum,
      nothing is added up twice, and no kernel writes the copies that a portion has of table rows.

    An error is reported at the op that breaks the rule, or at the program if an op is missing. The
    IR does not change. Runs after `expand-updates` and again after `factor-lookups`, which regroups
    gradients.
  }];
  let statistics = [
    Statistic<"tables", "tables", "logical tables whose owner was checked">,
    Statistic<"columns", "columns", "columns of programs that were checked">,
    Statistic<"updates", "updates", "tables whose updates were checked">];
}

def DecomposeBlocks : GenRecPass<"genrec-decompose-blocks"> {
  let summary = "rewrites composite blocks into simpler ops";
  let description = [{
    Rewrites every op with `CompositeOpInterface` (`hstu_block`, the norms, `bce_with_logits`) into
    the ops that define it, until none is left.

    ```mlir
    %y = genrec.rms_norm %x {eps = 1.0e-6} : …
    // becomes
    %s = genrec.square %x
    %m = genrec.row_reduce mean %s
    %e = genrec.add %m, %eps
    %r = genrec.rsqrt %e
    %y = genrec.mul %x, %r
    ```

    Products with `bf16` that become parts of row kernels (`sampled_softmax`) get factors that
    `genrec.round_factor` makes, once for all that multiply a value, in place of the attribute.
  }];
  let statistics = [
    Statistic<"blocks", "blocks", "composite ops rewritten">,
    Statistic<"products", "products", "products of row kernels whose factors became ops">];
}

def FormInteractions : GenRecPass<"genrec-form-interactions"> {
  let summary = "computes the dot products of all pairs of vectors as one product";
  let description = [{
    Dot products of all pairs of some vectors of a row, written one by one and concatenated, become a
    `genrec.dot_interaction` (Naumov et al. 2019, DLRM). Its cost is that of a matrix product per row;
    one by one they would be a kernel with an op per pair, whose code grows with the square of the
    vectors, and its gradient, too.

    ```mlir
    %ab = genrec.mul %a, %b
    %0 = genrec.row_reduce sum %ab
    …
    %x = genrec.concat_columns %0, %1, %2, %dense        // of pairs (b, a), (c, a), (c, b)
    // becomes
    %vectors = genrec.concat_columns %a, %b, %c
    %products = genrec.dot_interaction %vectors {count = 3 : i64}
    %x = genrec.concat_columns %products, %dense
    ```

    Every pair must be there once; all products of vectors with themselves, too, or none of them.
    Products in another order than the op's are columns of its result (`genrec.slice_columns`). A
    product that another op reads, or of fewer than `least-vectors` vectors, stays as it is.
    `genrec.decisions` records each interaction. The order of summation changes.

    Runs before `differentiate`, so that the gradient is that of the op, and after
    `mixed-precision`: the products are not rounded.
  }];
  let options = [
    Option<"leastVectors", "least-vectors", "int64_t", /*default=*/"8",
           "vectors of which all pairs must be there">];
  let statistics = [
    Statistic<"formed", "interactions", "interactions formed">,
    Statistic<"dots", "dots", "dot products that became part of one">];
}

def PickCatalogueRows : GenRecPass<"genrec-pick-catalogue-rows"> {
  let summary = "computes what is only gathered from a catalogue for the rows that a step reads";
  let description = [{
    A sampled softmax reads few rows of a catalogue: the positives of a batch, and the negatives that
    the step draws. The vectors of the items are then looked up and computed for those rows only:

    ```mlir
    %ids = genrec.feature %items "item"
    %vectors = genrec.lookup %ids in @item                   // of all items
    %loss = genrec.sampled_softmax %query, %positive, %vectors {negatives = 8192, shared, …}
    // becomes
    %drawn = genrec.draw_rows %items {count = 8192, …}
    %picked, %rows, %numbers:2 = genrec.pick_rows %items (%positive, %drawn)
    %own = genrec.gather_rows %ids at %rows
    %vectors = genrec.lookup %own in @item                   // of the distinct rows among %positive and %drawn
    %loss = genrec.sampled_softmax %query, %numbers#0, %vectors drawn %numbers#1 {…}
    ```

    Picked are values of a catalogue that depend on a table or parameter, whose readers all gather
    rows by number (`GathersRowsOpInterface`), with numbers that depend on the data and on draws
    only. The ops that compute them are cloned for the picked rows, lists of the items included
    (`genrec.pick_lists`); columns are gathered. Picked rows keep their identities, so that random
    streams do not change.

    Not picked is a value

    - that another op reads whole: `top_k`, `rank`, `scores`, or an output, or a reader of what it is
      computed from;
    - that an op computes which combines rows of several items;
    - that needs a table with rules about rows (`bounded`, `ttl`, `admit_after`), in training: a lookup
      of all items counts as seeing each of them;
    - of which a step reads about as many rows as the catalogue has: if the row numbers are at least
      `expected_rows` of the catalogue's domain, with `batch-rows` rows of a root domain and
      `list-rows` rows per list. A catalogue of unknown size is taken to be large.

    `genrec.decisions` records each picked value, and why the others stay whole.

    Losses are bitwise equal to those without the pass. Gradients may differ by rounding: those of
    rows are added up in chunks whose number depends on how many rows there are. A table has no rows
    for items that no step has read (without the pass, a first step inserts a row for each item, with
    its initial value).

    Runs before `differentiate`: the gradients of picked rows are then those of any lookup.
  }];
  let options = [
    Option<"batchRows", "batch-rows", "int64_t", /*default=*/"1024",
           "rows of a root domain that costs assume">,
    Option<"listRows", "list-rows", "int64_t", /*default=*/"32",
           "rows per list that costs assume">];
  let statistics = [
    Statistic<"values", "values", "values computed for picked rows">,
    Statistic<"ops", "ops", "ops cloned for picked rows">,
    Statistic<"whole", "whole", "gathered values that stay whole">];
}

include "genrec/Dialect/GenRec/Transforms/TrainingPasses.td"
include "genrec/Dialect/GenRec/Transforms/KernelPasses.td"

#endif // GENREC_TRANSFORMS_PASSES_TD
