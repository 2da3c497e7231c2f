"""Layers of ranking models: interactions, gates, attention to a list."""

import math
from collections.abc import Sequence

from genrec import init
from genrec.domain import Domain
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.lists import beside, pairs
from genrec.moves import fanout
from genrec.nn import functional
from genrec.nn.layers import MLP, Linear
from genrec.nn.module import Module
from genrec.operands import as_value
from genrec.ops import both_valid, concat, squeeze
from genrec.parameter import Parameter
from genrec.precision import product_attributes
from genrec.rules import common_domain, listed
from genrec.source import Place, find_place
from genrec.types import float32
from genrec.value import Value, ValueLike


def dot_interaction(*vectors: ValueLike | Sequence[ValueLike], self_interaction: bool = False) -> Value:
    """The dot products of all pairs of vectors of a row (Naumov et al. 2019, DLRM), in the order (1,0), (2,0), (2,1), …

    Args:
        vectors: two or more, one by one or as one list.
        self_interaction: also of each vector with itself.

    Shape:
        n times [d] in, [n * (n - 1) / 2] out; [n * (n + 1) / 2] with `self_interaction`.

    Example:
        >>> user, item, country = (gr.Table(name, dim=16) for name in ("user", "item", "country"))
        >>> shown = batch.impression
        >>> asked = [one.fanout(shown) for one in (user(batch.user), country(gr.hash(batch.country, bits=52)))]
        >>> nn.dot_interaction([*asked, item(shown.item)])
        <[3] float32, one per 'impression'>
    """
    place = find_place()
    given, paths = listed(vectors)
    values = [
        functional.rows_of_floats(one, "'dot_interaction'", *path) for one, path in zip(given, paths, strict=True)
    ]
    if len(values) < 2:
        raise ModelError(f"'dot_interaction' multiplies two or more vectors, got {len(values)}", place)
    for value, path in zip(values, paths, strict=True):
        if value.shape != values[0].shape:
            raise ModelError(
                f"'dot_interaction' needs vectors of one size, got [{values[0].shape[0]}] and [{value.shape[0]}]",
                place.part(*path), value._label(),
            )  # fmt: skip
    joined = concat(values)
    count = len(values)
    size = count * (count + 1 if self_interaction else count - 1) // 2
    return emit(
        "dot_interaction", [joined], joined.domain, (size,), joined.dtype, place, count=count, self=self_interaction,
        **product_attributes(joined.dtype),
    )  # fmt: skip


class CrossNetwork(Module):
    """Cross layers of DCN v2 (Wang et al. 2021): x_{l+1} = x_0 * (x_l · weight + bias) + x_l.

    Args:
        dim: size of a row.
        layers: how many.
        rank: weights are products of a [dim, rank] and a [rank, dim] matrix; full unless given.

    Shape:
        [dim] in, [dim] out.

    Example:
        >>> nn.CrossNetwork(16, layers=3, rank=4)(gr.Table("item", dim=16)(batch.impression.item))
        <[16] float32, one per 'impression'>
    """

    def __init__(self, dim: int, layers: int = 1, rank: int | None = None) -> None:
        if layers < 1:
            raise ValueError(f"nn.CrossNetwork needs at least 1 layer, got {layers}")
        if rank is not None and not 1 <= rank <= dim:
            raise ValueError(f"the rank of nn.CrossNetwork({dim}) must be 1 to {dim}, got {rank}")
        self.dim = dim
        self.weights = [Parameter((rank or dim, dim), init.xavier_uniform()) for _ in range(layers)]
        self.reduces = [Parameter((dim, rank), init.xavier_uniform()) for _ in range(layers)] if rank else []
        self.biases = [Parameter((dim,), init.zeros()) for _ in range(layers)]

    def forward(self, x: ValueLike) -> Value:
        """The layers of each row.

        Shape:
            [dim] in, [dim] out.
        """
        place = find_place()
        start = value = functional.rows_of_floats(x, f"nn.CrossNetwork({self.dim})", 0, size=self.dim)
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            operands = [start, value, weight.value(), bias.value()]
            if self.reduces:
                operands.append(self.reduces[i].value())
            precision = product_attributes(start.dtype)
            value = emit("cross_layer", operands, start.domain, start.shape, start.dtype, place, **precision)
        return value


def mixture(experts: ValueLike, logits: ValueLike, top_k: int = 0) -> Value:
    """Experts' outputs weighed by a softmax gate.

    Args:
        experts: the outputs of n experts end to end.
        logits: of the gate.
        top_k: only the greatest `top_k` logits of a row count; 0 for all.

    Shape:
        experts [n * d], logits [n]; [d] out.

    Example:
        >>> x = gr.Table("item", dim=16)(batch.impression.item)
        >>> outputs = gr.concat([nn.MLP([16, 8])(x) for _ in range(4)])
        >>> nn.mixture(outputs, nn.Linear(16, 4)(x), top_k=2)
        <[8] float32, one per 'impression'>
    """
    place = find_place()
    outputs = functional.rows_of_floats(experts, "'mixture'", 0)
    gates = functional.rows_of_floats(logits, "'mixture'", 1)
    common_domain("mixture", [outputs, gates], place, ((0,), (1,)))
    count = gates.shape[0]
    if outputs.shape[0] % count:
        raise ModelError(
            f"'mixture' has logits of {count} experts, but their outputs are [{outputs.shape[0]}], no multiple of that",
            place.part(0), outputs._label(),
        )  # fmt: skip
    if not 0 <= top_k <= count:
        raise ModelError(
            f"top_k of 'mixture' must be 0 (all) to {count}, the experts, got {top_k}", place.part("top_k")
        )
    return emit(
        "mixture", [outputs, gates], outputs.domain, (outputs.shape[0] // count,), outputs.dtype, place,
        both_valid(outputs, gates), top_k=top_k,
    )  # fmt: skip


class MMoE(Module):
    """Multi-gate mixture of experts (Ma et al. 2018, equations 6 and 7): MLPs that several tasks share, and per task a
    softmax gate over their outputs, linear in the input.

    Args:
        dim: size of a row.
        sizes: of the layers of an expert.
        experts: how many.
        tasks: how many.
        top_k: a gate keeps its greatest `top_k` experts; 0 for all.
        activation: after every layer of an expert.

    Shape:
        [dim] in, a tuple of [sizes[-1]] out, one per task.

    Example:
        >>> click, watch = nn.MMoE(16, [32, 8], experts=4, tasks=2)(gr.Table("item", dim=16)(batch.impression.item))
        >>> click
        <[8] float32, one per 'impression'>
    """

    def __init__(
        self, dim: int, sizes: Sequence[int], experts: int, tasks: int, top_k: int = 0, activation: str = "relu"
    ) -> None:
        if experts < 1 or tasks < 1:
            raise ValueError(f"nn.MMoE needs at least 1 expert and 1 task, got {experts} and {tasks}")
        if not 0 <= top_k <= experts:
            raise ValueError(f"top_k of nn.MMoE must be 0 (all) to {experts}, the experts, got {top_k}")
        self.dim, self.top_k = dim, top_k
        self.experts = [MLP([dim, *sizes], activation=activation, final=activation) for _ in range(experts)]
        self.gates = [Linear(dim, experts, bias=False) for _ in range(tasks)]

    def forward(self, x: ValueLike) -> tuple[Value, ...]:
        """The mixture of each task.

        Shape:
            [dim] in, a tuple of [sizes[-1]] out, one per task.
        """
        value = functional.rows_of_floats(x, f"nn.MMoE({self.dim})", 0, size=self.dim)
        outputs = concat([expert(value) for expert in self.experts])
        return tuple(mixture(outputs, gate(value), self.top_k) for gate in self.gates)


class DIN(Module):
    """The local activation unit of DIN (Zhou et al. 2018, equation 3): a list's rows summed with weights that an MLP
    makes of each row and the query: of (query, row, query - row, query * row), through `sizes`, to one number.

    Args:
        dim: size of a row.
        sizes: of the MLP's hidden layers.
        activation: after each of them.
        softmax: weights of a list sum to 1 (the paper's do not).

    Shape:
        query [dim], rows [dim]; [dim] out, of the query's rows.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> nn.DIN(16)(item(batch.impression.item), item(batch.history.item))
        <[16] float32, one per 'impression'>
    """

    def __init__(
        self, dim: int, sizes: Sequence[int] = (80, 40), activation: str = "sigmoid", softmax: bool = False
    ) -> None:
        self.dim, self.softmax = dim, softmax
        self.weigh = MLP([4 * dim, *sizes, 1], activation=activation)

    def forward(self, query: ValueLike, rows: ValueLike) -> Value:
        """The weighted sum of the list for each query.

        Args:
            query: of the parent of `rows`, or of another list of that parent; each of its rows then gets a sum over the
                whole list.
            rows: of the list.

        Shape:
            query [dim], rows [dim]; [dim] out, of the query's rows.
        """
        place = find_place()
        what = f"nn.DIN({self.dim})"
        asked = functional.rows_of_floats(query, what, 0, size=self.dim)
        listed_rows = functional.rows_of_floats(rows, what, 1, size=self.dim)
        below, asked_below, rows_below = _together(what, asked, listed_rows, place)
        features = [asked_below, rows_below, asked_below - rows_below, asked_below * rows_below]
        weight = squeeze(self.weigh(concat(features)), place.named("weight"))
        if self.softmax:
            weight = _softmax_over_lists(weight, below)
        return (rows_below * weight).sum()


def _together(what: str, query: Value, rows: Value, place: Place) -> tuple[Domain, Value, Value]:
    """The domain of pairs of a query and a row of its list, and both values in it."""
    above, domain = query.domain, rows.domain
    assert above is not None and domain is not None
    if domain._parent is above:
        return domain, fanout(query, domain, place.named("query")), rows
    if above._parent is None or above._parent is not domain._parent:
        raise ModelError(
            f"{what} takes a query of '{domain._parent._name if domain._parent else domain._name}', or of another list "
            "of it",
            place.part(0), query._label(), f"the rows are {rows._label()}",
        )  # fmt: skip
    both = pairs(above, domain)
    return both, fanout(query, both, place.named("query")), beside(rows, both, place.named("rows"))


def _softmax_over_lists(score: Value, domain: Domain) -> Value:
    e = functional.exp(score - score.max().fanout(domain))
    return e / e.sum().fanout(domain)


def cross_attention(q: ValueLike, k: ValueLike, v: ValueLike, heads: int = 1, scale: float | None = None) -> Value:
    """Softmax attention of every row of `q` to the rows of another list: that of its parent, or one below the row
    itself. Σ_j softmax_j(scale * q · k_j) v_j per head; 0 where the list is empty.

    Args:
        q: queries.
        k: keys, of the other list.
        v: values, of the rows of `k`.
        heads: number of heads; each takes an equal part of the row.
        scale: 1 / sqrt(qk) unless given.

    Shape:
        q and k [heads * qk], v [heads * dv]; [heads * dv] out, of the rows of `q`.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> shown, seen = item(batch.impression.item), item(batch.history.item)
        >>> nn.cross_attention(shown, seen, seen, heads=2)
        <[16] float32, one per 'impression'>
    """
    place = find_place()
    query = functional.rows_of_floats(q, "the q of 'cross_attention'", 0)
    key = functional.rows_of_floats(k, "the k of 'cross_attention'", 1)
    values = functional.rows_of_floats(v, "the v of 'cross_attention'", 2)
    assert query.domain is not None and key.domain is not None
    if key.domain is not values.domain or query.shape != key.shape:
        raise ModelError(
            "'cross_attention' takes k as wide as q, and v of the rows of k", place.part(1), key._label(),
            f"q is {query._label()}, v is {values._label()}",
        )  # fmt: skip
    if key.domain._parent is None or key.domain._parent not in (query.domain, query.domain._parent):
        raise ModelError(
            "'cross_attention' takes rows of two lists of one parent, or of a list below the queries", place.part(1),
            key._label(), f"the queries are {query._label()}",
        )  # fmt: skip
    for name, value in {"q": query, "v": values}.items():
        if heads < 1 or value.shape[0] % heads != 0:
            raise ModelError(
                f"'cross_attention' splits its rows into {heads} heads, but {name} is {list(value.shape)}",
                place.part("heads"),
            )
    if scale is None:
        scale = 1 / math.sqrt(query.shape[0] // heads)
    return emit(
        "cross_attention", [query, key, values], query.domain, values.shape, float32, place, heads=heads, scale=scale,
        **product_attributes(float32),
    )  # fmt: skip


class CrossAttention(Module):
    """Multi-head attention of the rows of one list to those of another list of the same parent, or to those of a list
    below each, with projections of q, k, v and of the result.

    Args:
        dim: size of a row.
        heads: number of heads; divides dim, unless `qk` and `v` are given.
        qk: size of a head's queries and keys; dim / heads unless given.
        v: size of a head's values; dim / heads unless given.

    Shape:
        [dim] and [dim] in, [dim] out.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> nn.CrossAttention(16, heads=2)(item(batch.impression.item), item(batch.history.item))
        <[16] float32, one per 'impression'>
    """

    def __init__(self, dim: int, heads: int = 1, qk: int | None = None, v: int | None = None) -> None:
        qk, v = functional.head_sizes("nn.CrossAttention", dim, heads, qk, v)
        self.dim, self.heads, self.scale = dim, heads, 1 / math.sqrt(qk)
        self.query, self.key = Linear(dim, heads * qk), Linear(dim, heads * qk)
        self.values, self.out = Linear(dim, heads * v), Linear(heads * v, dim)

    def forward(self, x: ValueLike, context: ValueLike) -> Value:
        """Attention of each row of `x` to the rows of `context` that have the same parent, or lie below it.

        Shape:
            [dim] and [dim] in, [dim] out.
        """
        place = find_place()
        what = f"nn.CrossAttention({self.dim})"
        value = functional.rows_of_floats(x, what, 0, size=self.dim)
        other = functional.rows_of_floats(context, what, 1, size=self.dim)
        assert value.domain is not None and other.domain is not None
        if other.domain._parent is None or other.domain._parent not in (value.domain, value.domain._parent):
            raise ModelError(
                f"{what} takes rows of two lists of one parent, or of a list below the queries", place.part(1),
                other._label(), f"the queries are {value._label()}",
            )  # fmt: skip
        q, k, v = self.query(value), self.key(other), self.values(other)
        return self.out(cross_attention(q, k, v, self.heads, self.scale))


def weigh_by_variance(loss: Value, log_variance: ValueLike, place: Place) -> Value:
    """exp(-s) * loss + s / 2 with s the logarithm of a task's variance (Kendall et al. 2018, equation 10)."""
    s = as_value(log_variance, place.part("log_variance"), like=loss)
    if s.domain is not None or s.shape:
        raise ModelError(
            "the log_variance of a loss must be one trained number", place.part("log_variance"), s._label(),
            "make it nn.Parameter((), gr.init.zeros())",
        )  # fmt: skip
    return functional.exp(-s) * loss + s * 0.5
