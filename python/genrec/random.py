"""Random values per row, drawn anew in every step.

A draw is a function of (seed, step, this op, the row's position in the dataset, the element). So it does not depend on
batch size, number of threads or other ops. A value per request that is fanned out to impressions
is one draw per request; a value per impression is one per impression.

Values are drawn in every mode. Evaluation and prediction use the number of the last training step, so the same rows get
the same values until the model is trained further.
"""

import math

from genrec.domain import Domain
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.nn import functional
from genrec.operands import as_value, expect_float
from genrec.ops import compare
from genrec.rules import counted
from genrec.source import Place, find_place
from genrec.types import float32
from genrec.value import Value, ValueLike


def uniform(rows: Domain | Value, low: float = 0.0, high: float = 1.0, size: int | None = None) -> Value:
    """Uniform float32 in [low, high), in steps of (high - low) / 2**24.

    Args:
        rows: a domain, or a value of that domain, to draw for.
        low: the lower bound, included.
        high: the upper bound, excluded.
        size: how many values a row gets; a scalar unless given.

    Shape:
        [] or [size] out.

    Example:
        >>> gr.random.uniform(batch.history, -1.0, 1.0)
        <float32, one per 'history'>
    """
    place = find_place()
    if not -math.inf < low <= high < math.inf:
        raise ModelError(f"gr.random.uniform needs low <= high, got [{low}, {high})", place)
    drawn = _draw("gr.random.uniform", rows, size, place)
    return drawn if (low, high) == (0.0, 1.0) else drawn * (high - low) + low


def bernoulli(rows: Domain | Value, p: ValueLike, size: int | None = None) -> Value:
    """True with probability `p`.

    Args:
        rows: a domain, or a value of that domain, to draw for.
        p: a number in [0, 1], or a float per row; 0 never gives true, 1 always does.
        size: how many bools a row gets; a scalar unless given.

    Shape:
        p [] or [size]; [] or [size] out.

    Example:
        >>> dropped = gr.random.bernoulli(batch.history, 0.1)
        >>> gr.where(dropped, 0.0, batch.history.price)
        <float32, one per 'history'>
    """
    place = find_place()
    if isinstance(p, bool) or (isinstance(p, int | float) and not 0 <= p <= 1):
        raise ModelError(f"the probability of gr.random.bernoulli must be in [0, 1], got {p}", place.part(1))
    drawn = _draw("gr.random.bernoulli", rows, size, place)
    chance = as_value(p, place.part(1), like=drawn)
    expect_float(chance, "the probability of gr.random.bernoulli", place, 1)
    return compare("lt", drawn, chance)


def normal(rows: Domain | Value, mean: float = 0.0, std: float = 1.0, size: int | None = None) -> Value:
    """Normal float32 of this mean and standard deviation, by Box and Muller's transform (1958) of two uniform draws.

    Args:
        rows: a domain, or a value of that domain, to draw for.
        mean: of the distribution.
        std: the standard deviation; no draw lies more than 5.8 of them from the mean.
        size: how many values a row gets; a scalar unless given.

    Shape:
        [] or [size] out.

    Example:
        >>> item = gr.Table("item", dim=16)(batch.history.item)
        >>> item + gr.random.normal(item, std=0.01, size=16)
        <[16] float32, one per 'history'>
    """
    place = find_place()
    if not 0 <= std < math.inf or not math.isfinite(mean):
        raise ModelError(f"gr.random.normal needs a finite mean and std >= 0, got {mean} and {std}", place)
    # 1 - u is in (0, 1]: its logarithm is finite.
    radius = functional.sqrt(functional.log(1.0 - _draw("gr.random.normal", rows, size, place)) * -2.0)
    angle = _draw("gr.random.normal", rows, size, place) * (2.0 * math.pi)
    drawn = radius * functional.cos(angle)
    return drawn if (mean, std) == (0.0, 1.0) else drawn * std + mean


def _draw(what: str, rows: Domain | Value, size: int | None, place: Place) -> Value:
    domain = rows.domain if isinstance(rows, Value) else rows
    if not isinstance(domain, Domain):
        got = "a shared value" if isinstance(rows, Value) else type(rows).__name__
        raise ModelError(
            f"{what} draws per row: it takes a row domain, or a value for its rows, got {got}", place.part(0), "",
            "say whose rows: batch, batch.history, …",
        )  # fmt: skip
    shape = () if size is None else (counted(size, f"the size of {what}", place.part("size")),)
    return emit("random_uniform", [domain], domain, shape, float32, place, stream=0)
