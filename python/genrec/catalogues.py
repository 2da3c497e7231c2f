"""Item catalogues: the items that exist, each with its features."""

import os
from collections.abc import Callable, Iterable, Iterator
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from genrec import methods
from genrec.domain import Domain
from genrec.emit import emit
from genrec.errors import DataError, ModelError
from genrec.files import files_of, reading_parquet
from genrec.ops import as_ids, is_trained
from genrec.recording import DomainDeclaration, ValueType, current
from genrec.schema import Schema
from genrec.source import Place, find_place
from genrec.table import Normalized, Table
from genrec.types import int64
from genrec.value import Value, ValueLike

Items = Table | Normalized | Callable[[Value], Value] | Value
"""The vectors of a catalogue's items: a table (normalised or not), any function of ids, or rows of the catalogue."""


class Catalogue:
    """A Parquet file with one row per item: the set of items for negatives, `gr.top_k` and ranking metrics.

    `id` names the column of item ids (distinct int64); without it the file's only integer column is taken. `name` is
    used by `--catalogue name=file` of a compiled binary; the file's stem unless given. Columns are features of the
    items: `items.price`; lists are domains below them: `items.tags.value.mean()`. `items.price[batch.history.item]` is
    a column by the ids of other rows. `nullable` names the features (dotted paths) in which nulls are allowed. `schema`
    gives the columns by hand, for a file that does not exist yet.

    Example:
        >>> items = gr.Catalogue("items.parquet", id="item")
        >>> items.price
        <float64, one per 'items'>
        >>> items.price[batch.history.item]
        <float64, one per 'history'>
    """

    def __init__(
        self,
        path: str | PathLike[str],
        id: str | None = None,
        name: str | None = None,
        schema: Schema | None = None,
        nullable: Iterable[str] = (),
    ) -> None:
        if schema is not None and nullable:
            raise ValueError("'nullable' cannot act beside 'schema', which says where nulls are allowed")
        self._path = fspath(path)
        self._name = name or Path(self._path).stem
        # The file of a schema that is given may come later.
        self._rows = _count_rows(self._path) if schema is None or os.path.exists(self._path) else None
        self._schema = schema or Schema.from_parquet(path, root=self._name, nullable=nullable)
        self._id = id or self._only_id()
        self._place = find_place()
        feature = self._schema.root.features.get(self._id)
        if self._id in self._schema.root.left_out:
            raise DataError(f"{self._path}: the id column '{self._id}': {self._schema.root.left_out[self._id].reason}")
        if feature is None or not feature.type.is_integer:
            columns = ", ".join(self._schema.root.features) or "none"
            kind = f"there is no such column; the columns are {columns}" if feature is None else f"it is {feature.type}"
            raise DataError(f"{self._path}: the id column '{self._id}' must be an integer column, but {kind}")

    def __repr__(self) -> str:
        return f"<catalogue '{self._name}' of {self._path}>"

    def _only_id(self) -> str:
        integers = [name for name, feature in self._schema.root.features.items() if feature.type.is_integer]
        if len(integers) == 1:
            return integers[0]
        raise DataError(
            f"{self._path}: which column holds the item ids? name it: gr.catalogue(..., id=...); "
            f"integer columns are {', '.join(integers) or 'none'}"
        )

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return domain_of(self)._member(name)

    def __getitem__(self, name: str) -> Any:
        """The feature or list called `name`, of rows of the catalogue."""
        return domain_of(self)._member(name)

    def __iter__(self) -> Iterator[str]:
        """The names of the features and lists."""
        return iter([*self._schema.root.features, *self._schema.root.children])


def catalogue(
    path: str | PathLike[str],
    id: str | None = None,
    name: str | None = None,
    schema: Schema | None = None,
    nullable: Iterable[str] = (),
) -> Catalogue:
    """The items in a Parquet file; see `Catalogue`.

    Example:
        >>> items = gr.catalogue("items.parquet", id="item")
        >>> list(items)
        ['item', 'price']
    """
    return Catalogue(path, id, name, schema, nullable)


def _count_rows(path: str) -> int:
    import pyarrow.parquet as pq

    rows = 0
    for file in files_of(path):
        with reading_parquet(file):
            rows += pq.read_metadata(file).num_rows
    return rows


def expect_catalogue(source: object, what: str, place: Place, position: int) -> Catalogue:
    """`source` itself, argument `position` (or `catalogue=`) of the call at `place`. Raises `ModelError` unless it is a
    catalogue.
    """
    if isinstance(source, Catalogue):
        return source
    place = place.argument(position, "catalogue")
    if isinstance(source, str | PathLike):
        help = f"make one of the file, in the model's __init__: gr.catalogue({fspath(source)!r}, id=...)"
        raise ModelError(f"{what} takes a catalogue, got the path {fspath(source)!r}", place, "", help)
    help = "a catalogue is made of a file of items, in the model's __init__: gr.catalogue(..., id=...)"
    raise ModelError(f"{what} takes a catalogue, got {type(source).__name__}", place, "", help)


def domain_of(source: Catalogue) -> Domain:
    """The catalogue's rows in the model being recorded."""
    recording = current(f"catalogue '{source._name}'")
    key = ("catalogue", source)
    if key not in recording.cache:
        if source._name in recording.tables or recording.unique_name(source._name, "") != source._name:
            raise ModelError(
                f"the catalogue cannot be named '{source._name}', something else of the model has this name",
                source._place,
                "",
                "give it another: gr.catalogue(..., name=...)",
            )
        recording.declare_domain(
            DomainDeclaration(
                source._name,
                "catalogue",
                source=source._path,
                place=source._place.named(source._name),
                expected_rows=source._rows,
            )
        )
        place = find_place().named(source._name)
        op = recording.emit("catalogue", [], [ValueType(source._name, is_domain=True)], {}, place)
        expression = place.name or "catalogue"
        domain = Domain(recording, source._name, source._schema.root, None, expression, result=op.results[0], reader=op)
        domain._catalogue = source
        recording.cache[key] = domain
    return recording.cache[key]


def ids_of(source: Catalogue) -> Value:
    """The item ids, int64 per row of the catalogue."""
    domain = domain_of(source)
    key = ("catalogue ids", source)
    if key not in domain._recording.cache:
        column = domain._feature(source._schema.root.features[source._id])
        domain._recording.cache[key] = as_ids(column, "a catalogue's ids", find_place())
    return domain._recording.cache[key]


def vectors_of(items: Items, source: Catalogue, place: Place) -> Value:
    """The items' vectors: [d] float32 per row of the catalogue. They are recorded once for the same `items`."""
    domain = domain_of(source)
    if isinstance(items, Value):
        vectors = items
    elif not callable(items):
        raise ModelError(
            f"the items must be a table, a function of ids, or rows of the catalogue, got {type(items).__name__}", place
        )
    else:
        key = ("items", items, source)
        if key not in domain._recording.cache:
            domain._recording.cache[key] = items(ids_of(source))
        vectors = domain._recording.cache[key]
    if vectors.domain is not domain or len(vectors.shape) != 1 or vectors.dtype.name != "float32":
        raise ModelError(f"the items must be rows [d] of floats of catalogue '{source._name}'", place, vectors._label())
    return vectors


def resolve(ids: ValueLike, source: Catalogue, what: str, place: Place, allow_missing: bool = False) -> Value:
    """The catalogue row of each id, int64; -1 where the id is null, and for ids the catalogue lacks where that is
    allowed; else those are an error at run time.
    """
    value = as_ids(ids, what, place)
    key = ("resolve", value._result, source, allow_missing)
    cache = value._recording.cache
    if key not in cache:
        operands = [value, *([value.valid] if value.valid is not None else []), ids_of(source)]
        attributes: dict[str, Any] = {"allow_missing": True} if allow_missing else {}
        cache[key] = emit("resolve", operands, value.domain, (), int64, place.named(""), **attributes)
        cache[key].valid = value.valid
    return cache[key]


@methods.define
def read_by_id(x: Value, ids: ValueLike) -> Value:
    """`x[ids]`: the row of `x`, which is of a catalogue, of each item id; see `Value.__getitem__`."""
    place = find_place()
    source = x.domain._catalogue if x.domain is not None else None
    if source is None:
        inside = x.domain is not None and x.domain._root._catalogue is not None
        raise ModelError(
            "x[ids] reads what a catalogue says about items, but this value is not per item of one",
            place.part("self"),
            x._label(),
            "reduce the lists to their items first: .sum(), .mean(), .first() …" if inside
            else "to take rows use .first(), .last(), .truncate(n), .lead(n) or .lag(n)",
        )  # fmt: skip
    if x.dtype.name == "string":
        raise ModelError(
            "strings cannot be read by id", place.part("self"), x._label(),
            f"hash them for all items first: gr.hash({place.part('self').text or 'x'}, bits=52)[ids]",
        )  # fmt: skip
    if is_trained(x):
        raise ModelError(
            "x[ids] reads features of items, but this value is trained, and no gradient would reach it",
            place.part("self"),
            x._label(),
            "look the ids up in the table itself, table(ids); or read it as it is: gr.detach(x)[ids]",
        )
    rows = resolve(ids, source, "the index of a catalogue's column", place.part("index"))
    key = ("read by id", x._result, rows._result)
    cache = x._recording.cache
    if key not in cache:
        # Row -1, of a null id, reads 0 and, of what is valid, false.
        valid = rows.valid
        if x.valid is not None:
            valid = emit("gather_rows", [x.valid, rows], rows.domain, (), x.valid.dtype, place.named("valid"))
        cache[key] = emit("gather_rows", [x, rows], rows.domain, x.shape, x.dtype, place, valid)
    return cache[key]
