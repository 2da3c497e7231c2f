//===- GenRecDialect.td - the genrec dialect --------------------*- tablegen -*-===//
//
// The dialect and the base classes of its ops. Types, attributes, interfaces and ops have files of
// their own; ops are split by theme.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_DIALECT_TD
#define GENREC_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"

def GenRec_Dialect : Dialect {
  let name = "genrec";
  let cppNamespace = "::genrec";
  let summary = "recommendation-model graphs over row domains";
  let description = [{
    Every value of a model is a table of rows with a **row domain**: one row per request, per
    impression, or per event of a history, for example. The rows of a domain in one batch are an SSA
    value of type `!genrec.domain<@history>`. A value is a ranked tensor with a dynamic leading
    dimension whose encoding names the domain: `tensor<?x50xf32, #genrec.rows<@history>>`. A tensor
    without the encoding is *shared* by all rows, like a parameter or a sum over all rows.

    A program has at most one value of each domain type, so the symbol in the encoding identifies
    the domain value; the verifier of `genrec.program` checks it.

    A row is a scalar, written [], or a vector of static size, written [d]. Element types are i1,
    i32, i64, f32, f64 and `!genrec.string`. There are no nullable types: for a nullable value, a
    separate i1 value is the mask of valid rows, which ops take as the operand `valid`.

    An op that draws random numbers has a `stream`. A random number is a function of (seed, step,
    stream, identity of the row, element), so it does not depend on the batch, the number of
    threads, or on passes.

    The IR has three levels:

    - model: features, transforms, lookups, layers and losses, in one program;
    - after `differentiate` and `expand-updates`: gradients and updates are ops of the same kind;
      each distinct table row is found once and updated once;
    - after `form-row-kernels`: all row-wise ops are in `genrec.row_kernel`s; the other ops become
      calls of the runtime's library.
  }];
  // Attributes that passes leave for later passes, as `genrec.<name>`. The verifier rejects other
  // names and types.
  let discardableAttrs = (ins
    // On an op of a program.
    "::genrec::StageAttr":$stage,            // assign-stages: the stage that runs it
    "::genrec::RowBlockAttr":$row_block,     // form-row-blocks: the run of calls that it is in
    "::mlir::DenseI64ArrayAttr":$buffer_ids, // plan-memory: numbers of its buffers, by slot; -1: none
    "::mlir::ArrayAttr":$costs,              // outline-kernels, on a launch: its kernel's `#genrec.cost`
    "::mlir::StringAttr":$origin,            // outline-kernels, on a launch: the model's ops it came from
    "::mlir::StringAttr":$ops,               // form-row-kernels: what a fused kernel was made of
    "::mlir::DenseI64ArrayAttr":$joined_at,  // outline-kernels, while it splits a join: the column of
                                             //   its rows that a part begins at, and their stride
    "::mlir::FlatSymbolRefAttr":$table,      // outline-kernels, on a feature: the table its ids feed
    // On a program.
    "::mlir::ArrayAttr":$buffers,            // plan-memory: a `#genrec.buffer` each
    "::mlir::IntegerAttr":$first_compute_op, // plan-memory: the first op of compute or update
    "::mlir::IntegerAttr":$first_update_op,  //   the first op of update; absent if there is none
    "::mlir::ArrayAttr":$notes,              // form-row-kernels: values kept between kernels, and why
    "::mlir::ArrayAttr":$columns,            // expand-updates: the columns that it reads,
    "::mlir::ArrayAttr":$tables,             //   the tables that it reads,
    "::mlir::ArrayAttr":$trains,             //   the tables that it updates, per list of ids
    "::mlir::StringAttr":$single_rank,       // distribute: why it cannot run on several ranks
    "::mlir::StringAttr":$meeting,           // assign-stages: what portions meet for within compute
    // On a model, and on the module.
    "::mlir::ArrayAttr":$decisions,          // every graph pass: "<pass>: <decision>: <reason>"
    "::mlir::StringAttr":$identity,          // what a checkpoint knows the model by (Identity.h)
    "::genrec::TargetKindAttr":$target           // attach-target: what the code will run on
  );
  let hasOperationAttrVerify = 1;
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

class GenRec_Op<string mnemonic, list<Trait> traits = []>
    : Op<GenRec_Dialect, mnemonic, traits>;

/// An op whose verifier needs declarations of the model (domain tree, tables, parameters). It runs
/// when the whole model has been built.
def GenRec_SymbolUser : DeclareOpInterfaceMethods<SymbolUserOpInterface>;

#endif // GENREC_DIALECT_TD
