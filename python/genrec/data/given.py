"""What the functions of `genrec.data` are given: frames of Polars, lists of names."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import polars as pl

from genrec.errors import DataError

_BECOMES = {
    "polars": "collect it first: frame.collect()",
    "pandas": "convert it: pl.from_pandas(frame)",
    "pyarrow": "convert it: pl.from_arrow(table)",
    "builtins": "make one: pl.DataFrame({...}), or data.read(path)",
}


def checked_frame(frame: object) -> pl.DataFrame:
    """`frame` itself. Raises `DataError`, with how to make one, for anything but a Polars frame."""
    if isinstance(frame, pl.DataFrame):
        return frame
    kind = type(frame)
    help = _BECOMES.get(kind.__module__.split(".")[0], "")
    raise DataError(f"a Polars frame is needed, got {kind.__name__}" + (f"; {help}" if help else ""))


def checked_series(series: object) -> pl.Series:
    """`series` itself. Raises `DataError` for anything but a Polars series."""
    if not isinstance(series, pl.Series):
        raise DataError(f"a Polars series is needed, such as frame['item'], got {type(series).__name__}")
    return series


def checked_names(names: Sequence[str], what: str) -> list[str]:
    """`names` as a list. Raises `DataError` for a text, whose letters are no names."""
    if isinstance(names, str):
        raise DataError(f"{what} takes a list, [{names!r}], got the text {names!r}")
    return list(names)


def why(error: Exception) -> str:
    """The system's reason, in a few words, and what to do about a full disk."""
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    number = error.errno if isinstance(error, OSError) else None
    is_full = number == errno.ENOSPC or os.strerror(errno.ENOSPC) in said
    return f"{said}; free some space, or write to another folder" if is_full else said


def make_folder_of(path: Path) -> None:
    """Makes the folder of a file. Raises `DataError` where something else has its name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise DataError(f"{path}: {path.parent} is a file, or lies in one, and no folder") from error


def remove_partial(path: Path) -> None:
    """Removes what was written of a file, if anything."""
    with suppress(OSError):
        path.unlink()
