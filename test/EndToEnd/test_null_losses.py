"""Null rows of a loss of one's own: what is computed of a null is null, and does not count."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
    model = gr.compile(Constant(), SCHEMA, output=tmp_path / "constant")
    run = model.train(tmp_path / "rows.parquet", batch=5, checkpoint=tmp_path / "c", progress=False)
    known = np.array([one for one in RATINGS if one is not None])
    assert run.loss == pytest.approx(((known - 2.0) ** 2 * 0.5).mean())
    path = model.predict(tmp_path / "rows.parquet", tmp_path / "out.parquet", progress=False)
    # One step of SGD at rate 1 goes to the mean of the ratings there are.
    guess = pq.read_table(path)["guess"].to_pylist()
    assert guess == [None if one is None else pytest.approx(known.mean()) for one in RATINGS]
