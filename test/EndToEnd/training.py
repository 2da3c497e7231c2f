"""What tests share that train a compiled model and look at its checkpoint."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from compiled import call, draft, read_tensors, tool
from launching import launcher

STEPS = """
genrec.model @steps {{
  genrec.domain @user
  genrec.table @t dim {dim} {{element = #genrec<row_element bf16>, {more}
    init = #genrec.init<constant, 1.0>, optimizer = #genrec.optimizer<sgd, {{lr = 0.00048828125}}>}}
  genrec.program @main {{
    %user = genrec.batch : !genrec.domain<@user>
    %i = genrec.feature %user "i" : (!genrec.domain<@user>) -> tensor<?xi64, #genrec.rows<@user>>
    %x = genrec.lookup %i in @t
        : (tensor<?xi64, #genrec.rows<@user>>) -> tensor<?x{dim}xf32, #genrec.rows<@user>>
    %sum = genrec.row_reduce sum %x
        : (tensor<?x{dim}xf32, #genrec.rows<@user>>) -> tensor<?xf32, #genrec.rows<@user>>
    genrec.loss "sum" %sum : tensor<?xf32, #genrec.rows<@user>>
    genrec.output "sum" %sum : tensor<?xf32, #genrec.rows<@user>>
  }}
}}
"""


def compile_merged_and_apart(model: Path, folder: Path) -> dict[str, Path]:
    """Binaries of the model with merged tables, and with tables apart."""
    made = {"merged": folder / "merged", "apart": folder / "apart"}
    call(tool("genrec-compile"), model, *draft(), "-o", made["merged"])
    call(tool("genrec-compile"), model, *draft(), "--merge-tables=false", "-o", made["apart"])
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


def write_steps_model(path: Path, more: str, dim: int = 64) -> Path:
    """A table of bf16 whose values are 1 and whose steps are 2^-11. `more`: attributes, a comma behind each."""
    path.write_text(STEPS.format(more=more, dim=dim))
    return path


def train_given_rows(binary: Path, data: Path, folder: Path) -> tuple[dict[int, np.ndarray], np.ndarray]:
    """After a step that changes nothing: the rows of table `odd` by id, and what --init gave it, rounded to nearest."""
    given = np.random.default_rng(5).normal(0, 1, (40, 7)).astype(np.float32)
    np.save(folder / "odd.npy", given)
    file = train(binary, data, folder / "checkpoint", 1, "--init", f"odd={folder / 'odd.npy'}", "--lr", "0")
    tensors = read_tensors(file)
    bits = given.view(np.uint32)
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).view(np.float32)
    return dict(zip(tensors["odd.ids"].tolist(), tensors["odd.values"], strict=True)), rounded
