"""The data of this benchmark: a generated search log for our binary (Parquet), the same columns for the peer (NumPy).

The peer gets columns that are decoded already, strings hashed to 63 bits, times as seconds, lists end to end with their
lengths: what a loader could give it. Our binary reads the Parquet file while it trains.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "search_ranking"))
columns = importlib.import_module("columns")
example = importlib.import_module("model")
LISTS = {"impression": None, "clicks": example.LATEST_CLICKS, "searches": example.LATEST_SEARCHES}


@dataclass(frozen=True)
class Log:
    """`train` is the Parquet file, `arrays` the peer's; means per request."""

    train: Path
    arrays: Path
    requests: int
    impressions: int


def generate(build: Path, folder: Path, count: int, users: int) -> Path:
    """Writes a log of `count` feature columns into `folder`; returns its training file."""
    command = [build / "bin" / "genrec-datagen", "--kind", "search", "--columns", str(count), "--users", str(users)]
    result = subprocess.run([*map(str, command), "--out", str(folder)], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"search_ranking: error: genrec-datagen failed\n{result.stderr}")
    return folder / "train.parquet"


def _plain(series: pl.Series) -> np.ndarray:
    """A column as numbers."""
    if series.dtype == pl.String:
        return series.hash(seed=0).to_numpy().astype(np.int64) & (2**62 - 1)
    if isinstance(series.dtype, pl.Datetime):
        return series.dt.epoch("s").to_numpy()
    return series.to_numpy()


def prepare(train: Path, folder: Path) -> Log:
    """Writes the peer's arrays beside the log, and a description of the columns."""
    rows = pl.read_parquet(train)
    schema = columns.read_schema(train)
    arrays: dict[str, np.ndarray] = {}
    for name in rows.columns:
        if name not in LISTS:
            arrays[f"request.{name}"] = _plain(rows[name])
    for name, latest in LISTS.items():
        lists = rows[name] if latest is None else rows[name].list.tail(latest)
        arrays[f"{name}.lengths"] = lists.list.len().to_numpy().astype(np.int64)
        entries = lists.filter(lists.list.len() > 0).explode().struct.unnest()
        arrays |= {f"{name}.{field}": _plain(entries[field]) for field in entries.columns}
    described = {
        owner: [
            {"name": c.name, "content": c.content, "dim": c.dim, "buckets": c.buckets, "edges": c.edges}
            for c in columns.numbered(domain.features)
        ]
        for owner, domain in {"request": schema.root, **schema.root.children}.items()
    }
    path = folder / "columns.npz"
    np.savez(path, description=np.array(json.dumps(described)), **arrays)
    return Log(train, path, len(rows), int(arrays["impression.lengths"].sum()))
