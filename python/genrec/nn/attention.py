"""Attention among the rows of each list, and blocks made of it."""

import math
from dataclasses import dataclass
from typing import Any

from genrec import init
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.init import Initializer
from genrec.nn import functional
from genrec.nn.layers import Linear
from genrec.nn.module import Module
from genrec.operands import as_value
from genrec.parameter import Parameter
from genrec.precision import product_attributes
from genrec.recording import Enum
from genrec.source import Place, find_place
from genrec.value import Value, ValueLike

MOST_TIME_BUCKETS = 128


class RelativePosition(Module):
    """A trained bias per distance between two places of a list, for distances below `count`; farther ones share the
    bias of the farthest. One bias for all heads, 2 * count - 1 numbers.

    Args:
        count: distances with a bias of their own.
        init: of the biases; normal with standard deviation 0.02 unless given.

    Example:
        >>> block = nn.HSTUBlock(16, bias=nn.RelativePosition(200))
        >>> block(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """

    def __init__(self, count: int, init: Initializer | None = None) -> None:
        self.count = count
        self.weight = Parameter((2 * count - 1,), init or _bias_init())


class RelativeTime(Module):
    """A trained bias per bucket of the time between two events: floor(log(max(1, seconds)) / 0.301), at most `buckets`
    - 1.

    Args:
        buckets: 1 to 128.
        next_event: the query's time is that of the event after it, as in the public HSTU code.
        init: of the biases; normal with standard deviation 0.02 unless given.

    Example:
        >>> block = nn.HSTUBlock(16, time_bias=nn.RelativeTime())
        >>> block(gr.Table("item", dim=16)(batch.history.item), time=batch.history.time)
        <[16] float32, one per 'history'>
    """

    def __init__(self, buckets: int = 128, next_event: bool = False, init: Initializer | None = None) -> None:
        if not 1 <= buckets <= MOST_TIME_BUCKETS:
            raise ValueError(f"nn.RelativeTime takes 1 to {MOST_TIME_BUCKETS} buckets, got {buckets}")
        self.buckets, self.next_event = buckets, next_event
        self.weight = Parameter((buckets,), init or _bias_init())


def _bias_init() -> Initializer:
    return init.normal(0.02)


@dataclass(frozen=True)
class _Options:
    """Attributes shared by attention and HSTU blocks; `SelfAttention` documents them."""

    heads: int
    score: str
    causal: bool
    window: int
    scale: float
    fixed_length: float
    dropout: float
    contextual: int = 0

    def attributes(self, time_bias: RelativeTime | None) -> dict[str, Any]:
        return {
            "heads": self.heads,
            "score": Enum("score", self.score),
            "causal": self.causal,
            "window": self.window,
            "contextual": self.contextual,
            "scale": self.scale,
            "fixed_length": self.fixed_length,
            "next_event_time": time_bias is not None and time_bias.next_event,
            "dropout": float(self.dropout),
            "stream": 0,
        }


def _check_window(what: str, window: int) -> None:
    if window < 0:
        raise ValueError(f"the window of {what} must be at least 0 (0: none), got {window}")


def _biases(
    what: str,
    x: Value,
    position: RelativePosition | None,
    time_bias: RelativeTime | None,
    time: ValueLike | None,
    target: ValueLike | None,
    place: Place,
) -> tuple[list[Value], tuple[int, int, int, int]]:
    """The optional operands of attention and their segments."""
    if (time_bias is None) != (time is None):
        given, missing = ("time_bias", "time") if time is None else ("time", "time_bias")
        help = (
            "call it with the times of the rows: block(x, time=event.time)"
            if time is None
            else (f"make the {what} with time_bias=nn.RelativeTime(), or leave time out")
        )
        raise ModelError(f"{what} has {given} but no {missing}", place.part(given), "", help)
    operands = [position.weight.value()] if position is not None else []
    if time_bias is not None:
        at = place.part("time")
        seconds = as_value(time, at, what=f"the time of {what}")
        if seconds.domain is not x.domain or seconds.shape or seconds.dtype.name != "int64":
            rows = x.domain._name if x.domain is not None else "row"
            raise ModelError(f"the time of {what} must be one int64 (seconds) per {rows}", at, seconds._label())
        operands += [time_bias.weight.value(), seconds]
    if target is not None:
        operands.append(_targets(what, x, target, place.part("target")))
    has_time = int(time_bias is not None)
    return operands, (int(position is not None), has_time, has_time, int(target is not None))


def _targets(what: str, x: Value, target: ValueLike, place: Place) -> Value:
    """How many rows at the end of each list of `x` are targets."""
    count = as_value(target, place, what=f"the target of {what}")
    parent = x.domain._parent if x.domain is not None else None
    if parent is None or count.domain is not parent or count.shape or count.dtype.name != "int64":
        rows = f"'{parent._name}'" if parent is not None else "the parent of a list"
        raise ModelError(
            f"the target of {what} must be one int64 per {rows}: how many rows at the end of its list are targets",
            place, count._label(), "count them: gr.sequence_length(batch.impression)",
        )  # fmt: skip
    return count


def _check_contextual(what: str, contextual: int) -> None:
    if contextual < 0:
        raise ValueError(f"contextual of {what} must be at least 0 rows (0: none), got {contextual}")


def attention(
    q: ValueLike,
    k: ValueLike,
    v: ValueLike,
    heads: int = 1,
    score: str = "softmax",
    causal: bool = True,
    window: int = 0,
    scale: float | None = None,
    fixed_length: float = 0.0,
    dropout: float = 0.0,
    bias: RelativePosition | None = None,
    time_bias: RelativeTime | None = None,
    time: ValueLike | None = None,
    contextual: int = 0,
    target: ValueLike | None = None,
) -> Value:
    """Attention of the rows of each list to each other, without projections of its own.

    Args:
        q: queries.
        k: keys, of the same rows.
        v: values, of the same rows.
        heads: number of heads; each takes an equal part of the row.
        score: as in `nn.SelfAttention`, like `causal`, `window`, `scale`, `fixed_length`, `dropout` and `contextual`.
        bias: added to the scores, by distance.
        time_bias: added to the scores, by the time between events, with `time`.
        time: int64 seconds of each row.
        target: how many rows at the end of each list are targets; see `nn.SelfAttention.forward`.

    Shape:
        q and k [heads * qk], v [heads * dv]; [heads * dv] out.

    Example:
        >>> x = gr.Table("item", dim=16)(batch.history.item)
        >>> nn.attention(x, x, x, heads=2)
        <[16] float32, one per 'history'>
    """
    place = find_place()
    values = [functional.rows_of_floats(one, "attention", i) for i, one in enumerate((q, k, v))]
    for i, one in enumerate(values):
        if one.domain is not values[0].domain:
            raise ModelError("'attention' needs q, k and v of one domain", place.part(i), one._label())
    if values[1].shape != values[0].shape:
        raise ModelError("'attention' needs q and k of one size", place.part(1), values[1]._label())
    if heads < 1:
        raise ModelError(f"heads of 'attention' must be at least 1, got {heads}", place.part("heads"))
    for i in (0, 2):
        if values[i].shape[0] % heads:
            raise ModelError(f"'attention' cannot split this into {heads} heads", place.part(i), values[i]._label())
    _check_window("attention", window)
    functional.check_rate("dropout", dropout)
    if score not in ("softmax", "silu"):
        raise ModelError(f"there is no attention score '{score}'", place.part("score"), "", "use 'softmax' or 'silu'")
    if score == "softmax" and fixed_length:
        raise ModelError("softmax scores sum to 1 and take no fixed_length", place.part("fixed_length"))
    width = values[0].shape[0] // heads
    scale = scale if scale is not None else 1 / math.sqrt(width) if score == "softmax" else 1.0
    _check_contextual("attention", contextual)
    options = _Options(heads, score, causal, window, float(scale), float(fixed_length), dropout, contextual)
    extra, segments = _biases("attention", values[0], bias, time_bias, time, target, place)
    v_value = values[2]
    return emit(
        "attention", [*values, *extra], v_value.domain, v_value.shape, v_value.dtype, place,
        segments=(1, 1, 1, *segments), **options.attributes(time_bias), **product_attributes(v_value.dtype),
    )  # fmt: skip


class SelfAttention(Module):
    """Multi-head attention among the rows of each list, with projections of q, k, v and of the result.

    Args:
        dim: size of a row.
        heads: number of heads; divides dim, unless `qk` and `v` are given.
        qk: size of a head's queries and keys; dim / heads unless given.
        v: size of a head's values; dim / heads unless given.
        score: "softmax", or "silu" (Zhai et al. 2024), divided by `fixed_length`, or by the list's own length where
            that is 0.
        causal: rows see themselves and earlier rows.
        window: w > 0: rows less than w places away.
        scale: of q · k; 1 / sqrt(qk) for softmax and 1 for silu unless given.
        fixed_length: what silu scores are divided by.
        dropout: of the attention weights.
        bias: added to the scores, by distance.
        time_bias: added to the scores, by the time between events.
        linear_bias: whether the projections have biases.
        contextual: c: the first c rows of each list are context. They see all rows but targets, and all rows see them.

    Shape:
        [dim] in, [dim] out.

    Example:
        >>> attend = nn.SelfAttention(16, heads=2)
        >>> x = gr.Table("item", dim=16)(batch.history.item)
        >>> x + attend(nn.layer_norm(x))
        <[16] float32, one per 'history'>
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        qk: int | None = None,
        v: int | None = None,
        score: str = "softmax",
        causal: bool = True,
        window: int = 0,
        scale: float | None = None,
        fixed_length: float = 0.0,
        dropout: float = 0.0,
        bias: RelativePosition | None = None,
        time_bias: RelativeTime | None = None,
        linear_bias: bool = True,
        contextual: int = 0,
    ) -> None:
        qk, v = functional.head_sizes("nn.SelfAttention", dim, heads, qk, v)
        _check_window("nn.SelfAttention", window)
        self.dim = dim
        self.query = Linear(dim, heads * qk, bias=linear_bias)
        self.key = Linear(dim, heads * qk, bias=linear_bias)
        self.values = Linear(dim, heads * v, bias=linear_bias)
        self.out = Linear(heads * v, dim, bias=linear_bias)
        self.bias, self.time_bias = bias, time_bias
        self.options = {
            "heads": heads, "score": score, "causal": causal, "window": window, "scale": scale,
            "fixed_length": fixed_length, "dropout": dropout, "contextual": contextual,
        }  # fmt: skip

    def forward(
        self,
        x: ValueLike,
        context: ValueLike | None = None,
        time: ValueLike | None = None,
        target: ValueLike | None = None,
    ) -> Value:
        """Attention of each row to its list.

        Args:
            x: where queries come from.
            context: where keys and values come from, rows of the same domain; `x` unless given.
            time: int64 seconds per row, with `time_bias`.
            target: how many rows at the end of each list (int64 per parent row) are targets, such as candidates: a
                target sees itself and all rows but other targets, and only itself sees it.

        Shape:
            [dim] in, [dim] out.
        """
        what = f"nn.SelfAttention({self.dim})"
        value = functional.rows_of_floats(x, what, 0, size=self.dim)
        other = value if context is None else functional.rows_of_floats(context, what, 1, size=self.dim)
        attended = attention(
            self.query(value), self.key(other), self.values(other),
            bias=self.bias, time_bias=self.time_bias, time=time, target=target, **self.options,  # type: ignore[arg-type]
        )  # fmt: skip
        return self.out(attended)


class HSTUBlock(Module):
    """One layer of HSTU (Zhai et al. 2024, equations 1 to 3), with a residual: rows [dim] to rows [dim].

    With n(·) a layer norm without parameters:

        u, v, q, k = split(silu(n(x) · uvqk))
        y = x + dropout(u * n(attention(q, k, v))) · out_weight + out_bias

    Attention has SiLU scores divided by `fixed_length`: that of `bias` unless given, 0 for each list's own length.
    `dropout` applies before the output projection, `attention_dropout` to the scores; `bias` and `time_bias` are added
    to them.

    Args:
        dim: size of a row.
        heads: number of heads; divides dim, unless `qk` and `v` are given.
        qk: size of a head's queries and keys; dim / heads unless given.
        v: size of a head's values; dim / heads unless given.
        causal: as in `nn.SelfAttention`, like `window`, `scale` and `contextual`.
        eps: of the layer norms.

    Shape:
        [dim] in, [dim] out.

    Example:
        >>> blocks = [nn.HSTUBlock(16, heads=2, dropout=0.1, bias=nn.RelativePosition(200)) for _ in range(2)]
        >>> x = gr.Table("item", dim=16)(batch.history.item)
        >>> for block in blocks:
        ...     x = block(x)
        >>> x
        <[16] float32, one per 'history'>
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        qk: int | None = None,
        v: int | None = None,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        bias: RelativePosition | None = None,
        time_bias: RelativeTime | None = None,
        fixed_length: float | None = None,
        causal: bool = True,
        window: int = 0,
        scale: float = 1.0,
        eps: float = 1e-6,
        contextual: int = 0,
    ) -> None:
        qk, v = functional.head_sizes("nn.HSTUBlock", dim, heads, qk, v)
        _check_window("nn.HSTUBlock", window)
        functional.check_rate("dropout", dropout)
        functional.check_rate("attention_dropout", attention_dropout)
        self.dim, self.qk, self.v, self.eps, self.dropout = dim, qk, v, eps, dropout
        self.uvqk = Parameter((dim, 2 * heads * (v + qk)), init.normal(0.02))
        self.out_weight = Parameter((heads * v, dim), init.xavier_uniform())
        # As a Linear's bias in PyTorch, which is what the authors' code starts from.
        self.out_bias = Parameter((dim,), init.uniform(1 / math.sqrt(heads * v)))
        self.bias, self.time_bias = bias, time_bias
        default = bias.count if bias is not None else 0
        fixed = default if fixed_length is None else fixed_length
        _check_contextual("nn.HSTUBlock", contextual)
        self.options = _Options(
            heads, "silu", causal, window, float(scale), float(fixed), attention_dropout, contextual
        )

    def forward(self, x: ValueLike, time: ValueLike | None = None, target: ValueLike | None = None) -> Value:
        """Attention of each row to its list.

        Args:
            x: rows of a list.
            time: int64 seconds per row, with `time_bias`.
            target: how many rows at the end of each list are targets; see `nn.SelfAttention.forward`.

        Shape:
            [dim] in, [dim] out.
        """
        place = find_place()
        value = functional.rows_of_floats(x, f"nn.HSTUBlock({self.dim})", 0, size=self.dim)
        extra, segments = _biases("nn.HSTUBlock", value, self.bias, self.time_bias, time, target, place)
        weights = [self.uvqk.value(), self.out_weight.value(), self.out_bias.value()]
        return emit(
            "hstu_block", [value, *weights, *extra], value.domain, value.shape, value.dtype, place,
            segments=(1, 1, 1, 1, *segments), qk=self.qk, dv=self.v, eps=self.eps,
            linear_dropout=float(self.dropout), **self.options.attributes(self.time_bias),
            **product_attributes(value.dtype),
        )  # fmt: skip
