"""Label smoothing of losses over a catalogue, against its definition in NumPy: values, and gradients by a step of SGD."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import assert_same, draft, run_both
from towers import weights

SCHEMA = gr.Schema({"user": gr.int64, "item": gr.int64.nullable()})
ITEM_IDS = np.array([40, 7, 19, 3, 28])
USERS = np.array([2, 5, 2, 9, 11, 4, 5])
POSITIVES = [7, 3, None, 28, 40, 19, 7]
DIM = 4
SMOOTHING = 0.3
TEMPERATURE = 0.5


class Smoothed(gr.Model):
    """A user's item among those of a catalogue, which has fewer items than it may have with `max_items` of 8."""

    def __init__(self, folder: Path, max_items: int | None, smoothing: float = SMOOTHING) -> None:
        super().__init__(optimizer=gr.optim.SGD(1.0), name="Smoothed")
        self.user = gr.Table("user", dim=DIM, init=gr.init.normal(1.0))
        self.item = gr.Table("item", dim=DIM, init=gr.init.normal(1.0))
        self.items = gr.catalogue(folder / "items.parquet", id="item")
        self.max_items, self.smoothing = max_items, smoothing

    def forward(self, batch: gr.Batch) -> None:
        loss = gr.loss.full_softmax(
            self.user(batch.user), batch.item, self.item, self.items, temperature=TEMPERATURE,
            max_items=self.max_items, label_smoothing=self.smoothing,
        )  # fmt: skip
        gr.output(loss=loss)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("smoothing")
    pq.write_table(pa.table({"user": USERS, "item": pa.array(POSITIVES, pa.int64())}), folder / "train.parquet")
    pq.write_table(pa.table({"item": ITEM_IDS}), folder / "items.parquet")
    return folder


def definition(users: np.ndarray, items: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The loss, and its gradients for the vectors of each row's user and of each item, in double."""
    logits = users @ items.T / TEMPERATURE
    largest = logits.max(1, keepdims=True)
    log_probability = logits - largest - np.log(np.exp(logits - largest).sum(1, keepdims=True))
    target = np.full(logits.shape, SMOOTHING / len(ITEM_IDS))
    weight = np.array([0.0 if one is None else 1.0 for one in POSITIVES]) / sum(one is not None for one in POSITIVES)
    for row, positive in enumerate(POSITIVES):
        if positive is not None:
            target[row, list(ITEM_IDS).index(positive)] += 1 - SMOOTHING
    loss = -(weight[:, None] * target * log_probability).sum()
    gradient = weight[:, None] * (np.exp(log_probability) - target) / TEMPERATURE
    return loss, gradient @ items, gradient.T @ users


def table_of(tensors: dict[str, np.ndarray], name: str) -> dict[int, np.ndarray]:
    rows = zip(tensors[f"{name}.ids"].tolist(), tensors[f"{name}.values"].astype(np.float64), strict=True)
    return dict(rows)


@pytest.mark.parametrize("max_items", [None, 8])
def test_full_softmax_is_its_definition(max_items: int | None, folder: Path, tmp_path: Path) -> None:
    model = gr.compile(Smoothed(folder, max_items), SCHEMA, output=tmp_path / "model", flags=draft())
    ends = []
    for rate in (0.0, 1.0):  # a step that changes nothing, and one from the same values
        run = model.train(
            folder / "train.parquet", batch=len(USERS), lr=rate, seed=3, checkpoint=tmp_path / f"c{rate}",
            progress=False,
        )  # fmt: skip
        ends.append(weights(model, tmp_path / f"e{rate}", tmp_path / f"c{rate}"))
    (user, item), (user_after, item_after) = ([table_of(end, name) for name in ("user", "item")] for end in ends)
    loss, of_rows, of_items = definition(
        np.array([user[one] for one in USERS.tolist()]), np.array([item[one] for one in ITEM_IDS.tolist()])
    )
    assert run.loss == pytest.approx(loss, rel=1e-5)
    for row, one in enumerate(ITEM_IDS.tolist()):
        np.testing.assert_allclose(item_after[one] - item[one], -of_items[row], rtol=1e-4, atol=1e-5)
    for one in set(USERS.tolist()):
        expected = -of_rows[one == USERS].sum(0)
        np.testing.assert_allclose(user_after[one] - user[one], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("level", [0, 2])
def test_compiled_as_interpreted(level: int, folder: Path, tmp_path: Path) -> None:
    gr.write_model(gr.record(Smoothed(folder, 8), SCHEMA), tmp_path / "model.genrec")
    assert_same(run_both(tmp_path / "model.genrec", tmp_path, level=level))


def test_without_smoothing_nothing_is_added(folder: Path) -> None:
    ops = [op.name for op in gr.record(Smoothed(folder, 8, 0.0), SCHEMA).ops]
    assert "exp" not in ops and "softmax_cross_entropy" in ops
