"""Row functions: activations, losses and transforms written in Python, as functions of one row."""

import functools
from collections.abc import Callable
from typing import ParamSpec

from genrec.errors import ModelError
from genrec.recording import Op, current
from genrec.source import find_place
from genrec.value import Value

Parameters = ParamSpec("Parameters")

ROWWISE = frozenset({
    "abs", "add", "bce_with_logits", "bucketize", "cast", "compare", "concat_columns", "constant", "cos", "cross",
    "detach", "div", "dropout", "erf", "exp", "feature", "feature_valid", "gelu", "hash", "l2_normalize",
    "layer_norm", "log", "log1p", "maximum", "minimum", "mixture", "mod", "mul", "multi_hash", "neg", "param",
    "random_uniform", "relu", "rms_norm", "row_reduce", "rsqrt", "select", "sigmoid", "silu", "sin", "slice_columns",
    "softmax", "softmax_cross_entropy", "softplus", "sqrt", "square", "sub", "tanh",
})  # fmt: skip
"""Ops of which each result row depends only on the same row of the operands, and on shared values."""


def row_function(function: Callable[Parameters, Value]) -> Callable[Parameters, Value]:
    """Makes `function` a function of a row: traced into row-wise ops when it is called, which fuse into one loop over
    the rows and are differentiated like any other op. A new activation or loss is a few lines of Python:

        @gr.row_function
        def focal(logit, label):
            p = nn.sigmoid(logit)
            hard = gr.where(label > 0.5, 1 - p, p)
            return hard * hard * (nn.softplus(logit) - label * logit)

        gr.loss.mean(focal(logit, label))

    Inside, values are rows: arithmetic, comparisons, `gr.where`, `nn.exp` and its kin, `x.row_sum()`, `x[:, a:b]`,
    `gr.concat` and parameters may be used. Ops that read other rows (pools, fanouts, attention, lookups) raise
    `ModelError` at their line.

    Example:
        >>> @gr.row_function
        ... def gelu(x):
        ...     return x * nn.sigmoid(1.702 * x)
        >>> gelu(batch.history.price)
        <float32, one per 'history'>

    Shape:
        any.
    """

    @functools.wraps(function)
    def traced(*arguments: Parameters.args, **options: Parameters.kwargs) -> Value:
        place = find_place()
        recording = current(f"row function '{function.__name__}'")
        before = len(recording.ops)
        result = function(*arguments, **options)
        for op in recording.ops[before:]:
            _expect_rowwise(op, function.__name__)
        if not isinstance(result, Value):
            raise ModelError(
                f"row function '{function.__name__}' must return a value, but returned {type(result).__name__}", place
            )
        return result

    return traced


def _expect_rowwise(op: Op, name: str) -> None:
    if op.name not in ROWWISE:
        raise ModelError(
            f"row function '{name}' sees one row, but '{op.name}' looks beyond it", op.place, "",
            "do that outside, and pass its result",
        )  # fmt: skip
