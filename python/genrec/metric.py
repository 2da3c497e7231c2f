"""Evaluation metrics."""

from collections.abc import Sequence

from genrec.catalogues import Catalogue, Items
from genrec.emit import emit_effect
from genrec.errors import ModelError
from genrec.loss import _scalar, _together
from genrec.ops import as_ids, both_valid, cast, squeeze
from genrec.ranking import Found, Ranks, make_query, rank_against
from genrec.recording import Enum
from genrec.rules import common_domain
from genrec.source import Place, find_place
from genrec.types import float32
from genrec.value import Value, ValueLike, as_value

DEFAULT_CUTOFFS = (10, 50, 200)


def ranking(
    ranked: Found | Ranks | ValueLike,
    items: Items | None = None,
    catalogue: Catalogue | None = None,
    target: ValueLike | None = None,
    exclude: ValueLike | None = None,
    at: Sequence[int] = DEFAULT_CUTOFFS,
    name: str = "ranking",
    note: str | None = None,
) -> None:
    """HR@n and NDCG@n for each n of `at`, and MRR, of one target per query row among all items of a catalogue.

    Args:
        ranked: a query, with `items`, `catalogue` and `exclude` as in `gr.rank`; or what `gr.top_k` found, with these
            already; or what `gr.rank` gave, which has its target too.
        items: the items' vectors.
        catalogue: of the items.
        target: an item id per query row; rows with a null target do not count.
        exclude: ids of a list of the query's rows that are left out of the ranking, such as the history.
        at: cut-offs that ascend.
        name: of the metric; the metrics are `hr@10`, … for the name "ranking", `<name>.hr@10`, … for another.
        note: printed beside the metric; it says which items are excluded unless given.

    Shape:
        a query [d], target [].

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> query = item(batch.history.item).mean()
        >>> found = gr.top_k(query, item, items, k=10, exclude=batch.history.item)
        >>> gr.metric.ranking(found, target=batch.held_out, at=(10, 50))
    """
    place = find_place()
    if isinstance(ranked, Found | Ranks):
        for keyword, given in (("items", items), ("catalogue", catalogue), ("exclude", exclude)):
            if given is not None:
                raise ModelError(f"'{keyword}' belongs to what was ranked already", place.part(keyword))
    if isinstance(ranked, Ranks):
        if target is not None:
            raise ModelError("'ranking' of what gr.rank gave has its target already", place.part("target"))
        ranks = ranked
    elif target is None:
        raise ModelError("'ranking' needs a target", place, "", "pass target=<an item id per row>")
    elif isinstance(ranked, Found):
        ranks = rank_against(ranked.query, target, place, place.part("target"))
    elif items is None or catalogue is None:
        raise ModelError(
            "'ranking' of a query needs items and a catalogue", place, "", "or pass what gr.top_k or gr.rank gave"
        )
    else:
        against = make_query("'ranking'", ranked, items, catalogue, exclude, place, 1)
        ranks = rank_against(against, target, place, place.part("target"))
    cutoffs = tuple(int(n) for n in at)
    if not cutoffs or any(n < 1 for n in cutoffs) or any(b <= a for a, b in zip(cutoffs, cutoffs[1:], strict=False)):
        raise ModelError(f"the cut-offs of a ranking must be positive and ascend, got {list(cutoffs)}",
                         place.part("at"))  # fmt: skip
    value = ranks.rank
    unique = value._recording.effect_name("metric", name, name == "ranking", place)
    emit_effect(
        "metric", [value], place.named(unique), (1, 0, 0, 0), kind=Enum("metric_kind", "ranking"), name=unique,
        at=cutoffs, note=note if note is not None else ranks.query.note,
    )  # fmt: skip


def auc(score: ValueLike, label: ValueLike, name: str = "auc", note: str = "") -> None:
    """The area under the ROC curve; rows with a null label do not count. Undefined, and null, where all rows are of one
    class.

    Args:
        score: a float per row; logits will do.
        label: 0 or 1 per row, or bool.
        name: of the metric.
        note: printed beside it.

    Shape:
        [] or [1], and [].

    Example:
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.auc(logit, batch.impression.clicked)
    """
    _classify("auc", score, label, None, name, note, find_place())


def gauc(score: ValueLike, label: ValueLike, key: ValueLike, name: str = "gauc", note: str = "") -> None:
    """Grouped AUC: the AUC within the rows of each key, averaged by the number of rows. Keys whose rows are all of one
    class are skipped, and counted as `<name>.skipped`.

    Args:
        score: a float per row; logits will do.
        label: 0 or 1 per row, or bool; rows with a null one do not count.
        key: an integer per row: the user, say.
        name: of the metric.
        note: printed beside it.

    Shape:
        [] or [1], [] and [], of one domain.

    Example:
        >>> shown = batch.impression
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(shown.item))
        >>> gr.metric.gauc(logit, shown.clicked, key=batch.user.fanout(shown))
    """
    place = find_place()
    _classify("gauc", score, label, as_ids(key, "the key of 'gauc'", place.part("key")), name, note, place)


def ne(logit: ValueLike, label: ValueLike, name: str = "ne", note: str = "") -> None:
    """Normalised entropy (He et al. 2014, equation 1): the mean cross entropy divided by that of always predicting the
    evaluated rows' own share of positives. Below 1 is better than that.

    Args:
        logit: a float per row.
        label: 0 or 1 per row, or bool; rows with a null one do not count.
        name: of the metric.
        note: printed beside it.

    Shape:
        [] or [1], and [].

    Example:
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.ne(logit, batch.impression.clicked)
    """
    _classify("ne", logit, label, None, name, note, find_place())


def _classify(
    kind: str, score: ValueLike, label: ValueLike, key: Value | None, name: str, note: str, place: Place
) -> None:
    """Declares a metric of scores and labels."""
    prediction = cast(_scalar(score, f"the score of '{kind}'", place, 0), float32, place.named(""))
    truth = squeeze(cast(as_value(label, place.part(1)), float32, place.part(1).named("")), place.named(""))
    _together(kind, prediction, truth, place)
    if key is not None:
        common_domain(kind, [prediction, key], place, ((0,), ("key",)))
    unique = prediction._recording.effect_name("metric", name, name == kind, place)
    valid = both_valid(truth, key)
    operands = [prediction, truth, *([valid] if valid is not None else []), *([key] if key is not None else [])]
    note_attribute = {"note": note} if note else {}
    emit_effect(
        "metric", operands, place.named(unique), (1, 1, int(valid is not None), int(key is not None)),
        kind=Enum("metric_kind", kind), name=unique, **note_attribute,
    )  # fmt: skip
