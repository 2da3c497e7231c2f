"""The schema of a dataset: its row domains and their features.

A dataset is a Parquet file with one row per request (or user). A list column opens a child domain, whose rows are the
entries of the lists; its features are the fields of the list's struct, or the entries themselves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from genrec.errors import DataError, quoted
from genrec.files import files_of, reading_parquet
from genrec.types import ElementType, bool_, element_type, float32, float64, int32, int64, string, timestamp

if TYPE_CHECKING:
    import pyarrow as pa

ELEMENT = "value"
"""The name of the only feature of a list of plain values: `batch.interest.value`."""

MOST_DOMAIN_DEPTH = 32
"""How many lists may lie above a row: lists in lists of a schema, and what a model derives of them (`gr.pairs`). Arrow
reads Parquet schemas of up to 100 levels, and a list has three.
"""

Fields = Mapping[str, Any]
"""Feature names to element types, lists (`[{...}]` or `[gr.int64]`) or `parallel(...)`."""


@dataclass(frozen=True)
class Feature:
    """A column of one domain: `column` is its dotted path in the file."""

    name: str
    column: str
    type: ElementType


@dataclass(frozen=True)
class LeftOut:
    """A column of a file that cannot be a feature as it is; `is_null`: null throughout, other files may have a type."""

    reason: str
    help: str
    is_null: bool = False


@dataclass(frozen=True)
class ListSchema:
    """One domain: the features of its rows and the lists in each row. `column` is the list's dotted path ("" at the
    root). `left_out` are columns of the files that are no features.
    """

    name: str
    column: str
    features: dict[str, Feature] = field(default_factory=dict)
    children: dict[str, "ListSchema"] = field(default_factory=dict)
    has_elements: bool = False
    left_out: dict[str, LeftOut] = field(default_factory=dict, compare=False)

    def walk(self) -> "Iterable[ListSchema]":
        """This domain and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.walk()


class parallel(dict[str, Any]):  # noqa: N801 (reads as a word in a schema)
    """Several list columns of one length, seen as the fields of one list: `history=gr.parallel(movie=gr.int64)`.

    The fields are columns of their own beside each other, not fields of a struct.

    Example:
        >>> schema = gr.Schema({"user": gr.int64, "history": gr.parallel(movie=gr.int64, time=gr.timestamp())})
        >>> schema.columns
        ['user', 'movie', 'time']
    """


class Schema:
    """The domains of a dataset and their features.

    By hand, or from a file with `Schema.from_parquet`:

        gr.Schema({
            "user": gr.int64,
            "history": [{"movie": gr.int64, "time": gr.timestamp("s")}],
            "interest": [gr.int64],
            "image": gr.float32.vector(64),
        }, root="user_row")

    `root` names the rows of the file themselves in messages ("one row per request").

    Example:
        >>> schema = gr.Schema({"user": gr.int64, "history": [{"item": gr.int64, "tags": [gr.int64]}]})
        >>> print(schema)
        request
          user: int64
          history
            item: int64
            tags
              value: int64
    """

    def __init__(self, fields: Fields, root: str = "request") -> None:
        if not isinstance(fields, Mapping):
            raise TypeError(f'gr.Schema takes a mapping, {{"user": gr.int64, …}}, got {type(fields).__name__}')
        self.root = _build(root, "", fields)
        self.root_name = root

    @classmethod
    def from_parquet(
        cls,
        *paths: str | PathLike[str],
        root: str = "request",
        nullable: Iterable[str] = (),
        padding: Mapping[str, int] | None = None,
        parallel: Mapping[str, Iterable[str]] | None = None,
    ) -> "Schema":
        """The schema of Parquet files, of which only the footers are read: the union of the columns of `paths`. A file
        may lack a column that its use does not need (labels when predicting, say).

        A path is a file, a folder or a pattern, as `--data` takes them; the files of one folder or pattern are one data
        set, and must have the same columns.

            gr.Schema.from_parquet("train/day=*/", "valid.parquet")

        A column that is null throughout (Arrow's type null) has the type that another of the files has. Without one it
        is left out, as are several columns of one name and columns with a dot in their name: a model that reads them is
        an error that says so.

        `nullable` names the features (dotted paths) in which nulls are allowed, `padding` the id that is padding in a
        list of ids. `parallel={"history": ["movie", "time"]}` makes one domain of several list columns of one length.

        Raises `DataError` for a file that cannot be read, a column of a type that no feature can have, a timestamp
        without zone, files that disagree about a column, files of one folder of which one lacks a column, a folder
        or pattern without files, and names that no file has.

        Example:
            >>> print(gr.Schema.from_parquet("train.parquet", nullable=["impression.clicked"]))
            request
              user: int64
              impression
                item: int64
                clicked: bool, nullable
        """
        if not paths:
            raise ValueError("Schema.from_parquet takes at least one file")
        for path in paths:
            if not isinstance(path, str | PathLike):
                raise TypeError(
                    f"Schema.from_parquet takes paths, one by one, got {type(path).__name__}; a list: *paths"
                )
        if isinstance(nullable, str):
            raise TypeError(f"nullable takes a list of features, [{nullable!r}], got the text {nullable!r}")
        merged: dict[str, Any] = {}
        for path in paths:
            files = files_of(path)
            first = _fields(read_arrow_schema(files[0]), files[0])
            for file in files[1:]:
                _check_same(first, _fields(read_arrow_schema(file), file), files[0], file, "")
            _merge(merged, first, str(path), "")
        return cls._finish(merged, root, nullable, padding, parallel, str(paths[0]))

    @classmethod
    def from_arrow(
        cls,
        schema: "pa.Schema",
        root: str = "request",
        nullable: Iterable[str] = (),
        padding: Mapping[str, int] | None = None,
        parallel: Mapping[str, Iterable[str]] | None = None,
    ) -> "Schema":
        """Like `from_parquet`, of an Arrow schema.

        Example:
            >>> import pyarrow as pa
            >>> print(gr.Schema.from_arrow(pa.schema([("user", pa.int64()), ("interest", pa.list_(pa.int64()))])))
            request
              user: int64
              interest
                value: int64
        """
        source = "the schema"
        return cls._finish(_fields(schema, source), root, nullable, padding, parallel, source)

    @classmethod
    def _finish(
        cls,
        fields: dict[str, Any],
        root: str,
        nullable: Iterable[str],
        padding: Mapping[str, int] | None,
        parallel: Mapping[str, Iterable[str]] | None,
        source: str,
    ) -> "Schema":
        for name, members in (parallel or {}).items():
            fields[name] = _join(name, list(members), fields, source)
        result = cls(fields, root)
        result._change(nullable, padding or {}, source)
        return result

    def _change(self, nullable: Iterable[str], padding: Mapping[str, int], source: str) -> None:
        wanted: dict[str, list[tuple[str, int]]] = {path: [] for path in [*nullable, *padding]}
        for path, identifier in padding.items():
            wanted[path].append(("padding", identifier))
        allowed = set(nullable)
        for domain in self.root.walk():
            for name, feature in domain.features.items():
                written = next((p for p in (feature.column, f"{domain.name}.{name}") if p in wanted), None)
                if written is None:
                    continue
                kind = feature.type.nullable() if written in allowed else feature.type
                for _, identifier in wanted.pop(written):
                    kind = kind.padded(identifier)
                domain.features[name] = replace(feature, type=kind)
        for path in wanted:
            _refuse_left_out(self.root, path)
        if wanted:
            raise DataError(f"{source}: there is no feature {quoted(wanted)}; there are {quoted(self.columns, 20)}")

    @property
    def columns(self) -> list[str]:
        """The dotted paths of all features.

        Example:
            >>> gr.Schema({"user": gr.int64, "history": [{"item": gr.int64}]}).columns
            ['user', 'history.item']
        """
        return [feature.column for domain in self.root.walk() for feature in domain.features.values()]

    def __str__(self) -> str:
        lines: list[str] = []
        _describe(self.root, 0, lines)
        return "\n".join(lines)


def _describe(domain: ListSchema, depth: int, lines: list[str]) -> None:
    lines.append("  " * depth + domain.name)
    lines.extend("  " * (depth + 1) + f"{name}: {feature.type}" for name, feature in domain.features.items())
    lines.extend("  " * (depth + 1) + f"{name} (left out: {one.reason})" for name, one in domain.left_out.items())
    for child in domain.children.values():
        _describe(child, depth + 1, lines)


def _check_depth(depth: int, path: str) -> None:
    """Raises `DataError` for the list at `path` if it lies deeper than lists may."""
    if depth > MOST_DOMAIN_DEPTH:
        where = path if len(path) <= 60 else f"{path[:40]}…{path[-16:]}"
        raise DataError(f"column '{where}' lies in {depth} lists, one in the other; at most {MOST_DOMAIN_DEPTH} can be")


def _build(name: str, column: str, fields: Fields, depth: int = 0) -> ListSchema:
    """The domain `name` whose rows have `fields`; `column` is its list's path, below `depth` - 1 others."""
    _check_depth(depth, column)
    result = ListSchema(name, column)
    for key, value in fields.items():
        if isinstance(value, LeftOut):
            result.left_out[key] = value
            continue
        if not isinstance(key, str) or not key or "." in key:
            raise ValueError(f"the name of a feature must be a string without dots, got {key!r}")
        path = f"{column}.{key}" if column else key
        if isinstance(value, ElementType | str):
            result.features[key] = Feature(key, path, element_type(value))
        elif isinstance(value, parallel):
            result.children[key] = _build_parallel(key, column, value)
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
            result.children[key] = _build(key, path, value[0], depth + 1)
        elif isinstance(value, list) and len(value) == 1 and isinstance(value[0], ElementType | str):
            _check_depth(depth + 1, path)
            child = ListSchema(key, path, has_elements=True)
            child.features[ELEMENT] = Feature(ELEMENT, path, element_type(value[0]))
            result.children[key] = child
        else:
            raise ValueError(
                f"feature {path!r} must be an element type (gr.int64), a list [gr.int64] or [{{...}}], or "
                f"gr.parallel(...), got {value!r}{_meant(value)}"
            )
    return result


_PYTHON_TYPES = {int: "gr.int64", float: "gr.float32", str: "gr.string", bool: "gr.bool_"}


def _meant(value: object) -> str:
    """What to write for a wrong feature of a schema."""
    if isinstance(value, type) and value in _PYTHON_TYPES:
        return f"; write {_PYTHON_TYPES[value]}"
    if isinstance(value, Mapping):
        return "; a list of rows with these fields is [{...}]"
    if isinstance(value, list | tuple) and value:
        return f"; a list has one kind of entries: [{value[0]!r}]"
    return ""


def _build_parallel(name: str, column: str, fields: parallel) -> ListSchema:
    paths = [f"{column}.{key}" if column else key for key in fields]
    if not paths:
        raise ValueError(f"gr.parallel of {name!r} names no column")
    result = ListSchema(name, paths[0])
    for (key, value), path in zip(fields.items(), paths, strict=True):
        result.features[key] = Feature(key, path, element_type(value))
    return result


def _join(name: str, members: list[str], fields: dict[str, Any], source: str) -> parallel:
    """Takes the list columns `members` out of `fields` and makes one `parallel` of them."""
    joined = parallel()
    for member in members:
        value = fields.pop(member, None)
        if not (isinstance(value, list) and isinstance(value[0], ElementType)):
            raise DataError(f"{source}: column '{member}' of parallel '{name}' must be a list of plain values")
        joined[member] = value[0]
    return joined


def _fields(schema: "Iterable[pa.Field]", source: str, prefix: str = "", depth: int = 0) -> dict[str, Any]:
    """The fields of a file, or of a struct in `depth` lists."""
    fields: dict[str, Any] = {}
    for entry in schema:
        path = f"{prefix}{entry.name}"
        if not entry.name or "." in entry.name:
            help = "names of features have no dots, which part the steps of a path: give it another when writing data"
            kind = "no name" if not entry.name else "a dot in its name"
            fields[entry.name] = LeftOut(f"column '{path}' of {source} has {kind}", help)
        elif entry.name in fields:
            help = "which one is meant cannot be told: give them different names when the data is written"
            fields[entry.name] = LeftOut(f"{source} has several columns '{path}'", help)
        else:
            fields[entry.name] = _field(entry.type, path, source, depth)
    return fields


def _with_left_out(known: Any, kind: Any) -> Any:
    """What two files say of a column that one of them leaves out: the type of the other, if it is null throughout."""
    unusable = next((one for one in (known, kind) if isinstance(one, LeftOut) and not one.is_null), None)
    return unusable or (kind if isinstance(known, LeftOut) else known)


def _refuse_left_out(domain: ListSchema, path: str) -> None:
    """Raises `DataError` where `path` names a column that was left out."""
    for below in domain.walk():
        name = path.removeprefix(f"{below.column}.") if below.column else path
        if name in below.left_out:
            one = below.left_out[name]
            raise DataError(f"{one.reason}\n  help: {one.help}")


def _merge(into: dict[str, Any], other: dict[str, Any], source: str, prefix: str) -> None:
    """Adds the fields of another file to `into`."""
    for name, kind in other.items():
        known = into.setdefault(name, kind)
        if isinstance(known, LeftOut) or isinstance(kind, LeftOut):
            into[name] = _with_left_out(known, kind)
            continue
        both_structs = all(isinstance(one, list) and isinstance(one[0], dict) for one in (known, kind))
        if both_structs:
            _merge(known[0], kind[0], source, f"{prefix}{name}.")
        elif known != kind:
            raise DataError(f"{source}: column '{prefix}{name}' has another type than in the files before it")


def _check_same(first: dict[str, Any], other: dict[str, Any], path: str, other_path: str, prefix: str) -> None:
    """Raises `DataError` unless the files of one data set have the same fields. A column that is null throughout gets
    the type that the other has.
    """
    for name in [*first, *other]:
        if name not in first or name not in other:
            lacks, has = (path, other_path) if name not in first else (other_path, path)
            raise DataError(f"{lacks}: has no column '{prefix}{name}', which {has} of the same data has")
        known, kind = first[name], other[name]
        if isinstance(known, LeftOut) or isinstance(kind, LeftOut):
            first[name] = _with_left_out(known, kind)
            continue
        if all(isinstance(one, list) and isinstance(one[0], dict) for one in (known, kind)):
            _check_same(known[0], kind[0], path, other_path, f"{prefix}{name}.")
        elif known != kind:
            raise DataError(f"{other_path}: column '{prefix}{name}' has another type than in {path}")


def read_arrow_schema(path: str | PathLike[str]) -> "pa.Schema":
    """The Arrow schema in a Parquet file's footer. Raises `DataError` when the file cannot be read."""
    import pyarrow.parquet as pq

    with reading_parquet(path):
        return pq.read_schema(path)


# Element types by the names of pyarrow's type tests. A double stays a double: conversion to float would lose digits
# unasked.
_ARROW_TYPES = (
    ("boolean", bool_), ("int64", int64), ("uint64", int64), ("uint32", int64), ("int32", int32), ("uint16", int32),
    ("int16", int32), ("uint8", int32), ("int8", int32), ("float16", float32), ("float32", float32),
    ("float64", float64), ("string", string), ("large_string", string), ("binary", string), ("large_binary", string),
    ("fixed_size_binary", string), ("date", timestamp()),
)  # fmt: skip


def _is_plain_float(kind: ElementType) -> bool:
    return kind.is_float and kind.size is None


def _field(kind: "pa.DataType", path: str, source: str, depth: int = 0) -> Any:
    """A column's type as an entry of `Fields`; `depth` lists lie above it."""
    import pyarrow as pa

    _check_depth(depth, path)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        entry = kind.value_type
        if pa.types.is_struct(entry):
            return [_fields(entry, source, f"{path}.", depth + 1)]
        inner = _field(entry, path, source, depth + 1)
        if isinstance(inner, LeftOut):
            return inner
        if pa.types.is_fixed_size_list(kind) and isinstance(inner, ElementType) and _is_plain_float(inner):
            return inner.vector(kind.list_size)
        if isinstance(inner, list):
            raise DataError(f"{source}: column '{path}' is a list of lists; put the inner list into a struct")
        return [inner]
    if pa.types.is_null(kind):
        help = 'write it with its type, or give a schema by hand: gr.Schema({..., "x": gr.int64.nullable()})'
        return LeftOut(f"column '{path}' of {source} is null throughout, without a type of its own", help, True)
    if pa.types.is_dictionary(kind):
        return _field(kind.value_type, path, source, depth)
    if pa.types.is_timestamp(kind):
        if kind.tz is None:
            raise DataError(
                f"{source}: column '{path}' is a timestamp without time zone; write it with one (UTC), or as seconds"
            )
        return timestamp(kind.unit)
    for test, result in _ARROW_TYPES:
        if getattr(pa.types, f"is_{test}")(kind):
            return result
    raise DataError(f"{source}: column '{path}' has type {kind}, which no feature can have; cast it when writing")
