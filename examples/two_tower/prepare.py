"""MovieLens to the data of this example: one row per positive, with what the user had seen before it.

    python examples/two_tower/prepare.py <folder> <out> [--targets 40]

Reads what examples/hstu_retrieval/prepare.py reads. A user's last event is held out.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import polars as pl
from genrec import data

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from example import load_example  # noqa: E402

LENGTH = 50  # events of a history


def positives(items: np.ndarray, begin: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The histories of a user's events from `begin` on, and these events."""
    places = range(begin, len(items))
    return [items[max(0, place - LENGTH) : place] for place in places], items[begin:]


def split(events: pl.DataFrame, order: str, targets: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Of each user the last `targets` positives before the one that is held out, and that one."""
    rows: dict[str, list[tuple[int, np.ndarray, int]]] = {"train": [], "valid": []}
    users = events.sort("user", order).group_by("user", maintain_order=True).agg("item")
    for user, listed in users.iter_rows():
        items = np.asarray(listed)
        if len(items) < 3:
            continue
        for history, item in zip(*positives(items, max(1, len(items) - 1 - targets)), strict=True):
            rows["train"].append((user, history, int(item)))
        rows["valid"].append(rows["train"].pop())
    frames = []
    for part in rows.values():
        columns = list(zip(*part, strict=True)) or [(), (), ()]
        frames.append(pl.DataFrame({"user": columns[0], "history": list(columns[1]), "item": columns[2]}))
    return frames[0], frames[1]


def with_frequency(rows: pl.DataFrame, train: pl.DataFrame) -> pl.DataFrame:
    """`log_q`: the logarithm of an item's share of all positives, as if one that was never positive were it once."""
    share = train.group_by("item").agg(log_q=(pl.len() / train.height).log().cast(pl.Float32))
    missing = np.float32(-np.log(max(train.height, 1)))
    return rows.join(share, on="item", how="left", maintain_order="left").with_columns(
        pl.col("log_q").fill_null(missing)
    )


def write_positives(events: pl.DataFrame, order: str, out: Path, targets: int) -> dict[str, int]:
    """Writes train.parquet and valid.parquet; returns how many users and positives there are."""
    train, valid = split(events, order, targets)
    # Positives of one batch should be of many users.
    data.write(with_frequency(train, train).sample(fraction=1.0, shuffle=True, seed=1), out / "train.parquet")
    data.write(with_frequency(valid, train), out / "valid.parquet")
    return {"users": valid.height, "positives": train.height}


def from_histories(folder: Path, targets: int) -> None:
    """Makes positives of the histories that genrec-datagen wrote into `folder`, in their place."""
    histories = pl.read_parquet(folder / "train.parquet").select(
        user=pl.int_range(pl.len()), item=pl.col("history").list.eval(pl.element().struct.field("item"))
    )
    write_positives(histories.explode("item").with_columns(place=pl.int_range(pl.len())), "place", folder, targets)


def prepare(folder: Path, out: Path, targets: int = 40) -> dict[str, int]:
    """Writes train.parquet, valid.parquet and items.parquet; returns how many users, positives and items there are."""
    movielens = load_example("hstu_retrieval", "prepare")
    found = write_positives(*movielens.read_events(folder), out, targets)
    items = movielens.read_items(folder)
    data.write(items, out / "items.parquet")
    return {**found, "items": items.height}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--targets", type=int, default=40, help="positives per user, the latest (default: 40)")
    given = parser.parse_args()
    try:
        found = prepare(given.folder, given.out, given.targets)
    except data.DataError as error:
        sys.exit(f"prepare.py: error: {error}")
    print(", ".join(f"{count:,} {what}" for what, count in found.items()))


if __name__ == "__main__":
    main()
