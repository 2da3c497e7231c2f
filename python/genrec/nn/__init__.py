"""Modules and functions that models are built of."""

from typing import NoReturn

from genrec.hints import ELSEWHERE, OF_NN, raise_missing
from genrec.nn.attention import HSTUBlock, RelativePosition, RelativeTime, SelfAttention, attention
from genrec.nn.functional import (
    abs,
    cos,
    dropout,
    exp,
    gelu,
    l2_normalize,
    layer_norm,
    linear,
    log,
    log1p,
    neg,
    relu,
    rms_norm,
    rsqrt,
    sigmoid,
    silu,
    sin,
    softmax,
    softplus,
    sqrt,
    square,
    tanh,
)
from genrec.nn.layers import MLP, Dropout, Embedding, LayerNorm, Linear, PositionEmbedding, RMSNorm
from genrec.nn.module import Module
from genrec.nn.ranking import DIN, CrossAttention, CrossNetwork, MMoE, cross_attention, dot_interaction, mixture
from genrec.parameter import Parameter

__all__ = [
    "CrossAttention", "CrossNetwork", "DIN", "Dropout", "Embedding", "HSTUBlock", "LayerNorm", "Linear", "MLP",
    "MMoE", "Module", "Parameter", "PositionEmbedding", "RMSNorm", "RelativePosition", "RelativeTime",
    "SelfAttention", "abs", "attention", "cos", "cross_attention", "dot_interaction", "dropout", "exp", "gelu",
    "l2_normalize", "layer_norm", "linear", "log", "log1p", "mixture", "neg", "relu", "rms_norm", "rsqrt",
    "sigmoid", "silu", "sin", "softmax", "softplus", "sqrt", "square", "tanh",
]  # fmt: skip

for _name in __all__:
    if _name.islower():
        ELSEWHERE.setdefault(_name, f"nn.{_name}(x)")


def __getattr__(name: str) -> NoReturn:
    raise_missing(__name__, name, {} if name.startswith("__") else OF_NN, [] if name.startswith("__") else __all__)
