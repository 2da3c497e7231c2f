//===- Passes.td - from row kernels to EmitC --------------------*- tablegen -*-===//
//
// The passes that lower a planned model: outlined kernels, calls of the runtime, EmitC. Each is in
// the file of its name in a folder of lib/Conversion.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_CONVERSION_PASSES_TD
#define GENREC_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def OutlineKernels : Pass<"genrec-outline-kernels", "::mlir::ModuleOp"> {
  let summary = "turns the bodies of row kernels into functions with loops";
  let description = [{
    Each `genrec.row_kernel` becomes a `genrec.launch` and a function, next to the model, that runs
    the body for a range of rows. The vectors of the body become loops over their elements.
    Elementwise ops of one phase are fused into one loop, on the CPU of those that have ops in common
    or write at most 8 vectors; a reduction or a gather ends a phase. A
    value that a later phase needs is stored in a small local array, or recomputed if it is a load
    or a little arithmetic. Scalar ops whose results are only written to elements of results (for
    example transforms of a number that is then concatenated with others) run first, in a loop of
    their own that is vectorised over rows. Kernels with equal code share a function.

    The functions contain EmitC control flow and memory accesses, and scalar `arith` and `math`,
    which `lower-to-emitc` converts. For target `cuda` (`attach-target`) a warp processes a row, and
    its lanes the elements of a phase. Kernels that one launch runs there (`getJointLaunches`) become
    a `genrec.launch_columns`: updates and reductions of parameters, and kernels that do the same
    for several lists, each of which leaves a `genrec.launched_kernel` where it was. A kernel that
    joins 16 parts and more becomes one, too, with a column for each part and each other result.

    There are no preconditions besides valid row kernels. A body op that has no loop form is an
    error with its location.
  }];
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
    Each program becomes one function per stage, `<program>_<stage>(genrec_step *)`. Launches and
    library ops become calls of the runtime's kernels, specialised by template arguments, on the
    buffers of `plan-memory`. The declarations of the model become constant tables, which
    `genrec_model()` returns to the runtime. No op of the genrec dialect remains; an op without a
    lowering is an error with its location.

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
  let summary = "converts scalar arithmetic to EmitC";
  let description = [{
    Converts the scalar `arith` and `math` ops of outlined kernels. Functions of `math` become calls
    of branch-free functions in `genrec_rt/kernels/shared/math.h`, so that loops over them can be
    vectorised, and 1 / (1 + exp(-x)) one of `sigmoid`. Any op that is not EmitC afterwards is an
    error with its location.
  }];
  let dependentDialects = ["::mlir::emitc::EmitCDialect"];
}

#endif // GENREC_CONVERSION_PASSES_TD
