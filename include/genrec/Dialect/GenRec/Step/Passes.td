//===- Passes.td - planning of steps ----------------------------*- tablegen -*-===//
//
// The passes that know what a step calls. Before row kernels are formed: which factors of products
// are rounded to bfloat16 by themselves. Between row kernels and their lowering: which calls run for
// a block of lists at a time, and memory. Each is in the file of its name in lib/Dialect/GenRec/Step.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_GENREC_STEP_PASSES_TD
#define GENREC_DIALECT_GENREC_STEP_PASSES_TD

include "mlir/Pass/PassBase.td"

def AttachTarget : Pass<"genrec-attach-target", "::mlir::ModuleOp"> {
  let summary = "sets the target that a module is compiled for";
  let description = [{
    Sets the module's attribute `genrec.target`. Later passes ask it for the differences between
    targets: whether calls can run for a block of lists at a time, where constant tables are, how
    kernels are printed. Without the attribute, the target is the CPU.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "`cpu` or `cuda`">];
  let dependentDialects = ["::genrec::GenRecDialect"];
}

def RoundFactors : Pass<"genrec-round-factors", "::genrec::ModelOp"> {
  let summary = "rounds a factor once for all products that read it";
  let description = [{
    For devices. An operand that a product with `bf16` can take rounded
    (`StepOpInterface::takesRounded`) becomes a `genrec.cast` to bf16, one for all products of a
    value: a layer's, that of its weight's gradient, attention's and its gradient's. Row kernels fuse
    the cast into what makes the value, whose f32 is then not stored unless others read it.

    An activation of such a product that is read by slices only is applied to each slice, so that a
    kernel reads the columns that it needs. Each row op that reads one applies it again: what a kernel
    would store of it for another one takes as many bytes as the product's rows. `fold-epilogues` leaves
    activations of these products alone: what multiplies them on a device adds a bias and a residual, and
    has no other epilogue.

    A factor that is computed of joined rows, element by element, of whose parts (whole multiples of 8)
    one is there before the library op that makes another one, is computed and rounded by parts, which
    are joined behind: concat(round(f(x)), round(f(y))). The kernel that has the rows of the early part
    then stores 2 bytes of it, and none reads these rows again.

    ```mlir
    %y = genrec.linear %x, %w {bf16} : …
    %dw = genrec.weight_gradient %x, %dy {bf16} : …
    // becomes
    %r = genrec.cast %x : (tensor<?x64xf32, #genrec.rows<@user>>) -> tensor<?x64xbf16, #genrec.rows<@user>>
    %y = genrec.linear %r, %w {bf16} : …
    %dw = genrec.weight_gradient %r, %rounded_dy {bf16} : …
    ```

    What `genrec.round_factor` makes of rows is stored as bf16 where row kernels gather them
    (`RoundedRowsOpInterface`: the items of a sampled softmax), in whole multiples of 8.

    A factor has the same bits wherever it is rounded. Runs before `fold-epilogues` and `form-row-kernels`.
  }];
  let dependentDialects = ["::genrec::GenRecDialect"];
  let statistics = [
    Statistic<"factors", "factors", "values rounded once">,
    Statistic<"sliced", "sliced", "activations applied to slices">];
}

def FormRowBlocks : Pass<"genrec-form-row-blocks", "::genrec::ModelOp"> {
  let summary = "groups calls over lists into runs that process a block of lists at a time";
  let description = [{
    Without this pass, a stage runs one call after another, each over all rows of a batch: when a
    call reads a value, the value has already been evicted from the caches. Some calls need no row
    of another list: row kernels over a domain of lists that read only its rows and shared values,
    matrix products, gradients of their weights, attention and its gradient. The pass groups such
    calls into *runs*: the ops of a run get the attribute `genrec.row_block` with the run's number
    and are moved next to each other, after the ops that the run depends on and before those that
    use its results. The runtime executes a run for a few lists at a time (row_blocks.h). The buffer
    of a value that only the run reads then holds the rows of one block only, and stays in the
    second-level cache.

    An op that needs rows of all lists ends a run: a sum over rows, a pooled value, a row moved to
    another domain. A run is formed only if it has a matrix product or attention, and keeps values
    of at least a cache line per row out of memory.

    There are no runs on a target without row blocks.

    Precondition: `form-row-kernels` has run, so all row-wise ops are in kernels.
  }];
  let dependentDialects = ["::genrec::GenRecDialect"];
  let statistics = [
    Statistic<"runs", "runs", "runs of calls formed">,
    Statistic<"calls", "calls", "calls in them">];
}

def PlanMemory : Pass<"genrec-plan-memory", "::genrec::ModelOp"> {
  let summary = "plans the buffers of a program: sizes, strides and live ranges";
  let description = [{
    Orders the ops of a program by stage (copy, dispatch, compute, update). The order within a stage
    is kept, but that updates of parameters come last on a device, which runs them in one launch.
    Assigns a buffer to each value that needs memory. Its size is `bytes_per_row` times the capacity
    of a domain plus `bytes`; its live range is from op `first` to op `last` of the program. The program gets the list of buffers as `genrec.buffers`, an op the numbers of its
    buffers as `genrec.buffer_ids`. `genrec.first_compute_op` is the number of the first op of the
    dispatch or compute stage. The runtime allocates buffers of the copy stage in one arena per
    batch in flight, and all others in one arena that the batches share. Buffers with disjoint live
    ranges may share memory.

    Rows that a kernel gathers or scatters by index are padded to whole cache lines (16 floats), and
    smaller rows to a power of two, if every reader takes a stride. The buffer's `stride` is in
    elements.

    A buffer that only one run of `form-row-blocks` uses takes no memory in an arena: `block` is the
    number of the run, and `offset` the buffer's offset in the run's own memory, in bytes per row.
    The live ranges of other buffers that a run uses are extended to the whole run.

    A kernel that joins rows builds them in its result. Where their first part is another kernel's
    result, and nothing else reads that, both have one buffer: the other kernel stores the part where
    the joined rows will be (a `stride` of theirs), and the joining one writes what is behind it.

    Columns of the data, parameters, constants and views (`shared_rows`, `rows_as_shared`, a
    `slice_columns` outside of row kernels) need no memory. A use of a view extends the live range
    of the value that the view aliases.

    Precondition: `form-row-kernels` has run, so all row-wise ops are in kernels.
  }];
  let dependentDialects = ["::genrec::GenRecDialect"];
  let statistics = [
    Statistic<"buffers", "buffers", "buffers planned">,
    Statistic<"views", "views", "values that are views of others">,
    Statistic<"paddedBuffers", "padded-buffers", "buffers whose rows are padded">,
    Statistic<"joinedParts", "joined-parts", "parts stored where rows are joined">];
}

#endif // GENREC_DIALECT_GENREC_STEP_PASSES_TD
