"""Parameters that users declare themselves: scalars in expressions, single elements beside wide rows, any names, many.

On the CPU and on the emulated device, with losses that agree.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import genrec as gr
import numpy as np
import polars as pl
import pytest
from compiled import BUILD, EMULATED, call, draft
from genrec import nn

Logit = Callable[[gr.Model, gr.Value], gr.Value]


def parameter(*shape: int) -> gr.Parameter:
    return gr.Parameter(shape, gr.init.normal(0.5))


class Declared(gr.Model):
    """A click model of `logit` over the columns `x`, whose parameters are `parameters`."""

    def __init__(self, logit: Logit, parameters: dict[str, gr.Parameter], clip_norm: float = 0.0) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), clip_norm=clip_norm)
        self.logit = logit
        for name, value in parameters.items():
            setattr(self, name, value)

    def forward(self, batch: gr.Batch) -> None:
        x = gr.concat(*[batch[f"x{i}"] for i in range(4)])
        gr.loss.bce_with_logits(self.logit(self, x), batch.label, name="click")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(7)
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    columns = {f"x{i}": random.normal(size=96).astype(np.float32) for i in range(4)}
    pl.DataFrame({**columns, "label": random.integers(0, 2, 96).astype(np.float32)}).write_parquet(path)
    return path


def expect_equal_losses(model: gr.Model, rows: Path, folder: Path) -> list[float]:
    losses = {}
    for target in ("cpu", "cuda-emulated"):
        if target != "cpu" and not EMULATED:
            continue
        schema = gr.Schema.from_parquet(rows)
        binary = gr.compile(model, schema, target=target, output=folder / target, flags=draft()).binary
        report = folder / f"{target}.json"
        call(
            binary, "train", "--data", rows, "--batch", "32", "--epochs", "2", "--seed", "3", "--threads", "1",
            "--progress", "none", "--log-every", "1", "--metrics-json", report,
        )  # fmt: skip
        losses[target] = [step["loss"] for step in json.loads(report.read_text())["step_losses"]]
    assert len(losses["cpu"]) == 6
    assert losses.get("cuda-emulated", losses["cpu"]) == pytest.approx(losses["cpu"], rel=1e-5)
    return losses["cpu"]


def test_elements_are_trained_as_the_whole(rows: Path, tmp_path: Path) -> None:
    def by_element(model: gr.Model, x: gr.Value) -> gr.Value:
        return x[:, 0] * model.w[0] + (x[:, 1:3] * model.w[1:3]).row_sum() + x[..., -1] * model.w[-1]

    def whole(model: gr.Model, x: gr.Value) -> gr.Value:
        return (x * model.w).row_sum()

    losses = []
    for name, logit in (("elements", by_element), ("whole", whole)):
        (tmp_path / name).mkdir()
        losses.append(expect_equal_losses(Declared(logit, {"w": parameter(4)}), rows, tmp_path / name))
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def test_a_sum_in_an_expression_of_scalars(rows: Path, tmp_path: Path) -> None:
    """The gradient of `t` is made of a sum over a vector, by arithmetic on scalars that kernels repeat."""

    def logit(model: gr.Model, x: gr.Value) -> gr.Value:
        return (x.row_sum() * (model.a + model.t)).row_sum() * model.s * model.t + model.s * model.t

    model = Declared(logit, {"a": parameter(64), "s": parameter(), "t": parameter()})
    expect_equal_losses(model, rows, tmp_path)


def test_a_single_element_beside_a_wide_row(rows: Path, tmp_path: Path) -> None:
    """A row of one element is reduced by the threads of one of 1,500."""

    def logit(model: gr.Model, x: gr.Value) -> gr.Value:
        single, wide = nn.linear(x, model.m) * model.c, nn.linear(x, model.n) * model.d
        return single.row_mean() + wide.row_mean()

    shapes = {"m": (4, 1), "c": (1,), "n": (4, 1500), "d": (1500,)}
    model = Declared(logit, {name: parameter(*shape) for name, shape in shapes.items()})
    expect_equal_losses(model, rows, tmp_path)


def test_names_of_functions(rows: Path, tmp_path: Path) -> None:
    """Parameters are not hidden by what is emitted, nor hide it."""
    names = [
        "run_update_parameters",
        "run_update_parameters_columns",
        "update_parameters",
        "pointers_of",
        "train_update",
    ]
    names += ["w", "w_rows", "w_2", "w_rows_update_w", "row_w_rows_update_w", "step"]

    def logit(model: gr.Model, x: gr.Value) -> gr.Value:
        for name in names:
            x = x * getattr(model, name)
        return x.row_sum()

    expect_equal_losses(Declared(logit, {name: parameter(4) for name in names}), rows, tmp_path)


def test_a_clipped_norm_of_many(rows: Path, tmp_path: Path) -> None:
    """
    The factor of the norm is computed once: the update of a parameter does not read the sums of squares of all, which a
    device computes in one launch, but for rows of more than 8,192 columns.
    """
    widths = [1, 2, 3, 4, 5, 8, 16, 31, 64, 65, 130, 300, 640, 1500, 8200]

    def logit(model: gr.Model, x: gr.Value) -> gr.Value:
        parts = [nn.linear(x, getattr(model, f"m{w}"), getattr(model, f"b{w}")).row_mean() for w in widths]
        return gr.concat(*parts).row_sum()

    parameters = {f"m{w}": parameter(4, w) for w in widths} | {f"b{w}": parameter(w) for w in widths}
    model = Declared(logit, parameters, clip_norm=0.1)
    expect_equal_losses(model, rows, tmp_path)
    unit = tmp_path / "unit.cu"
    call(BUILD / "bin" / "genrec-compile", tmp_path / "cpu.genrec", "--target=cuda", "--emit=cpp", "-o", unit)
    # Values, states, gradient, factor, and three scalars of the step.
    joint = 2 * (len(widths) - 1)
    text = unit.read_text()
    taken = r"\(const genrec_step \*step, __grid_constant__ const kernels::Columns<(\d+), (\d+)>"
    assert re.search(f"run_update_parameters{taken}", text).groups() == (f"{joint}", f"{joint * 7}")
    # A gradient and its sum; of 640 columns a block has eight rows, in 2,560 bytes of shared memory each.
    assert re.search(f"run_reduce_parameters{taken}", text).groups() == (f"{joint}", f"{joint * 2}")
    assert re.search(r"launchColumns\(step, run_reduce_parameters_columns, run_reduce_parameters, \w+, 20480\)", text)
