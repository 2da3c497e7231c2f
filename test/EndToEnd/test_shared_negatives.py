"""Negatives that all rows share, as a matrix (`multiply-negatives`), beside rows that each read them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, tool
from genrec import nn
from test_cuda_models import TARGETS

ITEMS, USERS, DIM, NEGATIVES = 60, 90, 12, 10


class Next(gr.Model):
    """The next item of each event, some of which are null: among negatives that often are the item itself."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.item, self.mix = gr.Table("item", dim=DIM, init=gr.init.normal(0.5)), nn.Linear(DIM, DIM)
        self.items = items

    def forward(self, batch: gr.Batch) -> None:
        event = batch.history
        query = self.mix(self.item(event.item))
        gr.loss.sampled_softmax(
            query, event.next, self.item, self.items, negatives=NEGATIVES, temperature=0.5, shared=True, name="next"
        )


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shared")
    draw = np.random.default_rng(5)
    events = pa.struct([("item", pa.int64()), ("next", pa.int64())])
    lists = []
    for user in range(USERS):
        ids = draw.integers(0, ITEMS, user % 7 + 1).tolist()
        lists.append([{"item": i, "next": n if n % 5 else None} for i, n in zip(ids[:-1], ids[1:], strict=True)])
    pq.write_table(pa.table({"history": pa.array(lists, pa.list_(events))}), folder / "users.parquet")
    pq.write_table(pa.table({"item": pa.array(range(ITEMS), pa.int64())}), folder / "items.parquet")
    schema = gr.Schema.from_parquet(folder / "users.parquet", nullable=["history.next"])
    gr.write_model(gr.record(Next(gr.catalogue(folder / "items.parquet", id="item")), schema), folder / "model.genrec")
    return folder


def losses_of(folder: Path, target: str, *flags: str) -> list[float]:
    binary, report = folder / f"model-{target}{len(flags)}", folder / "report.json"
    call(tool("genrec-compile"), folder / "model.genrec", f"--target={target}", *flags, *draft(), "-o", binary)
    done = subprocess.run(
        [
            binary, "train", "--data", "users.parquet", "--catalogue", "items=items.parquet", "--batch", "16",
            "--epochs", "3", "--seed", "4", "--progress", "none", "--log-every", "1", "--metrics-json", report,
        ],
        cwd=folder, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return [step["loss"] for step in json.loads(report.read_text())["step_losses"]]


@pytest.mark.parametrize("flags", [(), ("--mixed-precision",)], ids=["float32", "bf16"])
def test_both_train_the_same(model: Path, flags: tuple[str, ...]) -> None:
    """Sums in another order apart; with bf16, what gradients multiply is rounded as well."""
    rows = losses_of(model, "cpu", "--multiply-negatives=false", *flags)
    assert rows[-1] < 0.9 * rows[0]
    for target in TARGETS:
        assert losses_of(model, target, *flags) == pytest.approx(rows, rel=1e-2 if flags else 1e-5), target


def test_says_so(model: Path) -> None:
    explained = call(tool("genrec-compile"), model / "model.genrec", "--explain", "-o", "-")
    assert f"{NEGATIVES} negatives that all rows share" in explained
    apart = call(tool("genrec-compile"), model / "model.genrec", "--multiply-negatives=false", "--explain", "-o", "-")
    assert "sampled_cross_entropy" in explained
    assert "sampled_cross_entropy" not in apart
