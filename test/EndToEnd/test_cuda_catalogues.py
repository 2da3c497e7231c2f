"""Catalogues on the emulated device: full softmax and ranks, with cuBLASLt and without; an item tower with layers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, require_emulator
from genrec import nn
from test_cuda_models import TARGETS, compile_both, expect_close, expect_same_evaluation, tensors, train

ITEMS, DIM, ROWS = 150, 64, 40


class Shop(gr.Model):
    """The item that comes next, of all that there are: wide enough for cuBLASLt."""

    def __init__(self, catalogue: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.5))
        self.catalogue = catalogue
        self.item = gr.Table("item", dim=DIM, id_bits=20, init=gr.init.normal(0.3))

    def forward(self, batch: gr.Batch) -> None:
        query = self.item(batch.seen)
        gr.loss.full_softmax(query, batch.next, self.item, self.catalogue)
        gr.metric.ranking(gr.rank(query, batch.next, self.item, self.catalogue), at=(1, 10))
        found = gr.top_k(query, self.item, self.catalogue, k=5)
        gr.output(item=found.ids, score=found.scores)


def run(binary: Path, folder: Path, name: str, state: Path | None = None) -> tuple[Any, Any, Any]:
    """Losses of some steps, and what the binary evaluates and predicts with `state`, or what it has trained."""
    report, out, data = folder / f"{name}.json", folder / f"{name}.parquet", folder / "rows.parquet"
    given = ["--data", data, "--batch", "16", "--threads", "1", "--progress", "none"]
    call(
        binary, "train", *given, "--epochs", "2", "--seed", "3", "--checkpoint", folder / name,
        "--metrics-json", report, "--log-every", "1",
    )  # fmt: skip
    losses = [step["loss"] for step in json.loads(report.read_text())["step_losses"]]
    call(binary, "evaluate", *given, "--checkpoint", state or folder / name, "--metrics-json", report)
    call(binary, "predict", *given, "--checkpoint", state or folder / name, "--out", out)
    return losses, json.loads(report.read_text())["evaluation"]["metrics"], pq.read_table(out).to_pydict()


def test_catalogues_by_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_emulator()
    draw = np.random.default_rng(5)
    rows = {name: pa.array(draw.integers(0, ITEMS, ROWS), pa.int64()) for name in ("seen", "next")}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    pq.write_table(pa.table({"item": pa.array(range(ITEMS), pa.int64())}), tmp_path / "items.parquet")
    model = Shop(gr.catalogue(str(tmp_path / "items.parquet"), id="item"))
    schema = gr.Schema.from_parquet(tmp_path / "rows.parquet")
    cpu, emulated = (
        gr.compile(model, schema, target=target, output=tmp_path / f"{target}.model", flags=draft()).binary
        for target in TARGETS
    )
    expected = run(cpu, tmp_path, "cpu")
    library = run(emulated, tmp_path, "library", tmp_path / "cpu")
    monkeypatch.setenv("GENREC_CUBLASLT_LIBRARY", "none")
    tiles = run(emulated, tmp_path, "tiles", tmp_path / "cpu")
    for losses, metrics, predicted in (library, tiles):
        np.testing.assert_allclose(losses, expected[0], rtol=1e-5)
        # Ranks, items and scores to the bit, whoever computes products.
        assert metrics == expected[1]
        assert predicted == expected[2]
    kept = {name: tensors(tmp_path / name) for name in ("cpu", "library", "tiles")}
    expect_close(kept["library"], kept["cpu"])
    assert any((kept["library"][key] != kept["tiles"][key]).any() for key in kept["tiles"]), "were both tiles?"


class Towers(gr.Model):
    """An item tower whose layer reads lookups by two columns of the catalogue; several targets per user.

    `score` is computed in blocks of lists on the CPU, `seen` is not: the columns of predictions have the model's order.
    """

    def __init__(self, catalogue: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.5))
        self.items = catalogue
        self.item, self.tag = (gr.Table(name, dim=33, init=gr.init.normal(0.3)) for name in ("item", "tag"))
        self.tower = nn.MLP([66, 40, 16])
        self.user = nn.MLP([33, 32, 16])

    def forward(self, batch: gr.Batch) -> None:
        vectors = self.tower(gr.concat(self.item(self.items.item), self.tag(self.items.tags.value).mean()))
        event = self.user(self.item(batch.history.item))
        query = event.mean()
        gr.loss.sampled_softmax(query, batch.next, vectors, self.items, negatives=8)
        found = gr.top_k(query, vectors, self.items, k=5, exclude=batch.history.item)
        gr.metric.ranking(found, target=batch.later.value, at=(1, 10))
        gr.output(score=query.row_sum(), seen=gr.sequence_length(batch.history))


def write_towers(folder: Path) -> Path:
    """A catalogue whose items have up to three tags, and users of whom some saw nothing."""
    draw = np.random.default_rng(6)
    lists = pa.list_(pa.int64())
    tags = pa.array([draw.integers(0, 9, draw.integers(0, 4)).tolist() for _ in range(ITEMS)], lists)
    pq.write_table(pa.table({"item": pa.array(range(ITEMS), pa.int64()), "tags": tags}), folder / "items.parquet")
    histories = [[{"item": int(i)} for i in draw.integers(0, ITEMS, draw.integers(0, 7))] for _ in range(ROWS)]
    rows = {
        "next": pa.array(draw.integers(0, ITEMS, ROWS), pa.int64()),
        "history": pa.array(histories, pa.list_(pa.struct({"item": pa.int64()}))),
        "later": pa.array([draw.integers(0, ITEMS, draw.integers(0, 4)).tolist() for _ in range(ROWS)], lists),
    }
    pq.write_table(pa.table(rows), folder / "rows.parquet")
    return folder / "rows.parquet"


def test_an_item_tower_with_layers(tmp_path: Path) -> None:
    """In portions, too: the gradient of a factored layer over items is a sum over all of them."""
    require_emulator()
    data = write_towers(tmp_path)
    catalogue = gr.catalogue(str(tmp_path / "items.parquet"), id="item")
    binaries = compile_both(lambda: Towers(catalogue), gr.Schema.from_parquet(data), tmp_path)
    kept, losses = {}, {}
    for target, portions in (("cpu", "1"), ("cpu", "3"), ("cuda-emulated", "3")):
        folder = tmp_path / f"{target}.{portions}"
        report = train(binaries[target], data, folder, "--portions", portions, steps=3)
        losses[target, portions] = [step["loss"] for step in report["step_losses"]]
        kept[target, portions] = tensors(folder)
    for other in ("cpu", "1"), ("cuda-emulated", "3"):
        np.testing.assert_allclose(losses[other], losses["cpu", "3"], rtol=1e-5)
        expect_close(kept[other], kept["cpu", "3"])
    predicted = expect_same_evaluation(binaries, data, tmp_path / "cpu.3", tmp_path, predicts=True)
    assert [table.column_names for table in predicted] == [["row", "score", "seen"]] * 2


class Tagged(gr.Model):
    """Items with tags that may be null, of which there are none."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.items = items
        self.item, self.tag = gr.Table("item", dim=4), gr.Table("tag", dim=4)

    def forward(self, batch: gr.Batch) -> None:
        tags = self.items.tags.truncate(2)
        tagged = (self.tag(tags.tag) * gr.fill_missing(tags.weight, 0.5)).sum()
        vectors = self.item(self.items["item"]) + tagged
        gr.loss.sampled_softmax(self.item(batch.seen), batch.next, vectors, self.items, negatives=8)


def test_empty_lists_of_a_catalogue(tmp_path: Path) -> None:
    """Columns that may be null, of a list without entries, are on the device once: steps are captured beside them."""
    require_emulator()
    draw = np.random.default_rng(5)
    rows = {name: pa.array(draw.integers(0, ITEMS, 256), pa.int64()) for name in ("seen", "next")}
    pq.write_table(pa.table(rows), tmp_path / "rows.parquet")
    tag = pa.struct([("tag", pa.int64()), ("weight", pa.float32())])
    items = {"item": pa.array(range(ITEMS), pa.int64()), "tags": pa.array([[]] * ITEMS, pa.list_(tag))}
    pq.write_table(pa.table(items), tmp_path / "items.parquet")
    schema = {"item": gr.int64, "tags": [{"tag": gr.int64.nullable(), "weight": gr.float32.nullable()}]}
    catalogue = gr.catalogue(str(tmp_path / "items.parquet"), id="item", schema=gr.Schema(schema))
    rows_schema = gr.Schema.from_parquet(tmp_path / "rows.parquet")
    binaries = compile_both(lambda: Tagged(catalogue), rows_schema, tmp_path)
    losses, launched = {}, []
    for target in TARGETS:
        for steps in (32, 64):
            report = train(binaries[target], tmp_path / "rows.parquet", tmp_path / f"{target}.{steps}", steps=steps)
            launched.append(report.get("device", {}).get("captured_steps_launched", 0))
        losses[target] = [step["loss"] for step in report["step_losses"]]
    np.testing.assert_allclose(losses["cuda-emulated"], losses["cpu"], rtol=1e-5)
    assert launched[3] > launched[2] > 0
