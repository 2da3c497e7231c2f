"""The transforms in PyTorch, column by column and compiled, and in Polars."""

from __future__ import annotations

import time
from collections.abc import Callable

from model import COLUMNS, DIVISOR, EDGES, HASH_BITS, kind_of

# XXH3 of eight bytes (Collet, the format's specification 0.1.1, "XXH3 for 4-8 byte inputs"), without a seed.
FLIP, PRIME = 0xC73AB174C5ECD5A2, 0x9FB21C651E98DF25


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def torch_hash(x):
    """XXH3's low bits, in operations on int64."""

    def right(value, by: int):
        return (value >> by) & ((1 << (64 - by)) - 1)

    def rotate(value, by: int):
        return (value << by) | right(value, 64 - by)

    x = rotate(x, 32) ^ _signed(FLIP)
    x = x ^ rotate(x, 49) ^ rotate(x, 24)
    x = x * _signed(PRIME)
    x = (x ^ (right(x, 35) + 8)) * _signed(PRIME)
    return (x ^ right(x, 28)) & ((1 << HASH_BITS) - 1)


def columns(only: str | None, rows: int) -> list:
    """Random columns as tensors: floats in [0, 1) for bucketize, else integers."""
    import torch

    kinds = [only or kind_of(k) for k in range(COLUMNS)]
    return [torch.rand(rows) if kind == "bucketize" else torch.randint(0, 1 << 40, (rows,)) for kind in kinds]


def torch_all(only: str | None, values: list) -> list:
    """Every column's transform."""
    import torch

    edges = torch.tensor(EDGES)
    results = []
    for k, value in enumerate(values):
        kind = only or kind_of(k)
        if kind == "bucketize":
            results.append(torch.bucketize(value, edges, right=True))
        else:
            results.append(torch.remainder(value, DIVISOR) if kind == "mod" else torch_hash(value))
    return results


def polars_all(only: str | None, values: list) -> Callable[[], object]:
    """The same as one Polars query (its own hash), ready to be called."""
    import polars as pl

    frame = pl.DataFrame({f"c{k}": value.numpy() for k, value in enumerate(values)})
    edges = pl.Series(EDGES, dtype=pl.Float32)
    expressions = []
    for k in range(COLUMNS):
        column, kind = pl.col(f"c{k}"), only or kind_of(k)
        if kind == "bucketize":
            expressions.append(pl.lit(edges).search_sorted(column, side="right").alias(f"c{k}"))
        elif kind == "mod":
            expressions.append(column % DIVISOR)
        else:
            expressions.append(column.hash() % (1 << HASH_BITS))
    return lambda: frame.select(expressions)


def contestants(only: str | None, rows: int, threads: int) -> dict[str, Callable[[], float]]:
    """By name: a call that runs all transforms once and returns the seconds; warm."""
    import torch

    torch.set_num_threads(threads)
    clock = time.perf_counter  # as our profile's
    values = columns(only, rows)
    compiled = torch.compile(lambda *columns: torch_all(only, list(columns)))

    def timed(body: Callable[[], object]) -> Callable[[], float]:
        def run() -> float:
            begin = clock()
            body()
            return clock() - begin

        for _ in range(2):
            run()
        return run

    return {
        "PyTorch": timed(lambda: torch_all(only, values)),
        "torch.compile": timed(lambda: compiled(*values)),
        "Polars": timed(polars_all(only, values)),
    }
