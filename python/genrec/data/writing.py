"""Writes what compiled models read."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq

from genrec.errors import DataError


def write(frame: pl.DataFrame, path: str | os.PathLike[str], *, row_group: int = 1 << 16) -> Path:
    """Writes a frame as zstd-compressed Parquet, aside and then renamed: a file is either whole or not there.

    Args:
        frame: one row per root row (user, request, catalogue item); list columns are its child domains.
        path: of the file; its folder is made if missing.
        row_group: rows per row group, which is what a reading thread decodes at a time.

    Example:
        >>> path = data.write(data.group(data.read("ratings.csv"), user="user", order="time"), "histories.parquet")
        >>> print(gr.Schema.from_parquet(path))
        request
          user: int64
          history
            item: int64
            time: int64
    """
    path = Path(path)
    if frame.height == 0:
        raise DataError(f"{path}: no rows to write")
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(path.name + ".partial")
    try:
        pq.write_table(frame.to_arrow(), aside, compression="zstd", row_group_size=row_group)
        aside.replace(path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise DataError(f"{path}: {error.strerror or error}") from error
    return path
