"""What tests share that train a compiled model and look at its checkpoint."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from compiled import call, tool
from launching import launcher


def compile_merged_and_apart(model: Path, folder: Path) -> dict[str, Path]:
    """Binaries of the model with merged tables, and with tables apart."""
    made = {"merged": folder / "merged", "apart": folder / "apart"}
    call(tool("genrec-compile"), model, "-o", made["merged"])
    call(tool("genrec-compile"), model, "--merge-tables=false", "-o", made["apart"])
    return made


def train(
    binary: Path, data: Path, checkpoint: Path, steps: int, *more: str | Path, threads: int = 2, ranks: int = 0
) -> bytes:
    """Trains up to `steps`, in batches of 16 rows, and returns the tensors of the checkpoint. `ranks`: under mpirun."""
    call(
        *launcher(ranks), binary, "train", "--data", data, "--batch", "16", "--epochs", "3", "--max-steps", str(steps), "--seed", "5",
        "--threads", str(threads), "--progress", "none", "--checkpoint", checkpoint, *more,
    )  # fmt: skip
    return next((checkpoint / f"step-{steps}").glob("*.safetensors")).read_bytes()


def expect_interchangeable(first: Path, second: Path, data: Path, folder: Path, steps: int, part: int) -> None:
    """A run of `first` that is interrupted after `part` steps and goes on in `second` ends with the bits of one that is
    not interrupted.
    """
    whole = train(first, data, folder / "whole", steps)
    train(first, data, folder / "halves", part)
    assert train(second, data, folder / "halves", steps, "--resume") == whole


def random_lists(draw: random.Random, rows: int) -> pa.Array:
    """A list of up to 3 structs with an id `k` per row."""
    return pa.array(
        [[{"k": draw.randrange(30)} for _ in range(draw.randrange(4))] for _ in range(rows)],
        pa.list_(pa.struct([("k", pa.int64())])),
    )


def write_drifting_rows(path: Path, seed: int, rows: int = 320) -> Path:
    """Columns i, n, list and label, whose ids drift: early ones are not seen again."""
    draw = random.Random(seed)
    columns = {
        "i": pa.array([draw.randrange(40) + row // 8 for row in range(rows)], pa.int64()),
        "n": pa.array([draw.choice([None, 3, 4, row // 40]) for row in range(rows)], pa.int64()),
        "list": random_lists(draw, rows),
        "label": pa.array([float(draw.randrange(2)) for _ in range(rows)], pa.float32()),
    }
    pq.write_table(pa.table(columns), path)
    return path
