"""--shard-optimizer: ranks share the updates of dense parameters; the bits are those of one that updates all."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft, read_tensors
from genrec import nn
from launching import launcher, needs_mpi

pytestmark = needs_mpi

SCHEMA = gr.Schema({"user": gr.int64, "item": gr.int64, "x": gr.float32.vector(40), "label": gr.float32})
ROWS = 300
# Floats of optimizer states: Adam's two of hidden, head, place and gain; Adagrad's one of shift.
WIDE = 1100  # so that the gradients fill a bucket
STATES = 2 * ((64 * WIDE + WIDE) + (WIDE + 1) + 8 * 12 + 1) + 64


class Wide(gr.Model):
    """Parameters of all shapes and several optimizers, and one that stays; gradients are clipped."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02, weight_decay=0.01), clip_norm=0.1, clip_value=0.05, name="Wide")
        self.user = gr.Table("user", dim=12)
        self.item = gr.Table("item", dim=12)
        self.shift = gr.Parameter((64,), gr.init.zeros(), gr.optim.Adagrad(0.1, initial_accumulator=0.5))
        self.gain = gr.Parameter((), gr.init.ones())
        self.frozen = gr.Parameter((64,), gr.init.ones(), frozen=True)
        self.place = nn.Embedding(8, 12)
        self.hidden = nn.Linear(64, WIDE)
        self.head = nn.Linear(WIDE, 1)

    def forward(self, batch: gr.Batch) -> None:
        looked = self.user(batch.user) + self.place(gr.mod(batch.user, 8))
        x = gr.concat(looked, self.item(batch.item), batch.x) * self.frozen * self.gain + self.shift
        gr.loss.bce_with_logits(self.head(nn.relu(self.hidden(x))).squeeze(), batch.label)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, as `model`, and data."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(8)
    columns = {
        "user": pa.array(rng.integers(0, 40, ROWS)),
        "item": pa.array(rng.integers(0, 60, ROWS)),
        "x": pa.array(list(rng.normal(size=(ROWS, 40)).astype(np.float32)), pa.list_(pa.float32(), 40)),
        "label": pa.array(rng.integers(0, 2, ROWS), pa.float32()),
    }
    pq.write_table(pa.table(columns), folder / "train.parquet", row_group_size=50)
    gr.compile(Wide(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def train(folder: Path, ranks: int, name: str, *flags: str, portions: int = 12) -> dict[str, Any]:
    """The report of a run that saves to `name`."""
    given = ["--data", "train.parquet", "--seed", "3", "--batch", "48", "--log-every", "1", "--threads", "1",
             "--portions", str(portions), "--checkpoint", name, "--metrics-json", f"{name}.json"]  # fmt: skip
    words = [*launcher(ranks), str(folder / "model"), "train", *given, *flags]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / f"{name}.json").read_text())


def tensors(checkpoint: Path) -> bytes:
    newest = json.loads((checkpoint / "manifest.json").read_text())["generations"][-1]["name"]
    return (checkpoint / newest / "model.safetensors").read_bytes()


@pytest.fixture(scope="module")
def alone(wide: Path) -> dict[str, Any]:
    """The report of one process, with the bytes of its checkpoint."""
    report = train(wide, 0, "alone", "--epochs", "3")
    report["tensors"] = tensors(wide / "alone")
    return report


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_bits_are_those_of_one_rank(wide: Path, alone: dict[str, Any], ranks: int) -> None:
    early = ["--early-gradients", "on"]
    for flags in ([], ["--shard-optimizer"], early, ["--shard-optimizer", "--overlap", "rows", *early]):
        name = f"on{ranks}{''.join(flags)}"
        report = train(wide, ranks, name, "--epochs", "3", *flags)
        assert report["step_losses"] == alone["step_losses"], name
        assert tensors(wide / name) == alone["tensors"], name


def test_each_rank_keeps_a_part_of_the_states(wide: Path, alone: dict[str, Any]) -> None:
    del alone
    whole = train(wide, 3, "whole", "--epochs", "1")["work"]["by_rank"]
    parts = train(wide, 3, "parts", "--epochs", "1", "--shard-optimizer")
    assert parts["config"]["shard_optimizer"]
    held = [rank["optimizer_bytes"] for rank in parts["work"]["by_rank"]]
    assert all(4 * STATES <= rank["optimizer_bytes"] < 4.5 * STATES for rank in whole)
    assert all(4 * STATES / 3 * 0.95 < held_here < 4.5 * STATES / 3 * 1.1 for held_here in held), held


def test_gradients_travel_early(wide: Path, alone: dict[str, Any]) -> None:
    """The bucket has a round of its own, and one more where three ranks have slices; so it is in some steps of auto."""
    del alone
    rounds = {}
    for early in ("off", "on", "auto"):
        given = ["--overwrite", "--epochs", "9", "--early-gradients", early]
        runs = [train(wide, 3, "early", *given, "--max-steps", steps) for steps in ("3", "25")]
        rounds[early] = runs[1]["exchanges"]["rounds"] - runs[0]["exchanges"]["rounds"]
    assert rounds["on"] == rounds["off"] + 22
    assert rounds["off"] < rounds["auto"] < rounds["on"]


def test_as_many_bytes_travel(wide: Path, alone: dict[str, Any]) -> None:
    """New values instead of sums of gradients; one round more where sums are not cut otherwise."""
    del alone
    counts = {}
    for flags in ((), ("--shard-optimizer",)):
        given = ["--overwrite", "--epochs", "3", "--early-gradients", "off", *flags]
        runs = [train(wide, 2, "bytes", *given, "--max-steps", steps, portions=2) for steps in ("3", "7")]
        first, second = (one["exchanges"] for one in runs)
        counts[flags] = {key: second[key] - first[key] for key in ("rounds", "dense_bytes")}
    plain, sharded = counts[()], counts["--shard-optimizer",]
    assert sharded["rounds"] == plain["rounds"] + 4
    assert sharded["dense_bytes"] == pytest.approx(plain["dense_bytes"], rel=0.05)


def test_resumes_on_other_ranks(wide: Path, alone: dict[str, Any]) -> None:
    train(wide, 1, "moved", "--epochs", "3", "--max-steps", "5")
    train(wide, 3, "moved", "--epochs", "3", "--max-steps", "11", "--shard-optimizer", "--resume")
    train(wide, 2, "moved", "--epochs", "3", "--max-steps", "14", "--shard-optimizer", "--resume")
    train(wide, 4, "moved", "--epochs", "3", "--resume")
    assert tensors(wide / "moved") == alone["tensors"]


def test_states_move_with_the_parameters(alone: dict[str, Any]) -> None:
    """The checkpoint holds what the optimizers say, in the parameter's shape."""
    saved = read_tensors(alone["tensors"])
    assert saved["hidden.weight.state1"].shape == (64, WIDE)
    assert (saved["hidden.weight.state1"] > 0).mean() > 0.9
    assert (saved["shift.state0"] > 0.5).all()


def test_from_python(wide: Path, alone: dict[str, Any], tmp_path: Path) -> None:
    model = gr.CompiledModel(wide / "model")
    model.train(
        wide / "train.parquet", epochs=3, batch=48, seed=3, threads=1, ranks=2, portions=12, progress=False,
        checkpoint=tmp_path / "checkpoint", shard_optimizer=True,
    )  # fmt: skip
    assert tensors(tmp_path / "checkpoint") == alone["tensors"]
