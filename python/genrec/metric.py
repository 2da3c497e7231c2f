"""Evaluation metrics, measured over all rows of the evaluated data.

Each takes `weight`, a number per measured row that is finite and not negative (1 unless given): rows of weight 0, and
rows with a null label or weight, do not count. A metric for which no row counts has no value, which is shown as "no
rows". An invalid label or a NaN score ends the run with an error that names the row of the data. docs/reference/ops.md
(genrec.metric) has the definitions.
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from genrec.catalogues import Catalogue, Items
from genrec.emit import emit, emit_effect
from genrec.errors import ModelError
from genrec.hints import OF_METRIC, public_names, raise_missing
from genrec.labels import expect_logits, labelled
from genrec.operands import as_value
from genrec.ops import as_ids, both_valid, cast, squeeze, where
from genrec.ranking import Found, Ranks, make_query, rank_against
from genrec.recording import Enum
from genrec.rules import common_domain
from genrec.source import Place, find_place
from genrec.types import float32, int64
from genrec.value import Value, ValueLike

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
    weight: ValueLike | None = None,
) -> None:
    """HR@n and NDCG@n for each n of `at`, and MRR, of one target per query row among all items of a catalogue; recall@n
    too where queries have lists of targets.

    With P distinct targets of a query, HR@n is 1 if at least one of them has a rank up to n. recall@n is the number of
    these targets, divided by P. NDCG@n is the sum of 1 / log2(rank + 1) over them, divided by the same sum over the
    ranks 1 to min(P, n). MRR is 1 / the best rank. Queries without a target do not count.

    Args:
        ranked: a query, with `items`, `catalogue` and `exclude` as in `gr.rank`; or the result of `gr.top_k`, which has
            these; or the result of `gr.rank`, which has the target, too.
        items: the items' vectors.
        catalogue: of the items.
        target: an item id per query row, or a list of ids of the query's rows; null targets do not count.
        exclude: ids of a list of the query's rows that are left out of the ranking, such as the history.
        at: cut-offs that ascend.
        name: of the metric; the metrics are `hr@10`, … for the name "ranking", `<name>.hr@10`, … for another.
        note: printed beside the metric; it says which items are excluded unless given.
        weight: of each query row, finite and not negative; 1 unless given.

    Shape:
        a query [d], target [].

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> query = item(batch.history.item).mean()
        >>> found = gr.top_k(query, item, items, k=10, exclude=batch.history.item)
        >>> gr.metric.ranking(found, target=batch.held_out, at=(10, 50))
        >>> gr.metric.ranking(found, target=batch.impression.item, at=(10, 50), name="shown")
    """
    place = find_place()
    ranks = _ranks(ranked, items, catalogue, target, exclude, place)
    query = ranks.query
    _rank_metric(ranks.rank, ranks.are_listed, query.rows, weight, at, name, note if note is not None else query.note,
                 place)  # fmt: skip


def _ranks(
    ranked: Found | Ranks | ValueLike,
    items: Items | None,
    catalogue: Catalogue | None,
    target: ValueLike | None,
    exclude: ValueLike | None,
    place: Place,
) -> Ranks:
    """The ranks that `ranking` is asked to measure."""
    if isinstance(ranked, Found | Ranks):
        for keyword, given in (("items", items), ("catalogue", catalogue), ("exclude", exclude)):
            if given is not None:
                raise ModelError(f"'{keyword}' belongs to what was ranked already", place.part(keyword))
    if isinstance(ranked, Ranks):
        if target is not None:
            raise ModelError("'ranking' of what gr.rank gave has its target already", place.part("target"))
        return ranked
    if target is None:
        raise ModelError("'ranking' needs a target", place, "", "pass target=<an item id per row>")
    if isinstance(ranked, Found):
        return rank_against(ranked.query, target, place, place.part("target"))
    if items is None or catalogue is None:
        raise ModelError(
            "'ranking' of a query needs items and a catalogue", place, "", "or pass what gr.top_k or gr.rank gave"
        )
    against = make_query("'ranking'", ranked, items, catalogue, exclude, place, 1)
    return rank_against(against, target, place, place.part("target"))


def list_ranking(
    score: ValueLike,
    label: ValueLike,
    at: Sequence[int] = DEFAULT_CUTOFFS,
    name: str = "ranking",
    note: str = "",
    weight: ValueLike | None = None,
) -> None:
    """HR@n, recall@n and NDCG@n for each n of `at`, and MRR, of the rows of each list ranked by a score: the candidates
    of a request, say.

    Of equal scores those with label 0 come first: ties count against the model. For a list with P labels 1 the metrics
    are those of `ranking` for P targets; lists without a label 1 do not count.

    Args:
        score: a float per row of a list.
        label: 1 for relevant rows, else 0, or bool; rows with a null label are not ranked.
        at: cut-offs that ascend.
        name: of the metric, as in `ranking`.
        note: printed beside it.
        weight: of each list, a number per row of its parent, finite and not negative; 1 unless given.

    Shape:
        [] or [1], and [].

    Example:
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.list_ranking(logit, batch.impression.clicked, at=(1, 5))
    """
    place = find_place()
    scores, truth = labelled("list_ranking", "the score of 'list_ranking'", score, label, place)
    if scores.domain is None or scores.domain._parent is None:
        raise ModelError(
            "'list_ranking' ranks the rows of lists", place.part(0), scores._label(),
            "for one row per request use gr.metric.auc, or gr.metric.ranking over a catalogue",
        )  # fmt: skip
    optional = [truth.valid] if truth.valid is not None else []
    ranks = emit("rank_in_list", [scores, truth, *optional], scores.domain, (), int64, place.named(name))
    _rank_metric(ranks, True, None, weight, at, name, note, place)


def _rank_metric(
    ranks: Value,
    per_list: bool,
    query: Value | None,
    weight: ValueLike | None,
    at: Sequence[int],
    name: str,
    note: str,
    place: Place,
) -> None:
    """Declares a metric of ranks: of lists with `per_list`, else of the rows of `query`."""
    cutoffs = tuple(int(n) for n in at)
    if not cutoffs or any(n < 1 for n in cutoffs) or any(b <= a for a, b in zip(cutoffs, cutoffs[1:], strict=False)):
        raise ModelError(f"the cut-offs of a ranking must be positive and ascend, got {list(cutoffs)}",
                         place.part("at"))  # fmt: skip
    domain = ranks.domain
    assert domain is not None
    measured = domain._parent if per_list else domain
    factor = _weight(weight, measured, place)
    unique = ranks._recording.effect_name("metric", name, name == "ranking", place)
    if per_list and factor is not None and factor.valid is not None:  # `valid` is of the ranks
        factor = where(factor.valid, factor, 0.0)
    attributes: dict[str, Any] = {"per_list": True} if per_list else {}
    if note:
        attributes["note"] = note
    _emit_metric("ranking", unique, ranks, None, factor.valid if factor is not None and not per_list else None, None,
                 factor, place, at=cutoffs, **attributes)  # fmt: skip


def auc(score: ValueLike, label: ValueLike, name: str = "auc", note: str = "", weight: ValueLike | None = None) -> None:
    """The area under the ROC curve; rows with a null label do not count. Undefined, and null, where all rows are of one
    class.

    Args:
        score: a float per row; logits will do.
        label: 0 or 1 per row, or bool.
        name: of the metric.
        note: printed beside it.
        weight: of each row, finite and not negative; 1 unless given; a pair of rows counts by the product of theirs.

    Shape:
        [] or [1], and [].

    Example:
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.auc(logit, batch.impression.clicked)
    """
    _measure("auc", score, label, None, name, note, weight, find_place())


def gauc(
    score: ValueLike,
    label: ValueLike,
    key: ValueLike,
    name: str = "gauc",
    note: str = "",
    weight: ValueLike | None = None,
) -> None:
    """Grouped AUC: the AUC within the rows of each key, averaged by the weight of the rows. Keys whose rows are all of
    one class are skipped, and counted as `<name>.skipped`.

    Args:
        score: a float per row; logits will do.
        label: as in `gr.metric.auc`, like `name`, `note` and `weight`.
        key: an integer per row: the user, say; rows with a null one do not count.

    Shape:
        [] or [1], [] and [], of one domain.

    Example:
        >>> shown = batch.impression
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(shown.item))
        >>> gr.metric.gauc(logit, shown.clicked, key=batch.user.fanout(shown))
    """
    place = find_place()
    ids = as_ids(key, "the key of 'gauc'", place.part("key"))
    _measure("gauc", score, label, ids, name, note, weight, place)


def ne(logit: ValueLike, label: ValueLike, name: str = "ne", note: str = "", weight: ValueLike | None = None) -> None:
    """Normalised entropy (He et al. 2014, equation 1): the mean cross entropy divided by the entropy of the share of
    positives among the evaluated rows. Below 1 the model is better than predicting that share.

    Args:
        logit: a float per row; scores of another kind will not do.
        label: as in `gr.metric.auc`, like `name`, `note` and `weight`.

    Shape:
        [] or [1], and [].

    Example:
        >>> logit = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.ne(logit, batch.impression.clicked)
    """
    place = find_place()
    _measure("ne", logit, label, None, name, note, weight, place)
    expect_logits("ne", logit, place)


def rmse(
    prediction: ValueLike, label: ValueLike, name: str = "rmse", note: str = "", weight: ValueLike | None = None
) -> None:
    """The root of the mean squared difference of a prediction and a label.

    Args:
        prediction: a float per row.
        label: a number per row; rows with a null one do not count.
        name: of the metric.
        note: printed beside it.
        weight: of each row, finite and not negative; 1 unless given.

    Shape:
        [] or [1], and [].

    Example:
        >>> seconds = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.rmse(seconds, batch.impression.seconds)
    """
    _measure("rmse", prediction, label, None, name, note, weight, find_place())


def mae(
    prediction: ValueLike, label: ValueLike, name: str = "mae", note: str = "", weight: ValueLike | None = None
) -> None:
    """The mean absolute difference of a prediction and a label, the arguments of `gr.metric.rmse`.

    Shape:
        [] or [1], and [].

    Example:
        >>> seconds = nn.Linear(16, 1)(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.metric.mae(seconds, batch.impression.seconds)
    """
    _measure("mae", prediction, label, None, name, note, weight, find_place())


def _weight(weight: ValueLike | None, measured: Any, place: Place) -> Value | None:
    """The keyword `weight`: a number per row of the domain `measured`."""
    if weight is None:
        return None
    part = place.part("weight")
    factor = squeeze(cast(as_value(weight, part), float32, part.named("")), part.named(""))
    if factor.domain is not measured or factor.shape:
        raise ModelError(
            f"the weight of this metric must be one number per row of '{measured._name}'", part, factor._label()
        )
    return factor


def _measure(
    kind: str,
    score: ValueLike,
    label: ValueLike,
    key: Value | None,
    name: str,
    note: str,
    weight: ValueLike | None,
    place: Place,
) -> None:
    """Declares a metric of a score, or another prediction, and a label per row."""
    prediction, truth = labelled(kind, f"the score of '{kind}'", score, label, place)
    if key is not None:
        common_domain(kind, [prediction, key], place, ((0,), ("key",)))
    factor = _weight(weight, prediction.domain, place)
    unique = prediction._recording.effect_name("metric", name, name == kind, place)
    attributes = {"note": note} if note else {}
    _emit_metric(kind, unique, prediction, truth, both_valid(truth, key, factor), key, factor, place, **attributes)


def _emit_metric(
    kind: str,
    unique: str,
    x: Value,
    label: Value | None,
    valid: Value | None,
    key: Value | None,
    weight: Value | None,
    place: Place,
    **attributes: Any,
) -> None:
    _claim_values(kind, unique, x, attributes, place)
    optional = [label, valid, key, weight]
    emit_effect(
        "metric", [x, *(one for one in optional if one is not None)], place.named(unique),
        (1, *(int(one is not None) for one in optional)), kind=Enum("metric_kind", kind), name=unique, **attributes,
    )  # fmt: skip


def _claim_values(kind: str, name: str, x: Value, attributes: dict[str, Any], place: Place) -> None:
    """Raises `ModelError` where an evaluation already has a value of one of the names that a metric's values have."""
    names = [name, f"{name}.skipped"] if kind == "gauc" else [name]
    if kind == "ranking":
        prefix = "" if name == "ranking" else f"{name}."
        measures = ("hr", "recall", "ndcg") if "per_list" in attributes else ("hr", "ndcg")
        names = [f"{prefix}mrr", *(f"{prefix}{measure}@{n}" for measure in measures for n in attributes["at"])]
    taken: dict[str, Place] = x._recording.cache.setdefault("names of metrics' values", {})
    for one in names:
        if one == "loss":
            raise ModelError("a metric cannot be named 'loss': evaluations call their loss so", place.part("name"))
        if one in taken:
            help = f"the other is at {taken[one]}; give one of them another name="
            raise ModelError(f"two metrics have a value '{one}'", place.part("name"), "", help)
        taken[one] = place


def __getattr__(name: str) -> NoReturn:
    raise_missing(__name__, name, OF_METRIC, public_names(globals()))
