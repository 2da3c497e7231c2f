"""Writes what compiled models read."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from genrec.data.given import checked_frame, make_folder_of, remove_partial, why
from genrec.errors import DataError

_OTHER_FORMATS = (
    ".arrow", ".avro", ".csv", ".dat", ".data", ".feather", ".ipc", ".json", ".jsonl", ".ndjson", ".npy", ".npz",
    ".orc", ".tsv", ".txt", ".xlsx",
)  # fmt: skip
_COMPRESSIONS = (".bz2", ".gz", ".xz", ".zip", ".zst")


def write(frame: pl.DataFrame, path: str | os.PathLike[str], *, row_group: int = 1 << 16) -> Path:
    """Writes a frame as zstd-compressed Parquet, aside and then renamed: a file is either whole or not there.

    Args:
        frame: one row per root row (user, request, catalogue item); list columns are its child domains.
        path: of the file; its folder is made if missing.
        row_group: rows per row group, which is what a reading thread decodes at a time.

    Raises:
        DataError: the frame has no rows, the file cannot be written, or its name is that of another format.

    Example:
        >>> path = data.write(data.group(data.read("ratings.csv"), user="user", order="time"), "histories.parquet")
        >>> print(gr.Schema.from_parquet(path))
        request
          user: int64
          history
            item: int64
            time: int64
    """
    checked_frame(frame)
    path = Path(path)
    if not path.name:
        raise DataError("write takes the path of a file, got an empty one")
    if row_group < 1:
        raise DataError(f"row_group is {row_group}; a row group has at least 1 row")
    other = _other_ending(path)
    if other:
        name = path.name.removesuffix(other) + ".parquet"
        raise DataError(f"{path}: is written as Parquet, but its name ends in '{other}'; call it {name}")
    if frame.height == 0:
        raise DataError(f"{path}: no rows to write")
    aside = path.with_name(path.name + ".partial")
    try:
        make_folder_of(path)
        pq.write_table(frame.to_arrow(), aside, compression="zstd", row_group_size=row_group)
        aside.replace(path)
    except (OSError, pa.ArrowException) as error:
        remove_partial(aside)
        raise DataError(f"{path}: {why(error)}") from error
    return path


def _other_ending(path: Path) -> str:
    """The ending of a name that is of another format, such as ".csv" or ".csv.gz"; empty where there is none."""
    *_, before, last = ["", "", *path.suffixes]
    if last.lower() in _COMPRESSIONS:
        return before + last if before.lower() in (*_OTHER_FORMATS, ".parquet") else last
    return last if last.lower() in _OTHER_FORMATS else ""
