"""What all losses record: the value that is added up, with its weight, and the check of its labels."""

from __future__ import annotations

from dataclasses import dataclass

from genrec.emit import emit, emit_effect
from genrec.errors import ModelError
from genrec.labels import is_column, scalar
from genrec.nn.ranking import weigh_by_variance
from genrec.operands import as_value, constant
from genrec.ops import cast, conjunction
from genrec.rules import common_domain
from genrec.source import Place
from genrec.types import float32
from genrec.value import Value, ValueLike


def is_weighed(weight: ValueLike | None, rows: Value, place: Place) -> Value | None:
    """Whether rows have a weight other than 0; None where all have. What is no weight per row refused later."""
    if weight is None:
        return None
    part = place.part("weight")
    given = as_value(weight, part)
    if given.domain is not rows.domain or given.shape:
        return None
    factor = cast(given, float32, part.named(""))
    return conjunction(factor != 0.0, None if is_column(factor) else factor.valid)


def where_weighed(label: Value, weight: ValueLike | None, place: Place) -> Value:
    """`label`, but 0 in rows of no weight: a NaN there would be one in the loss, and in all gradients."""
    weighed = is_weighed(weight, label, place)
    if weighed is None:
        return label
    zero = constant(0.0, label.dtype, place.named(""))
    taken = [weighed, label, zero]
    return emit("select", taken, label.domain, label.shape, label.dtype, place.named(""), label.valid)


@dataclass(frozen=True, eq=False)
class Required:
    """A run-time check of labels: in [low, high], and, with `items`, below their number."""

    label: Value
    low: float
    high: float
    items: Value | None = None


def _require(required: Required, weight: Value | None, valid: Value | None, loss: str, place: Place) -> None:
    """Records the check of a loss's labels, but those of no weight."""
    optional = [weight, valid, required.items]
    emit_effect(
        "require_range", [required.label, *(one for one in optional if one is not None)], place.named(loss),
        (1, *(int(one is not None) for one in optional)),
        what=f"the label of the loss '{loss}'", min=required.low, max=required.high,
    )  # fmt: skip


def declare_loss(
    x: Value,
    valid: Value | None,
    weight: ValueLike | None,
    name: str,
    scale: float,
    place: Place,
    log_variance: ValueLike | None = None,
    required: Required | None = None,
) -> Value:
    """Records a loss of the rows of `x` that are `valid`, all where that is None; returns `x` as float32.

    `required` is checked in every run, `log_variance` weighs the value, the rest is as in `gr.loss.mean`.
    """
    value = cast(scalar(x, "a loss", place, 0), float32, place.named(""))
    weighed = value if log_variance is None else weigh_by_variance(value, log_variance, place)
    operands: list[Value] = [weighed]
    factor = None
    if weight is not None:
        part = place.part("weight")
        factor = cast(as_value(weight, part, like=value), float32, part.named(""))
        common_domain("loss", [value, factor], place, ((0,), ("weight",)))
        if factor.domain is None or factor.shape:
            help = "a number for all rows is its scale=" if factor.domain is None else ""
            raise ModelError("the weight of a loss must be one number per row", part, factor._label(), help)
        operands.append(factor)
        if not is_column(factor):  # what is computed of a null is any number
            valid = conjunction(valid, factor.valid)
    if valid is not None:
        operands.append(valid)
    unique = value._recording.effect_name("loss", name, name == "loss", place)
    if required is not None:
        _require(required, factor, valid, unique, place)
    emit_effect(
        "loss", operands, place.named(unique), (1, int(weight is not None), int(valid is not None)),
        name=unique, scale=float(scale),
    )  # fmt: skip
    return value
