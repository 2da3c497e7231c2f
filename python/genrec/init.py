"""Initial values of tables' rows and of dense parameters, reached as `gr.init`.

The initial value of a table's row is a function of (seed, table name, id, column), that of a parameter's element one of
(seed, parameter name, element). Neither depends on the rest of the model.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Initializer:
    """A distribution of initial values; made by the functions of this module.

    Example:
        >>> gr.init.normal(0.02)
        Initializer(kind='normal', scale=0.02)
    """

    kind: str
    scale: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.scale) or (self.kind != "constant" and self.scale < 0):
            raise ValueError(f"the scale of gr.init.{self.kind} must be finite and at least 0, got {self.scale}")


def zeros() -> Initializer:
    """All 0.

    Example:
        >>> gr.Table("bias", dim=1, init=gr.init.zeros())
        <table 'bias' of [1]>
    """
    return Initializer("zeros", 0.0)


def ones() -> Initializer:
    """All 1.

    Example:
        >>> nn.Parameter((16,), gr.init.ones()).init.kind
        'constant'
    """
    return Initializer("constant", 1.0)


def constant(value: float) -> Initializer:
    """All `value`.

    Example:
        >>> nn.Parameter((), gr.init.constant(0.5)).init
        Initializer(kind='constant', scale=0.5)
    """
    return Initializer("constant", float(value))


def normal(std: float = 1.0) -> Initializer:
    """Normal with mean 0 and standard deviation `std`.

    Example:
        >>> gr.Table("item", dim=16, init=gr.init.normal(0.02))
        <table 'item' of [16]>
    """
    return Initializer("normal", float(std))


def truncated_normal(std: float = 1.0) -> Initializer:
    """Normal with mean 0 and standard deviation `std`, truncated at two standard deviations. Tables use it with 0.02
    unless they are given another.

    Example:
        >>> gr.Table("item", dim=16).init
        Initializer(kind='truncated_normal', scale=0.02)
    """
    return Initializer("truncated_normal", float(std))


def uniform(bound: float = 1.0) -> Initializer:
    """Uniform in [-bound, bound).

    Example:
        >>> gr.Table("item", dim=16, init=gr.init.uniform(0.05))
        <table 'item' of [16]>
    """
    return Initializer("uniform", float(bound))


def xavier_uniform(gain: float = 1.0) -> Initializer:
    """Uniform within gain * sqrt(6 / (fan in + fan out)) (Glorot and Bengio 2010). A parameter needs two sizes; for a
    table the fans are 1 and its dimension.

    Example:
        >>> nn.Parameter((64, 16), gr.init.xavier_uniform()).shape
        (64, 16)
    """
    return Initializer("xavier_uniform", float(gain))


def xavier_normal(gain: float = 1.0) -> Initializer:
    """Normal with standard deviation gain * sqrt(2 / (fan in + fan out)) (Glorot and Bengio 2010); fans as in
    `xavier_uniform`.

    Example:
        >>> nn.Parameter((64, 16), gr.init.xavier_normal()).shape
        (64, 16)
    """
    return Initializer("xavier_normal", float(gain))
