//===- GenRecRowOps.td - transforms, arithmetic, norms ----------*- tablegen -*-===//

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

def GenRec_RowOpsDocs : OpDocGroup {
  let summary = "Transforms, arithmetic, norms";
  let description = [{
    Row-wise computation: the result has the operands' domain. Operands may also be shared tensors.
  }];
}

let opDocGroup = GenRec_RowOpsDocs in {

//===-- transforms of ids and raw values ------------------------------------===//

class GenRec_TransformOp<string mnemonic, list<Trait> traits = []>
    : GenRec_Op<mnemonic, !listconcat([Pure, Rowwise], traits)> {
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_HashOp : GenRec_TransformOp<"hash"> {
  let summary = "a published hash function, truncated to `bits` bits";
  let description = [{
    xxh3: XXH3_64bits_withSeed of the 8 little-endian bytes of an i64 (or of a string's bytes);
    murmur3: the first 64 bits of MurmurHash3_x64_128 with the low 32 bits of the seed; farmhash64:
    FarmHash's Fingerprint64 for seed 0, otherwise its Hash64WithSeed (the portable variant, "na").
    The result is the low `bits` bits (1 to 63) of the hash as i64: as many as the `id_bits` of the
    table.

    ```mlir
    %id = genrec.hash xxh3 %name {bits = 52 : i64, seed = 7 : i64}
        : (tensor<?x!genrec.string, #genrec.rows<@request>>) -> tensor<?xi64, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, GenRec_HashKindAttr:$kind,
                       I64Attr:$bits, DefaultValuedAttr<I64Attr, "0">:$seed);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
}

def GenRec_MultiHashOp : GenRec_TransformOp<"multi_hash"> {
  let summary = "several hashes of one value, with consecutive seeds";
  let description = [{
    Element i of the result's row [n] is `genrec.hash` of x with seed `seed` + i. The n hashes are
    looked up in n small tables, and together identify the id (Tito Svenstrup et al. 2017, hash
    embeddings). x: i64 or string rows [].

    ```mlir
    %two = genrec.multi_hash xxh3 %movie {bits = 16 : i64}
        : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?x2xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, GenRec_HashKindAttr:$kind,
                       I64Attr:$bits, DefaultValuedAttr<I64Attr, "0">:$seed);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
}

def GenRec_CrossOp : GenRec_Op<"cross", [Pure, Rowwise]> {
  let summary = "feature cross: one id from two or more columns";
  let description = [{
    Operands are i64 rows of one domain (or shared) with equal row shapes. With H the hash function
    `kind` of an i64 with `seed`, truncated to 63 bits: c_1 = H(x_1), c_i = H(c_{i-1} + x_i)
    (wrapping). The result is the low `bits` bits of the last c_i. The order of operands matters.

    ```mlir
    %city_and_hour = genrec.cross xxh3 %movie, %time {bits = 40 : i64, seed = 3 : i64}
        : (tensor<?xi64, #genrec.rows<@history>>, tensor<?xi64, #genrec.rows<@history>>) -> tensor<?xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins Variadic<GenRec_RowsOrShared>:$columns, GenRec_HashKindAttr:$kind,
                       I64Attr:$bits, DefaultValuedAttr<I64Attr, "0">:$seed);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$kind $columns attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_ModOp : GenRec_TransformOp<"mod", [GenRec_BoundsIds]> {
  let summary = "remainder in [0, divisor)";
  let description = [{
    Euclidean remainder of an i64: never negative, also for a negative x.

    ```mlir
    %weekday = genrec.mod %time {divisor = 7 : i64} : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?xi64, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x,
                       ConfinedAttr<I64Attr, [IntPositive]>:$divisor);
}

def GenRec_BucketizeOp : GenRec_TransformOp<"bucketize", [GenRec_BoundsIds]> {
  let summary = "index of the interval a value falls in";
  let description = [{
    The number of edges that are <= x (1 to 4096 ascending edges): 0 for x below the first edge, n
    for x at or above the last. NaN gives 0. x: f32, f64 or i64, compared as f64; result: i64.

    ```mlir
    %age_group = genrec.bucketize %age {edges = array<f64: 18.0, 30.0, 50.0>}
        : (tensor<?xf32, #genrec.rows<@request>>) -> tensor<?xi64, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, DenseF64ArrayAttr:$edges);
}

def GenRec_CastOp : GenRec_TransformOp<"cast", [GenRec_BoundsIds, GenRec_RoundsNothing, Differentiable]> {
  let summary = "converts the element type";
  let description = [{
    Converts between i1, i32, i64, f32 and f64; domain and row shape are x's. Floats to integers
    truncate towards 0 and saturate; NaN becomes 0. To i1: true if an integer is not 0, or if a
    float is at least 1. From i1: 0 or 1. There is a gradient only between floats.

    Also from f32 to bf16, to nearest, ties to even: a factor that products with `bf16` take rounded
    (`ProductOpInterface`), or that row kernels gather. Only `round-factors` makes such a cast, after
    differentiation.

    ```mlir
    %seconds = genrec.cast %time : (tensor<?xi64, #genrec.rows<@history>>) -> tensor<?xf32, #genrec.rows<@history>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x);
}

//===-- elementwise arithmetic ----------------------------------------------===//

class GenRec_UnaryOp<string mnemonic, list<Trait> traits = []>
    : GenRec_Op<mnemonic, !listconcat([Pure, Rowwise, Differentiable, GenRec_ElementwiseRows,
                                       SameOperandsAndResultType], traits)> {
  let arguments = (ins GenRec_RowsOrShared:$x);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() { return ::genrec::rules::expectUnary(*this); }
  }];
}
class GenRec_Unary<string mnemonic, string formula, list<Trait> traits = []> : GenRec_UnaryOp<mnemonic, traits> {
  let summary = formula;
  let description = "Elementwise on f32 or f64, rows or shared: " # formula # ".\n\n"
      "```mlir\n%y = genrec." # mnemonic # " %user_vector : tensor<?x8xf32, #genrec.rows<@request>>\n```\n";
}
def GenRec_NegOp      : GenRec_Unary<"neg", "-x", [GenRec_RoundsNothing, GenRec_IsLinear]>;
def GenRec_AbsOp      : GenRec_Unary<"abs", "|x|, gradient 0 at 0", [GenRec_RoundsNothing]>;
def GenRec_SquareOp   : GenRec_Unary<"square", "x * x">;
def GenRec_SqrtOp     : GenRec_Unary<"sqrt", "square root of x">;
def GenRec_RsqrtOp    : GenRec_Unary<"rsqrt", "1 / sqrt(x)">;
def GenRec_ExpOp      : GenRec_Unary<"exp", "e to the x">;
def GenRec_LogOp      : GenRec_Unary<"log", "natural logarithm of x">;
def GenRec_Log1pOp    : GenRec_Unary<"log1p", "log(1 + x), exact near 0">;
def GenRec_SinOp      : GenRec_Unary<"sin", "sine of x, in radians">;
def GenRec_CosOp      : GenRec_Unary<"cos", "cosine of x, in radians">;
def GenRec_TanhOp     : GenRec_Unary<"tanh", "hyperbolic tangent of x", [GenRec_Activates]>;
def GenRec_ErfOp      : GenRec_Unary<"erf", "error function of x">;
def GenRec_SigmoidOp  : GenRec_Unary<"sigmoid", "1 / (1 + exp(-x))", [GenRec_Activates]>;
def GenRec_SiluOp     : GenRec_Unary<"silu", "x * sigmoid(x)", [GenRec_Activates]>;
def GenRec_ReluOp     : GenRec_Unary<"relu", "max(x, 0), gradient 0 at 0", [GenRec_Activates, GenRec_RoundsNothing]>;
def GenRec_GeluOp     : GenRec_Unary<"gelu", "x * (1 + erf(x / sqrt 2)) / 2", [GenRec_Activates]>;
def GenRec_SoftplusOp : GenRec_Unary<"softplus", "log(1 + exp(x)), without overflow">;

def GenRec_RoundFactorOp : GenRec_UnaryOp<"round_factor"> {
  let summary = "x, rounded to bfloat16 as factors of products are";
  let description = [{
    Each element becomes the nearest bfloat16, ties to even, as an f32: below 2^-126 it becomes 0, too
    large an infinity, and NaN stays NaN. The gradient is that of x itself, as if nothing were
    rounded. `decompose-blocks` makes it of products that become parts of row kernels
    (`ProductOpInterface::getFactorsRoundedByOps`).

    ```mlir
    %factor = genrec.round_factor %user_vector : tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let extraClassDefinition = [{
    ::llvm::LogicalResult $cppClass::verify() { return ::genrec::rules::expectUnary(*this, ::genrec::rules::f32); }
  }];
}

class GenRec_BinaryOp<string mnemonic, string formula, list<Trait> traits = []>
    : GenRec_Op<mnemonic, !listconcat([Pure, Rowwise, Differentiable, GenRec_ElementwiseRows], traits)> {
  let summary = formula;
  let description = "Elementwise on numbers of one element type: " # formula # ".\n\n"
      "Operands that hold rows hold rows of one domain; either may be shared. The row shapes are\n"
      "equal, or one is [] and repeated along the other. Two shared operands give a shared result.\n"
      "Nothing is fanned out: rows of two domains are an error. Integers wrap around.\n\n"
      "```mlir\n%y = genrec." # mnemonic # " %user_vector, %half\n"
      "    : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<f32>) -> tensor<?x8xf32, #genrec.rows<@request>>\n```\n";
  let arguments = (ins GenRec_RowsOrShared:$lhs, GenRec_RowsOrShared:$rhs);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_AddOp : GenRec_BinaryOp<"add", "lhs + rhs", [GenRec_IsSum, GenRec_IsLinear]>;
def GenRec_SubOp : GenRec_BinaryOp<"sub", "lhs - rhs", [GenRec_IsSum, GenRec_IsLinear]>;
def GenRec_MulOp : GenRec_BinaryOp<"mul", "lhs * rhs", [GenRec_IsLinearIn]>;
def GenRec_DivOp : GenRec_BinaryOp<"div", "lhs / rhs (floats only)", [GenRec_IsLinearIn]>;
def GenRec_MaximumOp : GenRec_BinaryOp<"maximum", "the larger of lhs and rhs; a tie sends its gradient to lhs", [GenRec_SelectsElements]>;
def GenRec_MinimumOp : GenRec_BinaryOp<"minimum", "the smaller of lhs and rhs; a tie sends its gradient to lhs", [GenRec_SelectsElements]>;

def GenRec_CompareOp : GenRec_Op<"compare", [Pure, Rowwise]> {
  let summary = "elementwise comparison, giving i1";
  let description = [{
    Operands as for the arithmetic ops: one domain or shared, one element type. The ordering kinds
    take numbers, `eq` and `ne` also i1. A comparison with NaN is false, except that `ne` is true.
    The result is i1 and has no gradient.

    ```mlir
    %adult = genrec.compare ge %age, %half
        : (tensor<?xf32, #genrec.rows<@request>>, tensor<f32>) -> tensor<?xi1, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_CompareKindAttr:$kind, GenRec_RowsOrShared:$lhs, GenRec_RowsOrShared:$rhs);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$kind $lhs `,` $rhs attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_SelectOp : GenRec_Op<"select", [GenRec_SelectsElements, GenRec_IsLinearIn, GenRec_BoundsIds, Pure, Rowwise, Differentiable]> {
  let summary = "elementwise choice";
  let description = [{
    `on_true` if the i1 `condition` is true, otherwise `on_false`. The three operands broadcast like
    those of the arithmetic ops. The selected operand gets the gradient, and the other one 0, even
    if it is NaN or infinite.

    ```mlir
    %chosen = genrec.select %liked, %age, %half
        : (tensor<?xi1, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>, tensor<f32>) -> tensor<?xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$condition, GenRec_RowsOrShared:$on_true, GenRec_RowsOrShared:$on_false);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$condition `,` $on_true `,` $on_false attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===-- along a row ---------------------------------------------------------===//

def GenRec_RowReduceOp : GenRec_Op<"row_reduce", [GenRec_IsLinearIn, Pure, Rowwise, Differentiable]> {
  let summary = "sum, mean or maximum along each row";
  let description = [{
    Row shape [d] becomes []; x may also be a shared [d]. mean takes floats, sum and max also
    integers. The gradient of max is divided equally among all elements that equal the maximum.

    ```mlir
    %sum_of_squares = genrec.row_reduce sum %user_vector
        : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_ReduceKindAttr:$kind, GenRec_RowsOrShared:$x);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$kind $x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_ConcatColumnsOp : GenRec_Op<"concat_columns", [GenRec_SelectsElements, GenRec_IsLinear, Pure, Rowwise, Differentiable]> {
  let summary = "concatenates rows";
  let description = [{
    Rows [d1], [d2], … (row shape [] counts as [1]) of one domain become rows [d1 + d2 + …]; or all
    operands are shared. One element type, not strings. Rows of an ancestor need a `genrec.fanout`
    first.

    ```mlir
    %features = genrec.concat_columns %user_vector, %age
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?xf32, #genrec.rows<@request>>) -> tensor<?x9xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins Variadic<GenRec_RowsOrShared>:$parts);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_SliceColumnsOp : GenRec_Op<"slice_columns", [GenRec_IsLinear, GenRec_CopiesElements, Pure, Rowwise, Differentiable]> {
  let summary = "slices each row";
  let description = [{
    Elements [offset, offset + size) of every row, where size is the result's row size. x may also
    be a shared [d]. The gradient is `genrec.pad_columns`.

    ```mlir
    %upper = genrec.slice_columns %user_vector from 4
        : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, I64Attr:$offset);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x `from` $offset attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_LayerNormOp : GenRec_Op<"layer_norm", [GenRec_RowLocal, Pure, Composite, AttrSizedOperandSegments]> {
  let summary = "(x - mean) / sqrt(variance + eps), then scale and bias";
  let description = [{
    Mean and biased variance along each row of shape [d]; `scale` and `bias`, when
    given, are shared tensors of shape [d] (Ba et al. 2016, eq. 4). A constant row
    with `eps` 0 divides by 0.

    ```mlir
    %normed = genrec.layer_norm %user_vector scale %scale {eps = 1.0e-6 : f64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<8xf32>) -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, Optional<GenRec_Shared>:$scale,
                       Optional<GenRec_Shared>:$bias, F64Attr:$eps);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x (`scale` $scale^)? (`bias` $bias^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_RmsNormOp : GenRec_Op<"rms_norm", [GenRec_RowLocal, Pure, Composite]> {
  let summary = "x / sqrt(mean(x²) + eps), then scale";
  let description = [{
    Along each row of shape [d]; `scale`: shared [d] (Zhang & Sennrich 2019, eq. 4).

    ```mlir
    %normed = genrec.rms_norm %user_vector {eps = 1.0e-6 : f64}
        : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, Optional<GenRec_Shared>:$scale, F64Attr:$eps);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x (`scale` $scale^)? attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def GenRec_L2NormalizeOp : GenRec_Op<"l2_normalize", [GenRec_RowLocal, Pure, Composite]> {
  let summary = "x / max(‖x‖₂, eps)";
  let description = [{
    Along each row of shape [d]. A row with a norm below `eps` is divided by `eps`, so a row of
    zeros stays a row of zeros.

    ```mlir
    %unit = genrec.l2_normalize %user_vector {eps = 1.0e-6 : f64}
        : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x, F64Attr:$eps);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_SoftmaxOp : GenRec_Op<"softmax", [Pure, Composite, SameOperandsAndResultType]> {
  let summary = "exp(x - max x) / Σ exp(x - max x), along each row";
  let description = [{
    The row shape is x's; x may also be a shared [d].

    ```mlir
    %gate = genrec.softmax %user_vector : tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_RowsOrShared:$x);
  let results = (outs GenRec_RowsOrShared:$result);
  let assemblyFormat = "$x attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def GenRec_DropoutOp : GenRec_Op<"dropout", [GenRec_DrawOpInterface, GenRec_NeedsRunningStep, Pure, Rowwise, Differentiable]> {
  let summary = "zeroes elements with probability `rate`, scales the rest by 1 / (1 - rate)";
  let description = [{
    Element e of a row with identity r is dropped if the Philox word (seed, step, `stream`, r, e) is
    below rate * 2^32. `rate` is in [0, 1). Outside of training, dropout is the identity. x must
    have rows, as draws depend on the row's identity; for the same reason dropout is never moved
    across a fanout.

    ```mlir
    %dropped = genrec.dropout %user_vector {rate = 0.2 : f64, stream = 256 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_Rows:$x, F64Attr:$rate, I64Attr:$stream);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_RandomUniformOp : GenRec_Op<"random_uniform", [GenRec_RoundsNothing, GenRec_DrawOpInterface, GenRec_NeedsRunningStep, Pure, Rowwise]> {
  let summary = "uniform random numbers in [0, 1), per row";
  let description = [{
    f32 rows [] or [d] of `domain`. Element e of a row with identity r is the top 24 bits of the
    Philox word (seed, step, `stream`, r, e), times 2^-24. Drawn in every mode; outside of training,
    step is the number of steps the model was trained for. No two ops of a program have the same
    `stream`. Never moved across a fanout, as draws depend on the identity of the row of `domain`.

    ```mlir
    %noise = genrec.random_uniform %request {stream = 512 : i64}
        : (!genrec.domain<@request>) -> tensor<?x4xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = (ins GenRec_DomainType:$domain, I64Attr:$stream);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$domain attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_ROW_OPS_TD
