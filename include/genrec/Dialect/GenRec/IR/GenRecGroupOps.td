//===- GenRecGroupOps.td - merged tables and fused columns ------*- tablegen -*-===//
//
// merge-tables rewrites the lookups in one merged table into one lookup of the stacked keys of all
// ids; fuse-transforms fuses the computation of keys from many columns.
//
//===----------------------------------------------------------------------===//

#ifndef GENREC_GROUP_OPS_TD
#define GENREC_GROUP_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_GroupOpsDocs : OpDocGroup {
  let summary = "Merged tables and fused columns";
  let description = [{
    Member i of the m logical tables of a merged table owns the keys `(i << (63 - k)) | id` with k =
    ceil(log2(m + 1)). -1 is the key of a null id. Keys exist only within a step.
  }];
}

let opDocGroup = GenRec_GroupOpsDocs in {

def GenRec_StackDomainsOp : GenRec_Op<"stack_domains", [GenRec_SymbolUser, Pure]> {
  let summary = "a domain that stacks the rows of several domains";
  let description = [{
    A `step` domain with the rows of the first part, then those of the second, and so on. Part p
    starts at the sum of the row counts of the parts before it. A domain may occur as several parts.

    ```mlir
    %all = genrec.stack_domains %request, %history
        : (!genrec.domain<@request>, !genrec.domain<@history>) -> !genrec.domain<@step_rows>
    ```
  }];
  let arguments = (ins Variadic<GenRec_DomainType>:$parts);
  let results = (outs GenRec_DomainType:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_UnstackRowsOp : GenRec_Op<"unstack_rows", [GenRec_IsLinear, Pure]> {
  let summary = "the rows of one part of stacked domains";
  let description = [{
    x has rows of `stack`, made by `genrec.stack_domains`. The result is a view of part `part`, with
    rows of `domain`, the domain of that part.

    ```mlir
    %keys = genrec.merged_keys %user, %movie valid (%movie_valid) of [1] in [@item, @item] of @all_items into %both
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>,
           !genrec.domain<@both>) -> tensor<?xi64, #genrec.rows<@both>>
    %own = genrec.unstack_rows %keys part 1 of %both into %history
        : (tensor<?xi64, #genrec.rows<@both>>, !genrec.domain<@both>, !genrec.domain<@history>) -> tensor<?xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_DomainType:$stack, GenRec_DomainType:$domain, I64Attr:$part);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x `part` $part `of` $stack `into` $domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_MergedKeysOp : GenRec_Op<"merged_keys", [GenRec_MakesMergedKeys, GenRec_SymbolUser, Pure, AttrSizedOperandSegments]> {
  let summary = "the merged table's keys of ids in its logical tables";
  let description = [{
    `domain` is made by `genrec.stack_domains`. `ids[p]` are i64 rows [] of its part p: ids in the
    logical table `tables[p]`, a member of `table`. `valid_of` lists the parts that the `valid`
    operands belong to. The result holds the key of every id, or -1 if it is not valid. An id out of
    its table's range is an error that names its row.

    ```mlir
    %keys = genrec.merged_keys %user, %movie valid (%movie_valid) of [1] in [@item, @item] of @all_items into %both
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@history>>, tensor<?xi1, #genrec.rows<@history>>,
           !genrec.domain<@both>) -> tensor<?xi64, #genrec.rows<@both>>
    ```
  }];
  let arguments = (ins Variadic<GenRec_Rows>:$ids, Variadic<GenRec_Rows>:$valid,
                       GenRec_DomainType:$domain,
                       DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$valid_of,
                       TypedArrayAttrBase<FlatSymbolRefAttr, "tables">:$tables,
                       FlatSymbolRefAttr:$table);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = [{
    $ids (`valid` `(` $valid^ `)` `of` $valid_of)? `in` $tables `of` $table `into` $domain
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def GenRec_GroupedLookupOp : GenRec_Op<"grouped_lookup", [DeclareOpInterfaceMethods<GenRec_TableReadOpInterface, ["getReadKeys"]>, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "looks up rows of a merged table for several features at once";
  let description = [{
    `keys` are made by `genrec.merged_keys` (or `genrec.transform_columns`), and `domains` are the
    parts of their domain in order. Result p holds the rows of part p: f32 rows [dim], zeros for key
    -1. Insertion and gradients are those of `genrec.lookup`, for every logical table.

    ```mlir
    %keys = genrec.merged_keys %user, %movie in [@item, @item] of @all_items into %both
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<?xi64, #genrec.rows<@history>>, !genrec.domain<@both>)
        -> tensor<?xi64, #genrec.rows<@both>>
    %users, %movies = genrec.grouped_lookup %keys in @all_items into %request, %history
        : (tensor<?xi64, #genrec.rows<@both>>, !genrec.domain<@request>, !genrec.domain<@history>)
        -> (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@history>>)
    ```
  }];
  let arguments = (ins GenRec_Rows:$keys, Variadic<GenRec_DomainType>:$domains,
                       FlatSymbolRefAttr:$table);
  let results = (outs Variadic<GenRec_Rows>:$results);
  let assemblyFormat = "$keys `in` $table `into` $domains attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_TransformColumnsOp : GenRec_Op<"transform_columns", [GenRec_MakesMergedKeys, Pure, AttrSizedOperandSegments, IsolatedFromAbove]> {
  let summary = "computes many columns by few column programs, in one launch";
  let description = [{
    Each region is a *column program*: it computes one row of a column, like the body of a
    `genrec.row_kernel`, and yields one i64, a key. Column c runs program `programs[c]` on the next
    operands of `inputs`, one per block argument of the program: rows of the column's domain, rows
    of an ancestor or of the list that the domain was truncated from, a shared scalar (the constants
    in which columns of one program differ), or a shared [n] tensor that the body searches. Each result belongs to one of `domains`, which are
    made by `genrec.stack_domains`: the columns are the parts of the first result in order, then
    those of the second.

    ```mlir
    %first = genrec.constant dense<0> : tensor<i64>
    %second = genrec.constant dense<2305843009213693952> : tensor<i64>
    %keys = genrec.transform_columns (%user, %first, %movie, %second) into (%both)
        {programs = array<i64: 0, 0>, name = "keys"}
        : (tensor<?xi64, #genrec.rows<@request>>, tensor<i64>, tensor<?xi64, #genrec.rows<@history>>, tensor<i64>,
           !genrec.domain<@both>) -> tensor<?xi64, #genrec.rows<@both>> {
    ^bb0(%id: i64, %own_bits: i64):
      %key = arith.ori %id, %own_bits : i64
      genrec.row_yield %key : i64
    }
    ```
  }];
  let arguments = (ins Variadic<GenRec_RowsOrShared>:$inputs, Variadic<GenRec_DomainType>:$domains,
                       DenseI64ArrayAttr:$programs, OptionalAttr<StrAttr>:$name);
  let results = (outs Variadic<GenRec_Rows>:$results);
  let regions = (region VariadicRegion<SizedRegion<1>>:$bodies);
  let assemblyFormat = [{
    `(` $inputs `)` `into` `(` $domains `)` attr-dict `:` functional-type(operands, results) $bodies
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// One column: its program, its operands, and where its keys go.
    struct Column {
      unsigned program, result, part;
      ::mlir::OperandRange inputs;
    };
    /// The columns in order. The op must be verified.
    ::llvm::SmallVector<Column> getColumns();
    /// The domain over whose rows a column runs.
    ::mlir::Value getColumnDomain(const Column &column);
    /// How the kernel of a column's program reads input `index` of the column.
    ::genrec::OperandRole getInputRole(const Column &column, unsigned index);
  }];
}

} // opDocGroup

#endif // GENREC_GROUP_OPS_TD
