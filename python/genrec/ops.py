"""Row-wise ops: arithmetic, comparisons, logic, conversions, slicing and concatenating columns.

Every function records one op (or a few) at the user's line. It first checks the rules of the dialect's verifiers, so
that a mistake is an error at that line and not in the compiler.
"""

import math
import operator
from collections.abc import Sequence

from genrec import methods, moves
from genrec.domain import Domain
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.operands import as_value, constant, dtype_among, expect_float
from genrec.operators import Symbolic
from genrec.recording import Enum
from genrec.rules import broadcast, common_domain, listed, mixing, same_dtype
from genrec.source import Part, Place, find_place
from genrec.types import ElementType, element_type, int64
from genrec.value import Number, Value, ValueLike

# -- elementwise -------------------------------------------------------------------------------------------------------


def _operands(given: Sequence[ValueLike], place: Place, parts: Sequence[Sequence[Part]]) -> list[Value]:
    """The operands of an elementwise op as values; numbers become constants with the element type of the other
    operands.
    """
    like = dtype_among(given)
    return [as_value(one, place.part(*part), like) for one, part in zip(given, parts, strict=True)]


def both_valid(*values: Value | None) -> Value | None:
    """The conjunction of the `valid` of `values`."""
    return conjunction(*(value.valid if value is not None else None for value in values))


def conjunction(*flags: Value | None) -> Value | None:
    """Whether all of `flags` are true, per row; None counts as true."""
    result: Value | None = None
    for valid in flags:
        if valid is None or valid is result:
            continue
        if result is not None:
            result = emit("select", [result, valid, result], valid.domain, (), valid.dtype, valid._place.named("valid"))
        else:
            result = valid
    return result


BINARY_PARTS = (("left",), ("right",))
HASHED = "hash them: gr.hash(x, bits=52)"


@methods.define
def binary(name: str, lhs: ValueLike, rhs: ValueLike, parts: Sequence[Sequence[Part]] = BINARY_PARTS) -> Value:
    """Elementwise arithmetic."""
    place = find_place()
    a, b = _operands([lhs, rhs], place, parts)
    same_dtype(name, a, b, place, parts)
    if not a.dtype.is_number or (name == "div" and not a.dtype.is_float):
        raise ModelError(
            f"'{name}' takes {'floats' if name == 'div' else 'numbers'}, got {a.dtype.name}",
            place.part(*parts[0]),
            a._label(),
            HASHED if a.dtype.name == "string" else "convert it: .astype(gr.float32)",
        )
    domain = common_domain(name, [a, b], place, parts)
    shape = broadcast(name, [a, b], place, parts)
    return emit(name, [a, b], domain, shape, a.dtype, place, both_valid(a, b))


MOST_POWER = 64


@methods.define
def power(x: Value, exponent: Number) -> Value:
    """x ** exponent by squaring and multiplying: a whole exponent from 1 to 64, 0.5 or -0.5."""
    is_number = isinstance(exponent, int | float)
    if is_number and exponent in (0.5, -0.5):
        return unary("sqrt" if exponent > 0 else "rsqrt", x)
    place = find_place()
    if not (is_number and 1 <= exponent <= MOST_POWER and exponent == int(exponent)):
        is_whole = is_number and math.isfinite(exponent) and exponent == int(exponent)
        help = "1.0 / x ** 2 is x to the power of -2" if is_whole and exponent < 0 else ""
        raise ModelError(
            f"'**' takes a whole exponent from 1 to {MOST_POWER}, 0.5 or -0.5, got {exponent!r}", place.part("right"),
            "", help or "of positive values: nn.exp(exponent * nn.log(x))",
        )  # fmt: skip
    result, square, left = None, x, int(exponent)
    while True:
        if left % 2:
            result = square if result is None else binary("mul", result, square)
        left //= 2
        if left == 0:
            return result
        square = binary("mul", square, square)


def maximum(a: ValueLike, b: ValueLike) -> Value:
    """The larger of a and b, elementwise; a tie sends its gradient to a.

    Shape:
        equal shapes, or [] and [d].

    Example:
        >>> gr.maximum(batch.history.price, 1.0)
        <float32, one per 'history'>
    """
    return binary("maximum", a, b, ((0,), (1,)))


def minimum(a: ValueLike, b: ValueLike) -> Value:
    """The smaller of a and b, elementwise; a tie sends its gradient to a.

    Shape:
        equal shapes, or [] and [d].

    Example:
        >>> gr.minimum(batch.history.price, 100.0)
        <float32, one per 'history'>
    """
    return binary("minimum", a, b, ((0,), (1,)))


@methods.define
def compare(kind: str, lhs: ValueLike, rhs: ValueLike) -> Value:
    """Elementwise comparison ("eq", "ne", "lt", "le", "gt", "ge"), giving bools."""
    place = find_place()
    a, b = _operands([lhs, rhs], place, BINARY_PARTS)
    same_dtype(kind, a, b, place, BINARY_PARTS)
    if a.dtype.name == "string":
        raise ModelError(
            "strings cannot be compared", place.part("left"), a._label(), "compare hashes: gr.hash(x, bits=63)"
        )
    domain = common_domain(kind, [a, b], place, BINARY_PARTS)
    shape = broadcast(kind, [a, b], place, BINARY_PARTS)
    result = element_type("bool")
    return emit("compare", [a, b], domain, shape, result, place, both_valid(a, b), kind=Enum("compare_kind", kind))


_TIGHT = "put comparisons into parentheses, '{0}' binds tighter than they do: (a > 0) {0} (b > 0)"


@methods.define
def logical(sign: str, lhs: ValueLike, rhs: ValueLike) -> Value:
    """`lhs & rhs` and `lhs | rhs` of bools."""
    place = find_place()
    a, b = (as_value(one, place.part(*part)) for one, part in zip((lhs, rhs), BINARY_PARTS, strict=True))
    for value, part in zip((a, b), BINARY_PARTS, strict=True):
        if value.dtype.name != "bool":
            raise ModelError(
                f"'{sign}' takes bools, got {value.dtype.name}", place.part(*part), value._label(), _TIGHT.format(sign)
            )
    domain = common_domain(sign, [a, b], place, BINARY_PARTS)
    shape = broadcast(sign, [a, b], place, BINARY_PARTS)
    chosen = [a, b, a] if sign == "&" else [a, a, b]
    return emit("select", chosen, domain, shape, a.dtype, place, both_valid(a, b))


@methods.define
def negation(x: Value) -> Value:
    """`~x` of a bool."""
    place = find_place()
    if x.dtype.name != "bool":
        help = "put the comparison into parentheses: ~(a > 0)" if x.dtype.is_number else ""
        raise ModelError(f"'~' takes a bool, got {x.dtype.name}", place.part("self"), x._label(), help)
    no, yes = (as_value(one, place.named("")) for one in (False, True))
    return emit("select", [x, no, yes], x.domain, x.shape, x.dtype, place, x.valid)


def where(condition: Value, on_true: ValueLike, on_false: ValueLike) -> Value:
    """`on_true` where the condition holds, else `on_false`, elementwise.

    Null where the condition is null, and where what it takes is: `gr.where(x.valid, x, 0.0)` has no nulls. A null
    condition that counts as false is `gr.fill_missing(condition, False)`. Rows with a condition per element are null
    where any of the three is.

    Args:
        condition: bools, such as `x > 0`.
        on_true: what is taken where it is true; a number stands for itself in every row.
        on_false: what is taken elsewhere.

    Shape:
        equal shapes, or [] and [d].

    Example:
        >>> price = batch.history.price
        >>> gr.where(price > 100.0, 1.0, price / 100.0)
        <float32, one per 'history'>
    """
    place = find_place()
    parts = ((0,), (1,), (2,))
    condition = as_value(condition, place.part(0), what="the condition of gr.where")
    like = dtype_among((on_true, on_false))
    if isinstance(on_true, int | float) and isinstance(on_false, float):
        on_true = float(on_true)
    elif isinstance(on_false, int) and isinstance(on_true, float):
        on_false = float(on_false)
    values = [condition, as_value(on_true, place.part(1), like), as_value(on_false, place.part(2), like)]
    if condition.dtype.name != "bool":
        raise ModelError("the condition of gr.where must be bool", place.part(0), condition._label(), "compare: x > 0")
    same_dtype("where", values[1], values[2], place, parts[1:])
    domain = common_domain("where", values, place, parts)
    shape = broadcast("where", values, place, parts)
    return emit("select", values, domain, shape, values[1].dtype, place, _valid_where(*values, domain=domain))


def _valid_where(condition: Value, on_true: Value, on_false: Value, domain: Domain | None) -> Value | None:
    """Which rows of `where` are not null: those with a condition and a value that it takes."""
    yes, no = on_true.valid, on_false.valid
    if condition.shape or yes is no:  # rows may take elements of both
        return both_valid(condition, on_true, on_false)
    if yes is condition:  # of `where(x.valid, x, y)`
        taken = no
    else:
        place = condition._place.named("valid")
        flags = [one if one is not None else constant(True, "bool", place) for one in (yes, no)]
        taken = emit("select", [condition, *flags], domain, (), condition.dtype, place)
    return conjunction(condition.valid, taken)


@methods.define
def unary(name: str, x: ValueLike) -> Value:
    """An elementwise function of floats, by the name of its op."""
    place = find_place()
    value = as_value(x, place.part(0))
    expect_float(value, f"'{name}'", place, "self" if name in ("neg",) else 0)
    return emit(name, [value], value.domain, value.shape, value.dtype, place, value.valid)


# -- gradients ---------------------------------------------------------------------------------------------------------


def detach(x: ValueLike) -> Value:
    """`x` without its gradient: a loss computed from the result does not train what `x` was computed from.

    Shape:
        any in, the same out.

    Example:
        >>> user = gr.Table("user", dim=16)(batch.user)
        >>> gr.detach(user) * 0.5
        <[16] float32, one per 'request'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    return emit("detach", [value], value.domain, value.shape, value.dtype, place, value.valid)


def is_trained(x: Value) -> bool:
    """Whether a gradient could flow through `x` to a parameter or a table."""
    makers = {result: op for op in x._recording.ops for result in op.results}
    pending, seen = [x._result], {x._result}
    while pending:
        op = makers[pending.pop()]
        if op.name in ("lookup", "param"):
            return True
        if op.name == "detach":
            continue
        floats = [one for one in op.operands if one.type.element.startswith("float") and one not in seen]
        pending += floats
        seen.update(floats)
    return False


# -- conversions -------------------------------------------------------------------------------------------------------


@methods.define
def cast(x: ValueLike, dtype: ElementType | str, place: Place) -> Value:
    """`x` converted to `dtype`; `x` itself where it has it."""
    value = as_value(x, place)
    try:
        wanted = element_type(dtype).plain
    except (TypeError, ValueError) as error:
        raise ModelError(str(error), place.part(0), "", "such as .astype(gr.float32)") from error
    if value.dtype == wanted:
        return value
    if "string" in (value.dtype.name, wanted.name):
        raise ModelError("strings cannot be converted", place, value._label(), HASHED)
    return emit("cast", [value], value.domain, value.shape, wanted, place, value.valid)


def as_ids(x: ValueLike, what: str, place: Place) -> Value:
    """`x` as int64 scalars per row."""
    value = as_value(x, place, what=what)
    if value.dtype.name == "string":
        raise ModelError(
            f"{what} must be integer ids, got strings", place, value._label(), "hash them: gr.hash(x, bits=52)"
        )
    if not value.dtype.is_integer or value.shape or value.domain is None:
        help = f"turn it into buckets: gr.bucketize({place.text or 'x'}, edges)" if value.dtype.is_float else ""
        raise ModelError(f"{what} must be one integer id per row", place, value._label(), help)
    return cast(value, int64, place.named(""))


# -- within a row ------------------------------------------------------------------------------------------------------


@methods.define
def row_reduce(kind: str, x: Value) -> Value:
    """Sum, mean or maximum along each row."""
    place = find_place()
    if len(x.shape) != 1:
        raise ModelError(f"'row_{kind}' takes rows of one size [d]", place.part("self"), x._label())
    if not x.dtype.is_number or (kind == "mean" and not x.dtype.is_float):
        expect_float(x, f"'row_{kind}'", place, "self")
    return emit("row_reduce", [x], x.domain, (), x.dtype, place, x.valid, kind=Enum("reduce_kind", kind))


@methods.define
def columns(x: Value, index: object) -> Value:
    """`x[:, a:b]` and `x[:, i]`; of a value that all rows share also `x[a:b]` and `x[i]`."""
    place = find_place()
    is_of_rows = isinstance(index, tuple) and len(index) == 2 and (index[0] is ... or index[0] == slice(None))
    wanted = index[1] if is_of_rows and isinstance(index, tuple) else index
    if len(x.shape) != 1 or isinstance(wanted, tuple) or not (is_of_rows or x.domain is None):
        raise _not_indexed(x, place)
    size = x.shape[0]
    if isinstance(wanted, slice):
        if wanted.step not in (None, 1):
            raise _no_columns(x, place)
        begin, end, _ = wanted.indices(size)
        if begin >= end or not _within(wanted, size):
            raise ModelError(
                f"columns {wanted.start or 0}:{'' if wanted.stop is None else wanted.stop} of rows of size {size}",
                place, x._label(),
            )  # fmt: skip
        return emit("slice_columns", [x], x.domain, (end - begin,), x.dtype, place, x.valid, offset=begin)
    try:
        column = operator.index(wanted) if not isinstance(wanted, bool | Symbolic) else None  # type: ignore[arg-type]
    except TypeError:
        column = None
    if column is None:
        raise _no_columns(x, place)
    if not -size <= column < size:
        help = f"columns are counted from 0 to {size - 1}, or from the end, -1 to -{size}"
        raise ModelError(f"column {column} of rows of size {size}", place, x._label(), help)
    one = emit("slice_columns", [x], x.domain, (1,), x.dtype, place, x.valid, offset=column % size)
    return squeeze(one, place)


def _not_indexed(x: Value, place: Place) -> ModelError:
    """The error of an index of rows, or of what has no columns."""
    if x.domain is None and len(x.shape) == 2:
        help = "nn.linear multiplies by the whole matrix, nn.Embedding reads a row per id; or make a parameter per row"
        return ModelError("a matrix that all rows share is not indexed", place, x._label(), help)
    if not x.shape:
        return ModelError(
            "a number per row has no columns, and rows are not indexed", place, x._label(),
            "to take rows use .first(), .last(), .truncate(n), .lead(n) or .lag(n); gr.concat(x) makes rows [1] of it",
        )  # fmt: skip
    return ModelError(
        "rows are not indexed, only their columns: x[:, a:b] or x[:, i]",
        place,
        x._label(),
        "to take rows use .first(), .last(), .truncate(n), .lead(n) or .lag(n)",
    )


def _no_columns(x: Value, place: Place) -> ModelError:
    """The error of columns that are neither one nor neighbours."""
    return ModelError(
        "columns are taken one by one, x[:, i], or with their neighbours, x[:, a:b]", place, x._label(),
        "join what you take: gr.concat(x[:, 0], x[:, 2], x[:, 4:8])",
    )  # fmt: skip


def _within(wanted: slice, size: int) -> bool:
    return all(bound is None or -size <= bound <= size for bound in (wanted.start, wanted.stop))


@methods.define
def squeezed(x: Value) -> Value:
    """Rows of shape [1] as scalars. Raises `ModelError` for longer rows."""
    place = find_place()
    if x.shape not in ((), (1,)):
        raise ModelError("'squeeze' takes rows of one element", place.part("self"), x._label())
    return squeeze(x, place)


def squeeze(x: Value, place: Place) -> Value:
    """Rows of shape [1] as scalars; others unchanged. The sum of one element is the element."""
    if x.shape != (1,):
        return x
    return emit("row_reduce", [x], x.domain, (), x.dtype, place, x.valid, kind=Enum("reduce_kind", "sum"))


def concat(*parts: ValueLike | Sequence[ValueLike]) -> Value:
    """Rows joined end to end: what a layer over several features takes.

    Written `gr.concat(a, b, c)` or `gr.concat([a, b, c])`. Parts of ancestors are fanned out to the deepest domain
    among the parts; nothing else fans out by itself. A row is null where one of its parts is.

    Shape:
        [d1], [d2], … (a number per row counts as [1]) in, [d1 + d2 + …] out.

    Example:
        >>> user, item = gr.Table("user", dim=16), gr.Table("item", dim=8)
        >>> gr.concat(user(batch.user), item(batch.impression.item), batch.impression.seconds)
        <[25] float32, one per 'impression'>
    """
    place = find_place()
    given, paths = listed(parts)
    if not given:
        raise ModelError("gr.concat takes at least one part", place)
    values = [
        as_value(part, place.part(*path), what=f"part {i} of gr.concat")
        for i, (part, path) in enumerate(zip(given, paths, strict=True))
    ]
    deepest = values[0].domain
    for value in values:
        if value.domain is not None and (deepest is None or value.domain._is_below(deepest)):
            deepest = value.domain
    for i, value in enumerate(values):
        same_dtype("concat", values[0], value, place, (paths[0], paths[i]))
        if deepest is not None and value.domain is not deepest:
            if value.domain is None:
                raise ModelError(
                    "gr.concat joins rows, but this part is shared by all rows", place.part(*paths[i]), value._label()
                )
            if not deepest._is_below(value.domain):
                other = next(v for v in values if v.domain is deepest)
                raise mixing("concat", value, other, place.part(*paths[i]), place)
            values[i] = moves.fanout(value, deepest, place.part(*paths[i]))
    width = sum(value.shape[0] if value.shape else 1 for value in values)
    if len(values) == 1 and values[0].shape:
        return values[0]
    return emit("concat_columns", values, deepest, (width,), values[0].dtype, place, both_valid(*values))
