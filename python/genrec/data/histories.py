"""Groups events into one history per user, and splits data sets."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import polars as pl

from genrec.data.given import checked_frame, checked_names
from genrec.errors import DataError


def _require(frame: pl.DataFrame, *columns: str) -> None:
    checked_frame(frame)
    for column in columns:
        if not isinstance(column, str):
            raise DataError(f"columns are named one by one, by a text, got {column!r}; the frame has {frame.columns}")
        if column not in frame.columns:
            raise DataError(f"no column {column!r}; the frame has {frame.columns}")
        nulls = frame[column].is_null().arg_true()
        if len(nulls):
            raise DataError(f"column {column!r}, row {nulls[0]}: null where every event needs a value")


def _events(frame: pl.DataFrame, user: str, order: str | None, columns: Sequence[str] | None) -> pl.DataFrame:
    """The events sorted by user and order (ties and no order: as in the file), with the columns to keep."""
    _require(frame, user, *([order] if order else []))
    kept = checked_names(columns, "columns") if columns is not None else [c for c in frame.columns if c != user]
    if not kept:
        raise DataError(f"events need a column beside {user!r}; the frame has {frame.columns}")
    _require(frame, *kept)
    by = [user, order] if order else [user]
    return frame.sort(by, maintain_order=True).select(user, *kept)


def _require_new(name: str, user: str) -> None:
    """Raises `DataError` where the list would have the name of the column beside it."""
    if name == user:
        raise DataError(f"the list and the user's column cannot both be called {name!r}; name= gives the list another")


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

    Example:
        >>> histories = data.group(data.read("ratings.csv"), user="user", order="time")
        >>> histories.columns, histories.height
        (['user', 'history'], 20)
    """
    _require_new(name, user)
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
    minimum: int | None = None,
    name: str = "history",
    parts: int = 2,
) -> tuple[pl.DataFrame, ...]:
    """Holds out each user's last event; with `parts=3` the last but one as well, to choose by.

    With a user's events 0 … n-1, of two parts: training gets the history 0 … n-3, each event with the item after it as
    ``next`` (1 … n-2); evaluation gets the history 0 … n-2, each event with its ``next`` (1 … n-1) for the loss, and
    the item of event n-1 as ``held_out``. Training never sees the last event.

    Of three parts the last is the same, to test on once; validation, to stop early and to choose by, is what evaluation
    would be without the last event: the history 0 … n-3 with ``held_out`` n-2; and training ends one event earlier, so
    that it never sees what either holds out.

        train, validation, test = data.leave_one_out(events, user="user", item="item", order="time", parts=3)

    Args:
        frame: one row per event, in any order.
        user: the column of the user.
        item: the column of the item.
        order: as in `group`.
        columns: the event's columns; by default all but `user`.
        minimum: users with fewer events are left out of all parts; at least, and unless given, `parts` + 1.
        name: of the list column.
        parts: 2 for (training, evaluation), 3 for (training, validation, test).

    Returns:
        One frame per part, each with one row per user.

    Example:
        >>> train, valid = data.leave_one_out(data.read("ratings.csv"), user="user", item="item", order="time")
        >>> train.columns, valid.columns
        (['user', 'history'], ['user', 'history', 'held_out'])
    """
    if parts not in (2, 3):
        raise DataError(f"parts is {parts}; 2 are training and evaluation, 3 training, validation and test")
    _require_new(name, user)
    minimum = parts + 1 if minimum is None else minimum
    if minimum <= parts:
        raise DataError(f"minimum is {minimum}; {parts} parts need at least {parts + 1} events of a user")
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

    def histories(held_back: int) -> pl.DataFrame:
        """The events that have more than `held_back` others after them."""
        part = events.filter(pl.col("__left") > held_back)
        return part.group_by(user, maintain_order=True).agg(pl.struct([*kept, "next"]).alias(name))

    def evaluation(held_back: int) -> pl.DataFrame:
        """The same, with the item of the first event that is held back."""
        held_out = events.filter(pl.col("__left") == held_back).select(user, pl.col(item).alias("held_out"))
        return histories(held_back).join(held_out, on=user, how="left", maintain_order="left")

    return (histories(parts - 1), *(evaluation(held_back) for held_back in reversed(range(parts - 1))))


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

    Example:
        >>> train, valid = data.temporal_split(data.read("ratings.csv"), time="time", fraction=0.1)
        >>> train.height, valid.height
        (152, 18)
    """
    _require(frame, time)
    if (at is None) == (fraction is None):
        raise DataError("pass either at= or fraction=")
    if fraction is not None:
        if not isinstance(fraction, int | float) or not 0 < fraction < 1:
            raise DataError(f"fraction is {fraction!r}; it must be a number between 0 and 1")
        if frame.is_empty():
            return frame, frame
        # Rounded first: 10 * (1 - 0.9) is 0.9999…, but 1 of 10 rows is meant.
        at = frame[time].sort()[int(round(frame.height * (1 - fraction), 6))]
    late = pl.col(time) >= at
    try:
        return frame.filter(~late), frame.filter(late)
    except pl.exceptions.PolarsError as error:
        raise DataError(
            f"column {time!r} is {frame[time].dtype}, and at is {at!r}, which cannot be compared with it; "
            "a column of datetimes takes a datetime, with a time zone if it has one"
        ) from error
