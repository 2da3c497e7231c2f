"""Converts data sets to the Parquet files that compiled models read.

Files of events or impressions (CSV, TSV, ``::``; plain, zstd or gzip; UTF-8 or Latin-1; in any row order) become nested
Parquet: one row per user or request, one ``list<struct>`` column per domain below it.

    events = data.read("ratings.dat", columns=["user", "item", "rating", "time"])
    events, items = data.encode_ids(events, "item")              # string ids: integers, mapping kept
    train, valid = data.leave_one_out(events, user="user", item="item", order="time")
    data.write(train, "train.parquet")
    data.write(valid, "valid.parquet")
"""

from typing import NoReturn

from genrec import tracebacks
from genrec.data.histories import group, leave_one_out, temporal_split
from genrec.data.ids import IdMapping, encode_ids
from genrec.data.reading import read
from genrec.data.writing import write
from genrec.errors import DataError
from genrec.hints import OF_DATA, raise_missing

tracebacks.install()


def __getattr__(name: str) -> NoReturn:
    """A name that there is not, with what may be meant."""
    raise_missing(__name__, name, {} if name.startswith("_") else OF_DATA, __all__)


__all__ = ["DataError", "IdMapping", "encode_ids", "group", "leave_one_out", "read", "temporal_split", "write"]
