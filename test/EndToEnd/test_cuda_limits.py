"""Models larger than one launch has room for run on the emulated device, or are refused where they are written."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, require_emulator
from genrec import nn
from test_cuda_models import TARGETS, expect_same_training

ROWS = 45
SCHEMA = gr.Schema(
    {"user": gr.int64, "target": gr.int64, "label": gr.float32, "history": [gr.int64], "name": gr.string}
)
DEVICE_TARGETS = ("cuda", "cuda-emulated")


class Large(gr.Model):
    """More sums of losses and gradients than a launch adds up; items of more columns than a slice; a large stack."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01))
        self.items = items
        self.user, self.item = (gr.Table(name, dim=72, init=gr.init.normal(0.3)) for name in ("user", "item"))
        self.tasks = [nn.Linear(72, 1) for _ in range(70)]

    def forward(self, batch: gr.Batch) -> None:
        user = self.user(batch.user)
        for number, task in enumerate(self.tasks):
            gr.loss.mse(task(user).squeeze(), batch.label, name=f"task{number}")
        gr.loss.sampled_softmax(user, batch.target, self.item, self.items, negatives=4)
        gr.output(hashes=gr.multi_hash(batch.name, bits=9, count=24))


class Heads(gr.Model):
    def __init__(self, columns: int) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01))
        self.item = gr.Table("item", dim=columns, init=gr.init.normal(0.3))
        self.attention = nn.SelfAttention(columns, heads=1)

    def forward(self, batch: gr.Batch) -> None:
        seen = self.attention(self.item(batch.history.value))
        gr.loss.mse(seen.mean().row_mean(), batch.label)


class Crossing(gr.Model):
    """Cross attention of one head of so many columns, of keys and of values together."""

    def __init__(self, columns: int) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01))
        self.item = gr.Table("item", dim=3, init=gr.init.normal(0.3))
        self.attention = nn.CrossAttention(3, heads=1, qk=columns - columns // 2, v=columns // 2)

    def forward(self, batch: gr.Batch) -> None:
        seen = self.attention(self.item(batch.user), self.item(batch.history.value))
        gr.loss.mse(seen.row_mean(), batch.label)


class Columns(gr.Model):
    """A table for each column; one launch transforms the columns of all, where it can pass as many."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01))
        self.tables = {name: gr.Table(name, dim=1, init=gr.init.normal(0.3)) for name in names}

    def forward(self, batch: gr.Batch) -> None:
        rows = [table(gr.mod(getattr(batch, name), 11)) for name, table in self.tables.items()]
        gr.loss.mse(gr.concat(rows).row_mean(), batch.label)


class Joined(gr.Model):
    def __init__(self, parts: int) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01))
        self.user = gr.Table("user", dim=4, init=gr.init.normal(0.3))
        self.parts = parts

    def forward(self, batch: gr.Batch) -> None:
        user = self.user(batch.user)
        fields = gr.stack([user * (part / 9) for part in range(self.parts)])
        gr.loss.mse(fields.mean().row_sum(), batch.label)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_emulator()
    path = tmp_path_factory.mktemp("limits") / "rows.parquet"
    draw = np.random.default_rng(5)
    columns = {
        "user": [int(x) for x in draw.integers(0, 12, ROWS)],
        "target": [int(x) for x in draw.integers(0, 30, ROWS)],
        "label": pa.array(draw.random(ROWS), pa.float32()),
        "history": [[int(x) for x in draw.integers(0, 20, draw.integers(0, 6))] for _ in range(ROWS)],
        "name": ["n" * int(x) for x in draw.integers(0, 9, ROWS)],
    }
    pq.write_table(pa.table(columns), path, row_group_size=16)
    pq.write_table(pa.table({"item": pa.array(range(30), pa.int64())}), path.parent / "items.parquet")
    return path


def test_more_than_one_launch_has_room_for(data: Path, tmp_path: Path) -> None:
    binaries = {
        target: gr.compile(
            Large(gr.catalogue(str(data.parent / "items.parquet"), id="item")),
            SCHEMA, target=target, output=tmp_path / target, flags=draft(),
        ).binary
        for target in TARGETS
    }  # fmt: skip
    expect_same_training(binaries, data, tmp_path, steps=3)
    found = []
    for target in TARGETS:
        out = tmp_path / f"{target}.parquet"
        call(
            binaries[target], "predict", "--data", data, "--batch", "16", "--progress", "none",
            "--checkpoint", tmp_path / "cpu.checkpoint", "--out", out,
        )  # fmt: skip
        found.append(pq.read_table(out).to_pydict())
    assert found[1] == found[0]


def test_a_block_has_fewer_rows_of_wide_cross_attention(data: Path, tmp_path: Path) -> None:
    binaries = {
        target: gr.compile(Crossing(2700), SCHEMA, target=target, output=tmp_path / target, flags=draft()).binary
        for target in TARGETS
    }
    expect_same_training(binaries, data, tmp_path, steps=2)


@pytest.mark.usefixtures("data")
def test_more_columns_than_one_launch_passes(tmp_path: Path) -> None:
    names = [f"c{i}" for i in range(900)]
    draw = np.random.default_rng(6)
    columns = {name: pa.array(draw.integers(0, 20, ROWS), pa.int64()) for name in names}
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({**columns, "label": pa.array(draw.random(ROWS), pa.float32())}), path, row_group_size=16)
    schema = gr.Schema({**dict.fromkeys(names, gr.int64), "label": gr.float32})
    binaries = {
        target: gr.compile(Columns(names), schema, target=target, output=tmp_path / target, flags=draft()).binary
        for target in TARGETS
    }
    expect_same_training(binaries, path, tmp_path, steps=1)


@pytest.mark.parametrize("target", DEVICE_TARGETS)
@pytest.mark.parametrize(
    ("model", "line", "message"),
    [
        (lambda: Heads(1024), "self.attention(", "heads of 2048 columns, of keys and of values together"),
        (
            lambda: Crossing(11233),
            "self.attention(self.item(batch.user)",
            "heads of 11233 columns, of keys and of values",
        ),
        (lambda: Joined(129), "gr.stack(", "joins 129 parts, but a device joins 128 at once"),
    ],
)
def test_what_a_device_has_no_room_for_is_refused_where_it_is_written(
    target: str, model: object, line: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(gr.CompileError) as refused:
        gr.compile(model(), SCHEMA, target=target, output=tmp_path / "model", flags=draft())
    assert message in str(refused.value)
    assert "--target=cpu" in str(refused.value)
    number = next(
        n for n, text in enumerate(Path(__file__).read_text().splitlines(), 1) if line in text and "lambda" not in text
    )
    assert f"{Path(__file__).name}:{number}" in str(refused.value)
