"""Losses. A loss is declared, not returned: a model's loss is the sum of its declared losses, weighted by `scale`.

Each loss is the weighted mean of a value per row, over all rows of the batch: a row's weight is `weight` (1 unless
given), and 0 where the label is null. If no row has a weight, the loss has no value, which is shown as "no rows".

Labels are checked while a model trains and is evaluated: a class outside of the classes, or a label of
`bce_with_logits` outside of [0, 1], ends the run with the row of the data. Rows of weight 0 are not looked at. A weight
that is negative, NaN or infinite ends the run, too.
"""

from typing import NoReturn

from genrec.catalogues import Catalogue, Items, expect_catalogue, resolve, vectors_of
from genrec.declared_losses import Required, declare_loss, is_weighed, where_weighed
from genrec.emit import emit
from genrec.errors import ModelError
from genrec.hints import OF_LOSS, public_names, raise_missing
from genrec.labels import expect_logits, expect_one_domain, labelled, scalar
from genrec.nn import functional
from genrec.nn.functional import rows_of_floats
from genrec.operands import as_value
from genrec.ops import as_ids, both_valid, cast, conjunction, detach, squeeze, where
from genrec.precision import product_attributes
from genrec.ranking import NO_SCORE, items_scored, scores
from genrec.recording import ValueType
from genrec.rules import common_domain, counted
from genrec.source import Place, find_place
from genrec.types import float32
from genrec.value import Value, ValueLike


def mean(
    x: ValueLike,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
    log_variance: ValueLike | None = None,
) -> Value:
    """Declares the weighted mean of a value per row as a loss: for losses of your own.

    Args:
        x: the loss of each row; a null row, computed from a null label, say, does not count.
        weight: of each row, at least 0; 1 unless given. A row with a null weight does not count; one whose weight is
            negative, NaN or infinite is an error of the run.
        name: of the loss in logs and metrics.
        scale: the fixed weight of this loss among the model's.
        log_variance: a parameter s of shape (), the trained logarithm of a task's variance: the loss is then
            exp(-s) * x + s / 2 (Kendall et al. 2018, equation 10).

    Shape:
        [] per row.

    Returns:
        `x`.

    Example:
        >>> item = gr.Table("item", dim=1)
        >>> error = item(batch.impression.item).squeeze() - batch.impression.seconds
        >>> gr.loss.mean(error * error, name="watch_time", scale=0.1)
        <float32, one per 'impression'>
    """
    place = find_place()
    value = as_value(x, place.part(0))
    return declare_loss(value, value.valid, weight, name, scale, place, log_variance)


def bce_with_logits(
    logit: ValueLike,
    label: ValueLike,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
    log_variance: ValueLike | None = None,
    label_smoothing: float = 0.0,
) -> Value:
    """Binary cross entropy of a logit: softplus(logit) - label * logit.

    Args:
        logit: a float per row.
        label: 0 or 1 per row, or a probability, of any number type or bool; a row with a null label does not count, a
            label outside of [0, 1] is an error of the run.
        weight: as in `gr.loss.mean`, like `name`, `scale` and `log_variance`.
        label_smoothing: ε in [0, 1) moves the label towards 1/2: label * (1 - ε) + ε / 2.

    Shape:
        [] or [1] per row.

    Returns:
        the value per row.

    Example:
        >>> score = nn.Linear(16, 1)
        >>> logit = score(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.loss.bce_with_logits(logit, batch.impression.clicked)
        <float32, one per 'impression'>
    """
    place = find_place()
    prediction = scalar(logit, "the logit", place, 0)
    expect_logits("bce_with_logits", logit, place)
    given = as_value(label, place.part(1), like=prediction)
    truth = cast(given, prediction.dtype, place.part(1).named(""))
    truth = squeeze(truth, place.named(""))
    expect_one_domain("bce_with_logits", prediction, truth, place)
    if truth.shape:
        raise ModelError("the label of 'bce_with_logits' must be one number per row", place.part(1), truth._label())
    valid, unsmoothed = truth.valid, truth
    truth = where_weighed(truth, weight, place)
    if smoothing := _check_smoothing(label_smoothing, place):
        truth = truth * (1.0 - smoothing) + smoothing / 2.0
    x = emit(
        "bce_with_logits", [prediction, truth], prediction.domain, (), prediction.dtype, place,
        both_valid(prediction, truth),
    )  # fmt: skip
    # Errors name the original column, not the converted value. A bool needs no check.
    checked = given if not given.shape and given.dtype.is_number else unsmoothed
    required = None if given.dtype.name == "bool" else Required(checked, 0.0, 1.0)
    return declare_loss(x, valid, weight, name, scale, place, log_variance, required)


def softmax_cross_entropy(
    logits: ValueLike,
    label: ValueLike,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
    log_variance: ValueLike | None = None,
    label_smoothing: float = 0.0,
) -> Value:
    """Cross entropy of a softmax over classes: log Σ exp(logits) - logits[label].

    Args:
        logits: one per class.
        label: the class, an integer in [0, classes); a row with a null label does not count, another label is an error
            of the run.
        weight: as in `gr.loss.mean`, like `name`, `scale` and `log_variance`.
        label_smoothing: with ε in [0, 1) the target is 1 - ε at the label plus ε / classes everywhere, as in PyTorch
            (Szegedy et al. 2016).

    Shape:
        logits [classes], label [].

    Returns:
        the value per row.

    Example:
        >>> logits = nn.Linear(16, 5)(gr.Table("user", dim=16)(batch.user))
        >>> gr.loss.softmax_cross_entropy(logits, gr.mod(batch.held_out, 5))
        <float32, one per 'request'>
    """
    place = find_place()
    prediction = rows_of_floats(logits, "'softmax_cross_entropy'", 0)
    expect_logits("softmax_cross_entropy", logits, place)
    truth = as_ids(label, "the label of 'softmax_cross_entropy'", place.part(1))
    smoothing = _check_smoothing(label_smoothing, place)
    return _cross_entropy(prediction, truth, weight, name, scale, place, log_variance, smoothing)


def _check_smoothing(smoothing: float, place: Place) -> float:
    if not 0 <= smoothing < 1:
        raise ModelError(f"label_smoothing must be in [0, 1), got {smoothing}", place.part("label_smoothing"))
    return float(smoothing)


def _cross_entropy(
    logits: Value,
    label: Value,
    weight: ValueLike | None,
    name: str,
    scale: float,
    place: Place,
    log_variance: ValueLike | None = None,
    smoothing: float = 0.0,
) -> Value:
    expect_one_domain("softmax_cross_entropy", logits, label, place)
    items = items_scored(logits)
    options = {"label_smoothing": smoothing} if smoothing and items is None else {}
    x = emit(
        "softmax_cross_entropy", [logits, label], logits.domain, (), logits.dtype, place, both_valid(logits, label),
        **options,
    )  # fmt: skip
    if smoothing and items is not None:
        x = _smooth_over_items(x, logits, smoothing)
    required = Required(label, 0.0, float(logits.shape[0] - 1), items)
    return declare_loss(x, label.valid, weight, name, scale, place, log_variance, required)


def _smooth_over_items(cross_entropy: Value, logits: Value, smoothing: float) -> Value:
    """Label smoothing of the cross entropy of `gr.scores`: only items that exist have a part of ε. (The op's own
    attribute counts every column.) The cross entropy of item j is log_sum - logits[j].
    """
    exists = logits > NO_SCORE / 2
    largest = detach(logits.row_max())
    log_sum = functional.log(functional.exp(logits - largest).row_sum()) + largest
    mean = where(exists, logits, 0.0).row_sum() / exists.astype(float32).row_sum()
    return cross_entropy * (1.0 - smoothing) + (log_sum - mean) * smoothing


def mse(
    prediction: ValueLike,
    label: ValueLike,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
    log_variance: ValueLike | None = None,
) -> Value:
    """Squared error: (prediction - label)² per row, for ratings, prices and times.

    Args:
        prediction: a float per row.
        label: a number per row; a row with a null label does not count.
        weight: as in `gr.loss.mean`, like `name`, `scale` and `log_variance`.

    Shape:
        [] or [1], and [].

    Returns:
        the value per row.

    Example:
        >>> score = nn.Linear(16, 1)
        >>> seconds = score(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.loss.mse(seconds, batch.impression.seconds)
        <float32, one per 'impression'>
    """
    place = find_place()
    value, truth = labelled("mse", "the prediction", prediction, label, place)
    truth = where_weighed(truth, weight, place)
    difference = value - truth
    return declare_loss(difference * difference, truth.valid, weight, name, scale, place, log_variance)


def mae(
    prediction: ValueLike,
    label: ValueLike,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
    log_variance: ValueLike | None = None,
) -> Value:
    """Absolute error: |prediction - label| per row, with gradient 0 where they are equal. Outliers count less than with
    `gr.loss.mse`, whose arguments it takes.

    Shape:
        [] or [1], and [].

    Returns:
        the value per row.

    Example:
        >>> score = nn.Linear(16, 1)
        >>> seconds = score(gr.Table("item", dim=16)(batch.impression.item))
        >>> gr.loss.mae(seconds, batch.impression.seconds)
        <float32, one per 'impression'>
    """
    place = find_place()
    value, truth = labelled("mae", "the prediction", prediction, label, place)
    truth = where_weighed(truth, weight, place)
    return declare_loss(abs(value - truth), truth.valid, weight, name, scale, place, log_variance)


def full_softmax(
    query: ValueLike,
    positive: ValueLike,
    items: Items,
    catalogue: Catalogue,
    temperature: float = 1.0,
    max_items: int | None = None,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
    label_smoothing: float = 0.0,
) -> Value:
    """Softmax cross entropy of an item among all items of a catalogue, with logits query · item / temperature.

    A step multiplies the rows with all items three to four times; of 2,048 scores or more, 512 are in memory at a time
    (`genrec-compile --split-classes`).

    Args:
        query: what items are compared with.
        positive: the item's id per row; a row with a null one does not count.
        items: the items' vectors: a table, or any function of ids.
        catalogue: of the items.
        temperature: greater than 0.
        max_items: the most items the catalogue may have; the number it has now, unless given.
        weight: as in `gr.loss.mean`, like `name` and `scale`.
        label_smoothing: with ε in [0, 1) the target is 1 - ε at the positive plus ε / items for every item of the
            catalogue. All scores are then in memory at once: rows * `max_items` floats.

    Shape:
        query [d], positive [], items [d].

    Returns:
        the value per row.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> query = item(batch.history.item)
        >>> gr.loss.full_softmax(query, batch.history.next, item, items, temperature=0.05)
        <float32, one per 'history'>
    """
    place = find_place()
    _check_temperature(temperature, place)
    smoothing = _check_smoothing(label_smoothing, place)
    catalogue = expect_catalogue(catalogue, "'full_softmax'", place, 3)
    target = resolve(positive, catalogue, "the positive", place.part(1))
    if temperature != 1:  # of d values rather than of one per item
        query = rows_of_floats(query, "the query of 'full_softmax'", 0) * (1 / temperature)
    logits = scores(query, items, catalogue, max_items)
    expect_one_domain("full_softmax", logits, target, place)
    return _cross_entropy(logits, target, weight, name, scale, place, smoothing=smoothing)


def sampled_softmax(
    query: ValueLike,
    positive: ValueLike,
    items: Items,
    catalogue: Catalogue,
    negatives: int,
    temperature: float = 1.0,
    shared: bool = False,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
) -> Value:
    """Softmax cross entropy of an item among itself and sampled items of a catalogue, with logits query · item /
    temperature.

    Negatives are drawn uniformly with replacement. One that is the row's own positive is masked; other accidental hits
    are not.

    Args:
        query: what items are compared with.
        positive: the item's id per row; a row with a null one does not count.
        items: the items' vectors: a table, or any function of ids.
        catalogue: where negatives come from.
        negatives: how many, at least 1.
        temperature: greater than 0.
        shared: draw once per step for all rows, instead of for each row.
        weight: as in `gr.loss.mean`, like `name` and `scale`.

    Shape:
        query [d], positive [], items [d].

    Returns:
        the value per row.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> query = nn.l2_normalize(item(batch.history.item))
        >>> vectors = item.l2_normalized()
        >>> gr.loss.sampled_softmax(query, batch.history.next, vectors, items, negatives=128, temperature=0.05)
        <float32, one per 'history'>
    """
    place = find_place()
    _check_temperature(temperature, place)
    catalogue = expect_catalogue(catalogue, "'sampled_softmax'", place, 3)
    negatives = counted(negatives, "the negatives of 'sampled_softmax'", place.part("negatives"))
    rows = rows_of_floats(query, "'sampled_softmax'", 0)
    target = resolve(positive, catalogue, "the positive", place.part(1))
    expect_one_domain("sampled_softmax", rows, target, place)
    vectors = vectors_of(items, catalogue, place.part(2))
    if vectors.shape != rows.shape:
        raise ModelError(
            f"'sampled_softmax' needs queries and items of one size, got [{rows.shape[0]}] and [{vectors.shape[0]}]",
            place.part(0), rows._label(), f"the items are {vectors._label()}",
        )  # fmt: skip
    x = emit(
        "sampled_softmax", [rows, target, vectors], rows.domain, (), float32, place, target.valid,
        negatives=negatives, shared=shared, temperature=float(temperature), stream=0, **product_attributes(float32),
    )  # fmt: skip
    return declare_loss(x, target.valid, weight, name, scale, place)


def in_batch_softmax(
    query: ValueLike,
    item: ValueLike,
    id: ValueLike,
    temperature: float = 1.0,
    log_q: ValueLike | None = None,
    weight: ValueLike | None = None,
    name: str = "loss",
    scale: float = 1.0,
) -> Value:
    """Softmax cross entropy of each row's item among the items of all rows of the batch, with logits query · item /
    temperature - log_q: the loss of two-tower retrieval models (Yi et al. 2019). No catalogue is needed.

    Rows that do not count (a null id or `log_q`, or weight 0) have no loss and are nobody's negatives. Other rows with
    the row's own id are left out of its softmax. A row that is alone has loss 0.

    Negatives are the rows of the row's own portion of the batch: with `--portions 8`, an eighth of them. Results are
    the same bits on any number of ranks, but depend on `--portions`, as the loss of `evaluate` does on its batch.
    Scores are float32, within `gr.autocast`, too; of them a block is in memory at a time.

    Args:
        query: what items are compared with.
        item: the vector of the row's item, its positive; of the row's domain.
        id: of the item; a row with a null one does not count.
        temperature: greater than 0.
        log_q: the logarithm of how often the item is drawn into a batch, such as of its frequency in the data. Without
            it frequent items, which are negatives more often, are scored too low. It gets no gradient.
        weight: as in `gr.loss.mean`, like `name` and `scale`.

    Shape:
        query [d], item [d], id [], log_q [].

    Returns:
        the value per row.

    Example:
        >>> item = gr.Table("item", dim=16)
        >>> query = nn.l2_normalize(nn.Linear(16, 16)(gr.Table("user", dim=16)(batch.user)))
        >>> positive = nn.l2_normalize(nn.Linear(16, 16)(item(batch.held_out)))
        >>> gr.loss.in_batch_softmax(query, positive, batch.held_out, temperature=0.05)
        <float32, one per 'request'>
    """
    place = find_place()
    _check_temperature(temperature, place)
    rows = rows_of_floats(query, "the query of 'in_batch_softmax'", 0)
    items = rows_of_floats(item, "the item of 'in_batch_softmax'", 1)
    target = as_ids(id, "the id of 'in_batch_softmax'", place.part(2))
    values, parts = [rows, items, target], [(0,), (1,), (2,)]
    if log_q is not None:
        logs = scalar(log_q, "log_q", place, "log_q")
        values.append(cast(logs, float32, place.named("")))
        parts.append(("log_q",))
    common_domain("in_batch_softmax", values, place, parts)
    for value, part in zip(values[:2], parts[:2], strict=True):
        if value.domain is None:
            raise ModelError("'in_batch_softmax' takes a vector per row", place.part(*part), value._label())
    if items.shape != rows.shape:
        raise ModelError(
            f"'in_batch_softmax' needs queries and items of one size, got [{rows.shape[0]}] and [{items.shape[0]}]",
            place.part(0), rows._label(), f"the items are {items._label()}",
        )  # fmt: skip
    valid = conjunction(*(value.valid for value in values[2:]), is_weighed(weight, target, place))
    if valid is not None:
        values.append(valid)
    symbol = rows._result.type.domain
    op = rows._recording.emit(
        "in_batch_softmax",
        [value._result for value in values],
        [ValueType(symbol, (), float32.name), ValueType(symbol, (2,), float32.name)],  # and what its gradient needs
        {"temperature": float(temperature)},
        place,
        (1, 1, 1, int(log_q is not None), int(valid is not None)),
    )
    x = Value(rows._recording, op.results[0], rows.domain, place)  # 0 in rows that do not count
    return declare_loss(x, valid, weight, name, scale, place)


def _check_temperature(temperature: float, place: Place) -> None:
    if not 0 < temperature < float("inf"):
        raise ModelError(f"the temperature must be greater than 0, got {temperature}", place.part("temperature"))


def __getattr__(name: str) -> NoReturn:
    raise_missing(__name__, name, OF_LOSS, public_names(globals()))
