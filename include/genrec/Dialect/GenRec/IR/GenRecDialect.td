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
