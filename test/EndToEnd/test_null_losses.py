"""Null rows of a loss of one's own: what is computed of a null is null, and does not count."""

from __future__ import annotations

import json
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft

SCHEMA = gr.Schema({"user": gr.int64, "rating": gr.float32.nullable()})
RATINGS = [4.0, None, 1.0, None, 3.0]


class Constant(gr.Model):
    """One number for every rating."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(1.0))
        self.guess = gr.Parameter((), gr.init.constant(2.0))

    def forward(self, batch: gr.Batch) -> None:
        gr.loss.mean((batch.rating - self.guess) ** 2 * 0.5)
        gr.output(guess=batch.rating * 0.0 + self.guess)


def test_only_rows_with_a_rating_count(tmp_path: Path) -> None:
    table = pa.table({"user": np.arange(5), "rating": pa.array(RATINGS, pa.float32())})
    pq.write_table(table, tmp_path / "rows.parquet")
    model = gr.compile(Constant(), SCHEMA, output=tmp_path / "constant", flags=draft())
    run = model.train(tmp_path / "rows.parquet", batch=5, checkpoint=tmp_path / "c", progress=False)
    known = np.array([one for one in RATINGS if one is not None])
    assert run.loss == pytest.approx(((known - 2.0) ** 2 * 0.5).mean())
    path = model.predict(tmp_path / "rows.parquet", tmp_path / "out.parquet", progress=False)
    # One step of SGD at rate 1 goes to the mean of the ratings there are.
    guess = pq.read_table(path)["guess"].to_pylist()
    assert guess == [None if one is None else pytest.approx(known.mean()) for one in RATINGS]


class Weighed(gr.Model):
    """The same, by weights that are null where a rating is, as they are and computed."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(1.0))
        self.guess = gr.Parameter((), gr.init.constant(2.0))

    def forward(self, batch: gr.Batch) -> None:
        error = (gr.fill_missing(batch.rating, 100.0) - self.guess) ** 2
        gr.loss.mean(error, weight=batch.rating, name="column")
        gr.loss.mean(error, weight=1.0 + 2.0 * batch.rating, name="computed")
        gr.metric.rmse(self.guess + 0.0 * error, gr.fill_missing(batch.rating, 9.0), weight=3.0 - 0.5 * batch.rating)
        gr.metric.list_ranking(0.0 * batch.shown.item, batch.shown.clicked, at=(1,), weight=9.0 - batch.rating)


def test_rows_with_a_null_weight_do_not_count(tmp_path: Path) -> None:
    schema = gr.Schema({"rating": gr.float32.nullable(), "shown": [{"item": gr.float32, "clicked": gr.bool_}]})
    shown = [[{"item": 1.0, "clicked": rating is not None}] for rating in RATINGS]
    entry = pa.list_(pa.struct([("item", pa.float32()), ("clicked", pa.bool_())]))
    table = pa.table({"rating": pa.array(RATINGS, pa.float32()), "shown": pa.array(shown, entry)})
    pq.write_table(table, tmp_path / "rows.parquet")
    model = gr.compile(Weighed(), schema, output=tmp_path / "weighed", flags=draft())
    model.train(tmp_path / "rows.parquet", batch=5, lr=0.0, checkpoint=tmp_path / "c", progress=False)
    found = model.evaluate(tmp_path / "rows.parquet", metrics_json=tmp_path / "m.json", progress=False)
    known = np.array([one for one in RATINGS if one is not None])
    losses = json.loads((tmp_path / "m.json").read_text())["evaluation"]["losses"]
    for name, weight in (("column", known), ("computed", 1 + 2 * known)):
        assert losses[name] == pytest.approx(np.average((known - 2.0) ** 2, weights=weight)), name
    assert found["rmse"] == pytest.approx(np.average((known - 2.0) ** 2, weights=3 - 0.5 * known) ** 0.5)
    assert found["hr@1"] == 1.0
