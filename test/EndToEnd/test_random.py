"""Random values of a model: whose they are, what they depend on, and how they are distributed."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft

ROWS, EVENTS = 4000, 3
SCHEMA = gr.Schema({"user": gr.int64, "history": [{"item": gr.int64}]})


class Draws(gr.Model):
    """Draws per user and per event, beside a loss that makes training steps."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.user = gr.Table("user", dim=2)

    def forward(self, batch: gr.Batch) -> None:
        history = batch.history
        user = gr.random.uniform(batch)
        gr.loss.mean((self.user(batch.user).row_sum() - user) ** 2)
        gr.output(
            user=user.fanout(history),
            event=gr.random.uniform(history),
            again=gr.random.uniform(history),
            range=gr.random.uniform(history.item, -2.0, 6.0),
            normal=gr.random.normal(history, mean=3.0, std=0.5, size=2),
            rare=gr.random.bernoulli(history, 0.1),
            never=gr.random.bernoulli(history, 0.0),
            always=gr.random.bernoulli(history, 1.0),
            own=gr.random.bernoulli(history, gr.mod(history.item, 2).astype(gr.float32)),
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with rows.parquet."""
    path = tmp_path_factory.mktemp("random")
    events = [[{"item": user * EVENTS + n} for n in range(EVENTS)] for user in range(ROWS)]
    history = pa.array(events, pa.list_(pa.struct([("item", pa.int64())])))
    table = pa.table({"user": pa.array(range(ROWS), pa.int64()), "history": history})
    pq.write_table(table, path / "rows.parquet", row_group_size=500)
    return path


@pytest.fixture(scope="module")
def model(folder: Path) -> gr.CompiledModel:
    trained = gr.compile(Draws(), SCHEMA, output=folder / "model", flags=draft())
    trained.train(folder / "rows.parquet", epochs=1, batch=1000, seed=3, checkpoint=folder / "four", progress=False)
    trained.train(folder / "rows.parquet", epochs=2, batch=1000, seed=3, checkpoint=folder / "eight", progress=False)
    return trained


def draw(model: gr.CompiledModel, folder: Path, checkpoint: str = "four", **flags: int) -> dict[str, np.ndarray]:
    """The outputs of prediction."""
    out = folder / "out.parquet"
    model.predict(folder / "rows.parquet", out, checkpoint=folder / checkpoint, progress=False, **flags)
    table = pq.read_table(out)
    return {name: np.array(table.column(name).to_pylist()) for name in table.column_names}


def test_draws_are_those_of_the_row(model: gr.CompiledModel, folder: Path) -> None:
    """Neither batch nor threads matter; a value per user is one draw for all of the user's events; ops differ."""
    first = draw(model, folder, batch=1000)
    for other in (draw(model, folder, batch=1000), draw(model, folder, batch=77, threads=1)):
        for name, values in first.items():
            assert (values == other[name]).all(), name
    per_user = first["user"].reshape(ROWS, EVENTS)
    assert (per_user == per_user[:, :1]).all()
    assert len(np.unique(per_user[:, 0])) > 0.99 * ROWS
    assert len(np.unique(first["event"])) > 0.99 * ROWS * EVENTS
    assert (first["event"] != first["again"]).mean() > 0.99
    assert abs(np.corrcoef(first["event"], first["again"])[0, 1]) < 0.05


def test_every_step_draws_anew(model: gr.CompiledModel, folder: Path) -> None:
    """Prediction draws what the last training step would: of another checkpoint, something else."""
    assert (draw(model, folder, "four")["event"] != draw(model, folder, "eight")["event"]).mean() > 0.99


def test_distributions(model: gr.CompiledModel, folder: Path) -> None:
    """Means, variances and bounds, within what chance allows (five standard errors of 12,000 draws)."""
    drawn, count = draw(model, folder), ROWS * EVENTS
    for name, low, high in (("event", 0.0, 1.0), ("range", -2.0, 6.0)):
        values, width = drawn[name], high - low
        assert low <= values.min() and values.max() < high
        assert abs(values.mean() - (low + high) / 2) < 5 * width / np.sqrt(12 * count)
        histogram = np.histogram(values, bins=16, range=(low, high))[0]
        assert ((histogram - count / 16) ** 2 / (count / 16)).sum() < 50  # chi-square of 15 degrees: 1e-5
    normal = drawn["normal"].astype(np.float64)
    assert normal.shape == (count, 2)
    assert abs(normal.mean() - 3.0) < 5 * 0.5 / np.sqrt(2 * count)
    assert abs(normal.std() - 0.5) < 5 * 0.5 / np.sqrt(4 * count)
    scaled = (normal - 3.0) / 0.5
    assert abs((scaled**3).mean()) < 5 * np.sqrt(6 / (2 * count)) and abs((scaled**4).mean() - 3) < 5 * np.sqrt(
        96 / (2 * count)
    )
    assert abs(np.corrcoef(normal[:, 0], normal[:, 1])[0, 1]) < 5 / np.sqrt(count)
    assert abs(drawn["rare"].mean() - 0.1) < 5 * np.sqrt(0.09 / count)
    assert not drawn["never"].any() and drawn["always"].all()
    assert (drawn["own"] == (np.arange(count) % 2 == 1)).all()
