"""A click log in Criteo's layout as Parquet: a random split into rows to train on and rows to test on.

The log has no header: label, thirteen counts i1 … i13, twenty-six categories c1 … c26 (hashed integers), separated by
tabs, empty where missing. Nulls stay nulls.
"""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import polars as pl

COUNTS = [f"i{k}" for k in range(1, 14)]
CATEGORIES = [f"c{k}" for k in range(1, 27)]
ROWS_TO_TEST = 0.25
SPLIT_SEED = 1

SCHEMA = gr.Schema(
    {
        "label": gr.float32,
        **{name: gr.float32.nullable() for name in COUNTS},
        **{name: gr.int64.nullable() for name in CATEGORIES},
    }
)


def prepare(log: Path, out: Path) -> dict[str, int]:
    """Writes train.parquet and test.parquet into `out`; returns their numbers of rows."""
    types = {"label": pl.Float32, **dict.fromkeys(COUNTS, pl.Float32), **dict.fromkeys(CATEGORIES, pl.Int64)}
    frame = pl.read_csv(log, separator="\t", has_header=False, new_columns=list(types), schema_overrides=types)
    frame = frame.sample(fraction=1.0, shuffle=True, seed=SPLIT_SEED)
    count = round(len(frame) * ROWS_TO_TEST)
    parts = {"train": frame[count:], "test": frame[:count]}
    out.mkdir(parents=True, exist_ok=True)
    for name, part in parts.items():
        part.write_parquet(out / f"{name}.parquet", row_group_size=8192)
    return {name: len(part) for name, part in parts.items()}
