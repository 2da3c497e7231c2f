"""Requests of a news site, in the layout of MIND, as Parquet: a row per request, with its history and impressions.

    python examples/news_request_ranking/prepare.py <behaviors.tsv> <out> [--impressions 5]

A line of the log is a request, the user, the time, the news that the user read before, and the news shown with what was
clicked ("N34-1 N7-0"), separated by tabs. `--impressions` keeps so many impressions of a request: the clicked ones
first, then others in an order that depends on the request and the news alone, so that every run keeps the same.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import polars as pl
from genrec import data

COLUMNS = ["request", "user", "time", "history", "shown"]
TIME = "%m/%d/%Y %I:%M:%S %p"
REQUESTS_TO_TEST = 0.2
SPLIT_SEED = 1
DRAW = (48271, 69621, 2147483647)  # multipliers and modulus of two minimal standard generators (Park and Miller)


def read(path: Path) -> pl.DataFrame:
    """The log with ids as integers (news "N34" is 34), history as a list of news, shown as a list of (item, label)."""
    log = data.read(path, columns=COLUMNS, separator="\t", header=False)
    number = pl.element().str.slice(1).cast(pl.Int64)
    word = pl.element().str.split("-")
    return log.select(
        pl.col("request").cast(pl.Int64),
        pl.col("user").str.slice(1).cast(pl.Int64),
        pl.col("time").str.to_datetime(TIME, time_zone="UTC"),
        pl.col("history").fill_null("").str.extract_all(r"\S+").list.eval(number),
        pl.col("shown").str.split(" ").list.eval(
            pl.struct(
                word.list.get(0).str.slice(1).cast(pl.Int64).alias("item"),
                word.list.get(1).cast(pl.Float32).alias("label"),
            )
        ),
    )  # fmt: skip


def keep_impressions(requests: pl.DataFrame, count: int) -> pl.DataFrame:
    """At most `count` impressions of each request, in the order they were shown: clicks, then others as drawn."""
    rows = requests.select("request", "shown").explode("shown").unnest("shown")
    drawn = (pl.col("request") % DRAW[2] * DRAW[0] + pl.col("item") * DRAW[1]) % DRAW[2]
    kept = (
        rows.with_columns(place=pl.int_range(pl.len()), drawn=drawn)
        .sort(["request", "label", "drawn", "place"], descending=[False, True, False, False])
        .group_by("request", maintain_order=True)
        .head(count)
        .sort("place")
        .group_by("request", maintain_order=True)
        .agg(pl.struct("item", "label").alias("shown"))
    )
    return requests.drop("shown").join(kept, on="request", how="left", maintain_order="left")


def prepare(log: Path, out: Path, impressions: int = 0) -> dict[str, float]:
    """Writes train.parquet and test.parquet, a random split; returns counts. `impressions` 0 keeps all."""
    requests = read(log)
    if impressions:
        requests = keep_impressions(requests, impressions)
    requests = requests.rename({"shown": "impression"}).with_columns(
        pl.col("history").list.eval(pl.struct(pl.element().alias("item")))
    )
    requests = requests.sample(fraction=1.0, shuffle=True, seed=SPLIT_SEED)
    count = round(requests.height * REQUESTS_TO_TEST)
    train, test = requests[count:], requests[:count]
    data.write(train, out / "train.parquet")
    data.write(test, out / "test.parquet")
    return {
        "train": train.height,
        "test": test.height,
        "impressions": requests["impression"].list.len().mean(),
        "history": requests["history"].list.len().mean(),
    }  # fmt: skip


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--impressions", type=int, default=0, help="impressions kept per request (default: all)")
    args = parser.parse_args()
    try:
        found = prepare(args.log, args.out, args.impressions)
    except data.DataError as error:
        sys.exit(f"prepare.py: error: {error}")
    print(
        f"{found['train']:,} requests to train on, {found['test']:,} to test on; "
        f"{found['impressions']:.1f} impressions and {found['history']:.1f} news read per request -> {args.out}"
    )


if __name__ == "__main__":
    main()
