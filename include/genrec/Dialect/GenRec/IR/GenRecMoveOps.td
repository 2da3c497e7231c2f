//===- GenRecMoveOps.td - moves between domains -----------------*- tablegen -*-===//

#ifndef GENREC_MOVE_OPS_TD
#define GENREC_MOVE_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_MoveOpsDocs : OpDocGroup {
  let summary = "Moves between domains";
  let description = [{
    Ops that move values from one domain to another. Broadcasting is explicit: a value per request
    becomes a value per impression only by a `genrec.fanout`.
  }];
}

let opDocGroup = GenRec_MoveOpsDocs in {

def GenRec_DeriveOp : GenRec_Op<"derive", [GenRec_TreeLocal, GenRec_IsOperandRow, GenRec_PassesRowsOn, Pure,
    DeclareOpInterfaceMethods<GenRec_KernelPartOpInterface, ["isKernelPart"]>,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "moves a value into a domain made by truncate or pad";
  let description = [{
    Keeps the rows that `truncate` kept, and gives 0 in the rows that `pad` added. `domain` is the
    result of a `genrec.truncate` or `genrec.pad` whose source is x's domain. Row shape and element
    type are x's (strings cannot be padded). The gradient is `genrec.derive_grad`. Row kernels bring
    the rows that `truncate` kept, and keys of columns are computed of them where they lie.

    ```mlir
    %recent_movie = genrec.derive %movie into %event
        : (tensor<?xi64, #genrec.rows<@history>>, !genrec.domain<@event>) -> tensor<?xi64, #genrec.rows<@event>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DeriveGradOp : GenRec_Op<"derive_grad", [GenRec_RoundsNothing, GenRec_IsLinear, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "moves rows of a truncated or padded domain back; dropped rows get 0";
  let description = [{
    The adjoint of `genrec.derive`. x has rows of a domain made by `genrec.truncate` or
    `genrec.pad`, and `domain` is the source of that op. Rows that truncate dropped are 0; rows that
    pad added are dropped.

    ```mlir
    %spread = genrec.derive_grad %event_vector into %history
        : (tensor<?x8xf32, #genrec.rows<@event>>, !genrec.domain<@history>) -> tensor<?x8xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ConcatRowsOp : GenRec_Op<"concat_rows", [GenRec_TreeLocal, GenRec_SelectsElements, GenRec_IsLinear, GenRec_BoundsIds, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "concatenates values of several domains per parent row";
  let description = [{
    One value per source of the `genrec.concat_domains` op that made `domain`, in the same order,
    all of one row shape and element type. A source that is the parent domain gives one row per
    list. The gradient of part p is `genrec.split_rows` of p.

    ```mlir
    %joined = genrec.concat_rows %user_vector, %event_vector into %seq
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@event>>, !genrec.domain<@seq>)
        -> tensor<?x8xf32, #genrec.rows<@seq>>
    ```
  }];
  let arguments = (ins Variadic<GenRec_Rows>:$parts, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$parts `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SplitRowsOp : GenRec_Op<"split_rows", [GenRec_TreeLocal, GenRec_IsLinear, GenRec_PassesRowsOn, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "takes one part out of a concatenated value";
  let description = [{
    The rows of part `part` (0-based) of the `genrec.concat_domains` op that made x's domain.
    `domain` is that part's source domain. The gradient is 0 in the other parts.

    ```mlir
    %encoded = genrec.split_rows %seq_vector part 1 into %event
        : (tensor<?x8xf32, #genrec.rows<@seq>>, !genrec.domain<@event>) -> tensor<?x8xf32, #genrec.rows<@event>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain, I64Attr:$part);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `part` $part `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_FanoutOp : GenRec_Op<"fanout", [GenRec_TreeLocal, GenRec_IsLinear, GenRec_FansOut, GenRec_KernelPart, GenRec_IsOperandRow, GenRec_CopiesElements, GenRec_PassesRowsOn, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "broadcasts each row of an ancestor to its descendants";
  let description = [{
    `domain` is a descendant (child, grandchild, …) of x's domain. Each of its rows gets the row of
    x that is its ancestor. No other op broadcasts rows downwards: operands of two domains are an
    error. The gradient is a `genrec.pool` by sum. A fanout in a row kernel costs nothing, as the
    kernel reads the ancestor's row.

    ```mlir
    %context = genrec.fanout %user_vector to %impression
        : (tensor<?x8xf32, #genrec.rows<@request>>, !genrec.domain<@impression>) -> tensor<?x8xf32, #genrec.rows<@impression>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PoolOp : GenRec_Op<"pool", [GenRec_IsLinearIn, GenRec_KernelPart, GenRec_ReducesLists, GenRec_ListLocal, GenRec_IsOperandRow, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "reduces the descendants of every ancestor row";
  let description = [{
    For kind sum, `domain` is an ancestor of x's domain, through any number of levels; for other
    kinds it is the parent. Row shape and element type are x's. mean takes floats, sum and max also
    integers, first and last also i1.

    An empty list pools to 0 for every kind, and gives no gradient. max is computed for each element
    of the row separately. In a tie, the first row gets the whole gradient.

    ```mlir
    %taste = genrec.pool mean %movie_vector to %request
        : (tensor<?x8xf32, #genrec.rows<@history>>, !genrec.domain<@request>) -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain,
                       GenRec_PoolKindAttr:$kind);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$kind $x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PoolGradOp : GenRec_Op<"pool_grad", [GenRec_SymbolUser, Pure]> {
  let summary = "gradient of a pool of kind max, first or last";
  let description = [{
    x is the operand of the `genrec.pool`, `domain` and `kind` are the pool's, and `gradient` is
    that of its result. An element of row r gets the gradient of its parent row if the pool chose
    row r, and 0 otherwise. The op is not differentiable itself.

    ```mlir
    %dx = genrec.pool_grad max %movie_vector, %user_vector to %request
        : (tensor<?x8xf32, #genrec.rows<@history>>, tensor<?x8xf32, #genrec.rows<@request>>, !genrec.domain<@request>)
        -> tensor<?x8xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Rows:$gradient,
                       GenRec_DomainType:$domain, GenRec_PoolKindAttr:$kind);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$kind $x `,` $gradient `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PairRowsOp : GenRec_Op<"pair_rows", [GenRec_TreeLocal, GenRec_IsLinear, GenRec_FansOut, GenRec_PassesRowsOn, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "moves a value of the second list into a domain of pairs";
  let description = [{
    Each pair gets the row of x that is the second row of the pair. `domain` is the result of a
    `genrec.pair_domains` whose `second` is x's domain. The gradient is `genrec.pair_sum`. (Values
    of `first` are moved by `genrec.fanout`.)

    ```mlir
    %beside = genrec.pair_rows %event_vector into %pair
        : (tensor<?x8xf32, #genrec.rows<@event>>, !genrec.domain<@pair>) -> tensor<?x8xf32, #genrec.rows<@pair>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_PairSumOp : GenRec_Op<"pair_sum", [GenRec_TreeLocal, GenRec_IsLinear, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "sums pairs over the first list, per row of the second";
  let description = [{
    The adjoint of `genrec.pair_rows`. x has f32 rows of a domain made by `genrec.pair_domains`, and
    `domain` is that op's `second`. Each row of the result is the sum over its pairs, in the order
    of the rows of `first`; 0 if `first` is empty.

    ```mlir
    %attention_received = genrec.pair_sum %pair_vector to %event
        : (tensor<?x8xf32, #genrec.rows<@pair>>, !genrec.domain<@event>) -> tensor<?x8xf32, #genrec.rows<@event>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_TileOp : GenRec_Op<"tile", [GenRec_IsLinear, GenRec_ReducesLists, GenRec_ListLocal, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "concatenates the first or last rows of each list in the row of its parent";
  let description = [{
    x has rows [d] (or [], which counts as [1]) of a list, and `domain` is its parent. The result
    has rows [count * d] and x's element type (not strings). Row i of the list is at [i * d, (i + 1)
    * d), counted from the list's start or, with `keep` last, from the first of its last `count`
    rows. Lists with fewer rows are padded with 0. Further rows are dropped and get gradient 0.

    ```mlir
    %three = genrec.tile %movie_vector to %request {count = 3 : i64}
        : (tensor<?x8xf32, #genrec.rows<@history>>, !genrec.domain<@request>) -> tensor<?x24xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       DefaultValuedAttr<GenRec_KeepKindAttr,
                                         "::genrec::KeepKind::first">:$keep);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `to` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_TileGradOp : GenRec_Op<"tile_grad", [GenRec_IsLinear, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "splits a tiled row into the rows of its list";
  let description = [{
    The adjoint of `genrec.tile`. x has rows [count * d] of the parent of `domain`; the result has
    rows [d] (or []) of `domain`, with 0 in rows that tile dropped.

    ```mlir
    %spread = genrec.tile_grad %best_score into %history {count = 4 : i64}
        : (tensor<?x4xf32, #genrec.rows<@request>>, !genrec.domain<@history>) -> tensor<?xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$domain,
                       ConfinedAttr<I64Attr, [IntPositive]>:$count,
                       DefaultValuedAttr<GenRec_KeepKindAttr,
                                         "::genrec::KeepKind::first">:$keep);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

class GenRec_ShiftOp<string mnemonic> : GenRec_Op<mnemonic, [GenRec_IsLinear, GenRec_ListLocal, GenRec_PassesRowsOn, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let arguments = (ins GenRec_Rows:$x,
                       DefaultValuedAttr<ConfinedAttr<I64Attr, [IntPositive]>, "1">:$distance);
  let results = (outs GenRec_Rows:$result, GenRec_Rows:$valid);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_LeadOp : GenRec_ShiftOp<"lead"> {
  let summary = "the value `distance` rows later in the same list";
  let description = [{
    For example the next item as a label, or the time of the next event. Past the end of the list
    the value is 0 and `valid` (i1 per row) is false; a loss uses it as weight 0. In a root domain
    every row is a list of its own, so no row is valid.

    ```mlir
    %next, %has_next = genrec.lead %movie
        : (tensor<?xi64, #genrec.rows<@history>>) -> (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>)
    ```
  }];
}
def GenRec_LagOp : GenRec_ShiftOp<"lag"> {
  let summary = "the value `distance` rows earlier in the same list";
  let description = [{
    Before the start of the list the value is 0 and `valid` (i1 per row) is false. In a root domain
    every row is a list of its own, so no row is valid.

    ```mlir
    %before, %has_before = genrec.lag %time {distance = 2 : i64}
        : (tensor<?xi64, #genrec.rows<@history>>) -> (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>)
    ```
  }];
}

def GenRec_PositionOp : GenRec_Op<"position", [GenRec_TreeLocal, Pure]> {
  let summary = "the position of each row in its list, from 0";
  let description = [{
    An i64 per row. With `from_end`, positions count from the end: the last row of a list has 0. In
    a root domain every row is a list of its own and has 0.

    ```mlir
    %age_rank = genrec.position %history {from_end} : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, UnitAttr:$from_end);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_LengthOp : GenRec_Op<"length", [GenRec_TreeLocal, GenRec_SymbolUser, Pure]> {
  let summary = "the number of rows of `children` per row of their parent";
  let description = [{
    For each of the `children`, an i64 per row of their parent domain, which they share; 0 for an
    empty list. `assign-stages` makes one op of those of a stage.

    ```mlir
    %events = genrec.length %history : (!genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins Variadic<GenRec_DomainType>:$children);
  let results = (outs Variadic<GenRec_Rows>:$lengths);
  let assemblyFormat = "$children attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_GatherRowsOp : GenRec_Op<"gather_rows", [GenRec_GathersRows, GenRec_SelectsElements, GenRec_IsLinear, Pure,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface, ["isGatherSource"]>]> {
  let summary = "gathers rows of another domain by index";
  let description = [{
    `source` has rows [] of any domain and any element type but strings. `index` has i64 rows [] or
    [d]: row numbers in that domain. The result has index's domain and row shape, and source's
    element type. A source with rows [n] takes an index with rows [] and gives rows [n]. Index -1
    reads 0 (false); any other index must exist. The op has no gradient: it reads features of
    catalogue items, and maps item positions to ids.

    ```mlir
    %best_ids = genrec.gather_rows %item_ids at %best
        : (tensor<?xi64, #genrec.rows<@items>>, tensor<?x4xi64, #genrec.rows<@request>>) -> tensor<?x4xi64, #genrec.rows<@request>>
    %item_of_event = genrec.gather_rows %item_vectors at %movie
        : (tensor<?x8xf32, #genrec.rows<@items>>, tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x8xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$source, GenRec_Rows:$index);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$source `at` $index attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ScatterRowsOp : GenRec_Op<"scatter_rows", [GenRec_IsLinear, GenRec_KernelPart, GenRec_SymbolUser, Pure]> {
  let summary = "adds up rows by the row of another domain that they belong to";
  let description = [{
    The adjoint of `genrec.gather_rows`: row i of the result is the sum of the rows of x, f32 [d], whose
    `index`, i64 rows [] of x's domain, is i; 0 where there is none. A row with index -1 counts nowhere;
    any other index must exist in the result's domain.

    ```mlir
    %ditems = genrec.scatter_rows %user_vector at %target
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@items>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_Rows:$index);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `at` $index attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_MOVE_OPS_TD
