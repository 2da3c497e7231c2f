//===- GenRecDialect.td - the genrec dialect --------------------*- tablegen -*-===//
//
// The dialect itself and the base classes of its ops. Types, attributes,
// interfaces and ops live in files of their own, ops split by theme.
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
    Every value of a model is a table of rows, and every table says *whose*
    rows it holds: one per request, per impression, per event of a history.
    Those are **row domains**. A domain instance is an SSA value of type
    `!genrec.domain<@history>`; a table of rows is a ranked tensor whose leading
    size is dynamic and whose encoding names the domain:
    `tensor<?x50xf32, #genrec.rows<@history>>`. A tensor without the encoding is
    *shared*: a parameter, or something reduced over all rows.

    A program holds exactly one value of each domain type, so the symbol in the
    encoding identifies the instance; the verifier of `genrec.program` checks it.

    A row is a scalar, written [], or a vector of static size, written [d]. Element
    types are i1, i32, i64, f32, f64 and `!genrec.string`. There are no nullable
    types: where a value may be missing, an i1 value beside it says where it is
    there, and the ops that care take it as `valid`.

    An op that draws random numbers has a `stream`. A draw is a function of (seed,
    step, stream, the row's identity, the element), so it does not depend on the
    batch, the thread or what a pass did.

    The levels, from what a user wrote to what is emitted:

    - model: features, transforms, lookups, layers, losses, in one program;
    - after `differentiate` and `expand-updates`: gradients and updates as ops of
      the same kind, table rows found once and updated once;
    - after `form-row-kernels`: `genrec.row_kernel` for everything row-wise, and the
      ops that become calls of the runtime's library.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

class GenRec_Op<string mnemonic, list<Trait> traits = []>
    : Op<GenRec_Dialect, mnemonic, traits>;

/// An op whose rules need declarations of the model (the domain tree, tables,
/// parameters): they are checked once the whole model is there.
def GenRec_SymbolUser : DeclareOpInterfaceMethods<SymbolUserOpInterface>;

#endif // GENREC_DIALECT_TD
