//===- Passes.td - from row kernels to EmitC --------------------*- tablegen -*-===//
//
// The passes below the optimised level: memory, outlined kernels, calls of the
// runtime, EmitC. Each is one file in lib/Conversion of the same stem.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_CONVERSION_PASSES_TD
#define GENREC_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def FormRowBlocks : Pass<"genrec-form-row-blocks", "::genrec::ModelOp"> {
  let summary = "lets consecutive calls over lists run for a block of lists at a time";
  let description = [{
    A stage runs call after call, each over all rows of a batch, so that each reads what
    left the caches since it was written. Row kernels over a domain with lists that read
    rows of it and shared values only, matrix products, gradients of their weights,
    attention and its gradient need no row of another list. Those of them that nothing else
    stands between get the attribute `genrec.row_block`, one number for each run of calls, and
    are put next to each other: what the run needs comes before it, what needs its results
    after. The runtime runs them for a few lists at a time (row_blocks.h): what no other call
    reads has room for one block's rows, and stays in the second-level cache.

    A run ends where rows of all lists are needed: a sum over rows, a pooled value, a moved
    row. Runs are formed where they hold a matrix product or attention, and keep at least a
    cache line per row out of memory.

    Preconditions: `form-row-kernels` has run; what needs a kernel is in one.
  }];
  let dependentDialects = ["::genrec::GenRecDialect"];
  let statistics = [
    Statistic<"runs", "runs", "runs of calls formed">,
    Statistic<"calls", "calls", "calls in them">];
}

def PlanMemory : Pass<"genrec-plan-memory", "::genrec::ModelOp"> {
  let summary = "gives every value of a program a buffer, with its size and life";
  let description = [{
    Orders the ops of a program by stage (copy, dispatch, compute; the order
    within a stage stays), then gives each value that needs memory a buffer:
    `bytes_per_row` times the capacity of a domain plus `bytes`, live from op
    `first` to op `last` of the program. The program gets them as the attribute
    `genrec.buffers`, an op the numbers of its own as `genrec.buffer_ids`.
    The attribute `genrec.first_compute_op` is the number of the first op of the
    dispatch or compute stage. The runtime places the buffers that the copy stage
    makes in an arena per batch in flight and the others in one that all batches
    share; those whose lives do not meet may share memory.

    Rows that a kernel picks by index, or adds to so, are padded to whole cache lines
    (16 floats; shorter ones to a power of two): a buffer's `stride`, in elements. Only
    where everything that reads them is told the distance of rows.

    A buffer of which only one run of `form-row-blocks` knows takes no room in an arena:
    `block` is the number of the run, `place` the bytes per row before it, among the run's
    own. Other buffers that a run makes or reads live as long as the run.

    Columns of the data, parameters, constants and views (`shared_rows`,
    `rows_as_shared`, a `slice_columns` left outside of row kernels) need no memory. The
    life of what a view shows ends with the last use of the view.

    Preconditions: `form-row-kernels` has run; what needs a kernel is in one.
  }];
  let dependentDialects = ["::genrec::GenRecDialect"];
  let statistics = [
    Statistic<"buffers", "buffers", "buffers planned">,
    Statistic<"views", "views", "values that are views of others">,
    Statistic<"paddedBuffers", "padded-buffers", "buffers whose rows are padded">];
}

def OutlineKernels : Pass<"genrec-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "turns the bodies of row kernels into functions with loops";
  let description = [{
    Each `genrec.row_kernel` becomes a `genrec.launch` and a function beside
    the model that runs the body for a range of rows. The vectors of the body
    become loops over their elements: elementwise ops of one phase run fused in
    one loop, a reduction or a gather ends a phase, and what a later phase needs
    is kept in a small local array or, where that is only a load or a little
    arithmetic, computed again. Scalars that only become columns of results (a
    number's transforms, joined with others) run first, in a loop of their own that
    takes many rows at a time. Kernels of equal code are made once.

    The functions hold EmitC control flow and memory accesses around scalar
    `arith` and `math`, which `lower-to-emitc` converts. With target `cuda` the
    same phases are handed to the lanes of a warp per row.

    Preconditions: none but valid row kernels. A body op that has no loop form is
    an error with its location.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"",
           "`cpu`: loops, rows in chunks; `cuda`: a warp per row">];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::emitc::EmitCDialect",
                           "::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
  let statistics = [
    Statistic<"kernels", "kernels", "functions made">,
    Statistic<"launches", "launches", "row kernels replaced">,
    Statistic<"loops", "loops", "loops over the elements of a row">,
    Statistic<"arrays", "arrays", "local arrays between phases">];
}

def LowerToRuntime : Pass<"genrec-lower-to-runtime", "::mlir::ModuleOp"> {
  let summary = "turns programs into stage functions that call the runtime";
  let description = [{
    Each program becomes one function per stage, `<program>_<stage>(genrec_step *)`:
    launches and library ops become calls of the runtime's kernels, specialised
    by template arguments, over the buffers of `plan-memory`. The declarations of the model
    become the constant tables that `genrec_model()` hands to the runtime. What
    is left holds no op of the genrec dialect; an op without a lowering is an
    error with its location.

    Preconditions: `plan-memory` and `outline-kernels` have run.
  }];
  let options = [
    Option<"compiler", "compiler", "std::string", "\"genrec\"",
           "name, version and options of the compiler, kept in the description of the model">];
  let dependentDialects = ["::genrec::GenRecDialect", "::mlir::emitc::EmitCDialect"];
  let statistics = [
    Statistic<"stages", "stages", "stage functions made">,
    Statistic<"libraryCalls", "library-calls", "library ops turned into calls">];
}

def LowerToEmitC : Pass<"genrec-lower-to-emitc", "::mlir::ModuleOp"> {
  let summary = "converts scalar arithmetic to EmitC, so that nothing else is left";
  let description = [{
    Converts the scalar `arith` and `math` ops of outlined kernels. Functions of
    `math` become calls of the branch-free ones in `genrec_rt/kernels/math.h`, so that
    loops over them vectorise. Anything that is not EmitC afterwards is an
    error with its location.
  }];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif // GENREC_CONVERSION_PASSES_TD
