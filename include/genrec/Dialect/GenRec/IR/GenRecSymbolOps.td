//===- GenRecSymbolOps.td - models, domains, tables, parameters -*- tablegen -*-===//

#ifndef GENREC_SYMBOL_OPS_TD
#define GENREC_SYMBOL_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/IR/SymbolInterfaces.td"

def GenRec_ModelOp : GenRec_Op<"model", [
    IsolatedFromAbove, NoTerminator, Symbol, SymbolTable, SingleBlock,
    NoRegionArguments]> {
  let summary = "one recommendation model: declarations and programs";
  let description = [{
    Holds the declarations of domains, tables and parameters, then one
    `genrec.program`; `specialize-modes` makes of that program one for each of
    training, evaluation and prediction. `clip_norm` and `clip_value` bound
    gradients (0: off); `schedule` is a dictionary for the learning rate:
    `kind` ("constant", "linear", "cosine"), `warmup` and `steps` (steps),
    `final` (factor at the end). All of it can be overridden by flags of the binary.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<F64Attr, "0.0">:$clip_norm,
                       DefaultValuedAttr<F64Attr, "0.0">:$clip_value,
                       OptionalAttr<DictionaryAttr>:$schedule);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
  let hasVerifier = 1;
}

def GenRec_DomainOp : GenRec_Op<"domain", [Symbol, HasParent<"ModelOp">,
    GenRec_SymbolUser]> {
  let summary = "declares a row domain";
  let description = [{
    `parent` is absent for a root. `data`: read from the dataset, where `column`
    names the list column (dotted path) that opens it (roots have none);
    `derived`: made by exactly one op (truncate, concat_domains);
    `catalogue`: a root of its own, loaded once; `column` names nothing, the
    file is a flag (`--catalogue <name>=<file>`), `source` its default path;
    `step`: rows that exist within a step only (touched table rows).
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       OptionalAttr<FlatSymbolRefAttr>:$parent,
                       DefaultValuedAttr<GenRec_DomainKindAttr,
                                         "::genrec::DomainKind::data">:$kind,
                       OptionalAttr<StrAttr>:$column,
                       OptionalAttr<StrAttr>:$source);
  let assemblyFormat = "$sym_name (`parent` $parent^)? (`kind` $kind^)? attr-dict";
  let hasVerifier = 1;
}

def GenRec_TableOp : GenRec_Op<"table", [Symbol, HasParent<"ModelOp">]> {
  let summary = "declares an embedding table";
  let description = [{
    A dynamic hash table from ids in `[0, 2^id_bits)` to rows of `dim` f32.
    Kind `unbounded`: it grows, and nothing is evicted but by rule. The initial value of a row is a function of
    (seed, table name, id, column) alone.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       ConfinedAttr<I64Attr, [IntPositive]>:$dim,
                       DefaultValuedAttr<I64Attr, "52">:$id_bits,
                       GenRec_InitAttr:$init,
                       GenRec_OptimizerAttr:$optimizer);
  let assemblyFormat = "$sym_name `dim` $dim attr-dict";
  let hasVerifier = 1;
}

def GenRec_ParameterOp : GenRec_Op<"parameter", [Symbol, HasParent<"ModelOp">]> {
  let summary = "declares a dense parameter";
  let description = "A trained tensor of f32 with static shape, rank 0 to 2.";
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       GenRec_InitAttr:$init,
                       GenRec_OptimizerAttr:$optimizer);
  let assemblyFormat = "$sym_name `:` $type attr-dict";
  let hasVerifier = 1;
}

def GenRec_ProgramOp : GenRec_Op<"program", [
    Symbol, HasParent<"ModelOp">, NoTerminator, SingleBlock, NoRegionArguments]> {
  let summary = "what is done with one batch";
  let description = [{
    A straight list of ops. `all` (as imported) holds losses, metrics and
    outputs together; the specialised modes hold what each needs. Every domain
    symbol has at most one value of its type in a program.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
                       DefaultValuedAttr<GenRec_ProgramModeAttr,
                                         "::genrec::ProgramMode::all">:$mode);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`mode` $mode^)? attr-dict-with-keyword $body";
  let hasRegionVerifier = 1;
}

#endif // GENREC_SYMBOL_OPS_TD
