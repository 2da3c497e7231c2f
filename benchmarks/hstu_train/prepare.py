"""The data of this benchmark: MovieLens-1M once for our binary (Parquet), once for the peer (NumPy), in one order.

Both sides read the same users in the same order, so that step n is the same batch for both. A second set holds only
users whose histories fill the model's 200 events: there a padding implementation has nothing to pad.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "examples"))

from example import load_example  # noqa: E402

LENGTH = 200  # events the model sees
HELD_BACK = 2  # a user's last event is never trained on, the one before it is a label only
ORDER_SEED = 1


@dataclass(frozen=True)
class Sequences:
    """One set of users: `train` and `items` are Parquet files, `arrays` the peer's file, `lengths` the number of input
    events of each user in the order of both.
    """

    name: str
    train: Path
    items: Path
    arrays: Path
    lengths: np.ndarray

    def batch_lengths(self, step: int, batch: int) -> np.ndarray:
        """The lengths of the sequences of the batch of `step`; batches start over when the users are used up, and the
        partial last one is kept.
        """
        per_epoch = -(-len(self.lengths) // batch)
        begin = step % per_epoch * batch
        return self.lengths[begin : begin + batch]


def prepare(folder: Path, out: Path) -> dict[str, Sequences]:
    """Writes both sets below `out`; returns them by name, "all" and "full".

    Raises:
        genrec.data.DataError: `folder` does not hold MovieLens in a known layout.
    """
    events, items = read(folder)
    counts = events.group_by("user", maintain_order=True).len()
    events = events.join(counts.filter(pl.col("len") > HELD_BACK), on="user", how="inner", maintain_order="left")
    result = {}
    for name, least in (("all", 0), ("full", LENGTH + HELD_BACK)):
        chosen = events.filter(pl.col("len") >= least).drop("len")
        if chosen.height:
            result[name] = write_set(name, chosen, items, out / name)
    return result


def read(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """All events, user by user and oldest first, and all items."""
    example = load_example("hstu_retrieval", "prepare")
    events, order = example.read_events(folder)
    events = events.sort(["user", order], maintain_order=True).select("user", "item")
    return events, example.read_items(folder)


def write_set(name: str, events: pl.DataFrame, items: pl.DataFrame, out: Path) -> Sequences:
    """Writes one set: its users in a fixed random order, in both forms; valid.parquet has what is held back."""
    from genrec import data

    out.mkdir(parents=True, exist_ok=True)
    train, valid = data.leave_one_out(events, user="user", item="item", columns=["item"])
    order = np.random.default_rng(ORDER_SEED).permutation(train.height)
    result = Sequences(
        name, out / "train.parquet", out / "items.parquet", out / "sequences.npz",
        np.minimum(train["history"].list.len().to_numpy()[order], LENGTH),
    )  # fmt: skip
    data.write(train[order], result.train)
    data.write(valid[order], out / "valid.parquet")
    data.write(items, result.items)
    per_user = events.group_by("user", maintain_order=True).len()["len"].to_numpy().astype(np.int64)
    np.savez(
        result.arrays,
        items=events["item"].to_numpy(),
        offsets=np.concatenate([[0], np.cumsum(per_user)]),
        catalogue=items["item"].to_numpy(),
        order=order,
    )
    return result
