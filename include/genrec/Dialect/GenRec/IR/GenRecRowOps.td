//===- GenRecRowOps.td - transforms, arithmetic, norms, dense layers -*- tablegen -*-===//

#ifndef GENREC_ROW_OPS_TD
#define GENREC_ROW_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

defvar Rowwise = DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface>;
defvar Differentiable = DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>;
defvar Composite = DeclareOpInterfaceMethods<GenRec_CompositeOpInterface>;

//===-- transforms of ids and raw values ------------------------------------===//

class GenRec_TransformOp<string mnemonic, list<Trait> traits = []>
    : GenRec_Op<mnemonic, !listconcat([Pure, Rowwise], traits)> {
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_HashOp : GenRec_TransformOp<"hash"> {
  let summary = "a published hash, cut to `bits` bits";
  let description = [{
    xxh3: XXH3_64bits_withSeed of the 8 little-endian bytes of an i64 (or of a
    string's bytes); murmur3: the first 64 bits of MurmurHash3_x64_128 with the
    low 32 bits of the seed. The result is the hash's low `bits` bits as i64 (1 to 63).
  }];
  let arguments = (ins AnyRankedTensor:$x, GenRec_HashKindAttr:$kind,
                       I64Attr:$bits, DefaultValuedAttr<I64Attr, "0">:$seed);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
}

def GenRec_ModOp : GenRec_TransformOp<"mod"> {
  let summary = "remainder in [0, divisor)";
  let description = "Euclidean remainder of an i64: never negative.";
  let arguments = (ins AnyRankedTensor:$x,
                       ConfinedAttr<I64Attr, [IntPositive]>:$divisor);
}

def GenRec_BucketizeOp : GenRec_TransformOp<"bucketize"> {
  let summary = "index of the interval a value falls in";
  let description = [{
    The number of edges that are <= x (edges ascending, at most 4096): 0 below the first
    edge, n from the last on. NaN falls into bucket 0. x: f32, f64 or i64; result i64.
  }];
  let arguments = (ins AnyRankedTensor:$x, DenseF64ArrayAttr:$edges);
}

def GenRec_CastOp : GenRec_TransformOp<"cast", [Differentiable]> {
  let summary = "converts the element type";
  let description = [{
    Between i1, i32, i64, f32 and f64. Floats to integers truncate towards 0 and saturate;
    NaN becomes 0. The gradient passes between floats only.
  }];
  let arguments = (ins AnyRankedTensor:$x);
}

//===-- elementwise arithmetic ----------------------------------------------===//

class GenRec_UnaryOp<string mnemonic>
    : GenRec_Op<mnemonic, [Pure, Rowwise, Differentiable, SameOperandsAndResultType]> {
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
  let hasVerifier = 1;
}
class GenRec_Unary<string mnemonic, string formula> : GenRec_UnaryOp<mnemonic> {
  let summary = formula;
  let description = "Elementwise on floats: " # formula # ".";
}
def GenRec_NegOp      : GenRec_Unary<"neg", "-x">;
def GenRec_AbsOp      : GenRec_Unary<"abs", "|x|, gradient 0 at 0">;
def GenRec_SquareOp   : GenRec_Unary<"square", "x * x">;
def GenRec_SqrtOp     : GenRec_Unary<"sqrt", "square root of x">;
def GenRec_RsqrtOp    : GenRec_Unary<"rsqrt", "1 / sqrt(x)">;
def GenRec_ExpOp      : GenRec_Unary<"exp", "e to the x">;
def GenRec_LogOp      : GenRec_Unary<"log", "natural logarithm of x">;
def GenRec_TanhOp     : GenRec_Unary<"tanh", "hyperbolic tangent of x">;
def GenRec_ErfOp      : GenRec_Unary<"erf", "error function of x">;
def GenRec_SigmoidOp  : GenRec_Unary<"sigmoid", "1 / (1 + exp(-x))">;
def GenRec_SiluOp     : GenRec_Unary<"silu", "x * sigmoid(x)">;
def GenRec_ReluOp     : GenRec_Unary<"relu", "max(x, 0), gradient 0 at 0">;
def GenRec_GeluOp     : GenRec_Unary<"gelu", "x * (1 + erf(x / sqrt 2)) / 2">;
def GenRec_SoftplusOp : GenRec_Unary<"softplus", "log(1 + exp(x)), without overflow">;

class GenRec_BinaryOp<string mnemonic, string formula>
    : GenRec_Op<mnemonic, [Pure, Rowwise, Differentiable]> {
  let summary = formula;
  let description = "Elementwise on floats or integers of one type: " # formula # [{.
    Both operands hold rows of one domain; either may be *shared* (no domain) if
    its shape is the other's row shape or rank 0, and a row of rank 0 is
    repeated along a row of rank 1. Two shared operands give a shared result.
  }];
  let arguments = (ins AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_AddOp : GenRec_BinaryOp<"add", "lhs + rhs">;
def GenRec_SubOp : GenRec_BinaryOp<"sub", "lhs - rhs">;
def GenRec_MulOp : GenRec_BinaryOp<"mul", "lhs * rhs">;
def GenRec_DivOp : GenRec_BinaryOp<"div", "lhs / rhs (floats only)">;
def GenRec_MaximumOp : GenRec_BinaryOp<"maximum", "the larger of lhs and rhs; a tie sends its gradient to lhs">;
def GenRec_MinimumOp : GenRec_BinaryOp<"minimum", "the smaller of lhs and rhs; a tie sends its gradient to lhs">;

def GenRec_CompareOp : GenRec_Op<"compare", [Pure, Rowwise]> {
  let summary = "elementwise comparison, giving i1";
  let description = "Operands as for the arithmetic ops. A comparison with NaN is false, but `ne` is true.";
  let arguments = (ins GenRec_CompareKindAttr:$kind, AnyRankedTensor:$lhs, AnyRankedTensor:$rhs);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_SelectOp : GenRec_Op<"select", [Pure, Rowwise, Differentiable]> {
  let summary = "elementwise choice";
  let description = "`on_true` where the i1 `condition` holds, else `on_false`. Broadcasts like the arithmetic ops.";
  let arguments = (ins AnyRankedTensor:$condition, AnyRankedTensor:$on_true, AnyRankedTensor:$on_false);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- along a row ---------------------------------------------------------===//

def GenRec_RowReduceOp : GenRec_Op<"row_reduce", [Pure, Rowwise, Differentiable]> {
  let summary = "sum, mean or maximum along each row";
  let description = "Row shape [d] becomes []. The gradient of max goes to all elements equal to it, divided among them.";
  let arguments = (ins GenRec_ReduceKindAttr:$kind, AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_ConcatColumnsOp : GenRec_Op<"concat_columns", [Pure, Rowwise, Differentiable]> {
  let summary = "joins rows end to end";
  let description = "Row shapes [d1], [d2], … (rank 0 counts as [1]) of one domain become [d1 + d2 + …].";
  let arguments = (ins Variadic<AnyRankedTensor>:$parts);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_SliceColumnsOp : GenRec_Op<"slice_columns", [Pure, Rowwise, Differentiable]> {
  let summary = "takes a range of each row";
  let description = "Elements [offset, offset + size) of every row, where size is the result's row size.";
  let arguments = (ins AnyRankedTensor:$x, I64Attr:$offset);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `from` $offset attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_LayerNormOp : GenRec_Op<"layer_norm", [Pure, Composite, AttrSizedOperandSegments]> {
  let summary = "(x - mean) / sqrt(variance + eps), then scale and bias";
  let description = [{
    Mean and biased variance along each row of shape [d]; `scale` and `bias`,
    when given, are shared tensors of shape [d] (Ba et al. 2016, eq. 4).
  }];
  let arguments = (ins AnyRankedTensor:$x, Optional<AnyRankedTensor>:$scale,
                       Optional<AnyRankedTensor>:$bias, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_RmsNormOp : GenRec_Op<"rms_norm", [Pure, Composite]> {
  let summary = "x / sqrt(mean(x²) + eps), then scale";
  let description = "Along each row of shape [d]; `scale`: shared [d] (Zhang & Sennrich 2019, eq. 4).";
  let arguments = (ins AnyRankedTensor:$x, Optional<AnyRankedTensor>:$scale, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x (`scale` $scale^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_L2NormalizeOp : GenRec_Op<"l2_normalize", [Pure, Composite]> {
  let summary = "x / max(‖x‖₂, eps)";
  let description = "Along each row of shape [d].";
  let arguments = (ins AnyRankedTensor:$x, F64Attr:$eps);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_DropoutOp : GenRec_Op<"dropout", [Pure, Rowwise, Differentiable]> {
  let summary = "zeroes elements with probability `rate`, scales the rest by 1 / (1 - rate)";
  let description = [{
    Element e of a row with identity r is dropped when the Philox word
    (seed, step, `stream`, r, e) is below rate * 2^32. The identity outside training.
  }];
  let arguments = (ins AnyRankedTensor:$x, F64Attr:$rate, I64Attr:$stream);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- dense layers --------------------------------------------------------===//

def GenRec_LinearOp : GenRec_Op<"linear", [Pure, Differentiable]> {
  let summary = "x · weight + bias";
  let description = [{
    x: rows [k]; weight: shared [k, n], or [n, k] with `transposed`; bias:
    shared [n]; result rows [n].
  }];
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$weight,
                       Optional<AnyRankedTensor>:$bias, UnitAttr:$transposed);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `,` $weight (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_WeightGradientOp : GenRec_Op<"weight_gradient", [Pure]> {
  let summary = "xᵀ · y, contracted over all rows";
  let description = "x: rows [k], y: rows [n] of one domain; result shared [k, n]. The gradient of a linear's weight.";
  let arguments = (ins AnyRankedTensor:$x, AnyRankedTensor:$y);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x `,` $y attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ReduceRowsOp : GenRec_Op<"reduce_rows", [Pure]> {
  let summary = "sum over all rows";
  let description = "rows [d] give a shared [d], rows [] a shared scalar. In a fixed order of fixed chunks.";
  let arguments = (ins AnyRankedTensor:$x);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- embeddings ----------------------------------------------------------===//

def GenRec_LookupOp : GenRec_Op<"lookup", [GenRec_SymbolUser, Pure, Differentiable]> {
  let summary = "rows of an embedding table by id";
  let description = [{
    `ids`: i64 rows []; result f32 rows [dim]. `valid` (i1): a null id gives the
    zero vector, inserts nothing, gets no gradient. Training inserts an unseen
    id with its initial value; evaluation reads the initial value and inserts nothing.
    The gradient goes to the table's update, duplicates summed in a fixed order.
  }];
  let arguments = (ins AnyRankedTensor:$ids, Optional<AnyRankedTensor>:$valid,
                       FlatSymbolRefAttr:$table);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$ids (`valid` $valid^)? `in` $table attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_EmbeddingOp : GenRec_Op<"embedding", [Pure, Differentiable,
    DeclareOpInterfaceMethods<GenRec_RowwiseOpInterface, ["isGatherSource"]>]> {
  let summary = "rows of a dense parameter by index";
  let description = [{
    `index`: i64 rows []; `weight`: shared [n, d]; result f32 rows [d]. Position
    embeddings are `embedding(position(domain), weight)`. An index outside
    [0, n) reads row 0 or n - 1 (a position beyond the last shares its vector).
  }];
  let arguments = (ins AnyRankedTensor:$index, AnyRankedTensor:$weight);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$index `of` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_EmbeddingGradOp : GenRec_Op<"embedding_grad", [Pure]> {
  let summary = "sums rows into a dense parameter's gradient by index";
  let description = "The adjoint of `genrec.embedding`: row i of the shared [n, d] result is the sum of the rows of y whose (clamped) index is i.";
  let arguments = (ins AnyRankedTensor:$index, AnyRankedTensor:$y);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$index `,` $y attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // GENREC_ROW_OPS_TD
