"""The columns of a search log: the kind of each, from its name, and the transforms between it and a table or layer.

A column is named `<content>_<number>`, `id_017` say. Ids, texts, levels, values and times become ids of a table of the
column's own; amounts, ratios and counts become one number.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike

import genrec as gr

TABLED = ("id", "text", "level", "value", "time")
DENSE = ("amount", "ratio", "count")
DIMS = (4, 8, 4, 16, 8, 4, 8, 16, 32, 4, 8, 16, 4, 8, 32, 64, 4, 8, 16, 8)
BUCKETS = (500, 2000, 8000, 32000)
CROSSED_BITS = 14
HOURS = (0.5, 1, 2, 4, 8, 16, 24, 48, 72, 120, 168)


@dataclass(frozen=True)
class Column:
    """One numbered column; its name determines its kind and transforms."""

    name: str
    content: str
    number: int

    @property
    def has_table(self) -> bool:
        """Whether its values become ids of a table."""
        return self.content in TABLED

    @property
    def dim(self) -> int:
        """Width of its table's rows; 1 without a table."""
        return DIMS[self.number % len(DIMS)] if self.has_table else 1

    @property
    def buckets(self) -> int:
        """Number of ids after hashing and mod."""
        return BUCKETS[self.number % len(BUCKETS)]

    @property
    def edges(self) -> list[float]:
        """Bounds of its buckets: finer for higher numbers."""
        count = 7 + self.number % 9
        return [round(-2 + 4 * edge / (count - 1), 6) for edge in range(count)]


def read_schema(path: str | PathLike[str]) -> gr.Schema:
    """The schema of a log, with nulls where logs have them: in ratios, and in orders of what was not clicked."""
    names = gr.Schema.from_parquet(path).columns
    return gr.Schema.from_parquet(path, nullable=[n for n in names if n.split(".")[-1].startswith(("ratio_", "order"))])


def numbered(features: dict[str, object]) -> list[Column]:
    """The numbered columns among the features of one domain."""
    parts = [(name, *name.rpartition("_")[::2]) for name in features]
    return [Column(name, content, int(number)) for name, content, number in parts if content in TABLED + DENSE]


def make_ids(column: Column, x: gr.Value, now: gr.Value, level: gr.Value | None) -> gr.Value:
    """The table ids of column `column`; `now` is the time of its rows' request, `level` the request's own level to
    cross a level with.
    """
    if column.content in ("id", "text"):
        return gr.mod(gr.hash(x, bits=62), column.buckets)
    if column.content == "value":
        return gr.bucketize(x, column.edges)
    if column.content == "time":
        return gr.time_delta(now, x, unit=3600, edges=HOURS)
    return gr.mod(x, 32) if level is None else gr.cross(level, x, bits=CROSSED_BITS)


def make_number(column: Column, x: gr.Value) -> gr.Value:
    """One float per row, scaled to a magnitude near 1."""
    if column.content == "amount":
        return gr.log1p(gr.clip(x, low=0.0))
    if column.content == "ratio":
        return gr.scale(gr.clip(gr.fill_missing(x, 0.5), 0.0, 1.0), 2.0, -1.0)
    return gr.log1p(gr.clip(x.astype(gr.float32), 0.0, 1000.0))
