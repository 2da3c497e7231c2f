//===- GenRecPickOps.td - rows that a step picks from a catalogue -*- tablegen -*-===//

#ifndef GENREC_PICK_OPS_TD
#define GENREC_PICK_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_PickOpsDocs : OpDocGroup {
  let summary = "Picked rows";
  let description = [{
    `pick-catalogue-rows` makes a domain of the catalogue rows that a step reads, positives and drawn
    negatives, and computes the items' vectors for those only. Front ends do not use these ops.
  }];
}

let opDocGroup = GenRec_PickOpsDocs in {

def GenRec_DrawRowsOp : GenRec_Op<"draw_rows", [GenRec_MayDraw, GenRec_ReadsStepNumber, Pure]> {
  let summary = "uniform random row numbers of a domain";
  let description = [{
    Draws `count` row numbers of `source`, with replacement, for each row of `domain`: i64 rows
    [count]. Without `domain`, once per step, with row identity 0: shared [count]. Draw j is
    (word_j * rows) >> 32, where word_j is element j of the row's Philox `stream`. `source` has at most
    2^32 - 1 rows; if it has none, all draws are 0.

    ```mlir
    %each = genrec.draw_rows %items for %request {count = 4 : i64, stream = 1024 : i64}
        : (!genrec.domain<@items>, !genrec.domain<@request>) -> tensor<?x4xi64, #genrec.rows<@request>>
    %common = genrec.draw_rows %items {count = 16 : i64, stream = 2048 : i64} : (!genrec.domain<@items>) -> tensor<16xi64>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$source, Optional<GenRec_DomainType>:$domain,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count, I64Attr:$stream);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$source (`for` $domain^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PickRowsOp : GenRec_Op<"pick_rows", [Pure]> {
  let summary = "a domain of the distinct rows that row numbers name";
  let description = [{
    `numbers`: row numbers of `source`, a root domain: i64, rows [] or [d] of any domain or shared
    [d]; -1 for none. `domain` is a `step` domain with one row per row of `source` that any of them
    names, in the order of `source`, with the identity that it has there: random streams do not
    change. `rows` holds, per row of `domain`, its number in `source`. `picked` are `numbers` with each
    number replaced by that of the row in `domain`; -1 stays, as do all numbers if `source` has no rows.

    ```mlir
    %common = genrec.draw_rows %items {count = 16 : i64, stream = 2048 : i64} : (!genrec.domain<@items>) -> tensor<16xi64>
    %picked, %rows, %to:2 = genrec.pick_rows %items (%target, %common)
        : (!genrec.domain<@items>, tensor<?xi64, #genrec.rows<@request>>, tensor<16xi64>)
        -> (!genrec.domain<@step_rows>, tensor<?xi64, #genrec.rows<@step_rows>>, tensor<?xi64, #genrec.rows<@request>>, tensor<16xi64>)
    %ids = genrec.gather_rows %item_ids at %rows
        : (tensor<?xi64, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@step_rows>>) -> tensor<?xi64, #genrec.rows<@step_rows>>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$source, Variadic<GenRec_RowsOrShared>:$numbers);
  let results = (outs GenRec_DomainType:$domain, GenRec_Rows:$rows, Variadic<GenRec_RowsOrShared>:$picked);
  let assemblyFormat = "$source `(` $numbers `)` attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PickListsOp : GenRec_Op<"pick_lists", [GenRec_DerivesDomain, GenRec_TreeLocal, GenRec_SymbolUser, Pure]> {
  let summary = "a domain of the lists of picked rows";
  let description = [{
    `parents`: row numbers of the parent of `source`, i64 rows []; each must exist. `domain` is a
    derived domain, a child of that of `parents`: below each row of it are the rows that `source` has
    below the row of that number, with their identities. `rows` holds, per row of `domain`, its number
    in `source`.

    ```mlir
    %movies, %credits = genrec.catalogue : !genrec.domain<@movies>, !genrec.domain<@credit>
    %common = genrec.draw_rows %movies {count = 16 : i64, stream = 2048 : i64} : (!genrec.domain<@movies>) -> tensor<16xi64>
    %picked, %rows, %to = genrec.pick_rows %movies (%common)
        : (!genrec.domain<@movies>, tensor<16xi64>)
        -> (!genrec.domain<@step_rows>, tensor<?xi64, #genrec.rows<@step_rows>>, tensor<16xi64>)
    %lists, %credit_rows = genrec.pick_lists %credits at %rows
        : (!genrec.domain<@credit>, tensor<?xi64, #genrec.rows<@step_rows>>)
        -> (!genrec.domain<@picked_credit>, tensor<?xi64, #genrec.rows<@picked_credit>>)
    ```
  }];
  let arguments = (ins GenRec_DomainType:$source, GenRec_Rows:$parents);
  let results = (outs GenRec_DomainType:$domain, GenRec_Rows:$rows);
  let assemblyFormat = "$source `at` $parents attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_PICK_OPS_TD
