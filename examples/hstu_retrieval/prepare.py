"""MovieLens to the data of this example: histories with the last event held out, and the catalogue of movies.

    python examples/hstu_retrieval/prepare.py <folder> <out>

Knows three layouts: MovieLens-1M as published (``ratings.dat``, ``movies.dat``), MovieLens-1M with each rating's place
in its user's history instead of a time (``ratings_chrono.csv``), and MovieLens-100K (``u.data``, ``u.item``). Every
file may be plain or end in ``.zst`` or ``.gz``.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import polars as pl
from genrec import data


def find(folder: Path, name: str) -> Path | None:
    """The file `name` in `folder`, plain or compressed."""
    for suffix in ("", ".zst", ".gz"):
        if (path := folder / (name + suffix)).exists():
            return path
    return None


def read_events(folder: Path) -> tuple[pl.DataFrame, str]:
    """Events with the columns user, item and, where the layout has times, time; and the column that orders them."""
    if path := find(folder, "ratings.dat"):
        frame = data.read(path, columns=["user", "item", "rating", "time"])
        return with_times(frame), "time"
    if path := find(folder, "u.data"):
        frame = data.read(path, columns=["user", "item", "rating", "time"], separator="\t", header=False)
        return with_times(frame), "time"
    if path := find(folder, "ratings_chrono.csv"):
        frame = data.read(path, columns=["user_id", "movie_id", "chrono_pos"])
        return frame.rename({"user_id": "user", "movie_id": "item"}), "chrono_pos"
    raise data.DataError(
        f"{folder}: none of ratings.dat, ratings_chrono.csv and u.data is there; pass a folder of MovieLens-1M or -100K"
    )


def with_times(frame: pl.DataFrame) -> pl.DataFrame:
    """Seconds since 1970 as UTC timestamps."""
    return frame.select("user", "item", pl.from_epoch("time", time_unit="s").dt.replace_time_zone("UTC"))


def read_items(folder: Path) -> pl.DataFrame:
    """All items of the data set, rated or not."""
    if path := find(folder, "movies.dat"):
        return data.read(path, columns=["item", "title", "genres"], encoding="latin-1").select("item")
    if path := find(folder, "u.item"):
        columns = ["item", "title", "date", "video", "link", *(f"genre{i}" for i in range(19))]
        return data.read(path, columns=columns, separator="|", header=False, encoding="latin-1").select("item")
    raise data.DataError(f"{folder}: neither movies.dat nor u.item is there")


def prepare(folder: Path, out: Path) -> dict[str, object]:
    """Writes train.parquet, valid.parquet and items.parquet; returns what was found.

    Returns:
        ``users``, ``events``, ``items`` (counts) and ``times`` (whether events carry times).
    """
    events, order = read_events(folder)
    items = read_items(folder)
    times = "time" in events.columns
    columns = ["item", "time"] if times else ["item"]
    train, valid = data.leave_one_out(events, user="user", item="item", order=order, columns=columns)
    data.write(train, out / "train.parquet")
    data.write(valid, out / "valid.parquet")
    data.write(items, out / "items.parquet")
    return {"users": train.height, "events": events.height, "items": items.height, "times": times}


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    try:
        found = prepare(args.folder, args.out)
    except data.DataError as error:
        sys.exit(f"prepare.py: error: {error}")
    print(f"{found['users']:,} users, {found['events']:,} events, {found['items']:,} items -> {args.out}")


if __name__ == "__main__":
    main()
