//===- Passes.td - planning of steps ----------------------------*- tablegen -*-===//
//
// The passes between row kernels and their lowering: they decide which calls run for a block of
// lists at a time, and plan memory. Each is in the file of its name in lib/Dialect/GenRec/Step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_PASSES_TD
#define GENREC_DIALECT_GENREC_STEP_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttachTarget : Pass<"genrec-attach-target", "::mlir::ModuleOp"> {
  let summary = "says what the code of a module will run on";
  let description = [{
    Sets the module's attribute `genrec.target`, which later passes ask what differs between
    targets: whether kernels add up gradients of table rows themselves, whether calls run
    for blocks of lists, how kernels are printed. A module without it is for the CPU.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "`cpu` or `cuda`">];
  let dependentDialects = ["::genrec::GenRecDialect"];
}

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

    A target without row blocks has no runs.

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

#endif // GENREC_DIALECT_GENREC_STEP_PASSES_TD
