"""The ops that read columns and move values between row domains.

Moving a value into a domain is recorded once: `batch.history.movie.truncate(200)` is the same value wherever it is
written.
"""

from collections.abc import Sequence
from typing import Any

from genrec import methods
from genrec.domain import Domain, Joining, Padding, Truncation
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.operands import as_value
from genrec.recording import Enum, ValueType
from genrec.rules import common_domain, counted, listed, same_dtype, sizes
from genrec.schema import Feature
from genrec.source import Part, Place, find_place
from genrec.types import element_type, int64
from genrec.value import Value, ValueLike


@methods.define
def feature(domain: Domain, column: Feature, place: Place) -> Value:
    """A column of the data."""
    kind = column.type
    attributes: dict[str, Any] = {"column": column.column}
    if kind.is_nullable:
        attributes["nullable"] = True
    if kind.padding_id is not None:
        attributes["padding_id"] = kind.padding_id
    shape = (kind.size,) if kind.size is not None else ()
    value = emit("feature", [domain], domain, shape, kind.plain, place, **attributes)
    if kind.is_nullable:
        name = place.named(f"{column.name}_valid")
        value.valid = emit("feature_valid", [domain], domain, (), element_type("bool"), name, column=column.column)
    return value


@methods.define
def fanout(x: ValueLike, domain: Domain, place: Place | None = None) -> Value:
    """Each row copied to its descendants in `domain`."""
    place = place or find_place()
    value = as_value(x, place.part("self"))
    if not isinstance(domain, Domain):
        help = "pass the domain itself, such as batch.history"
        raise ModelError(f"fanout takes a row domain, got {type(domain).__name__}", place.part(0), "", help)
    if value.domain is domain:
        return value
    if value.domain is None or not domain._is_below(value.domain):
        rows = f"rows of '{value.domain._name}'" if value.domain is not None else "a shared value"
        below = value.domain is not None and value.domain._is_below(domain)
        raise ModelError(
            f"{rows} cannot be fanned out to '{domain._name}', which does not lie below",
            place.part("self"),
            value._label(),
            "reduce it instead: .sum(), .mean(), .last() …" if below else "",
        )
    key = ("fanout", value._result, domain._symbol)
    cache = value._recording.cache
    if key not in cache:
        valid = fanout(value.valid, domain, place.named("valid")) if value.valid is not None else None
        cache[key] = emit("fanout", [value, domain], domain, value.shape, value.dtype, place, valid)
    return cache[key]


@methods.define
def pool(kind: str, x: Value, to: Domain | None) -> Value:
    """Children reduced to their parent, or, by sum, to any ancestor `to`."""
    place = find_place()
    if kind not in ("sum", "mean", "max", "first", "last"):
        raise ModelError(f"there is no pool '{kind}'", place, "", "use 'sum', 'mean', 'max', 'first' or 'last'")
    if to is not None and not isinstance(to, Domain):
        raise ModelError(
            f"'{kind}' reduces to a row domain, got {type(to).__name__}", place, x._label(),
            f"pass the domain itself, such as batch; along each row: .row_{kind}()",
        )  # fmt: skip
    if x.domain is None or x.domain._parent is None:
        rows = f"'{x.domain._name}' is a root, its rows are in no list" if x.domain is not None else "it is shared"
        help = f"along each row: .row_{kind}()" if x.shape and kind in ("sum", "mean", "max") else ""
        raise ModelError(f"'{kind}' reduces lists of rows, but {rows}", place.part("self"), x._label(), help)
    target = to if to is not None else x.domain._parent
    if target is not x.domain._parent and (kind != "sum" or not x.domain._is_below(target)):
        raise ModelError(
            f"'{kind}' reduces '{x.domain._name}' to its parent '{x.domain._parent._name}', not to '{target._name}'",
            place.part("self"),
            x._label(),
            "reduce level by level; only a sum reaches further up",
        )
    takes = {"mean": x.dtype.is_float, "sum": x.dtype.is_number, "max": x.dtype.is_number}
    if not takes.get(kind, x.dtype.name != "string"):
        raise ModelError(
            f"'{kind}' cannot reduce {x.dtype.name}", place.part("self"), x._label(), "convert it: .astype(gr.float32)"
        )
    kind_attribute = Enum("pool_kind", kind)
    valid = None
    if x.valid is not None and kind in ("first", "last"):
        valid = emit("pool", [x.valid, target], target, (), x.valid.dtype, place.named("valid"), kind=kind_attribute)
    return emit("pool", [x, target], target, x.shape, x.dtype, place, valid, kind=kind_attribute)


@methods.define
def shift(kind: str, x: Value, distance: int) -> Value:
    """`lead` and `lag`: the value some rows later or earlier in the same list."""
    place = find_place()
    if x.domain is None or x.domain._parent is None:
        raise ModelError(f"'{kind}' moves within a list, but these rows are in none", place.part("self"), x._label())
    if x.dtype.name == "string":
        raise ModelError(f"'{kind}' cannot move strings", place.part("self"), x._label(), "hash them first")
    distance = counted(distance, f"the distance of {kind}", place.part(0))

    def record(value: Value, at: Place) -> tuple[Value, Value]:
        rows = ValueType(value._result.type.domain, (), "bool")
        op = value._recording.emit(kind, [value._result], [value._result.type, rows], {"distance": distance}, at)
        moved, valid = op.results
        return (
            Value(value._recording, moved, value.domain, at),
            Value(value._recording, valid, value.domain, at.named(f"{at.name or kind}_valid")),
        )

    moved, valid = record(x, place)
    # A null row stays null after the shift; rows past the end read false, which also means null.
    moved.valid = valid if x.valid is None else record(x.valid, place.named("valid"))[0]
    return moved


@methods.define
def truncate_domain(domain: Domain, count: int, keep: str, place: Place) -> Domain:
    """The one domain that keeps `count` rows of each list of `domain`."""
    parent = domain._parent
    if parent is None:
        raise ModelError(
            f"'{domain._name}' is a root: its rows are in no list that could be truncated", place.part("self"), "",
            "truncate a list, such as batch.history",
        )  # fmt: skip
    count = counted(count, "the count of truncate", place.part(0))
    if keep not in ("first", "last"):
        raise ModelError(f"truncate keeps the 'first' or the 'last' rows, not '{keep}'", place.part("keep"))
    if isinstance(domain._origin, Truncation) and domain._origin.keep == keep:
        # Cutting twice at one end is cutting once.
        if domain._origin.count <= count:
            return domain
        return truncate_domain(domain._origin.source, count, keep, place)
    key = ("truncate", domain._symbol, count, keep)
    cache = domain._recording.cache
    if key not in cache:
        option = "" if keep == "last" else f', keep="{keep}"'
        name = place.name if place.name.isidentifier() else f"{domain._name}_{keep}_{count}"
        expression = place.name or f"{domain._expression}.truncate({count}{option})"
        cache[key] = domain._derive(name, parent, Truncation(domain, count, keep), expression)
    return cache[key]


@methods.define
def truncate(x: Value, count: int, keep: str) -> Value:
    """The rows of `x` that truncating its domain keeps."""
    place = find_place()
    if x.domain is None:
        raise ModelError("truncate takes lists of rows, but this value is shared", place.part("self"), x._label())
    domain = truncate_domain(x.domain, count, keep, place.named(""))
    return derive(_uncut(x, domain, place), domain, place)


def _uncut(x: Value, domain: Domain, place: Place) -> Value:
    """`x` in the domain that `domain` is truncated from. Truncating twice at one end is truncating the source once
    (`truncate_domain`), so `x` is scattered back to the source, with 0 in the rows that the first truncation dropped.
    """
    origin = x.domain._origin if x.domain is not None else None
    if x.domain is domain or not isinstance(origin, Truncation) or not isinstance(domain._origin, Truncation):
        return x
    source = origin.source
    if domain._origin.source is not source:
        return x
    key = ("uncut", x._result)
    cache = x._recording.cache
    if key not in cache:
        valid = None
        if x.valid is not None:
            valid = emit("derive_grad", [x.valid, source], source, (), x.valid.dtype, place.named("valid"))
        cache[key] = emit("derive_grad", [x, source], source, x.shape, x.dtype, place.named(""), valid)
    return cache[key]


@methods.define
def derive(x: Value, domain: Domain, place: Place) -> Value:
    """`x` in a domain that was truncated or padded from its own, in one or more steps. Added rows are null."""
    steps = []
    while domain is not x.domain:
        assert isinstance(domain._origin, Truncation | Padding)
        steps.append(domain)
        domain = domain._origin.source
    for step in reversed(steps):
        x = _derive_once(x, step, place)
    return x


def _derive_once(x: Value, domain: Domain, place: Place) -> Value:
    if isinstance(domain._origin, Padding) and x.dtype.name == "string":
        raise ModelError("pad cannot take strings", place, x._label(), "hash them first, then .pad(...)")
    key = ("derive", x._result, domain._symbol)
    cache = x._recording.cache
    if key not in cache:
        known = all_valid(x, place) if isinstance(domain._origin, Padding) and x.valid is None else x.valid
        valid = None
        if known is not None:
            valid = emit("derive", [known, domain], domain, (), known.dtype, place.named("valid"))
        cache[key] = emit("derive", [x, domain], domain, x.shape, x.dtype, place, valid)
    return cache[key]


@methods.define
def position(domain: Domain, from_end: bool, place: Place) -> Value:
    """Each row's place in its list."""
    key = ("position", domain._symbol, from_end)
    cache = domain._recording.cache
    if key not in cache:
        attributes: dict[str, Any] = {"from_end": True} if from_end else {}
        cache[key] = emit("position", [domain], domain, (), int64, place, **attributes)
    return cache[key]


@methods.define
def length(domain: Domain, place: Place) -> Value:
    """How many rows each list of `domain` has."""
    if domain._parent is None:
        raise ModelError(f"'{domain._name}' is a root: its rows are in no list", place.part("self"))
    key = ("length", domain._symbol)
    cache = domain._recording.cache
    if key not in cache:
        cache[key] = emit("length", [domain], domain._parent, (), int64, place)
    return cache[key]


def concat_rows(*parts: ValueLike | Sequence[ValueLike]) -> Value:
    """Lists joined per parent row: the rows of the first part, then those of the second, and so on, as a value of one
    derived domain. `split_rows` of the result, or of anything computed from it, takes the parts apart again.

    A part may also be of the parent itself, which then gives one row per list; parts that are all of the root give a
    list of one row each. Several values of one row as a list of it: `gr.stack`.

    Shape:
        [d] in every part, [d] out.

    Example:
        >>> user, item = gr.Table("user", dim=16), gr.Table("item", dim=16)
        >>> rows = gr.concat_rows(user(batch.user), item(batch.history.item), item(batch.impression.item))
        >>> rows
        <[16] float32, one per 'rows_rows'>
        >>> _, _, shown = nn.relu(rows).split_rows()
        >>> shown
        <[16] float32, one per 'impression'>
    """
    place = find_place()
    values, paths = _alike("concat_rows", parts, place)
    domains = [value.domain for value in values if value.domain is not None]
    return _join_rows(values, _parent_of_joined(domains, paths, values, place), place)


def stack(*parts: ValueLike | Sequence[ValueLike]) -> Value:
    """The values of a row as a list of it: n values per row of one domain become a list of n rows, in their order,
    below each row. `split_rows` of the result, or of anything computed from it, takes them apart again.

    So fields of equal size go through what works on lists: attention among the fields of a request, a pool over several
    towers. Written `gr.stack(a, b, c)` or `gr.stack([a, b, c])`.

    Shape:
        [d] in every part, [d] out, one row per part.

    Example:
        >>> user, item = gr.Table("user", dim=16), gr.Table("item", dim=16)
        >>> fields = gr.stack(user(batch.user), item(batch.history.item).mean())
        >>> fields
        <[16] float32, one per 'fields_rows'>
        >>> fields.max()
        <[16] float32, one per 'request'>
    """
    place = find_place()
    values, paths = _alike("stack", parts, place)
    domain = common_domain("stack", values, place, paths)
    assert domain is not None
    return _join_rows(values, domain, place)


def _alike(name: str, parts: Sequence[Any], place: Place) -> tuple[list[Value], list[tuple[Part, ...]]]:
    """`parts` as values with domains, of one row size and element type, and the path of each for `Place.part`."""
    given, paths = listed(parts)
    values = [
        as_value(part, place.part(*path), what=f"part {i} of gr.{name}")
        for i, (part, path) in enumerate(zip(given, paths, strict=True))
    ]
    if not values:
        raise ModelError(f"gr.{name} takes at least one part", place)
    for i, value in enumerate(values):
        same_dtype(name, values[0], value, place, (paths[0], paths[i]))
        if value.shape != values[0].shape:
            raise ModelError(
                f"gr.{name} needs rows of one size, got [{sizes(values[0])}] and [{sizes(value)}]",
                place.part(*paths[i]), value._label(),
            )  # fmt: skip
        if value.domain is None:
            raise ModelError(f"gr.{name} joins rows, but this part is shared", place.part(*paths[i]), value._label())
    return values, paths


def _join_rows(values: Sequence[Value], parent: Domain, place: Place) -> Value:
    """`values`, each of `parent` or of a list of it, as one value of the domain that joins them below `parent`."""
    domain = _joined_domain(tuple(value.domain for value in values if value.domain is not None), parent, place)
    result = emit("concat_rows", [*values, domain], domain, values[0].shape, values[0].dtype, place)
    if any(value.valid is not None for value in values):
        known = [value.valid if value.valid is not None else all_valid(value, place) for value in values]
        result.valid = emit("concat_rows", [*known, domain], domain, (), known[0].dtype, place.named("valid"))
    return result


def all_valid(value: Value, place: Place) -> Value:
    """True per row of `value`, a list's: every row's place in its list is at least 0."""
    assert value.domain is not None
    where_ = position(value.domain, False, place.named(""))
    zero = as_value(0, place, like=where_)
    return emit(
        "compare", [where_, zero], value.domain, (), element_type("bool"), place.named("valid"),
        kind=Enum("compare_kind", "ge"),
    )  # fmt: skip


def _parent_of_joined(
    domains: Sequence[Domain], paths: Sequence[tuple[Part, ...]], values: Sequence[Value], place: Place
) -> Domain:
    """The parent of the domain that gr.concat_rows makes: the parent of the lists among the parts; the root if all
    parts are of the root.
    """
    first = domains[0]
    if all(domain is first for domain in domains):
        return first._parent if first._parent is not None else first
    parents = {domain._parent for domain in domains if not any(other._is_below(domain) for other in domains)}
    parent = next(iter(parents)) if len(parents) == 1 else None
    for domain, path, value in zip(domains, paths, values, strict=True):
        if parent is None or (domain is not parent and domain._parent is not parent):
            raise ModelError(
                "gr.concat_rows joins lists of one parent, and the parent itself, but "
                + " and ".join(_whose(one) for one in dict.fromkeys(domains)),
                place.part(*path),
                value._label(),
                "bring the parts to lists of one parent first, with .fanout(...), .sum(), .mean() or .last()",
            )
    assert parent is not None
    return parent


def _whose(domain: Domain) -> str:
    if domain._parent is None:
        return f"'{domain._name}' is a root"
    return f"'{domain._name}' is a list of '{domain._parent._name}'"


def _joined_domain(domains: tuple[Domain, ...], parent: Domain, place: Place) -> Domain:
    key = ("join", parent._symbol, tuple(domain._symbol for domain in domains))
    cache = parent._recording.cache
    if key not in cache:
        names = "_and_".join(dict.fromkeys(domain._name for domain in domains))
        name = f"{place.name}_rows" if place.name.isidentifier() else names
        cache[key] = domains[0]._derive(name, parent, Joining(domains), f"<rows of {names}>")
    return cache[key]


@methods.define
def split_rows(x: Value) -> tuple[Value, ...]:
    """The parts of a value whose domain `concat_rows` made."""
    place = find_place()
    origin = x.domain._origin if x.domain is not None else None
    if not isinstance(origin, Joining):
        raise ModelError(
            "'split_rows' takes apart what gr.concat_rows joined, but these rows were not joined",
            place.part("self"),
            x._label(),
        )

    def part(value: Value, index: int, at: Place, valid: Value | None = None) -> Value:
        source = origin.sources[index]
        return emit("split_rows", [value, source], source, value.shape, value.dtype, at, valid, part=index)

    parts = range(len(origin.sources))
    if x.valid is None:
        return tuple(part(x, index, place) for index in parts)
    return tuple(part(x, index, place, part(x.valid, index, place.named("valid"))) for index in parts)
