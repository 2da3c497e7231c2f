"""Transforms of raw columns: ids of strings, wide ids and numbers; scaling and clipping of numbers; nulls.

Every function records one op (or a few) at the user's line. Nulls stay null, unless `fill_missing` replaces them.
"""

import math
from collections.abc import Iterable, Sequence

from genrec import lists
from genrec.domain import Domain, Pairing
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.moves import fanout
from genrec.operands import as_value, expect_float
from genrec.ops import both_valid, cast, maximum, minimum, unary
from genrec.recording import Enum
from genrec.rules import counted, listed, mixing, whole
from genrec.source import Place, find_place
from genrec.types import int64
from genrec.value import Value, ValueLike

MOST_EDGES = 4096
HASHES = ("xxh3", "murmur3", "farmhash64")


# -- ids ---------------------------------------------------------------------------------------------------------------


def _hashable(what: str, x: ValueLike, place: Place) -> Value:
    """`x` as int64s or strings."""
    value = as_value(x, place)
    if value.dtype.name == "int32":
        value = cast(value, int64, place.named(""))
    if value.dtype.name not in ("int64", "string"):
        raise ModelError(f"{what} takes integers or strings, got {value.dtype.name}", place, value._label())
    return value


def _check_hash(what: str, bits: int, kind: str, seed: int, place: Place) -> None:
    whole(bits, f"the bits of {what}", place.part("bits"))
    whole(seed, f"the seed of {what}", place.part("seed"))
    if not 1 <= bits <= 63:
        raise ModelError(f"{what} gives 1 to 63 bits, not {bits}", place.part("bits"))
    if kind not in HASHES:
        raise ModelError(f"there is no hash '{kind}'", place.part("kind"), "", "use 'xxh3', 'murmur3' or 'farmhash64'")


def hash(x: ValueLike, bits: int, kind: str = "xxh3", seed: int = 0) -> Value:
    """The low `bits` bits of a published hash of ids or strings. It makes table ids of strings and of ids that are too
    wide.

    Nulls stay null. Two inputs may get one hash: with n distinct inputs about n² / 2^(bits + 1) pairs do.

    Args:
        x: integers or strings.
        bits: 1 to 63; a table takes ids of up to its `id_bits` (52 unless given).
        kind: "xxh3" (XXH3, 64 bits, of the 8 little-endian bytes or of the string's bytes), "murmur3" (the first 64
            bits of MurmurHash3_x64_128) or "farmhash64" (FarmHash's Fingerprint64; with a seed, its Hash64WithSeed).
        seed: another seed gives another hash.

    Shape:
        any in, the same out, as int64.

    Example:
        >>> gr.hash(batch.country, bits=40)
        <int64, one per 'request'>
    """
    place = find_place()
    value = _hashable("gr.hash", x, place.part(0))
    _check_hash("gr.hash", bits, kind, seed, place)
    return emit(
        "hash", [value], value.domain, value.shape, int64, place, value.valid,
        kind=Enum("hash_kind", kind), bits=bits, seed=seed,
    )  # fmt: skip


def mod(x: ValueLike, divisor: int) -> Value:
    """The remainder of an integer after division: ids in [0, divisor), never negative. Nulls stay null.

    Args:
        x: integers.
        divisor: at least 1.

    Shape:
        any in, the same out, as int64.

    Example:
        >>> gr.mod(batch.history.item, 1000)
        <int64, one per 'history'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    if not value.dtype.is_integer:
        raise ModelError(f"gr.mod takes integers, got {value.dtype.name}", place.part(0), value._label())
    divisor = counted(divisor, "the divisor of gr.mod", place.argument(1, "divisor"))
    value = cast(value, int64, place.named(""))
    return emit("mod", [value], value.domain, value.shape, int64, place, value.valid, divisor=divisor)


def bucketize(x: ValueLike, edges: Iterable[float]) -> Value:
    """The bucket of each number: how many of `edges` are at most x. 0 below the first edge, n from the last of n edges
    on.

    NaN falls into bucket 0; nulls stay null.

    Args:
        x: numbers.
        edges: 1 to 4096 numbers that ascend.

    Shape:
        any in, the same out, as int64.

    Example:
        >>> age = gr.bucketize(batch.age, [18, 30, 50])  # 0: below 18, 1: 18 to 29, 2: 30 to 49, 3: from 50 on
        >>> age
        <int64, one per 'request'>
        >>> gr.Table("age", dim=8)(age)
        <[8] float32, one per 'request'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    if value.dtype.name == "int32":
        value = cast(value, int64, place.named(""))
    if not value.dtype.is_number:
        raise ModelError(f"gr.bucketize takes numbers, got {value.dtype.name}", place.part(0), value._label())
    if not isinstance(edges, Iterable) or isinstance(edges, str):
        raise ModelError(
            f"the edges of gr.bucketize must be a list of numbers, got {edges!r}", place.part(1), "",
            "such as [18, 30, 50]; np.linspace makes equal steps",
        )  # fmt: skip
    numbers = tuple(float(edge) for edge in edges)
    falls = next((i for i in range(1, len(numbers)) if not numbers[i] > numbers[i - 1]), None)
    if any(math.isnan(number) for number in numbers):
        raise ModelError("an edge of gr.bucketize is NaN", place.part(1))
    if not 1 <= len(numbers) <= MOST_EDGES:
        raise ModelError(f"gr.bucketize takes 1 to {MOST_EDGES} edges, got {len(numbers)}", place.part(1))
    if falls is not None:
        raise ModelError(
            f"the edges of gr.bucketize must ascend, but {numbers[falls]:g} follows {numbers[falls - 1]:g}",
            place.part(1),
        )
    return emit("bucketize", [value], value.domain, value.shape, int64, place, value.valid, edges=numbers)


def multi_hash(x: ValueLike, bits: int, count: int, kind: str = "xxh3", seed: int = 0) -> Value:
    """Several hashes of one id, with the seeds `seed`, `seed` + 1, …: ids that share one hash rarely share all of them.

    Args:
        x: an integer or string per row.
        bits: of each hash, 1 to 63.
        count: how many hashes, at least 1.
        kind: as in `gr.hash`.
        seed: of the first.

    Shape:
        [] in, [count] out, as int64.

    Example:
        >>> ids = gr.multi_hash(batch.user, bits=16, count=2)
        >>> small = [gr.Table(f"user_{i}", dim=8) for i in range(2)]
        >>> small[0](ids[:, 0]) + small[1](ids[:, 1])
        <[8] float32, one per 'request'>
    """
    place = find_place()
    value = _hashable("gr.multi_hash", x, place.part(0))
    _check_hash("gr.multi_hash", bits, kind, seed, place)
    count = counted(count, "the count of gr.multi_hash", place.part("count"))
    if value.shape or value.domain is None:
        raise ModelError("gr.multi_hash takes one value per row", place.part(0), value._label())
    return emit(
        "multi_hash", [value], value.domain, (count,), int64, place, value.valid,
        kind=Enum("hash_kind", kind), bits=bits, seed=seed,
    )  # fmt: skip


def cross(*columns: ValueLike | Sequence[ValueLike], bits: int, kind: str = "xxh3", seed: int = 0) -> Value:
    """One id of two or more columns, whose order matters: a feature cross.

    Columns of ancestors are fanned out. Two lists of one parent are crossed pairwise: the result has a row per pair
    (see `gr.pairs`), below the rows of the first list. Null where any column is.

    Args:
        columns: integers or strings, one by one or as one list.
        bits: of the id, 1 to 63.
        kind: as in `gr.hash`.
        seed: another seed gives another id.

    Shape:
        any, all equal, and the same out, as int64.

    Example:
        >>> gr.cross(batch.country, batch.history.item, bits=40)
        <int64, one per 'history'>
        >>> gr.cross(batch.impression.item, batch.history.item, bits=40)
        <int64, one per 'impression_by_history'>
    """
    place = find_place()
    given, paths = listed(columns)
    _check_hash("gr.cross", bits, kind, seed, place)
    if len(given) < 2:
        raise ModelError(f"gr.cross takes two or more columns, got {len(given)}", place)
    values = [_hashable("gr.cross", one, place.part(*path)) for one, path in zip(given, paths, strict=True)]
    parts = [place.part(*path) for path in paths]
    domain = _crossed_domain(values, parts, place)
    moved = [_into(value, domain, part) for value, part in zip(values, parts, strict=True)]
    shape = next((value.shape for value in moved if value.shape), ())
    for value, part in zip(moved, parts, strict=True):
        if value.shape != shape:
            raise ModelError("gr.cross needs columns of one row size", part, value._label())
    ids = [
        emit(
            "hash", [value], value.domain, value.shape, int64, part.named(""), value.valid,
            kind=Enum("hash_kind", kind), bits=63, seed=seed,
        )
        if value.dtype.name == "string"
        else value
        for value, part in zip(moved, parts, strict=True)
    ]  # fmt: skip
    return emit(
        "cross",
        ids,
        domain,
        shape,
        int64,
        place,
        both_valid(*moved),
        kind=Enum("hash_kind", kind),
        bits=bits,
        seed=seed,
    )


def _crossed_domain(values: Sequence[Value], parts: Sequence[Place], place: Place) -> Domain:
    """The deepest domain of `values`, or the pairs of two lists of one parent."""
    deepest: Value | None = None
    for value, part in zip(values, parts, strict=True):
        if value.domain is None:
            raise ModelError("gr.cross takes columns, but this value is shared by all rows", part, value._label())
        if deepest is None or deepest.domain is None or value.domain._is_below(deepest.domain):
            deepest = value
    assert deepest is not None and deepest.domain is not None
    domain = deepest.domain
    for value, part in zip(values, parts, strict=True):
        other = value.domain
        if other is None or other is domain or domain._is_below(other) or _is_half(other, domain):
            continue
        if isinstance(domain._origin, Pairing) or domain._parent is None or other._parent is not domain._parent:
            raise mixing("cross", value, deepest, part, place)
        domain = lists.pairs(domain, other)
    return domain


def _is_half(domain: Domain, pairs: Domain) -> bool:
    return isinstance(pairs._origin, Pairing) and domain in (pairs._origin.first, pairs._origin.second)


def _into(value: Value, domain: Domain, place: Place) -> Value:
    origin = domain._origin
    if isinstance(origin, Pairing) and value.domain is origin.second and value.domain is not origin.first:
        return lists.beside(value, domain, place.named(""))
    return fanout(value, domain, place.named("")) if value.domain is not domain else value


# -- numbers -----------------------------------------------------------------------------------------------------------


def log1p(x: ValueLike) -> Value:
    """log(1 + x), exact near 0, for counts and prices.

    Shape:
        any in, the same out.

    Example:
        >>> gr.log1p(batch.history.price)
        <float32, one per 'history'>
    """
    return unary("log1p", x)


def scale(x: ValueLike, factor: float, offset: float = 0.0) -> Value:
    """x * factor + offset.

    Args:
        x: floats.
        factor: what they are multiplied with.
        offset: what is added then.

    Shape:
        any in, the same out.

    Example:
        >>> gr.scale(batch.history.price, 0.01)
        <float32, one per 'history'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    expect_float(value, "gr.scale", place, 0)
    scaled = value * float(factor)
    return scaled + float(offset) if offset else scaled


def clip(x: ValueLike, low: float | None = None, high: float | None = None) -> Value:
    """The nearest number in [low, high]. Gradients pass where x is inside.

    Args:
        x: numbers.
        low: the least; None for no bound.
        high: the greatest; None for no bound.

    Shape:
        any in, the same out.

    Example:
        >>> gr.clip(batch.impression.seconds, 0.0, 60.0)
        <float32, one per 'impression'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    if not value.dtype.is_number:
        raise ModelError(f"gr.clip takes numbers, got {value.dtype.name}", place.part(0), value._label())
    if low is None and high is None:
        raise ModelError("gr.clip needs a bound", place, "", "pass low=, high= or both")
    if low is not None and high is not None and not low <= high:
        raise ModelError(f"gr.clip needs low <= high, got [{low:g}, {high:g}]", place)
    if low is not None:
        value = maximum(value, as_value(low, place.argument(1, "low"), like=value))
    return minimum(value, as_value(high, place.argument(2, "high"), like=value)) if high is not None else value


def fill_missing(x: ValueLike, value: float) -> Value:
    """`x` with its nulls replaced; the result has no nulls.

    Args:
        x: a column that is nullable in the schema (`gr.float32.nullable()`), or a value computed from one.
        value: the replacement.

    Shape:
        any in, the same out.

    Raises:
        ModelError: the column has no nulls to replace.

    Example:
        >>> gr.fill_missing(batch.age, 0.0)
        <float32, one per 'request'>
    """
    place = find_place()
    column = as_value(x, place.part(0))
    if not column.dtype.is_number and column.dtype.name != "bool":
        raise ModelError(f"gr.fill_missing takes numbers, got {column.dtype.name}", place.part(0), column._label())
    if column.valid is None:
        raise ModelError(
            "gr.fill_missing replaces nulls, but this column has none", place.part(0), column._label(),
            "declare the column nullable in the schema: gr.float32.nullable()",
        )  # fmt: skip
    other = as_value(value, place.argument(1, "value"), like=column)
    return emit("select", [column.valid, column, other], column.domain, column.shape, column.dtype, place)


def sequence_length(rows: Domain) -> Value:
    """How many rows each list of a domain has; `rows.length()` is the same.

    Shape:
        [] per row of the parent, as int64.

    Example:
        >>> gr.sequence_length(batch.history)
        <int64, one per 'request'>
    """
    place = find_place()
    if not isinstance(rows, Domain):
        raise ModelError("gr.sequence_length takes a list, such as batch.history", place.part(0))
    return rows.length()


def time_delta(later: ValueLike, earlier: ValueLike, unit: float = 1.0, edges: Iterable[float] | None = None) -> Value:
    """The time between two events, in units of your choice; negative differences count as 0.

    Args:
        later: int64 seconds, as timestamps are read.
        earlier: the same.
        unit: seconds of a unit (3600: hours).
        edges: in units; with them the result is the number of the difference's bucket, as `gr.bucketize` counts.

    Shape:
        [] and [] of one domain, [] out: float32, or int64 with `edges`.

    Example:
        >>> now = batch.time.fanout(batch.history)
        >>> gr.time_delta(now, batch.history.time, unit=3600)
        <float32, one per 'history'>
        >>> gr.time_delta(now, batch.history.time, unit=3600, edges=[1, 24, 168])
        <int64, one per 'history'>
    """
    place = find_place()
    if not unit > 0:
        raise ModelError(f"the unit of gr.time_delta must be greater than 0 seconds, got {unit:g}", place.part("unit"))
    times = [as_value(one, place.part(i)) for i, one in enumerate((later, earlier))]
    for i, time in enumerate(times):
        if time.dtype.name != "int64":
            raise ModelError("gr.time_delta takes times, int64 seconds", place.part(i), time._label())
    seconds = maximum(times[0] - times[1], 0)
    if edges is not None:
        # Whole seconds are exact as f64, where the edges are; a float32 of years is not.
        return bucketize(seconds, [float(edge) * unit for edge in edges])
    value = cast(seconds, "float32", place.named(""))
    return value * (1.0 / unit) if unit != 1 else value
