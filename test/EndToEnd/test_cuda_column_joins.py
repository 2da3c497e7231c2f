"""Wide joins, whose parts a device makes side by side: the emulated device has the CPU's bits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, require_emulator, tool
from genrec import nn
from test_cuda_models import TARGETS

NUMBERS, USERS, EVENTS = 8, 7, 420


class Joins(gr.Model):
    """Numbers of a user, and of events, of which there are more than a block has rows, beside vectors of both."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05))
        self.items = gr.Table("items", dim=12, init=gr.init.normal(0.3))
        self.places = gr.Table("places", dim=5, init=gr.init.normal(0.3))
        self.scale = gr.Parameter((), gr.init.constant(0.5))
        self.users = nn.Linear(3 * NUMBERS + 1 + 12 + 5, 1)
        self.events = nn.Linear(2 * NUMBERS + 12 + 1, 1)

    def forward(self, batch: gr.Batch) -> None:
        events = batch.events
        rows = self.items(events.item)
        user: list[gr.Value] = [nn.l2_normalize(self.items(events.place).mean())]
        user += [gr.log1p(gr.clip(batch[f"x{k}"], low=0.0)) for k in range(NUMBERS)]
        user += [(batch[f"x{k}"] - 0.25 * k) * self.scale for k in range(NUMBERS)]
        user += [batch[f"n{k}"].astype(gr.float32) for k in range(NUMBERS)]
        both = batch.x0 * batch.x1  # of two parts
        user += [self.places(events.place).sum(), nn.tanh(both) - both]
        event: list[gr.Value] = [nn.sigmoid(events[f"y{k}"]) for k in range(NUMBERS)]
        event += [events[f"y{k}"] * batch[f"x{k}"].fanout(events) for k in range(NUMBERS)]
        event += [rows * self.scale, events.y0]
        joined, joined_events = gr.concat(*user), gr.concat(*event)
        scores = self.events(joined_events).row_sum()
        gr.loss.mse(self.users(joined).row_sum() + scores.mean(), batch.label)
        # What reads a joined row reads it from memory, and makes no part of it.
        gr.output(user=joined, event=joined_events, normed=nn.layer_norm(joined), largest=joined.row_max())


def write(path: Path) -> Path:
    draw = np.random.default_rng(8)
    event = pa.struct([("item", pa.int64()), ("place", pa.int64()), *((f"y{k}", pa.float32()) for k in range(NUMBERS))])
    columns: dict[str, Any] = {"label": pa.array(draw.normal(size=USERS).astype(np.float32))}
    for k in range(NUMBERS):
        columns[f"x{k}"] = pa.array(draw.normal(size=USERS).astype(np.float32))
        columns[f"n{k}"] = pa.array(draw.integers(0, 6, size=USERS))
    histories = []
    for length in [EVENTS, 0, 3, 2 * EVENTS, 1, EVENTS, 900]:
        ids, numbers = draw.integers(0, 30, (length, 2)), draw.normal(size=(length, NUMBERS))
        histories.append([
            {"item": int(i), "place": int(p), **{f"y{k}": float(y) for k, y in enumerate(row)}}
            for (i, p), row in zip(ids, numbers, strict=True)
        ])  # fmt: skip
    columns["events"] = pa.array(histories, pa.list_(event))
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_emulator()
    return write(tmp_path_factory.mktemp("joins") / "rows.parquet")


def test_joined_rows_have_the_bits_of_the_cpu(data: Path, tmp_path: Path) -> None:
    losses, rows = {}, {}
    for target in TARGETS:
        folder = tmp_path / target
        binary = gr.compile(
            Joins(), gr.Schema.from_parquet(data), target=target, output=folder / "model", flags=draft()
        ).binary
        checkpoint, report, out = folder / "state", folder / "report.json", folder / "out"
        plain = ("--data", data, "--batch", "7", "--threads", "1")
        call(
            binary, "train", *plain, "--epochs", "3", "--progress", "none", "--checkpoint", checkpoint,
            "--metrics-json", report, "--log-every", "1",
        )  # fmt: skip
        losses[target] = [step["loss"] for step in json.loads(report.read_text())["step_losses"]]
        call(binary, "predict", *plain, "--checkpoint", tmp_path / "cpu" / "state", "--out", out)
        rows[target] = [pq.read_table(out / f"{name}.parquet").to_pydict() for name in ("request", "events")]
    assert rows["cuda-emulated"] == rows["cpu"]
    assert losses["cuda-emulated"] == pytest.approx(losses["cpu"], rel=1e-5)


def test_parts_that_do_the_same_share_a_body(data: Path, tmp_path: Path) -> None:
    """Each join is one launch of all its parts; what differs in constants alone shares a body, too."""
    model, source = tmp_path / "joins.genrec", tmp_path / "model.cu"
    gr.write_model(gr.record(Joins(), gr.Schema.from_parquet(data)), model)
    call(tool("genrec-compile"), model, "--target=cuda", "--emit=cpp", "-o", source)
    text = source.read_text()
    columns = re.findall(r"ColumnShape run_row_(\w+_concat_columns)_columns\w*\[(\d+)\]", text)
    # Training keeps the length of the first part for its gradient.
    assert set(columns) == {
        ("request_row_reduce_concat_columns", "28"), ("request_concat_columns", "27"), ("events_concat_columns", "18"),
    }  # fmt: skip
    bodies = re.findall(r"^  kernels::runColumns<(row_\w+_concat_columns[^>]*)>", text, re.MULTILINE)
    assert sorted(len(names.split(", ")) for names in bodies) == [4, 7, 8]
