"""Ops on lists: padding, pairs of two lists of one parent, and tiling into a row of the parent."""

from genrec import methods
from genrec.domain import Domain, Padding, Pairing
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.moves import derive
from genrec.recording import Enum
from genrec.rules import counted
from genrec.source import Place, find_place
from genrec.value import Value


@methods.define
def pad_domain(domain: Domain, count: int, side: str, place: Place) -> Domain:
    """The one domain with at least `count` rows in each list of `domain`."""
    if domain._parent is None:
        raise ModelError(
            f"'{domain._name}' is a root: its rows are in no list that could be padded", place.part("self"), "",
            "pad a list, such as batch.history",
        )  # fmt: skip
    count = counted(count, "the count of pad", place.part(0))
    if side not in ("front", "back"):
        raise ModelError(f"pad adds rows at the 'front' or the 'back', not at '{side}'", place.part("side"))
    key = ("pad", domain._symbol, count, side)
    cache = domain._recording.cache
    if key not in cache:
        name = place.name if place.name.isidentifier() else f"{domain._name}_padded_{count}"
        option = "" if side == "back" else ', side="front"'
        expression = place.name or f"{domain._expression}.pad({count}{option})"
        cache[key] = domain._derive(name, domain._parent, Padding(domain, count, side), expression)
    return cache[key]


@methods.define
def pad(x: Value, count: int, side: str) -> Value:
    """`x` in the domain that padding its own makes: null (and 0) in the new rows."""
    place = find_place()
    if x.domain is None:
        raise ModelError("pad takes lists of rows, but this value is shared", place.part("self"), x._label())
    return derive(x, pad_domain(x.domain, count, side, place.named("")), place)


def pairs(first: Domain, second: Domain) -> Domain:
    """All pairs of two lists of one parent, as a derived domain: below each row of `first` lie the rows of `second`
    with the same parent row. Values of `first` come in by `x.fanout(pairs)`, values of `second` by `x.beside(pairs)`;
    pools lead back to `first`.

    Shape:
        two lists in, a domain out.

    Raises:
        ModelError: the lists have no common parent.

    Example:
        >>> both = gr.pairs(batch.impression, batch.history)
        >>> same = batch.impression.item.fanout(both) == batch.history.item.beside(both)
        >>> seen_before = same.astype(gr.float32).sum()
        >>> seen_before
        <float32, one per 'impression'>
    """
    place = find_place()
    for i, domain in enumerate((first, second)):
        if not isinstance(domain, Domain):
            raise ModelError(f"gr.pairs takes two lists, got {type(domain).__name__}", place.part(i))
        if domain._parent is None:
            raise ModelError(
                f"gr.pairs takes two lists of one parent, but '{domain._name}' is a root", place.part(i), "",
                "fan its values out instead: x.fanout(...)",
            )  # fmt: skip
    if first._parent is not second._parent:
        raise ModelError(
            f"gr.pairs takes two lists of one parent, but '{first._name}' is a list of '{first._parent._name}' and "
            f"'{second._name}' of '{second._parent._name}'",
            place,
        )
    key = ("pairs", first._symbol, second._symbol)
    cache = first._recording.cache
    if key not in cache:
        name = place.name if place.name.isidentifier() else f"{first._name}_by_{second._name}"
        expression = place.name or f"gr.pairs({first._expression}, {second._expression})"
        cache[key] = first._derive(name, first, Pairing(first, second), expression)
    return cache[key]


@methods.define
def beside(x: Value, domain: Domain, place: Place | None = None) -> Value:
    """`x` of the second list, per pair."""
    place = place or find_place()
    origin = domain._origin if isinstance(domain, Domain) else None
    if not isinstance(origin, Pairing):
        raise ModelError("'beside' brings values into pairs, which gr.pairs makes", place.part(0))
    if x.domain is not origin.second:
        help = "it is the first half: fan it out, x.fanout(pairs)" if x.domain is origin.first else ""
        raise ModelError(
            f"'beside' takes rows of '{origin.second._name}', the second half of the pairs", place.part("self"),
            x._label(), help,
        )  # fmt: skip
    if x.dtype.name == "string":
        raise ModelError("'beside' cannot move strings", place.part("self"), x._label(), "hash them first")
    key = ("beside", x._result, domain._symbol)
    cache = x._recording.cache
    if key not in cache:
        valid = beside(x.valid, domain, place.named("valid")) if x.valid is not None else None
        cache[key] = emit("pair_rows", [x, domain], domain, x.shape, x.dtype, place, valid)
    return cache[key]


@methods.define
def tile(x: Value, count: int, keep: str) -> Value:
    """The first (or last) `count` rows of each list end to end, as one row of the parent."""
    place = find_place()
    if x.domain is None or x.domain._parent is None:
        raise ModelError("'tile' puts lists side by side, but these rows are in none", place.part("self"), x._label())
    if x.dtype.name == "string":
        raise ModelError("'tile' cannot move strings", place.part("self"), x._label(), "hash them first")
    count = counted(count, "the count of tile", place.part(0))
    if keep not in ("first", "last"):
        raise ModelError(f"'tile' keeps the 'first' or the 'last' rows, not '{keep}'", place.part("keep"))
    parent = x.domain._parent
    size = count * (x.shape[0] if x.shape else 1)
    return emit("tile", [x, parent], parent, (size,), x.dtype, place, count=count, keep=Enum("keep", keep))
