//===- GenRecDomainOps.td - batches, features, moves between domains -*- tablegen -*-===//

#ifndef GENREC_DOMAIN_OPS_TD
#define GENREC_DOMAIN_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===-- domain instances ----------------------------------------------------===//

def GenRec_BatchOp : GenRec_Op<"batch", [Pure]> {
  let summary = "the domains of one batch of data";
  let description = "One value per `data` domain that the program uses.";
  let results = (outs Variadic<GenRec_DomainType>:$domains);
  let assemblyFormat = "attr-dict `:` type($domains)";
  let hasVerifier = 1;
}

def GenRec_CatalogueOp : GenRec_Op<"catalogue", [Pure]> {
  let summary = "the rows of a catalogue, loaded once";
  let description = [{
    A second root domain: the items that exist. The universe of negatives, of
    top-k and of evaluation.
  }];
  let results = (outs GenRec_DomainType:$domain);
  let assemblyFormat = "attr-dict `:` type($domain)";
}

def GenRec_TruncateOp : GenRec_Op<"truncate", [GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with at most `count` rows per parent row";
  let description = [{
    Keeps the last (default) or first `count` rows of every list, in order.
    Rows keep their identity (random streams do not move). Values enter the
    new domain through `genrec.derive`.
  }];
  let arguments = (ins GenRec_DomainType:$source,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       DefaultValuedAttr<GenRec_KeepKindAttr,
                                         "::genrec::KeepKind::last">:$keep);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$source attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ConcatDomainsOp : GenRec_Op<"concat_domains", [GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain that joins others per parent row";
  let description = [{
    All sources have the result's parent, or *are* that parent (which then
    contributes one row). A list of the result holds the rows of the first
    source, then those of the second, and so on. Row identities: part p's row
    with identity r gets mix(r, p).
  }];
  let arguments = (ins Variadic<GenRec_DomainType>:$sources);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$sources attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- reading -------------------------------------------------------------===//

def GenRec_FeatureOp : GenRec_Op<"feature", [GenRec_SymbolUser, Pure]> {
  let summary = "a column of the data";
  let description = [{
    `column` is the dotted path in the file's schema. `nullable` permits nulls:
    a null reads as 0 (empty string), and `genrec.feature_valid` tells them apart. Without it a
    null is an error that names file, column and row. `padding_id` drops list entries with that id
    when read. `id_bits` > 0 checks that values lie in `[0, 2^id_bits)`.
  }];
  let arguments = (ins GenRec_DomainType:$domain, StrAttr:$column,
                       UnitAttr:$nullable,
                       OptionalAttr<I64Attr>:$padding_id,
                       DefaultValuedAttr<I64Attr, "0">:$id_bits);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$domain $column attr-dict `:` functional-type($domain, $result)";
  let hasVerifier = 1;
}

def GenRec_FeatureValidOp : GenRec_Op<"feature_valid", [GenRec_SymbolUser, Pure]> {
  let summary = "which rows of a nullable column are not null";
  let arguments = (ins GenRec_DomainType:$domain, StrAttr:$column);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$domain $column attr-dict `:` functional-type($domain, $result)";
  let description = "i1 per row; the column must be read by a nullable `genrec.feature` of the same program or be nullable in the data.";
  let hasVerifier = 1;
}

def GenRec_ParamOp : GenRec_Op<"param", [GenRec_SymbolUser, Pure]> {
  let summary = "the current value of a dense parameter";
  let description = "The parameter's value before this step's update.";
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parameter attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def GenRec_ConstantOp : GenRec_Op<"constant", [Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a shared scalar or small tensor known at compile time";
  let description = "A shared tensor of rank 0 or 1.";
  let arguments = (ins ElementsAttr:$value);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===-- moves between domains -----------------------------------------------===//

def GenRec_DeriveOp : GenRec_Op<"derive", [Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "brings a value into a domain made by truncate";
  let description = "Keeps the rows that `truncate` kept. Its gradient is `genrec.derive_grad`.";
  let arguments = (ins AnyRankedTensor:$x, GenRec_DomainType:$domain);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DeriveGradOp : GenRec_Op<"derive_grad", [GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "spreads rows of a truncated domain back; dropped rows get 0";
  let description = "The adjoint of `genrec.derive`; `domain` is the source domain of the truncate op.";
  let arguments = (ins AnyRankedTensor:$x, GenRec_DomainType:$domain);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ConcatRowsOp : GenRec_Op<"concat_rows", [Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "joins values of several domains per parent row";
  let description = "One value per source of the `concat_domains` op that made `domain`, in its order, all of one row shape.";
  let arguments = (ins Variadic<AnyRankedTensor>:$parts, GenRec_DomainType:$domain);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parts `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SplitRowsOp : GenRec_Op<"split_rows", [GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "takes one part out of a joined value";
  let description = "The rows of part `part` (counted from 0) of the `concat_domains` op that made x's domain; `domain` is that part's source domain.";
  let arguments = (ins AnyRankedTensor:$x, GenRec_DomainType:$domain, I64Attr:$part);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `part` $part `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_FanoutOp : GenRec_Op<"fanout", [GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "copies each row of an ancestor to its descendants";
  let description = "`domain` is a descendant (child, grandchild, …) of x's domain.";
  let arguments = (ins AnyRankedTensor:$x, GenRec_DomainType:$domain);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PoolOp : GenRec_Op<"pool", [GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "reduces the children of every ancestor row";
  let description = [{
    `domain` is an ancestor of x's domain (sum through several levels; other
    kinds: the direct parent only). An empty list pools to 0 for every kind; max breaks
    ties in favour of the first row.
  }];
  let arguments = (ins AnyRankedTensor:$x, GenRec_DomainType:$domain,
                       GenRec_PoolKindAttr:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PoolGradOp : GenRec_Op<"pool_grad", [GenRec_SymbolUser, Pure]> {
  let summary = "gradient of a pool of kind max, first or last";
  let description = [{
    Row r of the result receives its parent's gradient (per element) where r is
    the row that `pool` chose, else 0. Not differentiable again.
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$gradient,
                       GenRec_DomainType:$domain, GenRec_PoolKindAttr:$kind);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $x `,` $gradient `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class GenRec_ShiftOp<string mnemonic> : GenRec_Op<mnemonic, [Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let arguments = (ins AnyRankedTensor:$x,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$distance);
  let results = (outs AnyRankedTensor:$result, AnyRankedTensor:$valid);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_LeadOp : GenRec_ShiftOp<"lead"> {
  let summary = "the value `distance` rows later in the same list";
  let description = "Past the end: 0, and `valid` (i1 per row) is false. In a root domain every row is a list of its own.";
}
def GenRec_LagOp : GenRec_ShiftOp<"lag"> {
  let summary = "the value `distance` rows earlier in the same list";
  let description = "Before the start: 0, and `valid` (i1 per row) is false.";
}

def GenRec_PositionOp : GenRec_Op<"position", [Pure]> {
  let summary = "each row's ordinal in its list, from 0";
  let description = "i64 per row. With `from_end` the last row has 0.";
  let arguments = (ins GenRec_DomainType:$domain, UnitAttr:$from_end);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_LengthOp : GenRec_Op<"length", [GenRec_SymbolUser, Pure]> {
  let summary = "how many rows of `children` each row of their parent has";
  let description = "i64 per row of the parent domain of `children`.";
  let arguments = (ins GenRec_DomainType:$children);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$children attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_GatherRowsOp : GenRec_Op<"gather_rows", [Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface, ["isGatherSource"]>]> {
  let summary = "reads rows of another domain by index";
  let description = [{
    `source` is a table of scalars (rank-0 rows) of any domain, `index` i64 per row (rank 0
    or 1). An index of -1 reads 0. Integers only, so it has no gradient: it turns catalogue
    positions back into ids.
  }];
  let arguments = (ins AnyRankedTensor:$source, AnyRankedTensor:$index);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$source `at` $index attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // GENREC_DOMAIN_OPS_TD
