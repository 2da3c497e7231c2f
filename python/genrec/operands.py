"""What ops are given, as values: a number, a list of numbers or a parameter becomes a value shared by all rows."""

import inspect
import math
import sys
from collections.abc import Sequence

from genrec.domain import Domain
from genrec.errors import ModelError
from genrec.parameter import Parameter
from genrec.recording import Tensor, ValueType, current
from genrec.source import Part, Place
from genrec.types import RANGES, ElementType, bool_, element_type, float32, int64
from genrec.value import Number, Value


def as_value(given: object, place: Place, like: Value | ElementType | None = None, what: str = "an operand") -> Value:
    """`given` as a value. Numbers take the element type (of) `like`, else float32 (int64 for integers). Raises
    `ModelError` at `place` if `given` is neither a value nor convertible to one.
    """
    if isinstance(given, Value):
        return given
    if isinstance(given, Parameter):
        return given.value()
    if isinstance(given, Domain):
        element = given._element()
        if element is not None:
            return element
        raise ModelError(
            f"{what} must be a value, got the row domain '{given._name}'",
            place,
            "a domain says whose rows there are",
            f"take one of its features: {given._expression}.<feature>" if len(list(given)) else "",
        )
    if inspect.ismethod(given) and isinstance(given.__self__, Domain):
        owner, name = given.__self__, given.__name__
        help = f"{owner._expression}['{name}'] is the feature" if name in owner else ""
        help = help or f"call it: {owner._expression}.{name}(...)"
        raise ModelError(f"{what} must be a value, got the method '{name}' of a row domain", place, "", help)
    if given is None:
        help = "nulls are replaced by gr.fill_missing(x, value); x.valid is false where x is null"
        raise ModelError(f"{what} must be a value, got None", place, "", help)
    numbers = _numbers(given)
    if numbers is not None:
        return constant(numbers, like.dtype if isinstance(like, Value) else like, place)
    help = ""
    if isinstance(given, list | tuple) and what.startswith("part "):
        help = "give the values one by one, or all of them as one list; there is no axis to name"
    elif isinstance(given, list | tuple) and any(isinstance(one, Value) for one in given):
        help = "gr.concat([...]) joins values to one row, gr.stack([...]) makes a list of them"
    elif hasattr(given, "shape"):
        help = "numbers for all rows are one number or a flat list of them; weights are an nn.Parameter"
    elif isinstance(given, str):
        help = "a model has no texts but those of its columns: make a column of the data of what they decide"
    elif callable(given) and not isinstance(given, type):
        help = f"call it: {place.operand or 'it'}(...)"
    raise ModelError(f"{what} must be a value, got {type(given).__name__}", place, "", help)


def _numbers(given: object) -> Number | list[Number] | None:
    """A number or a flat list of numbers (also of numpy); None for anything else."""
    given = given.tolist() if hasattr(given, "tolist") else given
    if isinstance(given, bool | int | float):
        return given
    if isinstance(given, Sequence) and given and all(isinstance(one, bool | int | float) for one in given):
        return list(given)
    return None


def dtype_among(given: Sequence[object]) -> ElementType | None:
    """The element type of the first of `given` that has one, which numbers beside it take."""
    for one in given:
        if isinstance(one, Value):
            return one.dtype
        if isinstance(one, Parameter):
            return float32
        if isinstance(one, Domain) and one._element_type() is not None:
            return one._element_type()
    return None


def constant(numbers: Number | Sequence[Number], dtype: ElementType | str | None, place: Place) -> Value:
    """A shared scalar or vector of constants."""
    flat = list(numbers) if isinstance(numbers, Sequence) else [numbers]
    if dtype is None:
        dtype = bool_ if all(isinstance(n, bool) for n in flat) else int64
        dtype = float32 if any(isinstance(n, float) for n in flat) else dtype
    kind = element_type(dtype).plain
    for number in flat:
        _check_holds(kind, number, place)
    shape = (len(flat),) if isinstance(numbers, Sequence) else ()
    type_ = ValueType("", shape, kind.name)
    recording = current("a constant")
    convert = float if kind.is_float else int
    tensor = Tensor(type_, tuple(convert(n) for n in flat))
    op = recording.emit("constant", [], [type_], {"value": tensor}, place.named(""))
    return Value(recording, op.results[0], None, place)


def _check_holds(kind: ElementType, number: Number, place: Place) -> None:
    """Raises `ModelError` where a constant of `kind` would be another number than `number`."""
    if kind.is_float:
        if isinstance(number, int) and abs(number) > sys.float_info.max:
            raise ModelError(f"a constant of {kind} cannot hold so large a number, only up to 1.8e308", place)
        return
    low, high = RANGES[kind.name]
    is_whole = not isinstance(number, float) or number.is_integer()
    if is_whole and low <= number <= high:
        return
    wider = "float32" if not is_whole else "int64" if -(2**63) <= number < 2**63 else "float64"
    only = "" if not is_whole and math.isfinite(number) else f", only {low} to {high}"
    only = ", only False and True" if kind.name == "bool" else only
    help = f"convert the other operand first: .astype(gr.{wider})"
    raise ModelError(f"a constant of {kind} cannot hold {number}{only}", place, "", help)


def expect_float(x: Value, what: str, place: Place, *part: Part) -> None:
    """Raises `ModelError` unless `x` is of floats."""
    if not x.dtype.is_float:
        raise ModelError(
            f"{what} takes floats, got {x.dtype.name}",
            place.part(*part),
            x._label(),
            "convert it: .astype(gr.float32), or look it up in a table",
        )
