//===- KernelPasses.td - from expanded updates to row kernels ---*- tablegen -*-===//

#ifndef GENREC_TRANSFORMS_KERNEL_PASSES_TD
#define GENREC_TRANSFORMS_KERNEL_PASSES_TD

include "mlir/Pass/PassBase.td"

def MultiplyNegatives : GenRecPass<"genrec-multiply-negatives"> {
  let summary = "multiplies queries by negatives that all rows share as a matrix";
  let description = [{
    Rows that share their negatives (`genrec.sampled_softmax` with `shared`) need the dot products of
    all queries with all negatives: a matrix product. So do their gradients. Row by row, each query
    would read all negatives, and add to the gradients of all of them.

    ```mlir
    %loss = genrec.sampled_softmax %query, %positive, %items drawn %drawn {shared, …}
    %dquery, %ditems = genrec.sampled_softmax_grad %query, %positive, %items, %seed drawn %drawn {shared, …}
    // becomes
    %own = genrec.gather_rows %items at %positive
    %dot = genrec.row_reduce sum (%query * %own)
    %rows = genrec.gather_rows %items at %drawn                // as rows of a fixed step domain
    %negatives = genrec.rows_as_shared %rows
    %dots = genrec.linear %query, %negatives {transposed}
    %loss = genrec.sampled_cross_entropy %dot, %dots, %positive, %drawn
    %ddot, %ddots = genrec.sampled_cross_entropy_grad %dot, %dots, %positive, %drawn, %seed
    %dquery = genrec.linear %ddots, %negatives + %ddot * %own
    %dnegatives = genrec.weight_gradient %ddots, %query
    %ditems = genrec.scatter_rows %ddot * %query at %positive + genrec.scatter_rows %dnegatives at %drawn
    ```

    Of query and items that were rounded (`genrec.round_factor`) the products have `bf16`: the gradients
    round %ddots, too, as those of any product do. `genrec.decisions` records each. The order of
    summation changes.

    Runs behind `distribute`, which sees one op whose rows are those of the query, and before
    `assign-stages`. CSE makes one of what loss and gradient both need.
  }];
  let statistics = [
    Statistic<"multiplied", "multiplied", "ops whose negatives became a product">];
}

def AssignStages : GenRecPass<"genrec-assign-stages"> {
  let summary = "marks each op with the stage of the step that runs it";
  let description = [{
    The `copy` stage of batch t+1 runs while batch t computes. An op is assigned to it if it depends
    only on the batch and on catalogues, draws no random numbers and has no float results: ops on
    domains, transforms of ids, comparisons, `resolve`. All other ops are in stage `compute`: those
    that depend on parameters or tables, and float transforms of features, which are computed where
    they are used, so that they need no buffer between the stages. An exception are floats of
    derived rows that an op of `copy` reads. Features and shared constants have no stage.

    In a program with `genrec.collect`, each rank runs `copy`, `dispatch` and `compute` once per
    portion of its batch, and `update` once per step:

    - `dispatch` holds the `table_rows` whose ids `copy` made, and what must be added up over portions
      before any of them computes (the weights of losses), if it depends on the batch only;
    - `update` holds the kernels that write parameters and table rows, and all that only these read,
      back to the sums over portions (`collect`, `collect_rows`).

    Sets `genrec.stage` on every other op of every program. Where `compute` needs what all portions
    give (a sum that depends on parameters, rows by ids that it makes), the portions of a rank wait
    for each other: `genrec.meeting` of the program says at which op first.

    The lengths of lists of one domain become one op in each stage, where the first is.
  }];
  let statistics = [
    Statistic<"copyOps", "copy-ops", "ops of the copy stage">,
    Statistic<"dispatchOps", "dispatch-ops", "ops of the dispatch stage">,
    Statistic<"updateOps", "update-ops", "ops of the update stage">,
    Statistic<"computeOps", "compute-ops", "ops of the compute stage">];
}

def FoldEpilogues : GenRecPass<"genrec-fold-epilogues"> {
  let summary = "folds epilogues into matrix products and gradients of attention";
  let description = [{
    A `linear` followed by an activation (relu, silu, gelu, sigmoid, tanh), by an addition of rows,
    or by both in this order, becomes one `fused_linear`, which computes all of it before it stores
    a row. Runs before `form-row-kernels`, whose kernels would have to read the product back.

    An activation is folded if its result is stored anyway, because another matrix product or
    attention reads it or a slice of it, or if the product has no other reader. If the product has
    another reader (the activation's gradient), it is stored as well (`pre`).

    An addition is folded if the product has no other reader and the other operand is stored anyway:
    it is not computed by row-wise ops, or an op that is not row-wise reads it, or the product
    depends on it (in a residual connection an earlier kernel computes the product's input from it).

    A product whose factor `round-factors` has rounded before is a device's library's. It adds a
    residual onto its sums, but no activation is folded into it, nor a residual that kernels would
    rather compute again than keep (a row that is looked up).

    Gradients of attention whose factors were rounded before, of q, k and v that are the silu of all
    columns of a product but the first ones, become one `fused_attention_grad` with what follows: they
    are multiplied by the derivative of silu, rounded and joined before they are stored.

    ```mlir
    %p = genrec.linear %n, %w bias %b
    %a = genrec.silu %p
    %h = genrec.linear %a, %v
    %y = genrec.add %x, %h
    // becomes
    %a = genrec.fused_linear %n, %w bias %b activation silu
    %y = genrec.fused_linear %a, %v residual %x activation none
    ```
  }];
  let statistics = [
    Statistic<"activations", "activations", "activations folded into matrix products">,
    Statistic<"residuals", "residuals", "additions folded into matrix products">,
    Statistic<"gradients", "gradients", "gradients of silu folded into those of attention">];
}

def FormRowKernels : GenRecPass<"genrec-form-row-kernels"> {
  let summary = "wraps row-wise ops into row kernels and fuses them";
  let description = [{
    After this pass, all row-wise computation is in `genrec.row_kernel` ops. The other ops are
    domains, features, parameters, views of shared tensors as rows and of rows as shared tensors,
    and library ops.

    The pass wraps ops with `RowwiseOpInterface`, `fanout` (as an ancestor operand), `pool` (as a
    pooled result), `reduce_rows` (as a reduced result), `embedding_grad`, `scatter_rows` and
    `sampled_softmax_grad` (as scattered results), and the kernels of `expand-updates`. Constants are
    moved into bodies. Computation on shared tensors only becomes a kernel over a fixed step domain (`fixed_rows`,
    `shared_rows`, `rows_as_shared`).

    A slice that library ops read in place remains a `slice_columns`, which is a view. Kernels that
    store table or parameter rows come last, as other ops read the rows that they overwrite.

    `opt=0` makes a kernel per op. From `opt=1` on, row-wise ops of one domain and stage are fused
    into one kernel unless a library op or another kernel must run between them: chains, fanned-out
    operands, pools, sums and scatters, and siblings that read the same rows. Arithmetic on shared
    scalars is repeated in each kernel that needs it. Equal computations in a body are merged. A
    chain of more than 256 ops is split, at any cost: passes recurse along such chains, and a C++
    compiler is slow on longer ones.

    A kernel pools into one domain, and a kernel that pools adds up no sums over all rows (`reduced`,
    `scattered`): those are kernels of their own. On a device threads have pieces of long lists in a
    kernel that pools, and chunks of all rows in one that adds up.

    With `wide-joins`, which devices have, a `concat_columns` of 16 parts and more has a kernel of its
    own, and is stored for whoever reads it: a device makes its parts side by side.

    If a kernel needs a value that an earlier kernel of the same domain and stage computes, the
    value is stored in a buffer (`opt=1`), or with `opt=2` recomputed if that costs less. Storing
    costs twice the bytes of a row (a write and a read). Recomputing costs 0.35 bytes per operation,
    plus the bytes of operands that the kernel does not read otherwise. A division or square root
    counts as 4 operations; exp and similar functions, a random word and a hash count as 16. Sampled
    losses, pools, sums and scatters are never recomputed. Each stored value is a line of the
    program's attribute `genrec.notes`, with the reason. `genrec.ops` lists the ops of a fused
    kernel.

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
                        "0: one kernel per op; 1: merge; 2: merge and recompute what is cheap">,
                 Option<"wideJoins", "wide-joins", "bool", /*default=*/"false",
                        "wide joins have kernels of their own">];
  let statistics = [
    Statistic<"kernels", "kernels", "row kernels formed">,
    Statistic<"wrapped", "wrapped", "ops wrapped into row kernels">,
    Statistic<"recomputed", "recomputed", "ops computed in one more row kernel">,
    Statistic<"keptBuffers", "kept-buffers", "values kept from one row kernel for another of its domain and stage">];
}

#endif // GENREC_TRANSFORMS_KERNEL_PASSES_TD
