"""Transforms of raw columns: ids of ids, of strings and of numbers; numbers brought into shape.

Every function records one op (or a few) at the user's line. Nulls stay null, unless `fill_missing` replaces them.
"""

from collections.abc import Iterable, Sequence

from genrec import lists
from genrec.domain import Domain, Pairing
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.moves import fanout
from genrec.ops import both_valid, cast, maximum, minimum, unary
from genrec.recording import Enum
from genrec.rules import listed, mixing, whole
from genrec.source import Place, find_place
from genrec.types import int64
from genrec.value import Value, ValueLike, as_value, expect_float

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
    """A published hash of an int64 or string, its low `bits` bits (1 to 63) as int64: "xxh3" (XXH3, 64 bits, of the 8
    little-endian bytes or of the string's bytes), "murmur3" (the first 64 bits of MurmurHash3_x64_128) or "farmhash64"
    (FarmHash's Fingerprint64; with a seed, its Hash64WithSeed).
    """
    place = find_place()
    value = _hashable("gr.hash", x, place.part(0))
    _check_hash("gr.hash", bits, kind, seed, place)
    return emit(
        "hash", [value], value.domain, value.shape, int64, place, value.valid,
        kind=Enum("hash_kind", kind), bits=bits, seed=seed,
    )  # fmt: skip


def mod(x: ValueLike, divisor: int) -> Value:
    """The remainder of an integer in [0, divisor); never negative."""
    place = find_place()
    value = as_value(x, place.part(0))
    if not value.dtype.is_integer:
        raise ModelError(f"gr.mod takes integers, got {value.dtype.name}", place.part(0), value._label())
    divisor = whole(divisor, "the divisor of gr.mod", place.part(1))
    if divisor < 1:
        raise ModelError(f"the divisor of gr.mod must be at least 1, got {divisor}", place.part(1))
    value = cast(value, int64, place.named(""))
    return emit("mod", [value], value.domain, value.shape, int64, place, value.valid, divisor=divisor)


def bucketize(x: ValueLike, edges: Iterable[float]) -> Value:
    """The number of `edges` (ascending, at most 4096) that are <= x, as int64: 0 below the first, n from the last on.
    NaN falls into bucket 0.
    """
    place = find_place()
    value = as_value(x, place.part(0))
    if value.dtype.name == "int32":
        value = cast(value, int64, place.named(""))
    if not value.dtype.is_number:
        raise ModelError(f"gr.bucketize takes numbers, got {value.dtype.name}", place.part(0), value._label())
    numbers = tuple(float(edge) for edge in edges)
    falls = next((i for i in range(1, len(numbers)) if not numbers[i] > numbers[i - 1]), None)
    if not 1 <= len(numbers) <= MOST_EDGES:
        raise ModelError(f"gr.bucketize takes 1 to {MOST_EDGES} edges, got {len(numbers)}", place.part(1))
    if falls is not None:
        raise ModelError(
            f"the edges of gr.bucketize must ascend, but {numbers[falls]:g} follows {numbers[falls - 1]:g}",
            place.part(1),
        )
    return emit("bucketize", [value], value.domain, value.shape, int64, place, value.valid, edges=numbers)


def multi_hash(x: ValueLike, bits: int, count: int, kind: str = "xxh3", seed: int = 0) -> Value:
    """`count` hashes of one integer or string per row, with the seeds `seed`, `seed` + 1, …: rows [count] of int64.
    `x[:, i]` is the i-th. For the kinds see `gr.hash`.
    """
    place = find_place()
    value = _hashable("gr.multi_hash", x, place.part(0))
    _check_hash("gr.multi_hash", bits, kind, seed, place)
    count = whole(count, "the count of gr.multi_hash", place.part("count"))
    if count < 1:
        raise ModelError(f"gr.multi_hash gives at least 1 hash, not {count}", place.part("count"))
    if value.shape or value.domain is None:
        raise ModelError("gr.multi_hash takes one value per row", place.part(0), value._label())
    return emit(
        "multi_hash", [value], value.domain, (count,), int64, place, value.valid,
        kind=Enum("hash_kind", kind), bits=bits, seed=seed,
    )  # fmt: skip


def cross(*columns: ValueLike | Sequence[ValueLike], bits: int, kind: str = "xxh3", seed: int = 0) -> Value:
    """One id, of `bits` bits, of two or more columns (integers or strings); their order matters.

    Columns of ancestors are fanned out. Two lists of one parent are crossed pairwise: the result has a row per pair
    (see `gr.pairs`), below the rows of the first list.
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
    """log(1 + x), exact near 0."""
    return unary("log1p", x)


def scale(x: ValueLike, factor: float, offset: float = 0.0) -> Value:
    """x * factor + offset."""
    place = find_place()
    value = as_value(x, place.part(0))
    expect_float(value, "gr.scale", place, 0)
    scaled = value * float(factor)
    return scaled + float(offset) if offset else scaled


def clip(x: ValueLike, low: float | None = None, high: float | None = None) -> Value:
    """The nearest number in [low, high]; a bound that is None does not apply. Gradients pass where x is inside."""
    place = find_place()
    value = as_value(x, place.part(0))
    if not value.dtype.is_number:
        raise ModelError(f"gr.clip takes numbers, got {value.dtype.name}", place.part(0), value._label())
    if low is None and high is None:
        raise ModelError("gr.clip needs a bound", place, "", "pass low=, high= or both")
    if low is not None and high is not None and not low <= high:
        raise ModelError(f"gr.clip needs low <= high, got [{low:g}, {high:g}]", place)
    if low is not None:
        value = maximum(value, low)
    return minimum(value, high) if high is not None else value


def fill_missing(x: ValueLike, value: float) -> Value:
    """`x` with its nulls replaced by `value`; the result has no nulls."""
    place = find_place()
    column = as_value(x, place.part(0))
    if not column.dtype.is_number and column.dtype.name != "bool":
        raise ModelError(f"gr.fill_missing takes numbers, got {column.dtype.name}", place.part(0), column._label())
    if column.valid is None:
        raise ModelError(
            "gr.fill_missing replaces nulls, but this column has none", place.part(0), column._label(),
            "declare the column nullable in the schema: gr.float32.nullable()",
        )  # fmt: skip
    other = as_value(value, place.part(1), like=column)
    return emit("select", [column.valid, column, other], column.domain, column.shape, column.dtype, place)


def sequence_length(rows: Domain) -> Value:
    """How many rows each list of a domain has: int64 per row of its parent."""
    place = find_place()
    if not isinstance(rows, Domain):
        raise ModelError("gr.sequence_length takes a list, such as batch.history", place.part(0))
    return rows.length()


def time_delta(later: ValueLike, earlier: ValueLike, unit: float = 1.0, edges: Iterable[float] | None = None) -> Value:
    """The time from `earlier` to `later` (int64 seconds each), negative differences as 0, divided by `unit` seconds
    (3600: hours), as float32; with `edges` (in units) the number of its bucket, as `gr.bucketize` counts them.
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
