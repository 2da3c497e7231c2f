"""Checks shared by ops of several operands: one domain, one row size, one element type."""

import operator
from collections.abc import Sequence
from typing import Any

from genrec.domain import Domain, Truncation
from genrec.errors import ModelError
from genrec.source import Part, Place
from genrec.value import Value, made_at


def common_domain(name: str, values: Sequence[Value], place: Place, parts: Sequence[Sequence[Part]]) -> Domain | None:
    """The one domain of `values`; None when all are shared. `parts` leads to each in the expression at `place`."""
    found: Value | None = None
    for index, value in enumerate(values):
        if value.domain is None:
            continue
        if found is None:
            found, at = value, index
        elif value.domain is not found.domain:
            raise mixing(name, found, value, place.part(*parts[at]), place.part(*parts[index]))
    return found.domain if found is not None else None


def mixing(name: str, a: Value, b: Value, place_a: Place, place_b: Place) -> ModelError:
    """The error of an op `name` whose operands, written at `place_a` and `place_b`, are of different domains."""
    domain_a, domain_b = a.domain, b.domain
    assert domain_a is not None and domain_b is not None
    message = f"'{name}' mixes rows of '{domain_a._name}' and '{domain_b._name}'"
    was_cut = isinstance(domain_a._origin, Truncation) and domain_a._origin.source is domain_b
    if domain_a._is_below(domain_b) or was_cut:
        a, domain_a, domain_b, place_a = b, domain_b, domain_a, place_b
    label = f"one row per {domain_a._name}{made_at(a._place)}"
    text = place_a.operand or "x"
    origin = domain_b._origin
    if domain_b._is_below(domain_a):
        help = f"fan it out: {text}.fanout({domain_b._expression}), or use gr.concat, which fans out by itself"
    elif isinstance(origin, Truncation) and origin.source is domain_a:
        keep = "" if origin.keep == "last" else f', keep="{origin.keep}"'
        help = f"truncate it as well: {text}.truncate({origin.count}{keep})"
    elif domain_a._parent is not None and domain_a._parent is domain_b._parent:
        help = f"reduce one of them to '{domain_a._parent._name}' (.sum(), .mean(), .last()), or join their rows with "
        help += "gr.concat_rows"
    else:
        help = "bring both to one domain first, with .fanout(...) or .pool(...)"
    return ModelError(message, place_a, label, help)


def broadcast(name: str, values: Sequence[Value], place: Place, parts: Sequence[Sequence[Part]]) -> tuple[int, ...]:
    """The row shape of an elementwise op: shapes must be equal, or []."""
    found: Value | None = None
    for value, part in zip(values, parts, strict=True):
        if not value.shape:
            continue
        if found is not None and value.shape != found.shape:
            raise ModelError(
                f"'{name}' needs rows of one size, got [{sizes(found)}] and [{sizes(value)}]",
                place.part(*part),
                value._label(),
                f"the other operand is {found._label()}",
            )
        found = value if found is None else found
    return found.shape if found is not None else ()


def sizes(value: Value) -> str:
    """A shape for a message, without its brackets."""
    return ", ".join(map(str, value.shape))


def same_dtype(name: str, a: Value, b: Value, place: Place, parts: Sequence[Sequence[Part]]) -> None:
    """Raises `ModelError` unless `a` and `b`, written at `parts` of `place`, have one element type."""
    if a.dtype == b.dtype:
        return
    # Of an integer and a float the integer is converted; else the second follows the first.
    convert, other, part = (a, b, parts[0]) if b.dtype.is_float and not a.dtype.is_float else (b, a, parts[1])
    at = place.part(*part)
    raise ModelError(
        f"'{name}' needs one element type, got {a.dtype.name} and {b.dtype.name}",
        at,
        convert._label(),
        f"convert it: {at.operand or 'x'}.astype(gr.{other.dtype.name})" if other.dtype.name != "string" else "",
    )


def listed(parts: Sequence[object]) -> tuple[list[Any], list[tuple[Part, ...]]]:
    """The arguments of a function that takes several values, or one list of them, and the path of each for
    `Place.part`.
    """
    if len(parts) == 1 and isinstance(parts[0], list | tuple):
        return list(parts[0]), [(0, i) for i in range(len(parts[0]))]
    return list(parts), [(i,) for i in range(len(parts))]


def whole(number: object, what: str, place: Place) -> int:
    """`number` as an int of 64 bits. Raises `ModelError` at `place` where it is none."""
    try:
        if not isinstance(number, bool):
            result = operator.index(number)  # type: ignore[arg-type]
            if not -(2**63) <= result < 2**63:
                raise ModelError(f"{what} must be from -2^63 to 2^63 - 1, as an int64, got {result}", place)
            return result
    except TypeError:
        pass
    raise ModelError(f"{what} must be a whole number, got {number!r}", place)


def counted(number: object, what: str, place: Place) -> int:
    """`number` as an int of at least 1. Raises `ModelError` at `place` where it is none."""
    count = whole(number, what, place)
    if count < 1:
        raise ModelError(f"{what} must be at least 1, got {count}", place)
    return count
