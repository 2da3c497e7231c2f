"""String ids to integers, with the mapping kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from genrec.data.given import checked_frame, checked_series, make_folder_of, remove_partial, why
from genrec.errors import DataError


class IdMapping:
    """A one-to-one mapping of values (strings, or integers of any size) to the ids 0, 1, 2, …

    Ids are given in the order of first appearance and never change: `extend` only adds.

    Example:
        >>> mapping = data.IdMapping(["tt0111161", "tt0068646"])
        >>> mapping.extend(["tt0468569"])
        >>> len(mapping), mapping.id_of("tt0468569"), mapping.value_of(0)
        (3, 2, 'tt0111161')
        >>> mapping.save("movies.json")
        >>> data.IdMapping.load("movies.json").decode(pl.Series("movie", [1, None])).to_list()
        ['tt0068646', None]
        >>> mapping.encode(pl.Series("movie", ["tt0468569"])).to_list()
        [2]
    """

    def __init__(self, values: Iterable[str | int] = ()) -> None:
        if isinstance(values, str):
            raise DataError(f"a mapping is made of a list of values, got the text {values!r}")
        self._values: list[str | int] = []
        self._ids: dict[str | int, int] = {}
        self.extend(values)

    def __len__(self) -> int:
        return len(self._values)

    def extend(self, values: Iterable[str | int]) -> None:
        """Adds the values that are not yet known."""
        for value in values:
            if value not in self._ids:
                self._ids[value] = len(self._values)
                self._values.append(value)

    def id_of(self, value: str | int) -> int:
        """The id of `value`; KeyError when it is unknown."""
        return self._ids[value]

    def value_of(self, identifier: int) -> str | int:
        """The value behind an id; IndexError when there is none."""
        if identifier < 0:
            raise IndexError(f"id {identifier} is negative")
        return self._values[identifier]

    def encode(self, series: pl.Series) -> pl.Series:
        """Ids (int64) of a column's values; nulls stay null.

        Raises:
            DataError: a value is unknown; the message names it and its row. Or the column is of strings and the mapping
                of integers, or the other way round.
        """
        checked_series(series)
        self._check_kind(series)
        # The column's values rather than the mapping's: these need not fit the column's type.
        present = series.drop_nulls().unique()
        ids = series.replace_strict(
            present,
            pl.Series([self._ids.get(value) for value in present.to_list()], dtype=pl.Int64),
            default=None,
            return_dtype=pl.Int64,
        )
        unknown = (ids.is_null() & series.is_not_null()).arg_true()
        if len(unknown):
            row = unknown[0]
            raise DataError(
                f"column {series.name!r}, row {row}: {series[row]!r} is not in the mapping; extend it first"
            )
        return ids.alias(series.name)

    def _check_kind(self, series: pl.Series) -> None:
        """Raises `DataError` for a column of strings where the mapping has integers only, or the other way round."""
        first = series.drop_nulls().head(1).to_list()
        if not first or not self._values:
            return
        is_text = isinstance(first[0], str)
        if not any(isinstance(value, str) == is_text for value in self._values):
            kinds = ("strings", "integers") if is_text else ("integers", "strings")
            target = "pl.Int64" if is_text else "pl.String"
            raise DataError(
                f"column {series.name!r} is of {kinds[0]} ({series.dtype}), but the mapping is of {kinds[1]}; "
                f"cast it first: pl.col({series.name!r}).cast({target}), or give it a mapping of its own"
            )

    def decode(self, series: pl.Series) -> pl.Series:
        """The values behind a column of ids; nulls stay null. Raises `DataError` for an id that the mapping has not."""
        checked_series(series)
        unknown = ((series < 0) | (series >= len(self))).arg_true()
        if len(unknown):
            row = unknown[0]
            raise DataError(
                f"column {series.name!r}, row {row}: the mapping has no id {series[row]}, it has 0 to {len(self) - 1}"
            )
        return pl.Series(series.name, [None if i is None else self.value_of(i) for i in series.to_list()])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the mapping as a JSON list; the position of a value is its id. Its folder is made if missing.

        Raises:
            DataError: the file cannot be written; what was there before stays.
        """
        aside = Path(f"{path}.partial")
        try:
            make_folder_of(Path(path))
            aside.write_text(json.dumps(self._values, ensure_ascii=False), encoding="utf-8")
            aside.replace(path)
        except OSError as error:
            remove_partial(aside)
            raise DataError(f"{path}: {why(error)}") from error

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdMapping:
        """Reads what `save` wrote."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise DataError(f"{path}: {why(error)}") from error
        except (UnicodeDecodeError, json.JSONDecodeError) as error:
            raise DataError(f"{path}: not an id mapping, which IdMapping.save writes: {error}") from error
        if not isinstance(values, list) or not all(isinstance(v, str | int) for v in values):
            raise DataError(f"{path}: not an id mapping: expected a list of strings or integers")
        return cls(values)


def encode_ids(frame: pl.DataFrame, column: str, mapping: IdMapping | None = None) -> tuple[pl.DataFrame, IdMapping]:
    """Replaces `column` by integer ids; returns the frame and the mapping.

    A mapping that is passed in is extended by the values it does not know, so that several files share ids.

    Args:
        frame: rows of any kind.
        column: strings or integers, of any width; nulls stay null.
        mapping: one that several files share.

    Example:
        >>> frame, mapping = data.encode_ids(pl.DataFrame({"movie": ["b", "a", "b"]}), "movie")
        >>> frame["movie"].to_list(), mapping.value_of(0)
        ([0, 1, 0], 'b')
    """
    if not isinstance(column, str):
        raise DataError(f"one column is encoded, named by a text, got {type(column).__name__}")
    if column not in checked_frame(frame).columns:
        raise DataError(f"no column {column!r}; the frame has {frame.columns}")
    mapping = mapping if mapping is not None else IdMapping()
    if not isinstance(mapping, IdMapping):
        raise DataError(f"mapping takes an IdMapping, got {type(mapping).__name__}; IdMapping.load(path) reads a file")
    if frame[column].dtype.is_nested():
        raise DataError(f"column {column!r} is of lists or structs ({frame[column].dtype}); explode it first")
    mapping._check_kind(frame[column])  # before values are added
    mapping.extend(frame[column].drop_nulls().unique(maintain_order=True).to_list())
    return frame.with_columns(mapping.encode(frame[column])), mapping
