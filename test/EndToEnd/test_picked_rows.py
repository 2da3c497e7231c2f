"""Items' vectors for the rows that a step reads (`pick-catalogue-rows`), beside vectors for all items."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD, call, draft
from genrec import nn
from launching import launcher, needs_mpi

ITEMS, USERS, DIM = 400, 96, 4


class Towers(gr.Model):
    """Vectors of an item's id, title, tags and image, with dropout; queries of the items that a user saw."""

    def __init__(self, items: gr.Catalogue, shared: bool) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), clip_norm=1.0)
        self.item, self.tag, self.title = (gr.Table(name, dim=8) for name in ("item", "tag", "title"))
        self.image, self.mix = nn.Linear(DIM, 8), nn.Linear(8, 8)
        self.items, self.shared = items, shared

    def forward(self, batch: gr.Batch) -> None:
        items = self.items
        tags = self.tag(items.tags.value).mean()
        title = self.title(gr.hash(items.title, bits=30))
        vectors = self.mix(nn.relu(self.item(items["item"]) + tags + title + self.image(items.image)))
        vectors = nn.dropout(vectors, 0.2)
        query = self.item(batch.history.item).mean()
        gr.loss.sampled_softmax(query, batch.target, vectors, items, negatives=8, shared=self.shared, name="next")
        gr.metric.ranking(query, vectors, items, target=batch.target, at=(10,))


def write_data(folder: Path) -> None:
    draw = np.random.default_rng(7)
    columns = {
        "item": pa.array([3 * i for i in range(ITEMS)], pa.int64()),
        "title": pa.array([f"item {i % 150}" for i in range(ITEMS)]),
        "image": pa.array(draw.normal(size=(ITEMS, DIM)).tolist(), pa.list_(pa.float32(), DIM)),
        "tags": pa.array([[(i * 5 + t) % 12 for t in range(i % 4)] for i in range(ITEMS)], pa.list_(pa.int64())),
    }
    pq.write_table(pa.table(columns), folder / "items.parquet")
    lists = [[{"item": 3 * int(i)} for i in draw.integers(0, ITEMS, user % 5)] for user in range(USERS)]
    targets = [None if user % 9 == 4 else 3 * int(draw.integers(ITEMS)) for user in range(USERS)]
    rows = {
        "target": pa.array(targets, pa.int64()),
        "history": pa.array(lists, pa.list_(pa.struct([("item", pa.int64())]))),
    }
    pq.write_table(pa.table(rows), folder / "users.parquet")


@pytest.fixture(scope="module", params=[False, True], ids=["negatives of each row", "shared negatives"])
def folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    """A folder with data and two binaries of the model: `picked` and `whole`."""
    folder = tmp_path_factory.mktemp("picked")
    write_data(folder)
    path, written = folder / "items.parquet", folder / "written.parquet"
    path.rename(written)
    # Of a file that comes later, the model does not say how many items there are.
    items = gr.catalogue(path, id="item", schema=gr.Schema.from_parquet(written, root="items"))
    written.rename(path)
    schema = gr.Schema.from_parquet(folder / "users.parquet", nullable=["target"])
    for name, flags in (("picked", []), ("whole", ["--pick-catalogue-rows=false"])):
        made = gr.compile(Towers(items, request.param), schema, output=folder / name, flags=[*draft(), *flags])
        assert ("'vectors' (dropout)" in picked_of(made.model_file, flags)) == (name == "picked")
    return folder


def picked_of(model: Path, flags: list[str]) -> str:
    """The decisions about what is computed for the items that a step reads."""
    explained = call(BUILD / "bin" / "genrec-compile", model, "--explain", *flags)
    return "\n".join(line for line in explained.splitlines() if "is computed for the items that a step reads" in line)


def train(folder: Path, binary: str, *flags: str, ranks: int = 0) -> dict[str, Any]:
    command = [
        *launcher(ranks), str(folder / binary), "train", "--data", "users.parquet", "--seed", "3", "--batch", "32",
        "--epochs", "4", "--progress", "none", "--log-every", "1", "--metrics-json", "m.json",
        "--checkpoint", f"run-{binary}-{ranks}", *flags,
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "m.json").read_text())


def tensors(folder: Path, run: str) -> bytes:
    return next(sorted(folder.glob(f"{run}/step-*"))[-1].glob("*.safetensors")).read_bytes()


def test_both_train_the_same(folder: Path) -> None:
    """The first loss is equal to the bit; later ones, sums of gradients in another order apart."""
    losses = {}
    for binary in ("picked", "whole"):
        report = train(folder, binary, "--threads", "2", "--overwrite")
        losses[binary] = [step["loss"] for step in report["step_losses"]]
    assert len(losses["whole"]) == 12
    assert losses["picked"][0] == losses["whole"][0]
    assert losses["picked"] == pytest.approx(losses["whole"], rel=1e-5)
    assert losses["whole"][-1] != pytest.approx(losses["whole"][0], rel=1e-2)


def test_a_trained_model_ranks_the_same(folder: Path) -> None:
    """Items that no step has read have no rows, whose values are then the initial ones."""
    metrics = {}
    for binary in ("picked", "whole"):
        train(folder, binary, "--overwrite")
        call(
            folder / binary, "evaluate", "--data", folder / "users.parquet", "--checkpoint", folder / f"run-{binary}-0",
            "--metrics-json", folder / "e.json", "--progress", "none",
        )  # fmt: skip
        metrics[binary] = json.loads((folder / "e.json").read_text())["evaluation"]["metrics"]
    assert metrics["picked"] == pytest.approx(metrics["whole"], rel=1e-4)


def test_a_checkpoint_of_either_goes_on_in_the_other(folder: Path) -> None:
    train(folder, "whole", "--overwrite")
    shutil.rmtree(folder / "run-picked-0", ignore_errors=True)
    shutil.copytree(folder / "run-whole-0", folder / "run-picked-0")
    report = train(folder, "picked", "--resume", "--epochs", "5")
    assert [step["step"] for step in report["step_losses"]] == [13, 14, 15]


@pytest.mark.parametrize("threads", ["1", "2"])
def test_any_number_of_threads_gives_the_same_bits(folder: Path, threads: str) -> None:
    train(folder, "picked", "--threads", "3", "--overwrite")
    expected = tensors(folder, "run-picked-0")
    train(folder, "picked", "--threads", threads, "--overwrite")
    assert tensors(folder, "run-picked-0") == expected


@needs_mpi
def test_any_number_of_ranks_gives_the_same_bits(folder: Path) -> None:
    """Each rank asks the owners for the rows that its portions read."""
    flags = ["--portions", "6", "--overwrite", "--threads", "1"]
    alone = train(folder, "picked", *flags)
    for ranks in (1, 2, 3):
        report = train(folder, "picked", *flags, ranks=ranks)
        assert report["step_losses"] == alone["step_losses"], ranks
        assert tensors(folder, f"run-picked-{ranks}") == tensors(folder, "run-picked-0"), ranks
