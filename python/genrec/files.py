"""The Parquet files that a path stands for, by the rules of `--data` of a compiled model."""

import errno
import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath

from genrec.errors import DataError

ENDINGS = (".parquet", ".parq", ".pq")


def files_of(path: str | PathLike[str]) -> list[str]:
    """The files of a path: the file itself, all Parquet files below a folder (sorted), or the matches of a pattern, in
    which `**` is any number of folders; also several of these, separated by commas. An existing path is not split
    there.

    Raises `DataError` if there is no such file, or a folder cannot be read.
    """
    text = fspath(path)
    _require_reachable(text)
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


@contextmanager
def reading_parquet(path: str | PathLike[str]) -> Iterator[None]:
    """Has a Parquet file read; what goes wrong becomes a `DataError`. A file without permission is told in the words of
    the compiled model (`parquet_file.cpp`).
    """
    import pyarrow as pa

    try:
        yield
    except FileNotFoundError as error:
        raise DataError(f"{path}: there is no such file") from error
    except PermissionError as error:
        help = "let this user read it (chmod u+r), or name the files to read instead"
        raise DataError(f"{path}: cannot be read: {os.strerror(errno.EACCES)}; {help}") from error
    except (OSError, pa.ArrowException) as error:
        raise DataError(
            f"{path}: cannot be read as Parquet: {error}; text files become Parquet by genrec.data"
        ) from error


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
    _require_reachable(folder)
    if not os.path.isdir(folder):
        return
    status = os.stat(folder)
    if (status.st_dev, status.st_ino) in entered:
        return
    entered.add((status.st_dev, status.st_ino))
    yield folder
    for entry in _entries(folder):
        if not _is_hidden(entry.name):
            yield from _folders(entry.path, entered)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """What a folder holds, sorted. Raises `DataError` where it cannot be listed, or what it holds cannot be reached."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        os.stat(os.path.join(folder, "."))
    except OSError as error:
        raise _unreadable(folder, error) from error
    return entries


def _unreadable(folder: str, error: OSError) -> DataError:
    """In the words of the compiled model (`file_list.cpp`)."""
    help = "let this user read it and enter it (chmod u+rx), or name the files to read instead"
    return DataError(f"folder {folder!r} cannot be read: {error.strerror}; {help}")


def _require_reachable(path: str) -> None:
    """Raises `DataError` where a folder on the way to `path` may not be entered: `path` only seems not to exist."""
    try:
        os.stat(path)
    except PermissionError as error:
        folder = os.path.dirname(path) or "."
        _require_reachable(folder)
        if _may_enter(folder):  # so `path` is a link to what this user may not enter
            folder = path
        raise _unreadable(folder, error) from error
    except (OSError, ValueError):
        pass  # what is not there is told by those who look for it


def _may_enter(folder: str) -> bool:
    return os.path.exists(os.path.join(folder, "."))


def _is_hidden(name: str) -> bool:
    return name.startswith((".", "_"))


def _in_folder(folder: str) -> list[str]:
    entries = (entry for each in _folders(folder, set()) for entry in _entries(each) if _is_data(entry.name))
    paths = sorted(entry.path for entry in entries)
    for path in paths:
        _require_reachable(path)
    files = [path for path in paths if os.path.isfile(path)]
    if not files:
        raise DataError(f"folder {folder!r} holds no Parquet file (*.parquet)")
    return files


def _is_data(name: str) -> bool:
    return not _is_hidden(name) and os.path.splitext(name)[1].lower() in ENDINGS
