"""Rows of events to one history per user, and splits of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from genrec.errors import DataError


def _require(frame: pl.DataFrame, *columns: str) -> None:
    for column in columns:
        if column not in frame.columns:
            raise DataError(f"no column {column!r}; the frame has {frame.columns}")
        nulls = frame[column].is_null().arg_true()
        if len(nulls):
            raise DataError(f"column {column!r}, row {nulls[0]}: null where every event needs a value")


def _events(frame: pl.DataFrame, user: str, order: str | None, columns: Sequence[str] | None) -> pl.DataFrame:
    """The events sorted by user and order (ties and no order: as in the file), with the columns to keep."""
    _require(frame, user, *([order] if order else []))
    kept = list(columns) if columns is not None else [c for c in frame.columns if c != user]
    _require(frame, *kept)
    by = [user, order] if order else [user]
    return frame.sort(by, maintain_order=True).select(user, *kept)


def group(
    frame: pl.DataFrame,
    *,
    user: str,
    order: str | None = None,
    columns: Sequence[str] | None = None,
    name: str = "history",
) -> pl.DataFrame:
    """One row per user with all of the user's events, oldest first, as a list of structs.

    Args:
        frame: one row per event, in any order.
        user: the column to group by.
        order: the column that orders a user's events (a time or a position); equal values, and all events when it is
            None, keep the order of the frame.
        columns: the event's columns; by default all but `user`.
        name: of the list column.

    Returns:
        Columns `user` and `name`, sorted by user.
    """
    events = _events(frame, user, order, columns)
    kept = [c for c in events.columns if c != user]
    return events.group_by(user, maintain_order=True).agg(pl.struct(kept).alias(name))


def leave_one_out(
    frame: pl.DataFrame,
    *,
    user: str,
    item: str,
    order: str | None = None,
    columns: Sequence[str] | None = None,
    minimum: int = 3,
    name: str = "history",
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Holds out each user's last event.

    With a user's events 0 … n-1: training gets the history 0 … n-3, each event with the item after it as ``next``
    (1 … n-2); evaluation gets the history 0 … n-2, each event with its ``next`` (1 … n-1) for the loss, and the item
    of event n-1 as ``held_out``. Training never sees the last event.

    Args:
        frame: one row per event, in any order.
        user: the column of the user.
        item: the column of the item.
        order: as in `group`.
        columns: the event's columns; by default all but `user`.
        minimum: users with fewer events are left out of both parts; at least 3.
        name: of the list column.

    Returns:
        (training, evaluation): one row per user each.
    """
    if minimum < 3:
        raise DataError(f"minimum is {minimum}; training and evaluation need at least 3 events of a user")
    events = _events(frame, user, order, columns)
    if item not in events.columns:
        raise DataError(f"the item column {item!r} is not among the event's columns {events.columns}")
    kept = [c for c in events.columns if c != user]
    if "next" in kept:
        raise DataError("the events have a column 'next' of their own; rename it")
    events = events.with_columns(
        pl.col(item).shift(-1).over(user).alias("next"),
        (pl.len().over(user) - 1 - pl.int_range(pl.len()).over(user)).alias("__left"),
        pl.len().over(user).alias("__events"),
    ).filter(pl.col("__events") >= minimum)
    train = events.filter(pl.col("__left") >= 2)
    valid = events.filter(pl.col("__left") >= 1)
    last = events.filter(pl.col("__left") == 0).select(user, pl.col(item).alias("held_out"))
    training = train.group_by(user, maintain_order=True).agg(pl.struct([*kept, "next"]).alias(name))
    evaluation = valid.group_by(user, maintain_order=True).agg(pl.struct([*kept, "next"]).alias(name))
    return training, evaluation.join(last, on=user, how="left", maintain_order="left")


def temporal_split(
    frame: pl.DataFrame, *, time: str, at: int | float | datetime | None = None, fraction: float | None = None
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Splits rows into those before a moment and those from it on; both keep the order of the frame.

    Args:
        frame: one row per event or request.
        time: the column to split by.
        at: the moment; rows at it belong to the second part.
        fraction: instead of `at`: about this share of the rows (the latest) form the second part; rows of one time
            stay together.
    """
    _require(frame, time)
    if (at is None) == (fraction is None):
        raise DataError("pass either at= or fraction=")
    if fraction is not None:
        if not 0 < fraction < 1:
            raise DataError(f"fraction is {fraction}; it must lie between 0 and 1")
        at = frame[time].sort()[int(frame.height * (1 - fraction))]
    late = pl.col(time) >= at
    return frame.filter(~late), frame.filter(late)
