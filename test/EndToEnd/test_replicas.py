"""Tables of which every rank has all rows: the bits of divided ones, in fewer messages."""

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
from compiled import draft
from genrec import nn
from launching import launcher, needs_mpi

pytestmark = needs_mpi

ROWS = 230
SCHEMA = gr.Schema({"user": gr.int64, "shop": gr.int64, "items": [{"item": gr.int64}], "label": gr.float32})
ALL = "user,item,shop,kind"


class Shop(gr.Model):
    """Users and items; shops, which share a store with items; kinds, whose rows do not learn. Gradients are clipped."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), clip_norm=0.05, name="Shop")
        self.user = gr.Table("user", dim=4)
        self.item = gr.Table("item", dim=8)
        self.shop = gr.Table("shop", dim=8)
        self.kind = gr.Table("kind", dim=4, frozen=True)
        self.head = nn.MLP([24, 8, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        kind = self.kind(gr.mod(batch.user, 3))
        x = gr.concat(self.user(batch.user), self.item(batch.items.item).mean(), self.shop(batch.shop), kind)
        score = self.head(x).squeeze()
        gr.loss.bce_with_logits(score, batch.label)
        gr.output(score=score)


def write_rows(path: Path) -> None:
    rng = np.random.default_rng(4)
    lists = [[{"item": int(i)} for i in rng.integers(0, 50, rng.integers(0, 6))] for _ in range(ROWS)]
    columns = {
        "user": pa.array(rng.integers(0, 40, ROWS)),
        "shop": pa.array(rng.integers(0, 9, ROWS)),
        "items": pa.array(lists, pa.list_(pa.struct([("item", pa.int64())]))),
        "label": pa.array(rng.integers(0, 2, ROWS), pa.float32()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=50)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, as `model`, and data."""
    folder = tmp_path_factory.mktemp("shop")
    write_rows(folder / "train.parquet")
    gr.compile(Shop(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def run(folder: Path, ranks: int, command: str, *flags: str) -> subprocess.CompletedProcess[str]:
    words = [*launcher(ranks), str(folder / "model"), command, "--threads", "1", "--progress", "lines", *flags]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def train(folder: Path, ranks: int, checkpoint: str, *flags: str) -> dict[str, Any]:
    """The report of three epochs; the checkpoint has a full state and one of changes."""
    given = ["--data", "train.parquet", "--seed", "3", "--batch", "48", "--epochs", "3", "--portions", "12"]
    saving = ["--checkpoint", checkpoint, "--checkpoint-full-every", "3", "--keep", "3"]
    done = run(folder, ranks, "train", *given, *saving, "--metrics-json", "m.json", "--log-every", "1", *flags)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "m.json").read_text())


def contents(checkpoint: Path) -> dict[str, bytes]:
    """Tensors of all generations."""
    files = {str(path.relative_to(checkpoint)): path.read_bytes() for path in checkpoint.glob("*/*.safetensors")}
    assert len(files) == 3
    return files


@pytest.fixture(scope="module")
def alone(shop: Path) -> dict[str, Any]:
    """What one process reports; its checkpoint is `alone`."""
    return train(shop, 0, "alone")


@pytest.mark.parametrize(
    ("ranks", "overlap", "tables"),
    [
        (1, "none", ALL),
        (2, "none", "shop"),
        (2, "rows", "user,kind"),
        (2, "rows", ALL),
        (3, "rows", "shop"),
        (3, "keys", ALL),
        (4, "rows", "user,kind"),
        (4, "rows", ALL),
    ],
)
def test_replicas_change_no_bit(shop: Path, alone: dict[str, Any], ranks: int, overlap: str, tables: str) -> None:
    name = f"on{ranks}{overlap}{tables}"
    report = train(shop, ranks, name, "--replicate", tables, "--overlap", overlap)
    assert report["step_losses"] == alone["step_losses"]
    assert report["config"]["replicate"] == tables.split(",")
    assert contents(shop / name) == contents(shop / "alone")
    if ranks > 1:
        exchanges = report["exchanges"]
        assert (exchanges["row_bytes"] == 0) == (tables == ALL)
        assert exchanges["early_row_bytes"] == 0 or overlap == "rows"


@pytest.mark.parametrize("flags", [["--deduplicate", "requester"], ["--shard-optimizer"]], ids=lambda flags: flags[0])
def test_other_flags_of_ranks(shop: Path, alone: dict[str, Any], flags: list[str]) -> None:
    """Owners that find equal ids once for each rank; ranks that share updates of parameters."""
    report = train(shop, 3, "with" + flags[0], "--replicate", "shop,user", *flags)
    assert report["step_losses"] == alone["step_losses"]
    assert contents(shop / ("with" + flags[0])) == contents(shop / "alone")


def test_rounds_of_replicas(shop: Path) -> None:
    """Weights of losses, gradients, the norm; values, too, as long as rows of a table have owners."""
    for tables, rounds in (("shop,user", 4), (ALL, 3)):
        counts = []
        for steps in (3, 7):
            flags = ["--batch", "24", "--epochs", "3", "--max-steps", str(steps), "--overlap", "none"]
            report = ["--data", "train.parquet", "--metrics-json", "m.json", "--replicate", tables]
            assert run(shop, 3, "train", *flags, *report).returncode == 0
            counts.append(json.loads((shop / "m.json").read_text())["exchanges"]["rounds"])
        assert counts[1] - counts[0] == 4 * rounds, tables


def test_resuming_with_other_replicas(shop: Path, alone: dict[str, Any]) -> None:
    """Rows are divided for two epochs; then every rank has all, then those of another table."""
    for ranks, epochs, tables in ((2, 1, "kind"), (3, 2, "user,shop"), (2, 3, "item")):
        flags = ["--replicate", tables, "--epochs", str(epochs), *(["--resume"] if epochs > 1 else [])]
        report = train(shop, ranks, "resumed", *flags)
    assert report["step_losses"] == alone["step_losses"][-len(report["step_losses"]) :]
    newest = max((shop / "resumed").glob("step-*"), key=lambda path: int(path.name[5:])).name
    for tool in ("evaluate", "predict"):
        texts = set()
        for number, replicas in enumerate(([], ["--replicate", ALL])):
            out = ["--metrics-json", "e.json"] if tool == "evaluate" else ["--out", f"p{number}.parquet"]
            done = run(shop, 2, tool, "--checkpoint", "resumed", "--data", "train.parquet", *out, *replicas)
            assert done.returncode == 0, done.stdout + done.stderr
            if tool == "predict":
                texts.add(str(pq.read_table(shop / f"p{number}.parquet").to_pydict()))
            else:
                texts.add(str(json.loads((shop / "e.json").read_text())["evaluation"]["loss"]))
        assert len(texts) == 1, tool
    assert newest == f"step-{3 * 5}"


def test_given_rows_are_on_all_ranks(shop: Path, alone: dict[str, Any]) -> None:
    """--init of tables, replicated or not."""
    losses = set()
    for ranks, tables in ((0, []), (2, []), (3, ["--replicate", "user,shop"]), (2, ["--replicate", ALL])):
        report = train(shop, ranks, "init", "--init", "alone", "--overwrite", *tables)
        losses.add(str(report["step_losses"]))
    assert len(losses) == 1


def test_what_cannot_be_replicated(shop: Path, tmp_path: Path) -> None:
    flags = ["train", "--data", "train.parquet"]
    for ranks in (0, 2):
        done = run(shop, ranks, *flags, "--replicate", "shops")
        assert done.returncode != 0
        assert done.stderr.count("the model has no such table") == 1 and "'shop'" in done.stderr, done.stderr
    done = run(shop, 2, *flags, "--replicate", "shop", "--gradient-wire", "bf16")
    assert done.returncode != 0
    assert "copies of a row would differ from rank to rank" in done.stderr

    class Bounded(gr.Model):
        def __init__(self) -> None:
            super().__init__(name="Bounded")
            self.user = gr.Table("user", dim=4, admit_after=2)
            self.head = nn.Linear(4, 1)

        def forward(self, batch: gr.Batch) -> None:
            gr.loss.bce_with_logits(self.head(self.user(batch.user)).squeeze(), batch.label)

    gr.compile(Bounded(), SCHEMA, output=tmp_path / "model", flags=draft())
    write_rows(tmp_path / "train.parquet")
    done = run(tmp_path, 2, *flags, "--replicate", "user")
    assert done.returncode != 0
    assert done.stderr.count("table 'user' cannot be replicated: its rules") == 1, done.stderr
