"""Modules and functions that models are built of."""

from genrec.nn.attention import HSTUBlock, RelativePosition, RelativeTime, SelfAttention, attention
from genrec.nn.functional import (
    abs,
    dropout,
    exp,
    gelu,
    l2_normalize,
    layer_norm,
    linear,
    log,
    neg,
    relu,
    rms_norm,
    rsqrt,
    sigmoid,
    silu,
    softplus,
    sqrt,
    square,
    tanh,
)
from genrec.nn.layers import MLP, Dropout, Embedding, LayerNorm, Linear, PositionEmbedding, RMSNorm
from genrec.nn.module import Module, Parameter

__all__ = [
    "MLP", "Dropout", "Embedding", "HSTUBlock", "LayerNorm", "Linear", "Module", "Parameter", "PositionEmbedding",
    "RMSNorm", "RelativePosition", "RelativeTime", "SelfAttention", "abs", "attention", "dropout", "exp", "gelu",
    "l2_normalize", "layer_norm", "linear", "log", "neg", "relu", "rms_norm", "rsqrt", "sigmoid", "silu", "softplus",
    "sqrt", "square", "tanh",
]  # fmt: skip
