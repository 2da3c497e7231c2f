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
from genrec.nn.module import Module, Parameter
from genrec.ops import as_ids
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
    """x · weight + bias: rows [inputs] to rows [outputs]. Weight and bias start uniform within 1 / sqrt(inputs), as in
    PyTorch, unless given otherwise.
    """

    def __init__(
        self,
        inputs: int,
        outputs: int,
        bias: bool = True,
        init: Initializer | None = None,
        bias_init: Initializer | None = None,
    ) -> None:
        if inputs < 1 or outputs < 1:
            raise ValueError(f"nn.Linear needs sizes of at least 1, got {inputs} and {outputs}")
        default = _uniform(inputs)
        self.inputs, self.outputs = inputs, outputs
        self.weight = Parameter((inputs, outputs), init or default)
        self.bias = Parameter((outputs,), bias_init or default) if bias else None

    def forward(self, x: ValueLike) -> Value:
        """Rows [outputs] of rows [inputs]."""
        value = functional.rows_of_floats(x, f"nn.Linear({self.inputs}, {self.outputs})", 0, size=self.inputs)
        return functional.linear(value, self.weight, self.bias)


def _uniform(inputs: int) -> Initializer:
    return init.uniform(1 / math.sqrt(inputs))


class LayerNorm(Module):
    """(x - mean) / sqrt(variance + eps) along each row [dim], then a trained scale and bias unless switched off."""

    def __init__(self, dim: int, eps: float = 1e-5, scale: bool = True, bias: bool = True) -> None:
        self.dim, self.eps = dim, eps
        self.scale = Parameter((dim,), init.ones()) if scale else None
        self.bias = Parameter((dim,), init.zeros()) if bias else None

    def forward(self, x: ValueLike) -> Value:
        """Rows [dim] of rows [dim]."""
        value = functional.rows_of_floats(x, f"nn.LayerNorm({self.dim})", 0, size=self.dim)
        return functional.layer_norm(value, self.scale, self.bias, self.eps)


class RMSNorm(Module):
    """x / sqrt(mean(x²) + eps) along each row [dim], then a trained scale unless switched off."""

    def __init__(self, dim: int, eps: float = 1e-6, scale: bool = True) -> None:
        self.dim, self.eps = dim, eps
        self.scale = Parameter((dim,), init.ones()) if scale else None

    def forward(self, x: ValueLike) -> Value:
        """Rows [dim] of rows [dim]."""
        value = functional.rows_of_floats(x, f"nn.RMSNorm({self.dim})", 0, size=self.dim)
        return functional.rms_norm(value, self.scale, self.eps)


class Dropout(Module):
    """`nn.dropout` with a fixed rate."""

    def __init__(self, rate: float) -> None:
        functional.check_rate("rate", rate)
        self.rate = rate

    def forward(self, x: ValueLike) -> Value:
        """Rows like those of `x`."""
        return functional.dropout(x, self.rate)


class Embedding(Module):
    """A dense parameter of `count` vectors [dim], looked up by index. An index outside [0, count) reads the first or
    the last vector. For ids that are many or open-ended use `gr.Table`.
    """

    def __init__(self, count: int, dim: int, init: Initializer | None = None) -> None:
        self.count, self.dim = count, dim
        self.weight = Parameter((count, dim), init or _embedding_init())

    def forward(self, index: ValueLike) -> Value:
        """Rows [dim] of one integer per row."""
        place = find_place()
        ids = as_ids(index, f"the index of nn.Embedding({self.count}, {self.dim})", place.part(0))
        return emit("embedding", [ids, self.weight.value()], ids.domain, (self.dim,), float32, place)


def _embedding_init() -> Initializer:
    return init.normal(0.02)


class PositionEmbedding(Module):
    """A learned vector [dim] per place in a list: of the first `count` places, later ones share the last vector. With
    `from_end` places are counted from the end of the list, so that the latest event always has the same vector.
    """

    def __init__(self, count: int, dim: int, init: Initializer | None = None, from_end: bool = False) -> None:
        self.count, self.dim, self.from_end = count, dim, from_end
        self.weight = Parameter((count, dim), init or _embedding_init())

    def forward(self, rows: Domain | Value) -> Value:
        """Rows [dim] of a row domain, or of a value's domain."""
        place = find_place()
        domain = rows.domain if isinstance(rows, Value) else rows
        if not isinstance(domain, Domain):
            raise ModelError("nn.PositionEmbedding takes a row domain, such as batch.history", place.part(0))
        index = position(domain, self.from_end, place.named("position"))
        return emit("embedding", [index, self.weight.value()], domain, (self.dim,), float32, place)


class MLP(Module):
    """Linear layers with an activation (and dropout) after each but the last.

    `MLP([64, 32, 1])` maps rows [64] to [32], then to [1]. `final` is an activation for the last layer too. An
    activation is a name or a function of a value (`gr.row_function` makes one).
    """

    def __init__(
        self, sizes: Sequence[int], activation: Activation = "relu", dropout: float = 0.0, final: Activation = ""
    ) -> None:
        for name in filter(None, (activation, final)):
            if isinstance(name, str) and name not in ACTIVATIONS:
                raise ValueError(f"there is no activation '{name}'; there are {', '.join(ACTIVATIONS)}")
        if len(sizes) < 2:
            raise ValueError(f"an MLP needs the size of its rows and of at least one layer, got {list(sizes)}")
        functional.check_rate("rate", dropout)
        self.layers = [Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False)]
        self.activation, self.dropout, self.final = activation, dropout, final

    def forward(self, x: ValueLike) -> Value:
        """Rows [sizes[-1]] of rows [sizes[0]]."""
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
