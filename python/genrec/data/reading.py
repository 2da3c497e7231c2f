"""Reads delimited text in the forms that public data sets come in."""

from __future__ import annotations

import csv
import gzip
import io
import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

from genrec.data.given import checked_names, why
from genrec.errors import DataError

# A character that no text file of rows holds; stands in for separators of several characters.
_UNIT_SEPARATOR = "\x1f"
_OTHER_READERS = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), "Parquet is read by pl.read_parquet, and by models as it is"),
    ".json": "pl.read_json reads it",
    **dict.fromkeys((".jsonl", ".ndjson"), "pl.read_ndjson reads it"),
    **dict.fromkeys((".zip", ".tar", ".tgz", ".7z", ".rar"), "unpack it, and read the file in it"),
    **dict.fromkeys((".xls", ".xlsx"), "pl.read_excel reads it, or save it as .csv"),
}
_SEPARATORS = {".csv": ",", ".tsv": "\t", ".data": "\t", ".dat": "::", ".txt": "\t"}


def read(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    separator: str | None = None,
    header: bool | None = None,
    encoding: str = "utf-8",
    null_values: Sequence[str] = (),
) -> pl.DataFrame:
    """Reads a delimited file, keeping the order of its rows.

    Args:
        path: a ``.csv``, ``.tsv``, ``.dat`` or other text file, plain or ending in ``.zst`` or ``.gz``.
        columns: names for the columns. Without a header line there must be one per column of the file; with one, they
            choose columns by name.
        separator: one or more characters; by default ``,`` for csv, ``::`` for dat, a tab otherwise. A file that is
            one column of that, and whose first line holds another common separator, is an error that names it.
        header: whether the first line names the columns; by default true for csv and tsv files.
        encoding: ``utf-8`` or ``latin-1``.
        null_values: strings that stand for a missing value, besides the empty string.

    Returns:
        One row per line; integers, floats and strings by what the column holds.

    Raises:
        DataError: the file is missing, damaged, not in that encoding, or has other columns.

    Example:
        >>> events = data.read("ratings.csv")
        >>> events.columns, events.height
        (['user', 'item', 'time'], 170)
    """
    path = Path(path)
    kind = _kind(path)
    columns = checked_names(columns, "columns") if columns is not None else None
    null_values = checked_names(null_values, "null_values")
    _check_format(path, kind)
    is_given, separator = bool(separator), separator or _SEPARATORS.get(kind, "\t")
    header = kind in (".csv", ".tsv") if header is None else header
    raw = _uncompress(path)
    if header is False and columns is None:
        raise DataError(f"{path}: the file has no header line; pass columns=[...] to name its columns")
    text = _decode(path, raw, encoding)
    if not text.strip():
        raise DataError(f"{path}: no rows")
    if not is_given:
        _check_separator(path, text, separator)
    if len(separator) > 1:
        if _UNIT_SEPARATOR in text:
            raise DataError(f"{path}: holds the character U+001F, which stands in for the separator '{separator}'")
        text = text.replace(separator, _UNIT_SEPARATOR)
    frame = _parse(path, text, separator, header, columns, null_values)
    if frame.height == 0:
        raise DataError(f"{path}: no rows")
    return frame


def _check_format(path: Path, kind: str) -> None:
    """Raises `DataError` for a folder, and for files of other formats, with what reads them."""
    if path.is_dir():
        raise DataError(f"{path}: is a folder; read its files one by one, and join them with pl.concat")
    if "*" in path.name and not path.exists():
        raise DataError(f"{path}: is a pattern, and one file is read: for path in glob.glob({str(path)!r})")
    if kind in _OTHER_READERS and path.exists():
        raise DataError(f"{path}: is no delimited text; {_OTHER_READERS[kind]}")


def _check_separator(path: Path, text: str, separator: str) -> None:
    """Raises `DataError` where the first line of `text` has other separators, and not the one its name stands for."""
    first = text.lstrip("\ufeff").split("\n", 1)[0]
    other = next((one for one in ("\t", "::", ";", "|", ",") if one in first and one != separator), None)
    if other is not None and separator not in first:
        raise DataError(
            f"{path}: its first line has {other!r} and no {separator!r}, by which {path.suffix or 'such'} files are "
            f"separated unless said otherwise; pass separator={other!r}, or separator={separator!r} if it is one column"
        )


def _parse(
    path: Path, text: str, separator: str, header: bool, columns: Sequence[str] | None, null_values: Sequence[str]
) -> pl.DataFrame:
    # Formats with separators of several characters know no quotes: a title may hold a lone one.
    quote = None if len(separator) > 1 or separator == "\t" else '"'
    sign = _UNIT_SEPARATOR if len(separator) > 1 else separator
    if sign in text:
        text = text.rstrip("\n") + "\n"
    first = _first_record(text, sign, quote)
    if not header and columns is not None and len(columns) != len(first):
        raise DataError(f"{path}: has {len(first)} columns, but {len(columns)} names were given: {list(columns)}")
    twice = next((name for i, name in enumerate(first) if name and name in first[:i]), None) if header else None
    if twice is not None:
        raise DataError(f"{path}, line 1: names the column {twice!r} twice; give each column a name of its own")
    _check_widths(path, text, separator, sign, quote, len(first))
    try:
        frame = pl.read_csv(
            io.BytesIO(text.encode()),
            separator=sign,
            quote_char=quote,
            has_header=header,
            null_values=["", *null_values],
            infer_schema_length=None,
        )
    except (pl.exceptions.PolarsError, pa.ArrowInvalid) as error:
        if quote is not None and text.count(quote) % 2 == 1:
            raise DataError(f"{path}: a field begins with {quote} and does not end with one") from error
        raise DataError(f"{path}: {str(error).splitlines()[0]}") from error
    if columns is None:
        return frame
    if not header:
        return frame.rename(dict(zip(frame.columns, columns, strict=True)))
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise DataError(f"{path}: no column {missing[0]!r}; the file has {frame.columns}")
    return frame.select(columns)


def _first_record(text: str, sign: str, quote: str | None) -> list[str]:
    """The fields of the first line of `text`, which `sign` separates."""
    if quote is None:
        return text.split("\n", 1)[0].split(sign)
    return next(csv.reader(io.StringIO(text), delimiter=sign, quotechar=quote), [])


def _check_widths(path: Path, text: str, separator: str, sign: str, quote: str | None, width: int) -> None:
    """Raises `DataError` at the first line of `text` that has not `width` columns, which `sign` separates."""
    lines = _lines(text)
    if quote is not None and (lines.str.count_matches(quote, literal=True) % 2 == 1).any():
        bad = _first_odd_record(text, sign, quote, width)
    else:
        if quote is not None and quote in text:
            by = f"\\x{{{ord(sign):x}}}"
            lines = lines.str.replace_all(f'(^|{by})"(?:[^"]|"")*"', "$1")
        counts = lines.str.count_matches(sign, literal=True) + 1
        at = (counts != width).arg_max() if width > 1 or sign in text else None
        bad = (at + 1, counts[at]) if at is not None and counts[at] != width else None
    if bad is None:
        return
    line, count = bad
    help = "mend or remove the line"
    if count > width and quote is not None:
        help += f"; a field that holds {separator!r} stands in quotes"
    columns = "1 column" if count == 1 else f"{count} columns"
    raise DataError(f"{path}, line {line}: has {columns}, but the first line has {width}; {help}")


def _lines(text: str) -> pl.Series:
    """The lines of `text`, also the empty ones."""
    unused = next((sign for sign in map(chr, range(1, 32)) if sign not in "\n\r" and sign not in text), None)
    if unused is None:
        return pl.Series(text.removesuffix("\n").split("\n"))
    frame = pl.read_csv(
        io.BytesIO(text.encode()), separator=unused, quote_char=None, has_header=False, infer_schema=False
    )
    return frame.to_series().fill_null("")


def _first_odd_record(text: str, sign: str, quote: str, width: int) -> tuple[int, int] | None:
    """Line and columns of the first record that has not `width` of them, where quoted fields may span lines."""
    rows = csv.reader(io.StringIO(text), delimiter=sign, quotechar=quote)
    begin = 1
    try:
        for row in rows:
            count = max(len(row), 1)
            if count != width:
                return begin, count
            begin = rows.line_num + 1
    except csv.Error:  # a field longer than this module takes, which Polars reads
        pass
    return None


def _kind(path: Path) -> str:
    suffixes = [suffix for suffix in path.suffixes if suffix not in (".zst", ".gz")]
    return suffixes[-1].lower() if suffixes else ""


def _uncompress(path: Path) -> bytes:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: {why(error)}") from error
    try:
        if path.suffix == ".gz":
            return gzip.decompress(raw)
        if path.suffix == ".zst":
            return _zstd(raw)
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: damaged or truncated {path.suffix[1:]} file") from error
    return raw


def _zstd(raw: bytes) -> bytes:
    """All frames of a zstd file, by Arrow's codec, which does not need to know the size."""
    with pa.CompressedInputStream(pa.BufferReader(raw), "zstd") as stream:
        return stream.read()


def _decode(path: Path, raw: bytes, encoding: str) -> str:
    try:
        text = raw.decode(encoding)
    except LookupError as error:
        raise DataError(f"{path}: unknown encoding {encoding!r}; use 'utf-8' or 'latin-1'") from error
    except UnicodeDecodeError as error:
        if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise DataError(f"{path}: not {encoding}; pass encoding='utf-16'") from error
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not {encoding}; pass encoding='latin-1'") from error
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
