//===- KernelPasses.td - from expanded updates to row kernels ---*- tablegen -*-===//

#ifndef GENREC_TRANSFORMS_KERNEL_PASSES_TD
#define GENREC_TRANSFORMS_KERNEL_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignStages : GenRecPass<"genrec-assign-stages"> {
  let summary = "marks each op with the stage of the step that runs it";
  let description = [{
    `copy` runs for batch t+1 while batch t computes. An op goes there when it
    depends on nothing but the batch and catalogues, draws nothing and makes no
    floats: domain work, transforms of ids, comparisons, `resolve`. Features and shared constants are of
    no stage. Everything else is `compute`: parameters, tables, whatever follows from them.
    Float transforms of features stay in `compute`, where their
    consumers are, so that nothing is buffered between the stages for them; floats
    of derived rows that an op of `copy` reads go along with it.

    Sets `genrec.stage` on every op of every program.
  }];
  let statistics = [
    Statistic<"copyOps", "copy-ops", "ops of the copy stage">,
    Statistic<"computeOps", "compute-ops", "ops of the compute stage">];
}

def FoldEpilogues : GenRecPass<"genrec-fold-epilogues"> {
  let summary = "folds activations and residuals into matrix products";
  let description = [{
    A `linear` followed by an activation (relu, silu, gelu, sigmoid, tanh), by an
    addition of rows, or by both in this order, becomes one `fused_linear`, which does
    all of it before anything is stored. Runs before `form-row-kernels`, whose kernels
    would read the product back.

    An activation is folded when its result must be in memory anyway: another matrix
    product or attention reads it, whole or some columns of it; or when nobody else
    reads the product. Where somebody else does (the activation's gradient), the
    product is stored too (`pre`).

    An addition is folded when nobody else reads the product, and the other operand is
    in memory anyway: it is not computed by row-wise ops, or something else than
    row-wise ops reads it, or the product depends on it (a residual connection: the
    product's own input was made from it, by an earlier kernel).

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
    Statistic<"residuals", "residuals", "additions folded into matrix products">];
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
    kernel that needs it. Equal computations in a body are merged. After 256 ops in
    a row a value goes to memory, whatever it costs: bodies are walked along such
    chains, and a C++ compiler takes long for longer ones.

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

#endif // GENREC_TRANSFORMS_KERNEL_PASSES_TD
