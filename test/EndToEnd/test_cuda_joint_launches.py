"""Kernels that do the same for many lists run in one launch: the emulated device has the CPU's bits."""

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

LISTS, WIDTH = 4, 6
# One list is longer than a piece (256 rows), one as long, and users without any are among them.
LENGTHS = [[3, 0, 256, 257, 900, 1], [0, 0, 0, 0, 0, 0], [7, 700, 1, 0, 2, 5], [600, 1, 2, 300, 0, 0]]


class Lists(gr.Model):
    """Ids, numbers and lists of lists of each list column, all pooled, in every way."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05))
        self.narrow = [gr.Table(f"t{k}", dim=WIDTH, init=gr.init.normal(0.3)) for k in range(LISTS)]
        self.wide = [gr.Table(f"w{k}", dim=40, init=gr.init.normal(0.3)) for k in range(LISTS)]
        self.scale = gr.Parameter((), gr.init.constant(0.5))

    def forward(self, batch: gr.Batch) -> None:
        pooled: list[gr.Value] = []
        for k in range(LISTS):
            events = batch[f"l{k}"]
            pooled.append(self.narrow[k](events.id).mean())
            pooled.append(nn.layer_norm(self.wide[k](events.id)).sum())
            # A row of the list reads one of its user, and the pooled values come back to the list.
            x = gr.log1p(events.x * batch.y.fanout(events))
            pooled += [x.pool(kind) for kind in ("sum", "max", "first", "last")]
            centred = x - x.mean().fanout(events)
            pooled.append((centred * centred).mean())
            pooled.append(batch[f"s{k}"].parts.x.sum(to=batch))
            pooled.append(batch[f"s{k}"].parts.x.sum().max())
            gr.output(**{f"greatest{k}": pooled[-1]})
        score = gr.concat(*pooled).row_mean() * self.scale
        gr.loss.mse(score, batch.y)
        gr.output(score=score, longest=pooled[3])


def write(path: Path) -> Path:
    """A row per length, twice."""
    draw = np.random.default_rng(6)
    columns: dict[str, Any] = {"y": pa.array(np.tile(np.arange(len(LENGTHS[0]), dtype=np.float32), 2))}
    event = pa.struct([("id", pa.int64()), ("x", pa.float32())])
    part = pa.struct([("x", pa.float32())])
    for k in range(LISTS):
        rows, sessions = [], []
        for length in [*LENGTHS[k], *reversed(LENGTHS[k])]:
            x = draw.uniform(0, 3, size=length)
            rows.append([{"id": int(draw.integers(50)), "x": float(value)} for value in x])
            cuts = np.array_split(x, 3)
            sessions.append([{"parts": [{"x": float(value)} for value in cut]} for cut in cuts])
        columns[f"l{k}"] = pa.array(rows, pa.list_(event))
        columns[f"s{k}"] = pa.array(sessions, pa.list_(pa.struct([("parts", pa.list_(part))])))
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_emulator()
    return write(tmp_path_factory.mktemp("lists") / "rows.parquet")


def results_of(binary: Path, data: Path, folder: Path, *more: str) -> tuple[Any, Any]:
    """Losses of every step, and predictions."""
    checkpoint, report, out = folder / "state", folder / "report.json", folder / "out.parquet"
    call(
        binary, "train", "--data", data, "--batch", "5", "--epochs", "2", "--threads", "1", "--progress", "none",
        "--checkpoint", checkpoint, "--metrics-json", report, "--log-every", "1", *more,
    )  # fmt: skip
    call(binary, "predict", "--data", data, "--checkpoint", checkpoint, "--out", out, "--batch", "5")
    return json.loads(report.read_text())["step_losses"], pq.read_table(out).to_pydict()


@pytest.mark.parametrize("more", [(), ("--portions", "2")], ids=["whole", "portions"])
def test_lists_have_the_bits_of_the_cpu(data: Path, tmp_path: Path, more: tuple[str, ...]) -> None:
    results = {}
    for target in TARGETS:
        folder = tmp_path / target
        binary = gr.compile(
            Lists(), gr.Schema.from_parquet(data), target=target, output=folder / "model", flags=draft()
        ).binary
        results[target] = results_of(binary, data, folder, *more)
    assert len(results["cpu"][0]) == 6
    assert results["cuda-emulated"] == results["cpu"]


def test_lists_share_launches(data: Path, tmp_path: Path) -> None:
    """All lists together have as many launches as one of them, and a body for each kind of kernel."""
    model = tmp_path / "lists.genrec"
    gr.write_model(gr.record(Lists(), gr.Schema.from_parquet(data)), model)
    source, counted = tmp_path / "model.cu", {}
    call(tool("genrec-compile"), model, "--target=cuda", "--emit=cpp", "-o", source)
    text = source.read_text()
    joint = re.findall(r"^  kernels::launch(Pool)?Columns\(step, (run_row_\w+)_columns, ", text, re.MULTILINE)
    joint = [name for _, name in joint if not name.endswith("_concat_columns")]
    assert joint, "no launch has several lists"
    for name in joint:
        columns = re.search(rf"ColumnShape {name}_columns\[(\d+)\]", text)
        assert columns is not None
        assert int(columns[1]) == LISTS, name
    for target in TARGETS:
        explained = call(tool("genrec-compile"), model, f"--target={target}", "--explain", "-o", "-")
        counted[target] = [int(count) for count in re.findall(r"(\d+) launches;", explained)]
    assert all(device < cpu for device, cpu in zip(counted["cuda-emulated"], counted["cpu"], strict=True)), counted
