"""Lists of up to 100,000 rows that are pooled beside sums over all rows: the emulated device has the CPU's bits."""

from __future__ import annotations

import json
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from compiled import call, draft, require_emulator

LENGTHS = [3, 0, 256, 257, 100_000, 1, 700]


class Sessions(gr.Model):
    """One value per event goes into a loss of its own, and into sums for its session and its user."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01))
        self.scale = gr.Parameter((), gr.init.constant(0.5))

    def forward(self, batch: gr.Batch) -> None:
        value = batch.sessions.events.x * self.scale
        gr.loss.mean(value * value, name="events")
        of_session, of_user = value.sum(), value.sum(to=batch)
        gr.loss.mse(of_session.max() + of_user, batch.y, name="users")
        gr.output(user=of_user, last=value.pool("last").pool("last"))


def write(path: Path) -> Path:
    """A user per length; events lie in sessions of three and one longer one."""
    draw = np.random.default_rng(4)
    rows = []
    for length in LENGTHS:
        x = draw.normal(size=length).astype(np.float32)
        cuts = [x[:3], x[3:]] if length > 3 else [x]
        rows.append([{"events": [{"x": float(one)} for one in cut]} for cut in cuts])
    events = pa.list_(pa.struct([("x", pa.float32())]))
    sessions = pa.list_(pa.struct([("events", events)]))
    y = pa.array(np.arange(len(LENGTHS), dtype=np.float32))
    pq.write_table(pa.table({"y": y, "sessions": pa.array(rows, sessions)}), path)
    return path


def test_long_lists_beside_sums(tmp_path: Path) -> None:
    require_emulator()
    data = write(tmp_path / "rows.parquet")
    results = {}
    for target in ("cpu", "cuda-emulated"):
        binary = gr.compile(
            Sessions(), gr.Schema.from_parquet(data), target=target, output=tmp_path / target / "model", flags=draft()
        ).binary
        checkpoint, report = tmp_path / target / "state", tmp_path / f"{target}.json"
        call(
            binary, "train", "--data", data, "--batch", "4", "--epochs", "1", "--threads", "1", "--progress", "none",
            "--checkpoint", checkpoint, "--metrics-json", report, "--log-every", "1",
        )  # fmt: skip
        call(binary, "predict", "--data", data, "--checkpoint", checkpoint, "--out", tmp_path / "out.parquet")
        results[target] = (
            json.loads(report.read_text())["step_losses"],
            pq.read_table(tmp_path / "out.parquet").to_pydict(),
        )
    cpu, emulated = results["cpu"], results["cuda-emulated"]
    assert len(cpu[0]) == 2
    assert cpu[0] == emulated[0]
    assert cpu[1] == emulated[1]
