"""The op in Python: a function, and a layer with its parameters."""

import genrec as gr
from genrec import init


def gated_cross(x0, x, weight, bias, gate):
    """x0 * (x · weight + bias) * sigmoid(x · gate) + x, rows [d] of one domain."""
    return gr.plugin_op("own.gated_cross", [x0, x, weight, bias, gate])


class GatedCrossNetwork(gr.Module):
    """Gated cross layers over rows of `dim` floats."""

    def __init__(self, dim: int, layers: int = 1) -> None:
        self.weights = [gr.Parameter((dim, dim), init.xavier_uniform()) for _ in range(layers)]
        self.biases = [gr.Parameter((dim,), init.zeros()) for _ in range(layers)]
        self.gates = [gr.Parameter((dim, dim), init.xavier_uniform()) for _ in range(layers)]

    def forward(self, x):
        """The layers of each row, [dim] in and out."""
        value = x
        for weight, bias, gate in zip(self.weights, self.biases, self.gates, strict=True):
            value = gated_cross(x, value, weight, bias, gate)
        return value
