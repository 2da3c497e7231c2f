"""Layers: modules with parameters that work on each row."""

import math
from collections.abc import Callable, Sequence

from genrec import init
from genrec.domain import Domain
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.init import Initializer
from genrec.moves import position
from genrec.nn import functional
from genrec.nn.module import Module
from genrec.operands import constant
from genrec.ops import as_ids
from genrec.parameter import Parameter
from genrec.source import find_place
from genrec.types import float32
from genrec.value import Value, ValueLike

ACTIVATIONS: dict[str, Callable[[ValueLike], Value]] = {
    "relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu, "tanh": functional.tanh,
    "sigmoid": functional.sigmoid,
}  # fmt: skip

Activation = str | Callable[[ValueLike], Value]
"""An activation: "relu", "gelu", "silu", "tanh" or "sigmoid", or a function of a value."""


class Linear(Module):
    """A fully connected layer: x · weight + bias.

    Args:
        inputs: size of a row.
        outputs: size of a row of the result.
        bias: whether there is one.
        init: of the weight; uniform within 1 / sqrt(inputs), as in PyTorch, unless given.
        bias_init: of the bias; the same unless given.

    Shape:
        [inputs] in, [outputs] out.

    Example:
        >>> layer = nn.Linear(16, 4)
        >>> layer(gr.Table("item", dim=16)(batch.history.item))
        <[4] float32, one per 'history'>
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        init: Initializer | None = None,
        bias_init: Initializer | None = None,
    ) -> None:
        for size in (inputs, outputs):
            if isinstance(size, bool) or not isinstance(size, int):
                raise TypeError(f"the sizes of nn.Linear must be whole numbers, got {inputs!r} and {outputs!r}")
        if inputs < 1 or outputs < 1:
            raise ValueError(f"nn.Linear needs sizes of at least 1, got {inputs} and {outputs}")
        default = _uniform(inputs)
        self.inputs, self.outputs = inputs, outputs
        self.weight = Parameter((inputs, outputs), init or default)
        self.bias = Parameter((outputs,), bias_init or default) if bias else None

    def forward(self, x: ValueLike) -> Value:
        """The layer of each row.

        Shape:
            [inputs] in, [outputs] out.
        """
        value = functional.rows_of_floats(x, f"nn.Linear({self.inputs}, {self.outputs})", 0, size=self.inputs)
        return functional.linear(value, self.weight, self.bias)


def _uniform(inputs: int) -> Initializer:
    return init.uniform(1 / math.sqrt(inputs))


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) along each row, then a trained scale and bias unless switched off.

    Args:
        dim: size of a row.
        eps: keeps a row of equal numbers finite.
        scale: whether there is one.
        bias: whether there is one.

    Shape:
        [dim] in, [dim] out.

    Example:
        >>> nn.LayerNorm(16)(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """

    def __init__(self, dim: int, eps: float = 1e-5, scale: bool = True, bias: bool = True) -> None:
        self.dim, self.eps = dim, eps
        self.scale = Parameter((dim,), init.ones()) if scale else None
        self.bias = Parameter((dim,), init.zeros()) if bias else None

    def forward(self, x: ValueLike) -> Value:
        """The norm of each row.

        Shape:
            [dim] in, [dim] out.
        """
        value = functional.rows_of_floats(x, f"nn.LayerNorm({self.dim})", 0, size=self.dim)
        return functional.layer_norm(value, self.scale, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) along each row, then a trained scale unless switched off.

    Args:
        dim: size of a row.
        eps: keeps a row of zeros finite.
        scale: whether there is one.

    Shape:
        [dim] in, [dim] out.

    Example:
        >>> nn.RMSNorm(16)(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """

    def __init__(self, dim: int, eps: float = 1e-6, scale: bool = True) -> None:
        self.dim, self.eps = dim, eps
        self.scale = Parameter((dim,), init.ones()) if scale else None

    def forward(self, x: ValueLike) -> Value:
        """The norm of each row.

        Shape:
            [dim] in, [dim] out.
        """
        value = functional.rows_of_floats(x, f"nn.RMSNorm({self.dim})", 0, size=self.dim)
        return functional.rms_norm(value, self.scale, self.eps)


class Dropout(Module):
    """`nn.dropout` with a fixed rate.

    Shape:
        any in, the same out.

    Example:
        >>> drop = nn.Dropout(0.2)
        >>> drop(gr.Table("item", dim=16)(batch.history.item))
        <[16] float32, one per 'history'>
    """

    def __init__(self, rate: float) -> None:
        functional.check_rate("rate", rate)
        self.rate = rate

    def forward(self, x: ValueLike) -> Value:
        """The rows with elements zeroed.

        Shape:
            any in, the same out.
        """
        return functional.dropout(x, self.rate)


class Embedding(Module):
    """A dense parameter of `count` vectors, looked up by index: for few, fixed indices such as a slot or a weekday. An
    index outside [0, count) reads the first or the last vector, a null index reads zeros. For ids that are many or
    open-ended use `gr.Table`.

    Args:
        count: how many vectors.
        dim: size of a vector.
        init: of them; normal with standard deviation 0.02 unless given.

    Shape:
        an integer [] in, [dim] out.

    Example:
        >>> hour = gr.mod(batch.time, 86_400)
        >>> nn.Embedding(24, 8)(gr.bucketize(hour, [3600 * h for h in range(1, 24)]))
        <[8] float32, one per 'request'>
    """

    def __init__(self, count: int, dim: int, init: Initializer | None = None) -> None:
        self.count, self.dim = count, dim
        self.weight = Parameter((count, dim), init or _embedding_init())

    def forward(self, index: ValueLike) -> Value:
        """The vector of each index.

        Shape:
            an integer [] in, [dim] out.
        """
        place = find_place()
        ids = as_ids(index, f"the index of nn.Embedding({self.count}, {self.dim})", place.part(0))
        vectors = emit("embedding", [ids, self.weight.value()], ids.domain, (self.dim,), float32, place)
        if ids.valid is None:
            return vectors
        zero = constant(0.0, float32, place)  # as of a null id of a table
        return emit("select", [ids.valid, vectors, zero], ids.domain, (self.dim,), float32, place)


def _embedding_init() -> Initializer:
    return init.normal(0.02)


class PositionEmbedding(Module):
    """A learned vector per place in a list: of the first `count` places, later ones share the last vector.

    Args:
        count: how many places have a vector of their own.
        dim: size of a vector.
        init: of them; normal with standard deviation 0.02 unless given.
        from_end: count places from the end of the list, so that the latest event always has the same vector.

    Shape:
        the rows of a list in, [dim] out.

    Example:
        >>> nn.PositionEmbedding(100, 16)(batch.history)
        <[16] float32, one per 'history'>
    """

    def __init__(self, count: int, dim: int, init: Initializer | None = None, from_end: bool = False) -> None:
        self.count, self.dim, self.from_end = count, dim, from_end
        self.weight = Parameter((count, dim), init or _embedding_init())

    def forward(self, rows: Domain | Value) -> Value:
        """The vector of each row's place, of a row domain or of a value's domain.

        Shape:
            the rows of a list in, [dim] out.
        """
        place = find_place()
        domain = rows.domain if isinstance(rows, Value) else rows
        if not isinstance(domain, Domain):
            raise ModelError("nn.PositionEmbedding takes a row domain, such as batch.history", place.part(0))
        index = position(domain, self.from_end, place.named("position"))
        return emit("embedding", [index, self.weight.value()], domain, (self.dim,), float32, place)


class MLP(Module):
    """Linear layers with an activation (and dropout) after each but the last.

    Args:
        sizes: of the rows, then of the result of each layer.
        activation: "relu", "gelu", "silu", "tanh", "sigmoid", or a function of a value (`gr.row_function` makes one).
        dropout: rate after each activation.
        final: an activation for the last layer too.

    Shape:
        [sizes[0]] in, [sizes[-1]] out.

    Example:
        >>> score = nn.MLP([32, 64, 1], activation="gelu", dropout=0.1)
        >>> score(gr.Table("item", dim=32)(batch.impression.item))
        <[1] float32, one per 'impression'>
    """

    def __init__(
        self, sizes: Sequence[int], activation: Activation = "relu", dropout: float = 0.0, final: Activation = ""
    ) -> None:
        if not isinstance(sizes, list | tuple):
            raise TypeError(f"nn.MLP takes its sizes as one list, nn.MLP([32, 64, 1]), got {sizes!r}")
        for name in filter(None, (activation, final)):
            if isinstance(name, str) and name not in ACTIVATIONS:
                raise ValueError(f"there is no activation '{name}'; there are {', '.join(ACTIVATIONS)}")
        if len(sizes) < 2:
            raise ValueError(f"an MLP needs the size of its rows and of at least one layer, got {list(sizes)}")
        functional.check_rate("rate", dropout)
        self.layers = [Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
        self.activation, self.dropout, self.final = activation, dropout, final

    def forward(self, x: ValueLike) -> Value:
        """The layers of each row.

        Shape:
            [sizes[0]] in, [sizes[-1]] out.
        """
        size = self.layers[0].inputs
        value = functional.rows_of_floats(x, f"nn.MLP([{size}, …])", 0, size=size)
        for layer in self.layers[:-1]:
            value = _activate(self.activation, layer(value))
            if self.dropout:
                value = functional.dropout(value, self.dropout)
        value = self.layers[-1](value)
        return _activate(self.final, value) if self.final else value


def _activate(activation: Activation, x: Value) -> Value:
    return ACTIVATIONS[activation](x) if isinstance(activation, str) else activation(x)
