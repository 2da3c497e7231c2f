"""Converts the argument of `train(init=...)` to entries of a compiled model's `--init`."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np

Init = Any
"""A path (an export, a checkpoint, a safetensors file), a mapping of names of tables and parameters to sources, or a
list of these. See `CompiledModel.train`."""


@contextmanager
def init_entries(init: Init) -> Iterator[list[str]]:
    """`init` as entries; arrays in memory are written to temporary files.

    Raises `TypeError` for an unsupported source.
    """
    with tempfile.TemporaryDirectory(prefix="genrec-init-") as folder:
        yield list(_entries(init, Path(folder)))


def _entries(init: Init, folder: Path) -> Iterator[str]:
    if init is None:
        return
    if isinstance(init, str | PathLike):
        yield fspath(init)
    elif isinstance(init, Mapping):
        for name, source in init.items():
            yield f"{name}={_source(name, source, folder)}"
    elif isinstance(init, list | tuple):
        for one in init:
            yield from _entries(one, folder)
    else:
        raise TypeError(
            "init takes a path, or a mapping of names of tables and parameters to paths or arrays, such as "
            f"{{'item': vectors}}, got {type(init).__name__}"
        )


def _source(name: str, source: Any, folder: Path) -> str:
    """The text after "name=" in an entry."""
    if isinstance(source, str | PathLike):
        return fspath(source)
    pair = isinstance(source, tuple) and len(source) == 2
    if pair and isinstance(source[0], str | PathLike):
        there = source[1]
        return f"{fspath(source[0])}:{there if isinstance(there, str) else ','.join(there)}"
    if pair:
        ids = _array(name, source[0], "ids")
        if ids.dtype.kind not in "iu" or ids.ndim != 1:
            raise TypeError(f"init of '{name}': ids must be one integer per row, got {ids.dtype} {list(ids.shape)}")
        return f"{_save(_array(name, source[1], 'vectors'), folder)}:{_save(ids, folder)}"
    return _save(_array(name, source, "an array"), folder)


def _array(name: str, given: Any, what: str) -> "np.ndarray[Any, Any]":
    array = np.asarray(given) if not isinstance(given, Mapping | Sequence | None) or isinstance(given, list) else None
    if array is None or array.dtype.kind not in "fiu":
        raise TypeError(
            f"init of '{name}' takes a path, (path, its name there), an array, or (ids, vectors); {what} of numbers "
            f"cannot be made of {type(given).__name__}"
        )
    return array


def _save(array: "np.ndarray[Any, Any]", folder: Path) -> str:
    path = folder / f"{len(list(folder.iterdir()))}.npy"
    np.save(path, np.ascontiguousarray(array))
    return str(path)
