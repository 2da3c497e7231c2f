"""Finding and ranking the items of a catalogue for a query."""

from dataclasses import dataclass

from genrec.catalogues import Catalogue, Items, expect_catalogue, ids_of, resolve, vectors_of
from genrec.domain import Truncation
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.nn.functional import rows_of_floats
from genrec.operands import constant
from genrec.recording import Enum, ValueType
from genrec.rules import counted
from genrec.source import Place, find_place
from genrec.types import element_type, float32, int64
from genrec.value import Value, ValueLike

NO_SCORE = -1e30
"""What `gr.scores` gives past the last item of a catalogue, and `gr.top_k` where no item is left."""


@dataclass(frozen=True, eq=False)
class Query:
    """A query and the items that it is ranked against: those of a catalogue, less the excluded ones."""

    rows: Value
    vectors: Value
    catalogue: Catalogue
    exclude: Value | None
    note: str

    @property
    def operands(self) -> list[Value]:
        """The optional last operand of top_k and rank."""
        return [self.exclude] if self.exclude is not None else []


@dataclass(frozen=True, eq=False)
class Found:
    """The result of `gr.top_k`: the k best items of each query row, best first.

    Attributes:
        ids: the items' ids. If fewer than k items are left (of the catalogue less the excluded ones), the rest are
            null: outputs write nulls, and computations read 0.
        scores: query · item, float32; null, and -1e30, there.
        index: rows of the catalogue; -1 there.

    Shape:
        [k] each.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> found = gr.top_k(item(batch.history.item).mean(), item, items, k=10)
        >>> found.ids, found.scores
        (<[10] int64, one per 'request'>, <[10] float32, one per 'request'>)
    """

    index: Value
    scores: Value
    ids: Value
    query: Query


@dataclass(frozen=True, eq=False)
class Ranks:
    """The result of `gr.rank`: the rank of a target per query row, or of each of a list of targets.

    Attributes:
        rank: 1 for the best, 0 where there is no target. Of several targets per query, per row of their list.

    Shape:
        [] as int64.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> gr.rank(item(batch.history.item).mean(), batch.held_out, item, items).rank
        <int64, one per 'request'>
    """

    rank: Value
    query: Query

    @property
    def are_listed(self) -> bool:
        """Whether a query has a list of targets.

        Example:
            >>> item = gr.Table("item", dim=16)
            >>> gr.rank(item(batch.history.item).mean(), batch.held_out, item, items).are_listed
            False
        """
        return self.rank.domain is not self.query.rows.domain


def top_k(query: ValueLike, items: Items, catalogue: Catalogue, k: int, exclude: ValueLike | None = None) -> Found:
    """The k items with the largest query · item, best first; of equal scores the earlier row of the catalogue. The
    scores of all items are never in memory at once.

    Args:
        query: what items are compared with.
        items: the items' vectors: a table, or any function of ids.
        catalogue: of the items.
        k: how many, at least 1.
        exclude: item ids of a list of the query's rows (such as the history) that are left out; ids which the catalogue
            lacks exclude nothing.

    Shape:
        query [d], items [d]; [k] out.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> found = gr.top_k(item(batch.history.item).mean(), item, items, k=10, exclude=batch.history.item)
        >>> gr.output(found=found)  # columns 'found' and 'found_score'
    """
    place = find_place()
    against = make_query("gr.top_k", query, items, catalogue, exclude, place, 1)
    k = counted(k, "the k of gr.top_k", place.part("k"))
    rows = against.rows
    assert rows.domain is not None
    symbol = rows.domain._symbol
    op = rows._recording.emit(
        "top_k",
        [one._result for one in (rows, against.vectors, *against.operands)],
        [ValueType(symbol, (k,), int64.name), ValueType(symbol, (k,), float32.name)],
        {},
        place,
    )
    index, best = (Value(rows._recording, result, rows.domain, place) for result in op.results)
    ids = emit("gather_rows", [ids_of(catalogue), index], rows.domain, (k,), int64, place)
    exists = emit(
        "compare", [index, constant(0, int64, place)], rows.domain, (k,), element_type("bool"), place.named(""),
        kind=Enum("compare_kind", "ge"),
    )  # fmt: skip
    ids.elements_valid = best.elements_valid = exists
    return Found(index, best, ids, against)


def rank(
    query: ValueLike, target: ValueLike, items: Items, catalogue: Catalogue, exclude: ValueLike | None = None
) -> Ranks:
    """The rank of a target among all items of a catalogue: 1 plus the number of other items, not excluded, whose score
    query · item is at least the target's, so that ties count against the model. The target itself is never excluded.

    Several targets of a query are ranked in one order of its targets and all items that are not excluded; of equal
    scores the targets come last. A target that occurs twice has a rank only once.

    Args:
        query: what items are compared with.
        target: an item id per query row, null for none; or a list of ids of the query's rows, several targets.
        items: the items' vectors: a table, or any function of ids.
        catalogue: of the items.
        exclude: item ids of a list of the query's rows that are left out.

    Shape:
        query [d], target [], items [d]; [] out.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> ranks = gr.rank(item(batch.history.item).last(), batch.held_out, item, items)
        >>> gr.metric.ranking(ranks, at=(1, 10))
    """
    place = find_place()
    against = make_query("gr.rank", query, items, catalogue, exclude, place, 2)
    return rank_against(against, target, place, place.part(1))


def rank_against(against: Query, target: ValueLike, place: Place, part: Place) -> Ranks:
    """The ranks of `target` for an existing query."""
    wanted = resolve(target, against.catalogue, "the target", part)
    rows = against.rows
    is_listed = wanted.domain is not None and wanted.domain._parent is rows.domain
    if wanted.domain is not rows.domain and not is_listed:
        names = [value.domain._name for value in (wanted, rows) if value.domain is not None]
        raise ModelError(
            f"there must be a target, or a list of targets, per query, but targets are per '{names[0]}' and queries "
            f"per '{names[1]}'",
            part,
            wanted._label(),
            "a query per list comes from .last() or another reduction",
        )
    value = emit("rank", [rows, wanted, against.vectors, *against.operands], wanted.domain, (), int64, place)
    return Ranks(value, against)


def make_query(
    what: str,
    query: ValueLike,
    items: Items,
    catalogue: Catalogue,
    exclude: ValueLike | None,
    place: Place,
    items_at: int,
) -> Query:
    """The `Query` of a call of `what`; `items_at` is the number of its argument `items`."""
    catalogue = expect_catalogue(catalogue, what, place, items_at + 1)
    rows = rows_of_floats(query, what, 0)
    vectors = vectors_of(items, catalogue, place.part(items_at))
    if vectors.shape != rows.shape:
        raise ModelError(
            f"{what} needs queries and items of one size, got [{rows.shape[0]}] and [{vectors.shape[0]}]",
            place.part(0), rows._label(), f"the items are {vectors._label()}",
        )  # fmt: skip
    if exclude is None:
        return Query(rows, vectors, catalogue, None, "nothing excluded")
    part = place.part("exclude")
    left_out = resolve(exclude, catalogue, f"exclude of {what}", part, allow_missing=True)
    if left_out.domain is None or left_out.domain._parent is not rows.domain:
        assert rows.domain is not None
        raise ModelError(
            f"exclude of {what} must be ids of a list of '{rows.domain._name}', the rows of the query",
            part,
            left_out._label(),
        )
    return Query(rows, vectors, catalogue, left_out, _note(left_out))


def _note(left_out: Value) -> str:
    """Which items are excluded, for the reader of a metric."""
    domain = left_out.domain
    assert domain is not None
    if isinstance(domain._origin, Truncation):
        end = "latest" if domain._origin.keep == "last" else "first"
        return f"excluded: the {domain._origin.count} {end} of '{domain._origin.source._name}'"
    return f"excluded: all of '{domain._name}'"


def scores(query: ValueLike, items: Items, catalogue: Catalogue, max_items: int | None = None) -> Value:
    """query · item for every item of a catalogue. Scores that only a softmax cross entropy reads are computed in
    blocks; `top_k` and `rank` never hold all scores either.

    Args:
        query: what items are compared with.
        items: the items' vectors: a table, or any function of ids.
        catalogue: of the items.
        max_items: the most items that the catalogue may have; the number it has now, unless given.

    Shape:
        query [d], items [d]; [max_items] out, -1e30 past the last item.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> gr.scores(item(batch.history.item).mean(), item, items)
        <[100] float32, one per 'request'>
    """
    place = find_place()
    against = make_query("gr.scores", query, items, catalogue, None, place, 1)
    size = max_items if max_items is not None else catalogue._rows
    if size is None or size < 1 or (catalogue._rows or 0) > size:
        known = f"it has {catalogue._rows} items" if catalogue._rows is not None else "its number of items is not known"
        raise ModelError(
            f"gr.scores needs the most items that catalogue '{catalogue._name}' may have; {known}",
            place,
            "",
            "pass max_items",
        )
    result = emit("scores", [against.rows, against.vectors], against.rows.domain, (size,), float32, place)
    result._recording.cache["items scored", result._result] = ids_of(catalogue)
    return result


def items_scored(logits: Value) -> Value | None:
    """The ids of the catalogue whose items `gr.scores` made a logit of each; None for other logits."""
    return logits._recording.cache.get(("items scored", logits._result))
