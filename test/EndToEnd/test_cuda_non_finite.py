"""What the error about a NaN says is the same on a device, whose step has ended, and perhaps the next one, when the
host hears of it: line, op, row, element, the row of the file, and the weight or row that had the NaN before.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft
from genrec import nn
from launching import needs_mpi
from test_cuda_models import TARGETS
from test_cuda_ranks import skip_without_emulator, start

BATCH, ROWS = 8, 64
BAD = 5 * BATCH + 6  # in the sixth step, which is a launched graph; its last portion has it
Bad = dict[int, dict[str, object]]  # values by row
BEFORE: Bad = {BAD - BATCH: {"id": 60, "x": 0.0}, BAD: {"id": 60}}  # the step before makes the NaN, from a new row
PORTIONS = ["--portions", "4"]
EVENT = pa.struct([("item", pa.int64()), ("price", pa.float32())])
COLUMNS = [
    *(("id", pa.int64()), ("x", pa.float32()), ("y", pa.float32()), ("label", pa.float32())),
    ("events", pa.list_(EVENT)),
]


def write(path: Path, bad: Bad) -> Path:
    """Rows whose numbers are all positive, but for those that `bad` changes."""
    random = np.random.default_rng(4)
    rows: list[dict[str, Any]] = [
        {
            **{"id": int(random.integers(50)), "x": 1 + random.random(), "y": 1 + random.random()},
            "label": float(random.integers(2)),
            "events": [
                {"item": int(random.integers(9)), "price": 1 + random.random()} for _ in range(random.integers(4))
            ],
        }
        for _ in range(ROWS)
    ]
    for row, values in bad.items():
        rows[row] |= values
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(COLUMNS)), path)
    return path


class Scores(gr.Model):
    """A model of a table and a layer, whose `score` makes the NaN."""

    def __init__(self, score: Callable[[gr.Batch, gr.Value], gr.Value], **options: Any) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.01), **options)
        self.items = gr.Table("item", dim=4)
        self.layer = nn.Linear(4, 1)
        self.score = score

    def forward(self, batch: gr.Batch) -> None:
        gr.loss.mse(self.score(batch, self.layer(self.items(batch.id)).row_sum()), batch.label)


class Lengths(gr.Model):
    """The length of zeros has no gradient: a loss is finite, and its update is not."""

    def __init__(self, of_table: bool, dtype: str = "f32") -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        zeros = gr.init.zeros()
        init = zeros if of_table else None
        self.tables = [gr.Table(name, dim=4, init=init, dtype=dtype) for name in ("item", "brand")]
        self.scale = None if of_table else gr.Parameter((4,), init=zeros)

    def forward(self, batch: gr.Batch) -> None:
        item, brand = (table(batch.id) for table in self.tables)
        scaled = item if self.scale is None else item * self.scale
        length = nn.sqrt((scaled * scaled).row_sum() + batch.x)
        gr.loss.mse(length + brand.row_sum(), batch.label)


def of_events(batch: gr.Batch, score: gr.Value) -> gr.Value:
    return score + nn.log(batch.events.price).pool("sum")


MODELS: dict[str, tuple[Callable[[], gr.Model], Bad, str]] = {
    "data": (lambda: Scores(lambda batch, score: score * batch.x), {BAD: {"x": math.nan}}, "row group 0, row 46)"),
    "division": (
        lambda: Scores(lambda batch, score: score + batch.x / batch.y, clip_norm=1.0),
        {BAD: {"x": 0.0, "y": 0.0}},
        "made a NaN in row",
    ),
    "first step": (lambda: Scores(lambda batch, score: score + nn.sqrt(batch.x)), {6: {"x": -1.0}}, "in step 1"),
    "loss": (
        lambda: Scores(lambda batch, score: score + batch.x),
        {BAD: {"label": 3e38}},
        "made an infinity in row",
    ),
    "list": (lambda: Scores(of_events), {BAD: {"events": [{"item": 1, "price": -2.0}]}}, "made a NaN in row"),
    "row": (
        lambda: Lengths(of_table=True),
        BEFORE,
        "table 'item' held a NaN or an infinity in the row of id 60 when the step began",
    ),
    "row of bf16": (
        lambda: Lengths(of_table=True, dtype="bf16"),
        BEFORE,
        "table 'item' held a NaN or an infinity in the row of id 60 when the step began",
    ),
    "parameter": (lambda: Lengths(of_table=False), BEFORE, "parameter 'scale' held a NaN when the step began"),
}


@pytest.fixture(scope="module", params=MODELS)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], Path, str]:
    """A binary per target, the data, and what the error says."""
    skip_without_emulator()
    folder = tmp_path_factory.mktemp(request.param)
    model, bad, expected = MODELS[request.param]
    data = write(folder / "rows.parquet", bad)
    binaries = {
        target: gr.compile(
            model(), gr.Schema.from_parquet(data), target=target, output=folder / target, flags=draft()
        ).binary
        for target in TARGETS
    }
    return binaries, data, expected


@functools.cache  # several ways are one on the CPU
def errors(binary: Path, ranks: int, data: Path, *more: str) -> str:
    ran = start(
        *(binary, ranks, "train", "--data", data, "--batch", BATCH, "--epochs", "2", "--no-shuffle"),
        *("--seed", "5", "--threads", "1", "--progress", "none", *more),
    )
    assert ran.returncode != 0
    told = re.search(r"error: .*?\n  help: .*?\n", ran.stderr, re.DOTALL)
    assert told, ran.stderr
    return told[0]


WAYS = {
    "alone": (0, []),
    "in turn": (0, ["--capture", "off"]),
    "checked": (0, ["--check-finite"]),
    "in host memory": (0, ["--host-tables", "item=64"]),
    "portions": (0, PORTIONS),
    "ranks": (2, PORTIONS),
    "shared updates": (2, [*PORTIONS, "--shard-optimizer", "--overlap", "none"]),
}


@needs_mpi
@pytest.mark.parametrize("way", WAYS)
def test_the_error_is_that_of_the_cpu(way: str, made: tuple[dict[str, Path], Path, str]) -> None:
    binaries, data, expected = made
    ranks, flags = WAYS[way]
    of_devices = flags[:1] in (["--capture"], ["--host-tables"])
    said = {
        target: errors(binary, ranks, data, *([] if target == "cpu" and of_devices else flags))
        for target, binary in binaries.items()
    }
    assert said["cuda-emulated"] == said["cpu"]
    if way != "checked":
        assert expected in said["cpu"] and "test_cuda_non_finite.py:" in said["cpu"]
