"""What the error about a NaN names: the op and the user's line, or the weight or row that had it before."""

from __future__ import annotations

import subprocess
from pathlib import Path

import genrec as gr
import polars as pl
import pytest
from compiled import draft
from genrec import nn


class Roots(gr.Model):
    """The root of -1 is the first NaN, behind a lookup that one kernel may join it with."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.table = gr.Table("item", dim=4)

    def forward(self, batch: gr.Batch) -> None:
        found = self.table(batch.id)
        price = nn.sqrt(batch.x)
        gr.loss.mse(found.row_sum() * price, batch.label)


class Lengths(gr.Model):
    """Rows of zeros, whose length has no gradient: the first step's loss is finite, and its update is not."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.tables = [gr.Table(name, dim=4, init=gr.init.zeros()) for name in ("item", "brand")]

    def forward(self, batch: gr.Batch) -> None:
        item, brand = (table(batch.id) for table in self.tables)
        gr.loss.mse(nn.sqrt((item * item).row_sum()) + brand.row_sum(), batch.label)


def train(model: gr.Model, folder: Path, *flags: str) -> str:
    """The message that the run ends with."""
    data = folder / "rows.parquet"
    columns = {"id": [3, 4, 3, 4], "x": [1.0, 2.0, -1.0, 4.0], "label": [0.0, 1.0, 0.0, 1.0]}
    pl.DataFrame(columns, schema_overrides={"x": pl.Float32, "label": pl.Float32}).write_parquet(data)
    compiled = gr.compile(model, gr.Schema.from_parquet(data), output=folder / "model", flags=[*draft(), *flags])
    done = subprocess.run(
        [
            *(compiled.binary, "train", "--data", data, "--batch", "2", "--epochs", "2"),
            *("--no-shuffle", "--progress", "none"),
        ],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    return done.stderr


def line_of(text: str) -> int:
    """Of this file, where `text` is first."""
    return Path(__file__).read_text().splitlines().index(text) + 1


def test_the_line_of_an_op_by_itself(tmp_path: Path) -> None:
    line = line_of("        price = nn.sqrt(batch.x)")
    said = train(Roots(), tmp_path, "-O0")
    assert "op 'row_sqrt' ('price') (" in said and f"test_non_finite.py:{line}) made a NaN in row 0" in said


def test_all_lines_of_a_kernel_that_was_fused(tmp_path: Path) -> None:
    said = train(Roots(), tmp_path, "-O2")
    for text in ("        found = self.table(batch.id)", "        price = nn.sqrt(batch.x)"):
        assert f"test_non_finite.py:{line_of(text)}" in said
    assert "fused (-O 0 keeps lines apart) from lookup, sqrt" in said and ") made a NaN in row" in said


@pytest.mark.parametrize("flag", ["--merge-tables=true", "--merge-tables=false"])
def test_a_row_that_was_not_finite_before_the_step(flag: str, tmp_path: Path) -> None:
    said = train(Lengths(), tmp_path, flag)
    assert "table 'item' held a NaN or an infinity in the row of id 3 when the step began" in said, said
