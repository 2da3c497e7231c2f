"""A value of a list that was cut, cut again: the rows that cutting once to the shorter length keeps."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import pytest
from compiled import assert_same, run_both

SCHEMA = gr.Schema({"user": gr.int64, "history": [{"item": gr.int64, "rating": gr.float32.nullable()}]})


class CutTwice(gr.Model):
    """The latest 3 of the latest 5 events, cut at once and in two steps."""

    def __init__(self, keep: str) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.item = gr.Table("item", dim=3)
        self.keep = keep

    def forward(self, batch: gr.Batch) -> None:
        some = batch.history.truncate(5, keep=self.keep)
        twice = self.item(some.item).truncate(3, keep=self.keep)
        once = self.item(batch.history.truncate(3, keep=self.keep).item)
        rating = gr.fill_missing(some.rating.truncate(3, keep=self.keep), 2.0)
        gr.loss.mean((twice * twice).row_sum() * rating)
        gr.output(difference=(twice - once).row_sum())


@pytest.mark.parametrize("keep", ["last", "first"])
@pytest.mark.parametrize("mode", ["train", "predict"])
def test_cutting_twice_is_cutting_once(keep: str, mode: str, tmp_path: Path) -> None:
    gr.write_model(gr.record(CutTwice(keep), SCHEMA), tmp_path / "model.genrec")
    runs = run_both(tmp_path / "model.genrec", tmp_path, mode=mode, rows=9)
    assert_same(runs)
    if mode == "predict":
        differences = [step["outputs"]["difference"] for step in runs.interpreted]
        assert any(differences) and all(number == 0 for step in differences for number in step)
