"""The Parquet files that a path stands for, by the rules of `--data` of a compiled model."""

import glob
import os
from collections.abc import Iterator
from os import PathLike, fspath

from genrec.errors import DataError

ENDINGS = (".parquet", ".parq", ".pq")


def files_of(path: str | PathLike[str]) -> list[str]:
    """The files of a path: the file itself, all Parquet files below a folder (sorted), or the matches of a pattern, in
    which `**` is any number of folders; also several of these, separated by commas. An existing path is not split
    there.

    Raises `DataError` if there is no such file.
    """
    text = fspath(path)
    if "," in text and not _is_there(text):
        return [file for part in text.split(",") if part for file in files_of(part)]
    if os.path.isdir(text):
        return _in_folder(text)
    if not os.path.exists(text) and glob.has_magic(text):
        found = _matches(text)
        if not found:
            raise DataError(f"no file matches {text!r}")
        return [file for one in found for file in (_in_folder(one) if os.path.isdir(one) else [one])]
    return [text]


def _is_there(text: str) -> bool:
    return os.path.exists(text) or (glob.has_magic(text) and bool(_matches(text)))


def _matches(pattern: str) -> list[str]:
    """What a pattern matches, sorted; a component `**` is any number of folders, and at the end all that lies below."""
    above, recursive, below = f"/{pattern}".partition("/**/")
    if not recursive:
        return sorted(glob.glob(os.path.expanduser(pattern.removesuffix("/**"))))
    tops = glob.glob(os.path.expanduser(above[1:] or ("." if pattern.startswith("**/") else "/")))
    entered: set[tuple[int, int]] = set()
    folders = [folder for top in sorted(tops) for folder in _folders(top, entered)]
    return sorted({path for folder in folders for path in _matches(os.path.join(folder, below))})


def _folders(folder: str, entered: set[tuple[int, int]]) -> Iterator[str]:
    """`folder` and the folders below it, but hidden ones, following links. Each once: links may form cycles."""
    if not os.path.isdir(folder):
        return
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) in entered:
        return
    entered.add((status.st_dev, status.st_ino))
    yield folder
    for entry in os.scandir(folder):
        if not _is_hidden(entry.name):
            yield from _folders(entry.path, entered)


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _in_folder(folder: str) -> list[str]:
    entries = (entry for each in _folders(folder, set()) for entry in os.scandir(each))
    files = sorted(entry.path for entry in entries if entry.is_file() and _is_data(entry.name))
    if not files:
        raise DataError(f"folder {folder!r} holds no Parquet file (*.parquet)")
    return files


def _is_data(name: str) -> bool:
    return not _is_hidden(name) and os.path.splitext(name)[1].lower() in ENDINGS
