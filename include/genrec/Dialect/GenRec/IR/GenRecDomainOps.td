//===- GenRecDomainOps.td - batches, domains, features ----------*- tablegen -*-===//

#ifndef GENREC_DOMAIN_OPS_TD
#define GENREC_DOMAIN_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_DomainOpsDocs : OpDocGroup {
  let summary = "Domains and features";
  let description = [{
    Ops that make domain values, and read columns and parameters.
  }];
}

let opDocGroup = GenRec_DomainOpsDocs in {

//===-- domain instances ----------------------------------------------------===//

def GenRec_BatchOp : GenRec_Op<"batch", [GenRec_ReadsDomains, GenRec_SymbolUser, Pure]> {
  let summary = "the domains of one batch of data";
  let description = [{
    One value per `data` domain of the dataset that the program uses, in any order;
    each domain once. `infer-domains` drops those that nothing uses and adds those that
    are missing. Lists of a catalogue are results of `genrec.catalogue`.

    ```mlir
    %clicks = genrec.batch : !genrec.domain<@click>
    ```
  }];
  let results = (outs Variadic<GenRec_DomainType>:$domains);
  let assemblyFormat = "attr-dict `:` type($domains)";
  let hasVerifier = 1;
}

def GenRec_CatalogueOp : GenRec_Op<"catalogue", [GenRec_ReadsDomains, GenRec_SymbolUser, Pure]> {
  let summary = "the rows of a catalogue, loaded once, and of the lists in it";
  let description = [{
    A second root domain: the items that exist. The universe of negatives, of top-k
    and of evaluation; never "the items that happen to be in the batch". After it come
    the `data` domains below it that the program uses (the tags of every item), each
    once.

    ```mlir
    %movies, %credits = genrec.catalogue : !genrec.domain<@movies>, !genrec.domain<@credit>
    ```
  }];
  let results = (outs Variadic<GenRec_DomainType>:$domains);
  let assemblyFormat = "attr-dict `:` type($domains)";
  let hasVerifier = 1;
}

def GenRec_TruncateOp : GenRec_Op<"truncate", [GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with at most `count` rows per parent row";
  let description = [{
    Keeps the last (default) or first `count` rows of every list, in order; a list
    that is not longer stays as it is. The result is a domain of kind `derived` with
    the parent of `source`, which is not a root. Rows keep their identity (random
    streams do not move). Values enter the new domain through `genrec.derive`; the
    children of `source` do not follow.

    ```mlir
    %recent = genrec.truncate %history {count = 200 : i64, keep = #genrec<keep first>}
        : (!genrec.domain<@history>) -> !genrec.domain<@recent>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$source,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       DefaultValuedAttr<GenRec_KeepKindAttr,
                                         "::genrec::KeepKind::last">:$keep);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$source attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PadOp : GenRec_Op<"pad", [GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with at least `count` rows per parent row";
  let description = [{
    Lengthens every list with fewer than `count` rows to `count`, with new rows at its
    `front` or at its `back` (default); a list that is not shorter stays as it is. The
    result is a domain of kind `derived` with the parent of `source`, which is not a
    root. Values enter through `genrec.derive`, which gives 0 (false) in the new rows: a
    derived i1 tells them apart. Rows of the source keep their identity; new row i of
    parent row p has identity mix(p, 2^32 + i).

    ```mlir
    %padded = genrec.pad %history {count = 20 : i64, side = #genrec<pad_side front>}
        : (!genrec.domain<@history>) -> !genrec.domain<@padded>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$source,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       DefaultValuedAttr<GenRec_PadSideAttr,
                                         "::genrec::PadSide::back">:$side);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$source attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PairDomainsOp : GenRec_Op<"pair_domains", [GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with a row per pair of two lists of one parent";
  let description = [{
    `result` is a child of `first`: below each of its rows lie the rows of `second` that
    have the same parent row, in their order. So values of `first` enter by
    `genrec.fanout`, those of `second` by `genrec.pair_rows`, and `genrec.pool` reduces the
    pairs to `first`. `second` is a child of the parent of `first`; the two may be one
    domain. The pair of a row with identity r and the other list's row j has identity
    mix(r, j).

    ```mlir
    // Every impression beside every event of its request.
    %pairs = genrec.pair_domains %impression, %event
        : (!genrec.domain<@impression>, !genrec.domain<@event>) -> !genrec.domain<@seen_together>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$first, GenRec_DomainType:$second);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$first `,` $second attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ConcatDomainsOp : GenRec_Op<"concat_domains", [GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain that joins others per parent row";
  let description = [{
    All sources have the result's parent, or *are* that parent (which then
    contributes one row). A list of the result holds the rows of the first source,
    then those of the second, and so on. A source may appear twice. Row identities:
    part p's row with identity r gets mix(r, p). Values enter through
    `genrec.concat_rows` and leave through `genrec.split_rows`.

    ```mlir
    // Per request: the request itself, its events, its impressions.
    %sequence = genrec.concat_domains %request, %event, %impression
        : (!genrec.domain<@request>, !genrec.domain<@event>, !genrec.domain<@impression>) -> !genrec.domain<@sequence>
    ```
  }];
  let arguments = (ins Variadic<GenRec_DomainType>:$sources);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$sources attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- reading -------------------------------------------------------------===//

def GenRec_FeatureOp : GenRec_Op<"feature", [GenRec_BoundsIds, GenRec_SymbolUser,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a column of the data";
  let description = [{
    A value per row of a `data` or `catalogue` domain: i1, i32, i64, f32, f64 or
    `!genrec.string`; or a row [d] of f32 or f64, of a column of lists that all have d
    entries. `column` is the dotted path in the file's schema.

    - `nullable` permits nulls: a null reads as 0 (or the empty string), and
      `genrec.feature_valid` tells them apart. Without it a null is an error that
      names file, column and row, whatever the file's schema says. A null among the
      entries of a row [d] always is one.
    - `padding_id` drops the list entries with that id when read (integers, not in a
      root domain): all columns of the list lose that row. Such a feature says which
      rows its domain has, so it stays, used or not, while anything needs the domain
      or one below it.
    - `id_bits` > 0 checks that values lie in `[0, 2^id_bits)` (integers);
      `infer-domains` sets it where a feature feeds a table. Id 0 is an ordinary id.

    ```mlir
    %genre = genrec.feature %tag "history.tags.genre" {nullable, id_bits = 20 : i64}
        : (!genrec.domain<@tag>) -> tensor<?xi64, #genrec.rows<@tag>>
    %clicked = genrec.feature %impression "impressions.clicked" {padding_id = 0 : i64}
        : (!genrec.domain<@impression>) -> tensor<?xi64, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, StrAttr:$column,
                       UnitAttr:$nullable,
                       OptionalAttr<I64Attr>:$padding_id,
                       DefaultValuedAttr<I64Attr, "0">:$id_bits);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain $column attr-dict `:` functional-type($domain, $result)";
  let hasVerifier = 1;
}

def GenRec_FeatureValidOp : GenRec_Op<"feature_valid", [GenRec_SymbolUser, Pure]> {
  let summary = "which rows of a nullable column are not null";
  let arguments = (ins GenRec_DomainType:$domain, StrAttr:$column);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain $column attr-dict `:` functional-type($domain, $result)";
  let description = [{
    i1 per row, true where the column holds a value. The column is one that a
    `genrec.feature` with `nullable` reads; of any other column all rows are valid.

    ```mlir
    %has_movie = genrec.feature_valid %history "history.movie"
        : (!genrec.domain<@history>) -> tensor<?xi1, #genrec.rows<@history>>
    ```
  }];
  let hasVerifier = 1;
}

def GenRec_ParamOp : GenRec_Op<"param", [GenRec_NeedsRunningStep, GenRec_SymbolUser, Pure]> {
  let summary = "the current value of a dense parameter";
  let description = [{
    The parameter's value before this step's update, shared, of the declared type.

    ```mlir
    %w = genrec.param @weight : tensor<8x4xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$parameter);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "$parameter attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def GenRec_ConstantOp : GenRec_Op<"constant", [GenRec_BoundsIds, Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
  let summary = "a shared scalar or small tensor known at compile time";
  let description = [{
    A shared tensor of rank 0 or 1 and element type i1, i32, i64, f32 or f64.

    ```mlir
    %two = genrec.constant dense<2.0> : tensor<f32>
    %ramp = genrec.constant dense<[0.0, 0.5, 1.0, 1.5]> : tensor<4xf32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs GenRec_Shared:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_DOMAIN_OPS_TD
