"""Nulls that pass through ops that work row by row: labels do not count, ids look nothing up, outputs are null."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import genrec as gr
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import assert_same, draft, run_both
from genrec import nn

SCHEMA = gr.Schema(
    {
        "id": gr.int64.nullable(),
        "x": gr.float32.nullable(),
        "one": gr.float32,
        "single": gr.float32.vector(1).nullable(),
        "pair": gr.float32.vector(2).nullable(),
        "history": [{"like": gr.float32.nullable()}],
    }
)


class Labels(gr.Model):
    """Losses of labels that are 3 or null, each moved or reduced in another way, and of a prediction of 0."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.0))
        self.zero = nn.Parameter((), gr.init.zeros())
        self.item = gr.Table("item", dim=2, init=gr.init.normal(1.0))
        self.slot = nn.Embedding(8, 2)

    def forward(self, batch: gr.Batch) -> None:
        like, zero = batch.history.like, batch.one * self.zero
        back, _ = gr.concat_rows(like, like).split_rows()
        labels = {
            "squeezed": batch.single.squeeze(),
            "vector_of_one": batch.single,
            "column": batch.pair[:, 0],
            "greatest": batch.pair.row_max(),
            "joined": gr.concat(batch.pair, batch.one).row_max(),
            "chosen": gr.where(batch.x.valid, batch.x, batch.single.squeeze()),
        }
        for name, label in labels.items():
            gr.loss.mse(zero, label, name=name)
        gr.loss.mse(zero.fanout(batch.history), back, name="split")
        ids = gr.multi_hash(batch.id, bits=16, count=2)[:, 0]
        condition = batch.x > 2.0
        gr.output(id=ids, vector=self.item(ids), slot=self.slot(gr.mod(batch.id, 8)), split=back)
        gr.output(where=gr.where(condition, 1.0, 0.0), unless=gr.where(~condition, 1.0, 0.0))
        gr.output(filled=gr.where(batch.x.valid, batch.x, 0.0), false=gr.where(gr.fill_missing(condition, False), 1, 0))


def write(path: Path) -> Path:
    entry = pa.list_(pa.struct([("like", pa.float32())]))
    like = [[3.0, None], [None], [], [3.0]]
    table = pa.table({
        "id": pa.array([5, None, 7, None]),
        "x": pa.array([3.0, None, 3.0, None], pa.float32()),
        "one": pa.array([1.0] * 4, pa.float32()),
        "single": pa.array([[3.0], None, [3.0], None], pa.list_(pa.float32(), 1)),
        "pair": pa.array([[3.0, 1.0], None, [3.0, 1.0], None], pa.list_(pa.float32(), 2)),
        "history": pa.array([[{"like": one} for one in row] for row in like], entry),
    })  # fmt: skip
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_null_rows_do_not_count_and_are_written_as_null(target: str, tmp_path: Path) -> None:
    rows = write(tmp_path / "rows.parquet")
    flags = draft() if target == "cpu" else []
    model = gr.compile(Labels(), SCHEMA, target=target, output=tmp_path / "labels", flags=flags)
    model.train(rows, batch=4, checkpoint=tmp_path / "c", metrics_json=tmp_path / "m.json", progress=False)
    losses = json.loads((tmp_path / "m.json").read_text())["history"][0]["losses"]
    assert losses == dict.fromkeys(losses, pytest.approx(9.0)) and len(losses) == 7
    out = tmp_path / "out"
    model.predict(rows, out, checkpoint=tmp_path / "c", progress=False)
    found = pq.read_table(out / "request.parquet").to_pydict()
    assert [one is None for one in found["id"]] == [False, True, False, True]
    for name in ("vector", "slot"):
        assert [any(one) for one in found[name]] == [True, False, True, False], name
    assert found["where"] == [1.0, None, 1.0, None] and found["unless"] == [0.0, None, 0.0, None]
    assert found["filled"] == [3.0, 0.0, 3.0, 0.0] and found["false"] == [1, 0, 1, 0]
    assert pq.read_table(out / "history.parquet")["split"].to_pylist() == [3.0, None, None, 3.0]


@pytest.mark.parametrize("mode", ["train", "predict"])
def test_the_interpreter_agrees(mode: str, tmp_path: Path) -> None:
    gr.write_model(gr.record(Labels(), SCHEMA), tmp_path / "model.genrec")
    assert_same(run_both(tmp_path / "model.genrec", tmp_path, mode=mode, rows=9))


@pytest.mark.parametrize("loss", [gr.loss.bce_with_logits, gr.loss.mse, gr.loss.mae])
@pytest.mark.parametrize("weight", ["weight", "nullable", "computed"])
def test_a_label_that_is_nan_in_a_row_of_no_weight(loss: Callable[..., gr.Value], weight: str, tmp_path: Path) -> None:
    """Neither the loss nor a gradient has it: the run is that of a label of 0 there."""

    class Weighed(gr.Model):
        def __init__(self) -> None:
            super().__init__(optimizer=gr.optim.SGD(0.1))
            self.item = gr.Table("item", dim=4)

        def forward(self, batch: gr.Batch) -> None:
            given = batch.nullable * 1.0 if weight == "computed" else batch[weight]
            loss(self.item(batch.id).row_sum(), batch.label, weight=given)

    model = None
    ends = []
    for label in (float("nan"), 0.0):
        columns = {
            "id": [0, 1, 2, 1], "label": [0.0, label, 1.0, 1.0], "weight": [1.0, 0.0, 2.0, 1.0],
            "nullable": [1.0, None, 2.0, 1.0],
        }  # fmt: skip
        floats = {name: pl.Float32 for name in ("label", "weight", "nullable")}
        data = tmp_path / f"{label}.parquet"
        pl.DataFrame(columns, schema_overrides=floats).write_parquet(data)
        schema = gr.Schema.from_parquet(data, nullable=["nullable"])
        model = model or gr.compile(Weighed(), schema, output=tmp_path / "model", flags=draft())
        run = model.train(data, batch=4, epochs=3, seed=1, shuffle=False, progress=False, overwrite=True)
        ends.append([entry["loss"] for entry in run.history])
    assert ends[0] == ends[1] and None not in ends[0]
