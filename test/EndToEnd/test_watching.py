"""What `train --tensorboard` writes is what others read, and a profile names the user's ops."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import pytest
from compiled import draft
from genrec import nn

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))


class Clicks(gr.Model):
    """A small ranker over the impressions of generated requests."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(1e-2))
        self.item = gr.Table("item", dim=8)
        self.score = nn.Linear(8, 1)

    def forward(self, batch: gr.Batch) -> None:
        shown = batch.impression
        logit = self.score(self.item(shown.item)).row_sum()
        gr.loss.bce_with_logits(logit, shown.label)
        gr.metric.auc(logit, shown.label)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("requests")
    datagen = [BUILD / "bin" / "genrec-datagen", "--kind", "requests", "--out", folder, "--users", "300", "--seed", "1"]
    subprocess.run(datagen, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def model(data, tmp_path_factory) -> gr.CompiledModel:
    os.environ["GENREC_BIN"] = str(BUILD / "bin")
    schema = gr.Schema.from_parquet(data / "train.parquet")
    return gr.compile(Clicks(), schema, output=tmp_path_factory.mktemp("model") / "clicks", flags=draft())


def fields(data: bytes) -> dict[int, list[Any]]:
    """A protocol buffer's fields by number: integers, raw 8 or 4 bytes, or bytes."""
    found: dict[int, list[Any]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        tag = varint()
        kind = tag & 7
        size = {1: 8, 5: 4}.get(kind)
        if kind == 0:
            found.setdefault(tag >> 3, []).append(varint())
            continue
        size = varint() if size is None else size
        found.setdefault(tag >> 3, []).append(data[at : at + size])
        at += size
    return found


def scalars(path: Path) -> dict[str, list[tuple[int, float]]]:
    """Values over steps by tag, read from the record format by its definition."""
    data, at, found = path.read_bytes(), 0, {}
    while at < len(data):
        (length,) = struct.unpack_from("<Q", data, at)
        event = fields(data[at + 12 : at + 12 + length])
        at += 16 + length
        for summary in event.get(5, []):
            for value in fields(summary)[1]:
                entry = fields(value)
                step = event[2][0]
                found.setdefault(entry[1][0].decode(), []).append((step, struct.unpack("<f", entry[2][0])[0]))
    return found


def expected(run: gr.Run) -> dict[str, list[tuple[int, float]]]:
    """The same from what the run reported."""
    evaluations = [record["evaluation"] for record in run.history]
    return {
        "evaluate/auc": [(one["step"], one["metrics"]["auc"]) for one in evaluations],
        "evaluate/loss": [(one["step"], one["loss"]) for one in evaluations],
    }


def test_curves_hold_what_was_reported(model, data, tmp_path):
    run = model.train(
        data / "train.parquet", validation=data / "valid.parquet", epochs=2, batch=64, checkpoint=False,
        tensorboard=tmp_path / "tb", progress=False,
    )  # fmt: skip
    (file,) = (tmp_path / "tb").glob("events.out.tfevents.*")
    found = scalars(file)
    for tag, values in expected(run).items():
        assert [step for step, _ in found[tag]] == [step for step, _ in values]
        assert [value for _, value in found[tag]] == pytest.approx([value for _, value in values], rel=1e-6)
    steps = [step for step, _ in found["train/loss"]]
    assert steps == list(range(10, run.history[-1]["step"] + 1, 10))


def test_tensorboard_reads_the_curves(model, data, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = model.train(
        data / "train.parquet", validation=data / "valid.parquet", epochs=2, batch=64, checkpoint=False,
        tensorboard=tmp_path / "tb", progress=False,
    )  # fmt: skip
    accumulator = reader.EventAccumulator(str(tmp_path / "tb"))
    accumulator.Reload()
    for tag, values in expected(run).items():
        events = accumulator.Scalars(tag)
        assert [(event.step, event.value) for event in events] == [
            (step, pytest.approx(value, rel=1e-6)) for step, value in values
        ]


def test_a_profile_names_the_users_lines(model, data, tmp_path):
    run = model.train(
        data / "train.parquet", epochs=1, batch=64, checkpoint=False, profile=tmp_path / "p", progress=False
    )
    profile = run.profile
    assert profile is not None
    lines = Path(__file__).read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "self.score(self.item(" in text)
    by_line = [op for op in profile["ops"] if f"test_watching.py:{line}" in op["what"]]
    assert {"linear", "table_rows"} <= {op["name"] for op in by_line}
    assert all(op["calls_per_step"] == 1 for op in profile["ops"])
    linear = next(op for op in by_line if op["name"] == "linear")
    # x and y of every impression once, the weight and its bias once: 8 inputs, 1 output.
    assert linear["bytes"] == pytest.approx(linear["rows"] * 4 * (8 + 1) + 4 * (8 + 1), rel=1e-9)
    assert linear["flops"] == pytest.approx(linear["rows"] * 2 * 8)
    trace = json.loads((tmp_path / "p" / "trace.json").read_text())
    assert {event["ph"] for event in trace["traceEvents"]} == {"M", "X"}


def test_patience_keeps_the_best(model, data, tmp_path):
    run = model.train(
        data / "train.parquet", validation=data / "valid.parquet", epochs=20, batch=64, lr=0.0, patience=2,
        monitor="auc", checkpoint=tmp_path / "c", progress=False,
    )  # fmt: skip
    assert run.stopped_early and len(run.history) == 3
    assert run.best is not None and run.best["epoch"] == 1
    assert model.evaluate(data / "valid.parquet", checkpoint=run.best_checkpoint)["auc"] == run.best["auc"]
