//===- GenRecAttentionOps.td - attention and blocks of it -------*- tablegen -*-===//

#ifndef GENREC_ATTENTION_OPS_TD
#define GENREC_ATTENTION_OPS_TD

include "genrec/Dialect/GenRec/IR/GenRecTypes.td"
include "genrec/Dialect/GenRec/IR/GenRecAttrs.td"
include "genrec/Dialect/GenRec/IR/GenRecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def GenRec_AttentionOpsDocs : OpDocGroup {
  let summary = "Attention";
  let description = [{
    Attention among the rows of each list, and blocks that contain attention.
  }];
}

let opDocGroup = GenRec_AttentionOpsDocs in {

defvar AttentionAttributes = (ins
    ConfinedAttr<I64Attr, [IntPositive]>:$heads,
    GenRec_ScoreKindAttr:$score,
    UnitAttr:$causal,
    DefaultValuedAttr<I64Attr, "0">:$window,
    DefaultValuedAttr<I64Attr, "0">:$contextual,
    DefaultValuedAttr<F64Attr, "1.0">:$scale,
    DefaultValuedAttr<F64Attr, "0.0">:$fixed_length,
    UnitAttr:$next_event_time,
    DefaultValuedAttr<F64Attr, "0.0">:$dropout,
    DefaultValuedAttr<I64Attr, "0">:$stream,
    UnitAttr:$bf16);

def GenRec_AttentionOp : GenRec_Op<"attention", [GenRec_Product, GenRec_ReadsStrided, GenRec_MayDraw, GenRec_ListLocal, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>,
    AttrSizedOperandSegments]> {
  let summary = "attention among the rows of each list";
  let description = [{
    `q`, `k`: rows [heads * qk], `v`: rows [heads * dv], one domain, one float type;
    the result has v's type. Rows attend to rows of the same list (same parent row).
    Per head, with i the query's and j the key's position in the list:

        s_ij = scale * q_i · k_j + position_bias[clamp(j - i + (B-1)/2, 0, B-1)]
               + time_bias[min(T-1, floor(log(max(1, dt_ij)) / 0.301))]
        silu:    a_ij = silu(s_ij) / n,  n = fixed_length, or the list's length if that is 0
        softmax: a_ij = exp(s_ij) / Σ_j exp(s_ij)  (fixed_length must be 0)
        out_i  = Σ_j dropout(a_ij) v_j

    - `causal`: j <= i. `window` w > 0: |i - j| < w.
    - `contextual` c > 0: the first c rows of each list are a context prefix. They attend to all
      rows except targets, and all rows attend to them, regardless of `causal` and `window`.
    - `target`: i64 rows [] of the lists' parent: this many rows at the end of each list (clamped to
      0 and to the list's length) are targets. Only a target itself attends to it; a target attends
      to other rows by the rules above.
    - `position_bias`: shared [B], B odd, used by all heads.
    - `time_bias`: shared [T], T <= 128, with `time`: i64 seconds per row. dt_ij = time_i - time_j
      in seconds; with `next_event_time`, the time of the event after i (for the last event its own)
      replaces time_i. Negative differences count as 0.
    - `dropout` draws element head * 2^20 + j of the query row's stream.

    With `bf16` (`ProductOpInterface`), q, k and v are rounded to bfloat16, and so is what they are
    weighted with before it is divided: silu(s_ij), or exp(s_ij - max_j s_ij), where dropout keeps it.
    n, Σ_j and 1 / (1 - dropout) are f32 and apply to the sum over j. q, k and v may all have been
    rounded before: of type bf16, with everything else of f32 (`round-factors`).

    An empty list has no result rows. Lists have at most 2^20 rows. In a root domain every row
    attends only to itself. SiLU scores: Zhai et al. 2024 (HSTU), eq. 2 and 3.

    ```mlir
    %mixed = genrec.attention softmax %seq_vector, %seq_vector, %seq_vector position_bias %position_bias
        {heads = 2 : i64, causal, scale = 0.5 : f64, window = 50 : i64}
        : (tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<21xf32>)
        -> tensor<?x8xf32, #genrec.rows<@seq>>
    %timed = genrec.attention silu %event_vector, %event_vector, %event_vector time_bias %time_bias time %event_time
        {heads = 1 : i64, causal, fixed_length = 200.0 : f64}
        : (tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>,
           tensor<64xf32>, tensor<?xi64, #genrec.rows<@event>>) -> tensor<?x8xf32, #genrec.rows<@event>>
    // One row of context, then events, then as many targets as %shown_count says.
    %masked = genrec.attention silu %seq_vector, %seq_vector, %seq_vector target %shown_count
        {heads = 1 : i64, causal, contextual = 1 : i64}
        : (tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>,
           tensor<?xi64, #genrec.rows<@request>>) -> tensor<?x8xf32, #genrec.rows<@seq>>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$q, GenRec_Rows:$k, GenRec_Rows:$v,
      Optional<GenRec_Shared>:$position_bias,
      Optional<GenRec_Shared>:$time_bias, Optional<GenRec_Rows>:$time,
      Optional<GenRec_Rows>:$target),
      AttentionAttributes);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = [{
    $score $q `,` $k `,` $v (`position_bias` $position_bias^)?
    (`time_bias` $time_bias^)? (`time` $time^)? (`target` $target^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def GenRec_AttentionGradOp : GenRec_Op<"attention_grad", [GenRec_Product, GenRec_ReadsStrided, GenRec_DrawOpInterface, Pure, AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let summary = "gradients of genrec.attention";
  let description = [{
    The operands are those of the forward op, its result `out`, and the gradient of `out`, both of
    v's type. The results are the gradients of q, k, v and of each bias operand, of the operands'
    types. With `bf16`, q, k, v and the gradient g of `out` are rounded to bfloat16, as are silu(s_ij)
    or softmax(s)_ij where dropout keeps it (times g_i: the gradient of v) and ds_ij (times k and q).
    The biases' gradients add up ds_ij as it was. Σ_j a_ij da_ij is g_i · out_i, of which nothing is
    rounded, unless g was before: where q, k and v are of type bf16, g is.

    ```mlir
    %dq, %dk, %dv, %dbias = genrec.attention_grad silu %seq_vector, %seq_vector, %seq_vector
        position_bias %position_bias out %seq_vector, %seq_vector {heads = 1 : i64, causal}
        : (tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>,
           tensor<21xf32>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>)
        -> (tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>)
        position_bias tensor<21xf32>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$q, GenRec_Rows:$k, GenRec_Rows:$v,
      Optional<GenRec_Shared>:$position_bias,
      Optional<GenRec_Shared>:$time_bias, Optional<GenRec_Rows>:$time,
      Optional<GenRec_Rows>:$target,
      GenRec_Rows:$out, GenRec_Rows:$gradient), AttentionAttributes);
  let results = (outs GenRec_Rows:$dq, GenRec_Rows:$dk, GenRec_Rows:$dv,
      Optional<GenRec_Shared>:$dposition_bias, Optional<GenRec_Shared>:$dtime_bias);
  let assemblyFormat = [{
    $score $q `,` $k `,` $v (`position_bias` $position_bias^)?
    (`time_bias` $time_bias^)? (`time` $time^)? (`target` $target^)? `out` $out `,` $gradient attr-dict
    `:` `(` type(operands) `)` `->` `(` type($dq) `,` type($dk) `,` type($dv) `)`
    (`position_bias` type($dposition_bias)^)? (`time_bias` type($dtime_bias)^)?
  }];
  let hasVerifier = 1;
}

def GenRec_FusedAttentionGradOp : GenRec_Op<"fused_attention_grad", [GenRec_Product, GenRec_ReadsStrided, GenRec_DrawOpInterface, Pure, AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let summary = "gradients of genrec.attention, times those of the silu before it";
  let description = [{
    `genrec.attention_grad` with a fused epilogue, where q, k and v are silu of columns of `x`, rows [n]
    of floats: q is silu(x[columns[0], …]), k and v are those from `columns[1]` and `columns[2]` on. The
    first result is the gradient of x, dx, rounded to bfloat16 once:

        dx[columns[0] + i] = silu'(x[columns[0] + i]) · dq[i],  likewise dk and dv

    The first columns of dx, before all of these, are `rest`, rows of bf16 (none: there are no others);
    together they are all columns of x. The other operands and attributes are those of
    `genrec.attention_grad`, with factors that were rounded before. Created by `fold-epilogues`, for
    devices.

    ```mlir
    %x = genrec.concat_columns %seq_vector, %seq_vector, %seq_vector, %seq_vector : (tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xf32, #genrec.rows<@seq>>) -> tensor<?x32xf32, #genrec.rows<@seq>>
    %rounded = genrec.cast %seq_vector : (tensor<?x8xf32, #genrec.rows<@seq>>) -> tensor<?x8xbf16, #genrec.rows<@seq>>
    %dx, %dbias = genrec.fused_attention_grad silu %rounded, %rounded, %rounded
        position_bias %position_bias out %seq_vector, %rounded of %x rest %rounded {columns = array<i64: 16, 24, 8>, heads = 1 : i64, causal, bf16}
        : (tensor<?x8xbf16, #genrec.rows<@seq>>, tensor<?x8xbf16, #genrec.rows<@seq>>, tensor<?x8xbf16, #genrec.rows<@seq>>,
           tensor<21xf32>, tensor<?x8xf32, #genrec.rows<@seq>>, tensor<?x8xbf16, #genrec.rows<@seq>>,
           tensor<?x32xf32, #genrec.rows<@seq>>, tensor<?x8xbf16, #genrec.rows<@seq>>)
        -> tensor<?x32xbf16, #genrec.rows<@seq>> position_bias tensor<21xf32>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$q, GenRec_Rows:$k, GenRec_Rows:$v,
      Optional<GenRec_Shared>:$position_bias,
      Optional<GenRec_Shared>:$time_bias, Optional<GenRec_Rows>:$time,
      Optional<GenRec_Rows>:$target,
      GenRec_Rows:$out, GenRec_Rows:$gradient, GenRec_Rows:$x, Optional<GenRec_Rows>:$rest),
      AttentionAttributes, (ins DenseI64ArrayAttr:$columns));
  let results = (outs GenRec_Rows:$dx, Optional<GenRec_Shared>:$dposition_bias,
      Optional<GenRec_Shared>:$dtime_bias);
  let assemblyFormat = [{
    $score $q `,` $k `,` $v (`position_bias` $position_bias^)?
    (`time_bias` $time_bias^)? (`time` $time^)? (`target` $target^)? `out` $out `,` $gradient
    `of` $x (`rest` $rest^)? attr-dict `:` `(` type(operands) `)` `->` type($dx)
    (`position_bias` type($dposition_bias)^)? (`time_bias` type($dtime_bias)^)?
  }];
  let hasVerifier = 1;
}

def GenRec_HstuBlockOp : GenRec_Op<"hstu_block", [GenRec_Product, GenRec_MayDraw, GenRec_ListLocal, Pure,
    DeclareOpInterfaceMethods<GenRec_CompositeOpInterface>,
    AttrSizedOperandSegments]> {
  let summary = "one HSTU layer";
  let description = [{
    x: rows [d]. n(·) is a layer norm without parameters (`eps`):

        u, v, q, k = split(silu(n(x) · uvqk))     sizes heads*dv, heads*dv, heads*qk, heads*qk
        o = u ∘ n(attention_silu(q, k, v))
        y = x + dropout(o) · out_weight + out_bias

    `uvqk`: shared [d, 2*heads*dv + 2*heads*qk]; `out_weight`: shared [heads*dv, d]; `out_bias`:
    shared [d]. The score function is `silu`; other options are those of `genrec.attention`.
    `linear_dropout` applies to o, `dropout` inside of attention. Random streams: `stream` for the
    attention, `stream` + 1 for o. `bf16` is that of its products and attention. Zhai et al. 2024, eq. 1 to 3. `decompose-blocks` rewrites the op.

    ```mlir
    %y = genrec.hstu_block silu %seq_vector, %uvqk, %out_weight, %scale position_bias %position_bias
        {heads = 1 : i64, qk = 8 : i64, dv = 8 : i64, causal, fixed_length = 211.0 : f64, eps = 1.0e-6 : f64, linear_dropout = 0.2 : f64, stream = 512 : i64}
        : (tensor<?x8xf32, #genrec.rows<@seq>>, tensor<8x32xf32>, tensor<8x8xf32>, tensor<8xf32>, tensor<21xf32>)
        -> tensor<?x8xf32, #genrec.rows<@seq>>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$x, GenRec_Shared:$uvqk,
      GenRec_Shared:$out_weight, GenRec_Shared:$out_bias,
      Optional<GenRec_Shared>:$position_bias,
      Optional<GenRec_Shared>:$time_bias, Optional<GenRec_Rows>:$time,
      Optional<GenRec_Rows>:$target),
      AttentionAttributes,
      (ins ConfinedAttr<I64Attr, [IntPositive]>:$qk, ConfinedAttr<I64Attr, [IntPositive]>:$dv,
           F64Attr:$eps, DefaultValuedAttr<F64Attr, "0.0">:$linear_dropout));
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = [{
    $score $x `,` $uvqk `,` $out_weight `,` $out_bias (`position_bias` $position_bias^)?
    (`time_bias` $time_bias^)? (`time` $time^)? (`target` $target^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

defvar CrossAttentionAttributes = (ins ConfinedAttr<I64Attr, [IntPositive]>:$heads,
    DefaultValuedAttr<F64Attr, "1.0">:$scale, UnitAttr:$bf16);

def GenRec_CrossAttentionOp : GenRec_Op<"cross_attention", [GenRec_Product, GenRec_TreeLocal, GenRec_ReadsStrided, GenRec_SymbolUser, Pure,
    DeclareOpInterfaceMethods<GenRec_DifferentiableOpInterface>]> {
  let summary = "attention of rows to the rows of another list";
  let description = [{
    `q`: rows [heads * qk]. `k`: rows [heads * qk] and `v`: rows [heads * dv] of a list with the
    same parent as q's domain, or of a child of q's domain. Per head, with i a row of q and j a row
    of the list of i's parent (or of i itself):

        a_ij = exp(scale * q_i · k_j) / Σ_j exp(scale * q_i · k_j)
        out_i = Σ_j a_ij v_j

    The result has rows [heads * dv] of q's domain; 0 if the list is empty. Only the scores of one
    query are stored at a time. With `bf16`, q, k, v and a are rounded to bfloat16.

    ```mlir
    %attended = genrec.cross_attention %shown_vector, %event_vector, %event_vector
        {heads = 2 : i64, scale = 0.5 : f64}
        : (tensor<?x8xf32, #genrec.rows<@impression>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>)
        -> tensor<?x8xf32, #genrec.rows<@impression>>
    %own = genrec.cross_attention %user_vector, %event_vector, %event_vector {heads = 1 : i64}
        : (tensor<?x8xf32, #genrec.rows<@request>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>)
        -> tensor<?x8xf32, #genrec.rows<@request>>
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$q, GenRec_Rows:$k, GenRec_Rows:$v), CrossAttentionAttributes);
  let results = (outs GenRec_Rows:$result);
  let assemblyFormat = "$q `,` $k `,` $v attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def GenRec_CrossAttentionGradOp : GenRec_Op<"cross_attention_grad", [GenRec_Product, GenRec_ReadsStrided, GenRec_SymbolUser, Pure]> {
  let summary = "gradients of cross_attention for q, k and v";
  let description = [{
    `gradient`: rows [heads * dv], of the result. The attention weights are recomputed. With
    `bf16`, q, k, v, `gradient`, a and the gradient of the scores are rounded to bfloat16.

    ```mlir
    %dq, %dk, %dv = genrec.cross_attention_grad %shown_vector, %event_vector, %event_vector, %shown_vector {heads = 2 : i64}
        : (tensor<?x8xf32, #genrec.rows<@impression>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>,
           tensor<?x8xf32, #genrec.rows<@impression>>)
        -> (tensor<?x8xf32, #genrec.rows<@impression>>, tensor<?x8xf32, #genrec.rows<@event>>, tensor<?x8xf32, #genrec.rows<@event>>)
    ```
  }];
  let arguments = !con((ins GenRec_Rows:$q, GenRec_Rows:$k, GenRec_Rows:$v, GenRec_Rows:$gradient),
                       CrossAttentionAttributes);
  let results = (outs GenRec_Rows:$dq, GenRec_Rows:$dk, GenRec_Rows:$dv);
  let assemblyFormat = "$q `,` $k `,` $v `,` $gradient attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

} // opDocGroup

#endif // GENREC_ATTENTION_OPS_TD
