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
  let summary = "makes a program each for training, evaluation and prediction";
  let description = [{
    Clones the imported program (mode `all`) into

    - `@train`: the losses;
    - `@evaluate`: losses and metrics; nothing is dropped out;
    - `@predict`: the outputs; nothing is dropped out;

    and erases from each what it does not need, down to the features it reads and
    the domains of its batch. A mode with nothing to do gets no program. A
    program whose name something else has gets underscores; its `mode` tells.
  }];
  let statistics = [
    Statistic<"programs", "programs", "programs made">,
    Statistic<"dropoutsRemoved", "dropouts-removed", "dropouts removed outside training">];
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

def ExpandUpdates : GenRecPass<"genrec-expand-updates"> {
  let summary = "expands lookups and updates into row handles and row kernels";
  let description = [{
    - `lookup` becomes `table_rows` and a row kernel that loads the row; lookups
      and the update of the same ids share one `table_rows`;
    - `update_parameter` becomes a row kernel over `parameter_rows`, whose body is
      the optimizer's equations in `arith` and `math`;
    - `update_table` becomes `unique_rows`, `segment_sum` and such a kernel over
      the touched rows.

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
    Statistic<"handlesShared", "handles-shared", "lookups and updates that reused handles">];
}

def AssignStages : GenRecPass<"genrec-assign-stages"> {
  let summary = "marks each op with the stage of the step that runs it";
  let description = [{
    `copy` runs for batch t+1 while batch t computes. An op goes there when it
    depends on nothing but the batch and catalogues, draws nothing and makes no
    floats: domain work, transforms of ids, comparisons, `resolve`. Features and shared constants are of
    no stage. Everything else is `compute`: parameters, tables, whatever follows from them.
    Float transforms of features stay in `compute`, where their
    consumers are, so that nothing is buffered between the stages for them.

    Sets `genrec.stage` on every op of every program.
  }];
  let statistics = [
    Statistic<"copyOps", "copy-ops", "ops of the copy stage">,
    Statistic<"computeOps", "compute-ops", "ops of the compute stage">];
}

def FormRowKernels : GenRecPass<"genrec-form-row-kernels"> {
  let summary = "wraps row-wise ops into row kernels and fuses them";
  let description = [{
    After this pass, per-row computation happens in `genrec.row_kernel` ops only.
    What is left between them: domains, features, parameters, views of
    shared tensors as rows and back, and library ops.

    Wrapped are ops with `RowwiseOpInterface`, `fanout` (an ancestor operand),
    `pool` (a pooled result), `reduce_rows` (a reduced result), `embedding_grad` and
    `sampled_softmax_grad` (scattered results), and the kernels of
    `expand-updates`. Constants move into bodies. Computation on shared tensors alone becomes a kernel over
    a fixed step domain (`fixed_rows`, `shared_rows`, `rows_as_shared`).

    A column slice that library ops read in place stays `slice_columns`, a view.
    Kernels that store rows come last: everything else reads what they overwrite.

    `opt=0` makes one kernel of each op. From `opt=1` on, everything row-wise of
    one domain and stage that no library op and no other kernel separates is one
    kernel: chains, fanned out operands, pools, sums and scatters, and siblings
    that read the same rows. Arithmetic on shared scalars is done inside each
    kernel that needs it. Equal computations in a body are merged.

    What an earlier kernel computes and a later one of the same domain and stage
    needs is kept in a buffer (`opt=1`) or, with `opt=2`, computed again if that
    costs less. The cost of keeping a row is its bytes twice (a write and a
    read). The cost of computing it again is 0.35 bytes per elementwise operation
    (4 for a division or root, 12 for exp and its like, 16 for a random word)
    plus the bytes that have to be read for it and are not read anyway. Losses over
    samples, pools, sums and scatters are never repeated. Every value kept, with the reason, is a line
    of the program's attribute `genrec.notes`; a fused kernel lists the ops it was made of as
    `genrec.ops`.

    ```mlir
    %y = genrec.mul %x, %v
    %z = genrec.silu %y
    %s = genrec.reduce_rows %z
    // becomes
    %z, %s = genrec.row_kernel %user(%x, %v) attributes {genrec.ops = "mul, silu, reduce_rows",
        operand_roles = [aligned, shared], result_roles = [aligned, reduced]} {
    ^bb0(%row: f32, %scale: vector<4xf32>, %sum: !genrec.accumulator<tensor<4xf32>>):
      …
      genrec.accumulate %silu into %sum
      genrec.row_yield %silu
    }
    ```
  }];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect", "::mlir::vector::VectorDialect"];
  let options = [Option<"opt", "opt", "unsigned", /*default=*/"2",
                        "0: one kernel per op; 1: merge; 2: merge and recompute what is cheap">];
  let statistics = [
    Statistic<"kernels", "kernels", "row kernels formed">,
    Statistic<"wrapped", "wrapped", "ops wrapped into row kernels">,
    Statistic<"recomputed", "recomputed", "ops computed in one more row kernel">,
    Statistic<"keptBuffers", "kept-buffers", "values kept from one row kernel for another of its domain and stage">];
}

#endif // GENREC_TRANSFORMS_PASSES_TD
