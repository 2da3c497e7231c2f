"""String ids to integers, with the mapping kept."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

import polars as pl

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
            DataError: a value is unknown; the message names it and its row.
        """
        ids = series.replace_strict(
            pl.Series(self._values, dtype=series.dtype) if self._values else pl.Series([], dtype=series.dtype),
            pl.Series(range(len(self._values)), dtype=pl.Int64),
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

    def decode(self, series: pl.Series) -> pl.Series:
        """The values behind a column of ids; nulls stay null."""
        return pl.Series(series.name, [None if i is None else self.value_of(i) for i in series.to_list()])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the mapping as a JSON list; the position of a value is its id."""
        aside = Path(f"{path}.partial")
        aside.write_text(json.dumps(self._values, ensure_ascii=False), encoding="utf-8")
        aside.replace(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> IdMapping:
        """Reads what `save` wrote."""
        try:
            values = json.loads(Path(path).read_text(encoding="utf-8"))
        except (OSError, json.JSONDecodeError) as error:
            raise DataError(f"{path}: not an id mapping: {error}") from error
        if not isinstance(values, list) or not all(isinstance(v, str | int) for v in values):
            raise DataError(f"{path}: not an id mapping: expected a list of strings or integers")
        return cls(values)


def encode_ids(frame: pl.DataFrame, column: str, mapping: IdMapping | None = None) -> tuple[pl.DataFrame, IdMapping]:
    """Replaces `column` by integer ids; returns the frame and the mapping.

    A mapping that is passed in is extended by the values it does not know, so that several files share ids.

    Args:
        frame: rows of any kind.
        column: strings or integers; nulls stay null.
        mapping: one that several files share.

    Example:
        >>> frame, mapping = data.encode_ids(pl.DataFrame({"movie": ["b", "a", "b"]}), "movie")
        >>> frame["movie"].to_list(), mapping.value_of(0)
        ([0, 1, 0], 'b')
    """
    if column not in frame.columns:
        raise DataError(f"no column {column!r}; the frame has {frame.columns}")
    mapping = mapping if mapping is not None else IdMapping()
    mapping.extend(frame[column].drop_nulls().unique(maintain_order=True).to_list())
    return frame.with_columns(mapping.encode(frame[column])), mapping
