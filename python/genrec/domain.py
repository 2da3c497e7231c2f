"""Row domains: a batch, its lists, domains derived from them (truncated, padded, paired, joined), catalogues."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from genrec import methods
from genrec import recording as rec
from genrec.errors import FeatureError, ModelError, quoted
from genrec.hints import OF_DOMAINS
from genrec.recording import DomainDeclaration, Enum, Op, Recording, Result, ValueType
from genrec.schema import ELEMENT, MOST_DOMAIN_DEPTH, Feature, ListSchema
from genrec.source import find_place

if TYPE_CHECKING:
    from genrec.catalogues import Catalogue
    from genrec.types import ElementType
    from genrec.value import Value


@dataclass(frozen=True)
class Truncation:
    """A truncated domain: of each list of `source` at most the `keep` ("last" or "first") `count` rows."""

    source: "Domain"
    count: int
    keep: str


@dataclass(frozen=True)
class Padding:
    """A padded domain: at least `count` rows per list of `source`, with new rows at its `side`."""

    source: "Domain"
    count: int
    side: str


@dataclass(frozen=True)
class Pairing:
    """A domain of pairs: per row of `first`, the rows of `second` with the same parent row."""

    first: "Domain"
    second: "Domain"


@dataclass(frozen=True)
class Joining:
    """A joined domain: per parent row, the rows of each source in turn."""

    sources: tuple["Domain", ...]


_OF_VALUES = ("sum", "mean", "max", "first", "last", "pool", "lead", "lag", "tile")
"""Methods of values that are easily called on a list instead."""

Origin = Truncation | Padding | Pairing | Joining


class Domain:
    """A row domain: the rows of a batch (`batch` itself), of a list in it (`batch.history`), or of a derived domain.

    Features are attributes (`batch.history.movie`) or items (`batch["history"]["movie"]`, for names that are also
    methods). A list is a domain of its own. One model holds each domain once: truncating the same list twice in the
    same way gives the same domain.

    Example:
        >>> batch.history
        <rows of 'history'>
        >>> batch.history.item
        <int64, one per 'history'>
        >>> "item" in batch.history, list(batch.impression)
        (True, ['item', 'clicked', 'seconds'])
        >>> batch["history"]["item"] is batch.history.item
        True
    """

    def __init__(
        self,
        recording: Recording,
        name: str,
        schema: ListSchema | None,
        parent: "Domain | None",
        expression: str,
        origin: Origin | None = None,
        result: Result | None = None,
        reader: Op | None = None,
    ) -> None:
        self._recording = recording
        self._name = name
        self._schema = schema
        self._parent = parent
        self._expression = expression
        self._origin = origin
        self._known_result = result
        # How many lists lie above.
        self._depth: int = parent._depth + 1 if parent is not None else 0
        # The op that reads the rows of a root and of the lists below it.
        self._reader = reader
        # The catalogue whose rows these are; None for all other rows.
        self._catalogue: Catalogue | None = None

    def __repr__(self) -> str:
        return f"<rows of '{self._name}'>"

    # -- features ------------------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self._member(name)

    def __getitem__(self, name: str) -> Any:
        """The feature or list called `name`, also where that is the name of a method.

        Shape:
            [] of a feature.
        """
        return self._member(name)

    def __contains__(self, name: str) -> bool:
        """True when there is a feature or list called `name`."""
        schema = self._feature_schema()
        return schema is not None and (name in schema.features or name in schema.children)

    def __iter__(self) -> Iterator[str]:
        """The names of the features and lists."""
        schema = self._feature_schema()
        return iter([*schema.features, *schema.children] if schema else [])

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self]

    def _feature_schema(self) -> ListSchema | None:
        return self._uncut()._schema

    def _uncut(self) -> "Domain":
        """The domain that this one was truncated or padded from, in any number of steps; else itself."""
        domain = self
        while isinstance(domain._origin, Truncation | Padding):
            domain = domain._origin.source
        return domain

    def _member(self, name: str) -> Any:
        if not isinstance(name, str):
            raise ModelError(
                f"features of '{self._name}' are called by their names, not by {name!r}",
                find_place(),
                "",
                f"{self._expression}.<feature>; rows are taken by .truncate(n), columns of a value by x[:, a:b]",
            )
        schema = self._feature_schema()
        if schema is None:
            raise FeatureError(
                f"'{self._name}' has no features of its own: it is made of {quoted(self._source_names())}",
                find_place(),
                "",
                "bring them in with x.fanout(pairs) and x.beside(pairs)"
                if isinstance(self._origin, Pairing)
                else "join the features: gr.concat_rows([...])",
            )
        if name in schema.features:
            return self._feature(schema.features[name])
        if name in schema.children:
            return self._child(schema.children[name])
        if self._parent is None and name == self._name:
            return self  # `batch.request` names the rows of the batch themselves
        raise self._unknown(schema, name)

    def _source_names(self) -> list[str]:
        if isinstance(self._origin, Pairing):
            return [self._origin.first._name, self._origin.second._name]
        return [source._name for source in self._origin.sources] if isinstance(self._origin, Joining) else []

    def _unknown(self, schema: ListSchema, name: str) -> FeatureError:
        path = name.split(".")
        below = [child.name for child in schema.children.values() if name in child.features or name in child.children]
        if name in schema.left_out:
            left_out = schema.left_out[name]
            help = f"{left_out.reason}; {left_out.help}"
        elif len(path) > 1 and path[0] in self:
            help = f"a step at a time: {self._expression}.{name}"
        elif name in OF_DOMAINS:
            help = f"{OF_DOMAINS[name]}; {self._known_names(schema, name, most=6)}"
        elif name in _OF_VALUES:
            help = f"reduce a feature of the list: {self._expression}.<feature>.{name}()"
        elif below:
            help = f"'{below[0]}' has it: {self._expression}.{below[0]}.{name}"
        else:
            help = self._known_names(schema, name)
        return FeatureError(f"'{self._name}' has no feature '{name}'", find_place(), "", help)

    def _known_names(self, schema: ListSchema, name: str, most: int = 12) -> str:
        """The features and lists there are, first the one that may have been meant by `name`."""
        known = {**{n: str(f.type) for n, f in schema.features.items()}, **dict.fromkeys(schema.children, "a list")}
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        listed = ", ".join(f"{n} ({kind})" for n, kind in list(known.items())[:most])
        more = f" and {len(known) - most} more" if len(known) > most else ""
        hint = f"did you mean '{close[0]}'? " if close else ""
        return f"{hint}'{self._name}' has {listed or 'no features'}{more}"

    def _feature(self, feature: Feature) -> "Value":
        source = self._uncut()
        if source is not self:
            return methods.derive(source._feature(feature), self, find_place().named(feature.name))
        key = ("feature", self._symbol, feature.column)
        if key not in self._recording.cache:
            self._recording.cache[key] = methods.feature(self, feature, find_place().named(feature.name))
        return self._recording.cache[key]

    def _child(self, schema: ListSchema) -> "Domain":
        if self._origin is not None:
            source = self._origin.source if isinstance(self._origin, Truncation | Padding) else self
            done, verb = ("truncated", "truncate")
            if isinstance(self._origin, Padding):
                done, verb = ("padded", "pad")
            raise ModelError(
                f"the lists '{schema.name}' below '{self._name}' are not {done} along with it",
                find_place(),
                "",
                f"reduce them first, then {verb}: {source._expression}.{schema.name}.<feature>.sum().{verb}(...)",
            )
        key = ("domain", self._root, schema.column)
        if key not in self._recording.cache:
            expression = f"{self._expression}.{schema.name}"
            self._recording.cache[key] = Domain(self._recording, schema.name, schema, self, expression)
        return self._recording.cache[key]

    def _element(self) -> "Value | None":
        """The entries of a list of plain values; None for any other domain."""
        schema = self._feature_schema()
        if schema is None or not schema.has_elements:
            return None
        return self._feature(schema.features[ELEMENT])

    def _element_type(self) -> "ElementType | None":
        """The type of the entries of a list of plain values; None for any other domain."""
        schema = self._feature_schema()
        return schema.features[ELEMENT].type.plain if schema is not None and schema.has_elements else None

    # -- ops -----------------------------------------------------------------------------------------------------------

    def truncate(self, count: int, keep: str = "last") -> "Domain":
        """The domain of at most `count` rows per list, in order. Its features are this domain's; other values come in
        through their own `truncate`.

        Args:
            count: at least 1.
            keep: "last", the most recent rows, or "first".

        Shape:
            the rows of a list in, some of them out.

        Example:
            >>> recent = batch.history.truncate(50)
            >>> recent.item
            <int64, one per 'recent'>
        """
        return methods.truncate_domain(self, count, keep, find_place())

    def pad(self, count: int, side: str = "back") -> "Domain":
        """The domain of at least `count` rows per list. Its features are this domain's, null in the new rows; other
        values come in through their own `pad`.

        Args:
            count: at least 1.
            side: where shorter lists get new rows, "back" or "front".

        Shape:
            the rows of a list in, more of them out.

        Example:
            >>> padded = batch.history.pad(20)
            >>> padded.item
            <int64, one per 'padded'>
        """
        return methods.pad_domain(self, count, side, find_place())

    def position(self, from_end: bool = False) -> "Value":
        """Each row's place in its list, from 0.

        Args:
            from_end: counts from the end: the last row has 0.

        Shape:
            [] as int64.

        Example:
            >>> batch.impression.position()
            <int64, one per 'impression'>
        """
        return methods.position(self, from_end, find_place())

    def length(self) -> "Value":
        """How many rows each list has; `gr.sequence_length(rows)` is the same.

        Shape:
            [] per row of the parent, as int64.

        Example:
            >>> batch.history.length()
            <int64, one per 'request'>
        """
        return methods.length(self, find_place())

    # -- for this package ----------------------------------------------------------------------------------------------

    @property
    def _root(self) -> "Domain":
        """The rows of the file that these lie below."""
        root = self
        while root._parent is not None:
            root = root._parent
        return root

    @property
    def _symbol(self) -> str:
        return self._result.type.domain

    @property
    def _result(self) -> Result:
        """The value of the domain; a list of the data is declared when it is first used."""
        if self._known_result is None:
            recording, schema = self._recording, self._schema
            assert schema is not None
            parent = self._parent._symbol if self._parent is not None else ""
            name = recording.unique_name(self._name, "rows")
            recording.declare_domain(DomainDeclaration(name, "data", parent, schema.column))
            self._known_result = Result(ValueType(name, is_domain=True))
            reader = self._root._reader
            assert reader is not None
            reader.results.append(self._known_result)
            # A padding id says which rows there are, whether or not the model looks at the ids.
            for feature in schema.features.values():
                if feature.type.padding_id is not None:
                    self._feature(feature)
        return self._known_result

    def _is_below(self, other: "Domain") -> bool:
        """True when `other` is the parent, or the parent's parent, and so on."""
        above = self._parent
        while above is not None and above is not other:
            above = above._parent
        return above is not None

    def _derive(self, wanted: str, parent: "Domain", origin: Origin, expression: str) -> "Domain":
        """A derived domain, declared but not yet made by an op."""
        recording = self._recording
        name = recording.unique_name(wanted, "rows")
        place = find_place()
        if parent._depth == MOST_DOMAIN_DEPTH:
            raise ModelError(
                f"'{wanted}' would lie below {MOST_DOMAIN_DEPTH + 1} lists, one in the other; at most "
                f"{MOST_DOMAIN_DEPTH} can be",
                place, "", "reduce to the parent first: .sum(), .mean(), .last()",
            )  # fmt: skip
        recording.declare_domain(DomainDeclaration(name, "derived", parent._symbol, place=place))
        op_name, sources, attributes = _maker(origin)
        op = recording.emit(
            op_name, [source._result for source in sources], [ValueType(name, is_domain=True)], attributes,
            place.named(name),
        )  # fmt: skip
        return Domain(recording, name, None, parent, expression, origin, op.results[0])


def _maker(origin: Origin) -> "tuple[str, tuple[Domain, ...], dict[str, rec.Attribute]]":
    """The op that makes a derived domain, the domains it takes, its attributes."""
    match origin:
        case Truncation(source, count, keep):
            return "truncate", (source,), {"count": count, "keep": Enum("keep", keep)}
        case Padding(source, count, side):
            return "pad", (source,), {"count": count, "side": Enum("pad_side", side)}
        case Pairing(first, second):
            return "pair_domains", (first, second), {}
        case Joining(sources):
            return "concat_domains", sources, {}


Batch = Domain
"""The rows of a batch, which `forward` is given: the root domain.

Example:
    >>> batch
    <rows of 'request'>
    >>> batch.user
    <int64, one per 'request'>
"""


def make_batch(recording: Recording, schema: ListSchema) -> Domain:
    """The root domain of a batch."""
    batch = Domain(recording, schema.name, schema, None, "batch", reader=recording.batch)
    _ = batch._symbol  # A program holds its root, whether or not it reads a column of it.
    return batch
