//===- GenRecKernelOps.td - row kernels and what their bodies hold -*- tablegen -*-===//

#ifndef GENREC_KERNEL_OPS_TD
#define GENREC_KERNEL_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_OperandRole : GenRec_Enum<"OperandRole", "how a row kernel reads an operand", [
  I32EnumAttrCase<"aligned", 0>, I32EnumAttrCase<"ancestor", 1>,
  I32EnumAttrCase<"shared", 2>, I32EnumAttrCase<"source", 3>,
  I32EnumAttrCase<"untruncated", 4>]>;
def GenRec_OperandRoleAttr : GenRec_EnumAttr<GenRec_OperandRole, "operand_role">;
def GenRec_ResultRole : GenRec_Enum<"ResultRole", "where a row kernel writes a result", [
  I32EnumAttrCase<"aligned", 0>, I32EnumAttrCase<"pooled", 1>,
  I32EnumAttrCase<"reduced", 2>, I32EnumAttrCase<"scattered", 3>]>;
def GenRec_ResultRoleAttr : GenRec_EnumAttr<GenRec_ResultRole, "result_role">;

def GenRec_KernelOpsDocs : OpDocGroup {
  let summary = "Row kernels";
  let description = [{
    `genrec.row_kernel` computes one row of a domain. Its body has upstream ops and the body ops
    below, on scalars and vectors of static size.
  }];
}

let opDocGroup = GenRec_KernelOpsDocs in {

def GenRec_RowKernelOp : GenRec_Op<"row_kernel", [GenRec_KernelPart, GenRec_RoundsNothing, GenRec_SymbolUser, SingleBlock, IsolatedFromAbove,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "computes each row of a domain";
  let description = [{
    The body computes one row. It has one block argument per input, by `operand_roles`:

    - aligned: the row of this domain: a scalar (row shape []) or `vector<dxT>` (row shape [d]);
    - ancestor: the row of an ancestor domain that this row belongs to (a free broadcast);
    - shared: a whole shared tensor of rank 0 or 1, as a scalar or vector;
    - source: a tensor that body ops gather from (it stays a tensor);
    - untruncated: this row, as it lies in the list that `genrec.truncate` made this domain from.

    Then one `!genrec.accumulator` argument per reduced or scattered result, in the order of the
    results. `genrec.row_yield` yields one value per *aligned* or *pooled* result, in the order of
    the results. Result roles:

    - aligned: the row of this domain;
    - pooled: reduced to the row of an ancestor domain by the next entry of `pool_kinds` (sum: any
      ancestor; other kinds: the parent; an empty list gives 0);
    - reduced: a shared sum over all rows of what the body adds to the accumulator;
    - scattered: such sums for rows, picked by an index, of another domain or of a shared tensor;
      rows that nothing is added to are 0.

    The body consists of `arith`, `math` and `vector` ops (broadcast, reduction,
    extract_strided_slice, insert_strided_slice) and the body ops below, on scalars and 1-D vectors
    of static size. A kernel has memory effects if its body loads or stores table or parameter rows.

    ```mlir
    %scaled, %sums = genrec.row_kernel %history(%movie_vector, %user_vector)
        attributes {operand_roles = [#genrec<operand_role aligned>, #genrec<operand_role ancestor>],
                    result_roles = [#genrec<result_role aligned>, #genrec<result_role pooled>],
                    pool_kinds = [#genrec<pool_kind sum>], name = "gate"}
        : (!genrec.domain<@history>, tensor<?x8xf32, #genrec.rows<@history>>, tensor<?x8xf32, #genrec.rows<@request>>)
        -> (tensor<?x8xf32, #genrec.rows<@history>>, tensor<?x8xf32, #genrec.rows<@request>>) {
    ^bb0(%movie_row: vector<8xf32>, %user_row: vector<8xf32>):
      %product = arith.mulf %movie_row, %user_row : vector<8xf32>
      genrec.row_yield %product, %product : vector<8xf32>, vector<8xf32>
    }
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, Variadic<GenRec_RowsOrShared>:$inputs,
                       TypedArrayAttrBase<GenRec_OperandRoleAttr, "roles">:$operand_roles,
                       TypedArrayAttrBase<GenRec_ResultRoleAttr, "roles">:$result_roles,
                       OptionalAttr<TypedArrayAttrBase<GenRec_PoolKindAttr, "kinds">>:$pool_kinds,
                       OptionalAttr<StrAttr>:$name);
  let results = (outs Variadic<GenRec_RowsOrShared>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$domain `(` $inputs `)` attr-dict-with-keyword `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def GenRec_RowYieldOp : GenRec_Op<"row_yield", [Pure, Terminator, ParentOneOf<["RowKernelOp", "TransformColumnsOp"]>]> {
  let summary = "ends a row kernel's body";
  let description = [{
    One value per aligned or pooled result, in the order of the results: a scalar for
    row shape [], a vector for [d].

    ```mlir
    %negative = genrec.row_kernel %request(%age)
        attributes {operand_roles = [#genrec<operand_role aligned>], result_roles = [#genrec<result_role aligned>]}
        : (!genrec.domain<@request>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>> {
    ^bb0(%a: f32):
      %b = arith.negf %a : f32
      genrec.row_yield %b : f32
    }
    ```
  }];
  let arguments = (ins Variadic<GenRec_BodyValue>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===-- body ops ------------------------------------------------------------===//

/// An op in the body of a row kernel, on scalars and vectors of one row.
class GenRec_BodyOp<string mnemonic, list<Trait> traits = []>
    : GenRec_Op<mnemonic, traits> {
  let hasVerifier = 1;
}

def GenRec_RowLoadOp : GenRec_BodyOp<"row_load", [GenRec_RoundsNothing, GenRec_Body, MemoryEffects<[MemRead]>]> {
  let summary = "loads a table or parameter row, or one of its optimizer states";
  let description = [{
    `slot` 0 is the value; 1, 2, … are the optimizer's states. The result is a vector<width x f32>,
    or a vector<1xf32> for a state with one value per row. Values of bf16 are widened to f32. Of a
    row that is hot these are the upper halves of floats, and the floats with `whole`.

    ```mlir
    %momentum = genrec.row_load %row {slot = 1 : i64} : (!genrec.row<8>) -> vector<8xf32>
    ```
  }];
  let arguments = (ins GenRec_RowType:$row, DefaultValuedAttr<I64Attr, "0">:$slot, UnitAttr:$whole);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$row attr-dict `:` functional-type(operands, results)";
}
def GenRec_RowStoreOp : GenRec_BodyOp<"row_store", [GenRec_Body, MemoryEffects<[MemWrite]>]> {
  let summary = "stores a table or parameter row, or one of its optimizer states";
  let description = [{
    `slot` is that of `genrec.row_load`. Values of bf16 are rounded to nearest, ties to even; a NaN
    stays one. Those of a row that is hot are not rounded: the row takes the upper halves, and the
    lower ones are stored apart. No two rows of a kernel store to the same table row.

    ```mlir
    genrec.row_store %x to %row : vector<8xf32>, !genrec.row<8>
    ```
  }];
  let arguments = (ins GenRec_BodyValue:$value, GenRec_RowType:$row, DefaultValuedAttr<I64Attr, "0">:$slot);
  let assemblyFormat = "$value `to` $row attr-dict `:` type(operands)";
}
def GenRec_RowGatherOp : GenRec_BodyOp<"row_gather", [GenRec_RoundsNothing, GenRec_Body, Pure]> {
  let summary = "gathers one row of a source tensor";
  let description = [{
    `source`: a tensor argument of rank 1 (scalars) or 2 (rows); `index`: i64, for rank 1 also a
    vector of i64 (elementwise). -1 reads 0. With `clamp`, an index out of range reads the nearest
    row; without it, it must be in range.

    ```mlir
    %vector = genrec.row_gather %source[%id] {clamp} : (tensor<?x8xf32, #genrec.rows<@items>>, i64) -> vector<8xf32>
    %four = genrec.row_gather %ids[%index] : (tensor<?xi64, #genrec.rows<@items>>, vector<4xi64>) -> vector<4xi64>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$source, GenRec_BodyValue:$index, UnitAttr:$clamp);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$source `[` $index `]` attr-dict `:` functional-type(operands, results)";
}
def GenRec_GatherDotOp : GenRec_BodyOp<"gather_dot", [GenRec_WritesLanes, Pure]> {
  let summary = "dot products of a vector with gathered rows";
  let description = [{
    result_j = Σ_i source[index_j][i] * row[i]. source: rank 2; index: vector<mxi64>; row:
    vector<dxf32>; result: vector<mxf32>. Gathered rows are not stored. The source may be of bf16.

    ```mlir
    %dots = genrec.gather_dot %source[%index], %x
        : (tensor<?x8xf32, #genrec.rows<@items>>, vector<4xi64>, vector<8xf32>) -> vector<4xf32>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$source, GenRec_BodyValue:$index, GenRec_BodyValue:$row);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$source `[` $index `]` `,` $row attr-dict `:` functional-type(operands, results)";
}
def GenRec_GatherSumOp : GenRec_BodyOp<"gather_sum", [GenRec_Body, Pure]> {
  let summary = "weighted sum of gathered rows";
  let description = [{
    result = Σ_j coefficient_j * source[index_j], in the order of j. The adjoint of
    `genrec.gather_dot` with respect to row. The source may be of bf16, the result is of f32.

    ```mlir
    %mix = genrec.gather_sum %source[%index], %coefficient
        : (tensor<?x8xf32, #genrec.rows<@items>>, vector<4xi64>, vector<4xf32>) -> vector<8xf32>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$source, GenRec_BodyValue:$index, GenRec_BodyValue:$coefficient);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$source `[` $index `]` `,` $coefficient attr-dict `:` functional-type(operands, results)";
}
def GenRec_AccumulateOp : GenRec_BodyOp<"accumulate", [GenRec_ReadsLanes, MemoryEffects<[MemRead, MemWrite]>, AttrSizedOperandSegments]> {
  let summary = "adds to an accumulator";
  let description = [{
    Without index: accumulator += value (scalar or vector). With an i64 `index`: row `index` +=
    value (-1: no effect). With a vector index and a `coefficient` of the same length m: row index_j
    += coefficient_j * value for j = 0 … m-1, in order. `clamp` is that of `genrec.row_gather`.

    ```mlir
    genrec.accumulate %x into %sum : !genrec.accumulator<tensor<8xf32>>, vector<8xf32>
    genrec.accumulate %x into %rows at %id {clamp}
        : !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>, vector<8xf32>, i64
    genrec.accumulate %x into %rows at %index times %coefficient
        : !genrec.accumulator<tensor<?x8xf32, #genrec.rows<@items>>>, vector<8xf32>, vector<4xi64>, vector<4xf32>
    ```
  }];
  let arguments = (ins GenRec_AccumulatorType:$accumulator, GenRec_BodyValue:$value,
                       Optional<GenRec_BodyValue>:$index, Optional<GenRec_BodyValue>:$coefficient, UnitAttr:$clamp);
  let assemblyFormat = "$value `into` $accumulator (`at` $index^)? (`times` $coefficient^)? attr-dict `:` type(operands)";
}
def GenRec_KeepMaskOp : GenRec_BodyOp<"keep_mask", [GenRec_Body, GenRec_DrawOpInterface, Pure]> {
  let summary = "the dropout mask of this row";
  let description = [{
    i1 or vector<dxi1>: true if the Philox word (seed, step, stream, identity of this row, element)
    is at least rate * 2^32.

    ```mlir
    %keep = genrec.keep_mask {rate = 0.2 : f64, stream = 256 : i64} : vector<8xi1>
    ```
  }];
  let arguments = (ins F64Attr:$rate, I64Attr:$stream);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def GenRec_RowUniformOp : GenRec_BodyOp<"row_uniform", [GenRec_RoundsNothing, GenRec_Body, GenRec_DrawOpInterface, Pure]> {
  let summary = "uniform random numbers in [0, 1) for this row";
  let description = [{
    f32 or vector<dxf32>: the top 24 bits of the Philox word (seed, step, stream, identity of this
    row, element), times 2^-24.

    ```mlir
    %u = genrec.row_uniform {stream = 512 : i64} : vector<4xf32>
    ```
  }];
  let arguments = (ins I64Attr:$stream);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def GenRec_RowBitsOp : GenRec_BodyOp<"row_bits", [GenRec_Body, GenRec_DrawOpInterface, Pure]> {
  let summary = "16 random bits per element, for this row";
  let description = [{
    vector<dxi16>: half of a Philox word (seed, step, stream, identity of this row, element), so
    that a block of Philox is enough for 8 elements. `row_round` takes them.

    ```mlir
    %bits = genrec.row_bits {stream = 512 : i64} : vector<4xi16>
    ```
  }];
  let arguments = (ins I64Attr:$stream);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def GenRec_RowRoundOp : GenRec_BodyOp<"row_round", [GenRec_ElementwiseBody, GenRec_Body, Pure,
    AllTypesMatch<["x", "result"]>]> {
  let summary = "rounds values to bf16, stochastically";
  let description = [{
    Each element of x, vector<dxf32>, becomes one of the two bfloat16 around it: the one that is
    larger in magnitude where `bits`, vector<dxi16> of `row_bits`, taken as a number in [0, 2^16), is
    at least 2^16 times (1 minus the fraction of the way from the smaller); so the mean is x. A
    bfloat16 stays what it is. The result is f32. Infinities stay; a NaN stays one; what lies beyond
    the largest bfloat16 may become an infinity.

    ```mlir
    %bits = genrec.row_bits {stream = 512 : i64} : vector<4xi16>
    %rounded = genrec.row_round %coefficient by %bits : vector<4xf32>, vector<4xi16>
    ```
  }];
  let arguments = (ins GenRec_BodyValue:$x, GenRec_BodyValue:$bits);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$x `by` $bits attr-dict `:` type($x) `,` type($bits)";
}
def GenRec_RowHotOp : GenRec_BodyOp<"row_hot", [GenRec_RoundsNothing, GenRec_Body, MemoryEffects<[MemRead]>]> {
  let summary = "whether a row of a table with hot rows is hot";
  let description = [{
    i1: true from the step on that was the `hot_after`-th to see the row. The update of such a row
    rounds nothing.

    ```mlir
    %hot = genrec.row_hot %hot_row : !genrec.row<8, bf16, hot>
    ```
  }];
  let arguments = (ins GenRec_RowType:$row);
  let results = (outs I1:$result);
  let assemblyFormat = "$row attr-dict `:` qualified(type($row))";
}
def GenRec_RandomIndexOp : GenRec_BodyOp<"random_index", [GenRec_Body, GenRec_MayDraw, Pure]> {
  let summary = "uniform random row numbers of a source";
  let description = [{
    vector<mxi64> in [0, number of rows of source): (word_j * rows) >> 32, where word_j is the
    Philox word (seed, step, stream, identity of this row or 0 if `shared`, j). The source has at
    most 2^32 - 1 rows.

    ```mlir
    %negatives = genrec.random_index %source {stream = 1024 : i64} : (tensor<?x8xf32, #genrec.rows<@items>>) -> vector<128xi64>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$source, I64Attr:$stream, UnitAttr:$shared);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$source attr-dict `:` functional-type(operands, results)";
}
def GenRec_RowHashOp : GenRec_BodyOp<"row_hash", [GenRec_ElementwiseBody, GenRec_Body, Pure]> {
  let summary = "hash of a scalar";
  let description = [{
    Computes `genrec.hash` on an i64, a vector of i64 (elementwise) or a string.

    ```mlir
    %hashed = genrec.row_hash murmur3 %text {bits = 20 : i64, seed = 0 : i64} : (!genrec.string) -> i64
    ```
  }];
  let arguments = (ins GenRec_BodyValue:$x, GenRec_HashKindAttr:$kind, I64Attr:$bits, I64Attr:$seed);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
}
def GenRec_RowBucketizeOp : GenRec_BodyOp<"row_bucketize", [GenRec_ElementwiseBody, GenRec_Body, Pure]> {
  let summary = "bucket of a scalar";
  let description = [{
    Computes `genrec.bucketize` on a scalar or a vector (elementwise).

    ```mlir
    %bucket = genrec.row_bucketize %s {edges = array<f64: 0.0, 1.0, 10.0>} : (f32) -> i64
    ```
  }];
  let arguments = (ins GenRec_BodyValue:$x, DenseF64ArrayAttr:$edges);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
}
def GenRec_RowSearchOp : GenRec_BodyOp<"row_search", [GenRec_Body, Pure]> {
  let summary = "bucket of a scalar, with edges from a tensor";
  let description = [{
    `genrec.row_bucketize` with edges that are not constants of the body: `edges`, ascending, is a
    shared [n] x f64 that the kernel reads as a source.

    ```mlir
    %bucket = genrec.row_search %s in %bounds : (f32, tensor<3xf64>) -> i64
    ```
  }];
  let arguments = (ins GenRec_BodyValue:$x, GenRec_RowsOrShared:$edges);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$x `in` $edges attr-dict `:` functional-type(operands, results)";
}
def GenRec_RowIotaOp : GenRec_BodyOp<"row_iota", [GenRec_Body, Pure]> {
  let summary = "0, 1, 2, … along a row";
  let description = [{
    vector<dxi64>.

    ```mlir
    %columns = genrec.row_iota : vector<8xi64>
    ```
  }];
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def GenRec_RowConcatOp : GenRec_BodyOp<"row_concat", [GenRec_RoundsNothing, GenRec_WritesLanes, Pure]> {
  let summary = "concatenates vectors and scalars";
  let description = [{
    `genrec.concat_columns` on one row: a scalar counts as one element.

    ```mlir
    %joined = genrec.row_concat %x, %s, %coefficient : (vector<8xf32>, f32, vector<4xf32>) -> vector<13xf32>
    ```
  }];
  let arguments = (ins Variadic<GenRec_BodyValue>:$parts);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
}
def GenRec_RowSliceOp : GenRec_BodyOp<"row_slice", [GenRec_RoundsNothing, GenRec_ReadsLanes, Pure]> {
  let summary = "slices a vector";
  let description = [{
    `genrec.slice_columns` on one row; the result's size is the number of elements.

    ```mlir
    %part = genrec.row_slice %x from 2 : (vector<8xf32>) -> vector<4xf32>
    ```
  }];
  let arguments = (ins GenRec_BodyValue:$x, I64Attr:$offset);
  let results = (outs GenRec_BodyValue:$result);
  let assemblyFormat = "$x `from` $offset attr-dict `:` functional-type(operands, results)";
}

} // opDocGroup

#endif // GENREC_KERNEL_OPS_TD
