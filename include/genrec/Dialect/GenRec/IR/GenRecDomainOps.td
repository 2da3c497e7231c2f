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
    Ops that make domains, and read columns and parameters.
  }];
}

let opDocGroup = GenRec_DomainOpsDocs in {

//===-- domain instances ----------------------------------------------------===//

def GenRec_BatchOp : GenRec_Op<"batch", [GenRec_ReadsDomains, GenRec_SymbolUser, Pure]> {
  let summary = "the domains of one batch of data";
  let description = [{
    One result per `data` domain of the dataset that the program uses, in any order, each domain
    once. `infer-domains` removes unused domains and adds missing ancestors. Lists of a catalogue
    are results of `genrec.catalogue`.

    ```mlir
    %clicks = genrec.batch : !genrec.domain<@click>
    ```
  }];
  let results = (outs Variadic<GenRec_DomainType>:$domains);
  let assemblyFormat = "attr-dict `:` type($domains)";
  let hasVerifier = 1;
}

def GenRec_CatalogueOp : GenRec_Op<"catalogue", [GenRec_ReadsDomains, GenRec_SymbolUser, Pure]> {
  let summary = "the rows of a catalogue and of its lists, loaded once";
  let description = [{
    A root domain besides the dataset: all items. Negatives, top-k and evaluation range over the
    whole catalogue, not over the items of a batch. The other results are the `data` domains below
    the catalogue that the program uses (the tags of every item, for example), each once.

    ```mlir
    %movies, %credits = genrec.catalogue : !genrec.domain<@movies>, !genrec.domain<@credit>
    ```
  }];
  let results = (outs Variadic<GenRec_DomainType>:$domains);
  let assemblyFormat = "attr-dict `:` type($domains)";
  let hasVerifier = 1;
}

def GenRec_TruncateOp : GenRec_Op<"truncate", [GenRec_TreeLocal, GenRec_DerivesDomain, GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with at most `count` rows per parent row";
  let description = [{
    Keeps the last (default) or first `count` rows of every list, in order; shorter lists are
    unchanged. The result is a domain of kind `derived` with the parent of `source`, which must not
    be a root. Rows keep their identity, so random streams do not change. Values are moved to the
    new domain by `genrec.derive`. The children of `source` have no counterpart below the new
    domain.

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

def GenRec_PadOp : GenRec_Op<"pad", [GenRec_TreeLocal, GenRec_DerivesDomain, GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with at least `count` rows per parent row";
  let description = [{
    Pads every list with fewer than `count` rows to `count` rows, at its `front` or its `back`
    (default); longer lists are unchanged. The result is a domain of kind `derived` with the parent
    of `source`, which must not be a root. Values are moved to it by `genrec.derive`, which gives 0
    (false) in the new rows: a derived i1 is a mask of them. Rows of the source keep their identity;
    new row i of parent row p has identity mix(p, 2^32 + i).

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

def GenRec_PairDomainsOp : GenRec_Op<"pair_domains", [GenRec_TreeLocal, GenRec_DerivesDomain, GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain with a row per pair of rows of two lists";
  let description = [{
    `result` is a child of `first`. Below each row of `first` it has the rows of `second` with the
    same parent row, in their order. So values of `first` are moved to the pairs by `genrec.fanout`
    and those of `second` by `genrec.pair_rows`, and `genrec.pool` reduces the pairs to `first`.
    `second` is a child of the parent of `first`; both may be the same domain. The pair of a row
    with identity r and row j of the other list has identity mix(r, j).

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

def GenRec_ConcatDomainsOp : GenRec_Op<"concat_domains", [GenRec_TreeLocal, GenRec_DerivesDomain, GenRec_SymbolUser, Pure]> {
  let summary = "derives a domain that concatenates lists per parent row";
  let description = [{
    Each source is a child of the result's parent, or is that parent, which then contributes one
    row. A list of the result holds the rows of the first source, then those of the second, and so
    on. A source may occur twice. A row of part p with identity r has identity mix(r, p). Values are
    moved to the result by `genrec.concat_rows` and back by `genrec.split_rows`.

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

def GenRec_FeatureOp : GenRec_Op<"feature", [GenRec_ReadsColumn, GenRec_BoundsIds, GenRec_SymbolUser,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a column of the data";
  let description = [{
    A value per row of a `data` or `catalogue` domain: i1, i32, i64, f32, f64 or `!genrec.string`,
    or a row [d] of f32 or f64 if the column has lists of d entries. `column` is the dotted path in
    the file's schema.

    - `nullable` permits nulls. A null reads as 0 (or the empty string), and `genrec.feature_valid`
      distinguishes it. Without `nullable`, a null is an error that names file, column and row, even
      if the file's schema allows nulls. A null among the entries of a row [d] is always an error.
    - `padding_id` drops list entries with that id when a batch is read (integers, not in a root
      domain): all columns of the list lose these rows. As such a feature affects the rows of its
      domain, it is kept, even if unused, as long as the domain or one below it is used.
    - `id_bits` > 0 checks that values are in `[0, 2^id_bits)` (integers). `infer-domains` sets it
      for ids of a table. Id 0 is an ordinary id.

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

def GenRec_FeatureValidOp : GenRec_Op<"feature_valid", [GenRec_ReadsColumn, GenRec_SymbolUser, Pure]> {
  let summary = "which rows of a nullable column are valid";
  let arguments = (ins GenRec_DomainType:$domain, StrAttr:$column);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain $column attr-dict `:` functional-type($domain, $result)";
  let description = [{
    i1 per row, true if the column is not null there. A `genrec.feature` with `nullable` must read
    the same column; in any other column all rows are valid.

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

def GenRec_ConstantOp : GenRec_Op<"constant", [GenRec_BoundsIds, GenRec_RoundsNothing, Pure, ConstantLike, AllTypesMatch<["value", "result"]>]> {
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
