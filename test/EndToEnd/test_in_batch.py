"""In-batch softmax: two towers whose negatives are the items of the other rows of a portion."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, needs_emulator, read_tensors
from genrec import nn
from launching import launcher, needs_mpi

ROWS, BATCH, STEPS, TEMPERATURE = 130, 40, 6, 0.3
SCHEMA = gr.Schema({"user": gr.int64, "item": gr.int64.nullable(), "log_q": gr.float32, "weight": gr.float32})


class Towers(gr.Model):
    """A user tower, an item tower; rows without an item, or of weight 0, do not count."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), name="Towers")
        self.user, self.item = (gr.Table(name, dim=8, init=gr.init.normal(0.5)) for name in ("user", "item"))
        self.query, self.candidate = nn.MLP([8, 12, 6]), nn.MLP([8, 12, 6])

    def forward(self, batch: gr.Batch) -> None:
        query = nn.l2_normalize(self.query(self.user(batch.user)))
        item = nn.l2_normalize(self.candidate(self.item(batch.item)))
        loss = gr.loss.in_batch_softmax(
            query, item, batch.item, TEMPERATURE, log_q=batch.log_q, weight=batch.weight, name="next"
        )
        gr.output(query=query, vector=item, loss=loss)


def write_rows(path: Path, rows: int = ROWS, items: int = 25) -> Path:
    draw = np.random.default_rng(8)
    item = draw.integers(0, items, rows)
    columns = {
        "user": pa.array(draw.integers(0, 30, rows), pa.int64()),
        "item": pa.array([None if draw.random() < 0.1 else int(i) for i in item], pa.int64()),
        "log_q": pa.array(-np.log1p(item), pa.float32()),
        "weight": pa.array(draw.integers(0, 4, rows) / 2, pa.float32()),
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the binary `cpu` and data."""
    folder = tmp_path_factory.mktemp("towers")
    gr.compile(Towers(), SCHEMA, output=folder / "cpu", flags=draft())
    write_rows(folder / "rows.parquet")
    return folder


def train(
    binary: Path, folder: Path, *more: str, ranks: int = 0, threads: int = 1, steps: int = STEPS
) -> tuple[list[float], dict[str, np.ndarray]]:
    """The losses of the steps, and what a checkpoint in `folder` holds."""
    folder.mkdir()
    call(
        *launcher(ranks), binary, "train", "--data", binary.parent / "rows.parquet", "--batch", str(BATCH),
        "--epochs", "3", "--max-steps", str(steps), "--seed", "5", "--threads", str(threads), "--progress", "none",
        "--checkpoint", folder / "kept", "--metrics-json", folder / "report.json", "--log-every", "1", *more,
    )  # fmt: skip
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    tensors = {
        name: tensor
        for file in sorted((folder / "kept" / f"step-{steps}").glob("*.safetensors"))
        for name, tensor in read_tensors(file.read_bytes()).items()
    }
    return [step["loss"] for step in report["step_losses"]], tensors


def expect_equal(first: tuple[Any, dict[str, np.ndarray]], second: tuple[Any, dict[str, np.ndarray]]) -> None:
    assert first[0] == second[0]
    assert first[1].keys() == second[1].keys()
    for name, tensor in first[1].items():
        np.testing.assert_array_equal(tensor, second[1][name], err_msg=name)


def losses_of(rows: dict[str, np.ndarray]) -> np.ndarray:
    """The loss of each row of one portion, by the definition."""
    counts = rows["has_item"] & (rows["weight"] != 0)
    logits = rows["query"] @ rows["vector"].T / TEMPERATURE - rows["log_q"]
    others = counts & (rows["item"][:, None] != rows["item"])
    np.fill_diagonal(others, True)
    sums = np.log(np.sum(np.where(others, np.exp(logits), 0.0), axis=1))
    return np.where(counts, sums - np.diag(logits), 0.0)


def test_losses_are_those_of_the_definition(made: Path, tmp_path: Path) -> None:
    train(made / "cpu", tmp_path / "run", steps=3)
    out = tmp_path / "predicted.parquet"
    call(
        made / "cpu", "predict", "--data", made / "rows.parquet", "--batch", str(BATCH), "--checkpoint",
        tmp_path / "run" / "kept", "--out", out,
    )  # fmt: skip
    predicted, data = pq.read_table(out), pq.read_table(made / "rows.parquet")
    rows = {name: np.array(predicted[name].to_pylist(), np.float64) for name in ("query", "vector", "loss")}
    rows |= {name: data[name].to_numpy().astype(np.float64) for name in ("log_q", "weight")}
    rows["has_item"] = data["item"].is_valid().to_numpy()
    rows["item"] = data["item"].fill_null(-1).to_numpy()
    assert not rows["has_item"].all() and (rows["weight"] == 0).any()
    for begin in range(0, ROWS, BATCH):
        batch = {name: values[begin : begin + BATCH] for name, values in rows.items()}
        assert len(set(batch["item"])) < len(batch["item"])
        np.testing.assert_allclose(batch["loss"], losses_of(batch), rtol=1e-4, atol=1e-5)


def test_a_row_that_is_alone_has_no_loss(made: Path, tmp_path: Path) -> None:
    """Portions of one row, and such as none is left for."""
    losses, _ = train(made / "cpu", tmp_path / "one", "--batch", "2", "--portions", "2", steps=2)
    assert losses == [0.0, 0.0]


def test_same_bits_at_any_number_of_threads(made: Path, tmp_path: Path) -> None:
    expect_equal(train(made / "cpu", tmp_path / "one"), train(made / "cpu", tmp_path / "three", threads=3))


@needs_mpi
def test_same_bits_on_any_number_of_ranks_and_other_losses_by_portions(made: Path, tmp_path: Path) -> None:
    alone = train(made / "cpu", tmp_path / "alone", "--portions", "2", ranks=0)
    expect_equal(alone, train(made / "cpu", tmp_path / "one", "--portions", "2", ranks=1))
    expect_equal(alone, train(made / "cpu", tmp_path / "two", "--portions", "2", ranks=2))
    whole = train(made / "cpu", tmp_path / "whole")
    assert all(few < many for few, many in zip(alone[0], whole[0], strict=True))  # fewer negatives


@needs_emulator
def test_devices_agree(made: Path, tmp_path: Path) -> None:
    gr.compile(Towers(), SCHEMA, target="cuda-emulated", output=made / "device")
    for portions in ("1", "2"):
        host, device = (
            train(made / name, tmp_path / f"{name}.{portions}", "--portions", portions) for name in ("cpu", "device")
        )
        np.testing.assert_allclose(device[0], host[0], rtol=1e-5, atol=1e-5)
        for name, tensor in host[1].items():
            np.testing.assert_allclose(device[1][name], tensor, rtol=1e-4, atol=1e-5, err_msg=name)
