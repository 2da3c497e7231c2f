"""Whose checkpoint it is, what reads it while a run goes on, and what a loss that is not finite leaves behind.

GENREC_PAIRS=100 makes so many runs with readers beside them, instead of a few."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import genrec as gr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft
from genrec import nn
from genrec.errors import RunError
from genrec.run import Run

ROWS = 400
SCHEMA = gr.Schema({"user": gr.int64, "label": gr.float32, "weight": gr.float32, "seen": [{"item": gr.int64}]})


class Clicks(gr.Model):
    """A click from what a user saw. Its variants differ in one thing each."""

    def __init__(self, pool: str = "mean", optimizer: gr.optim.Optimizer | None = None, watch: bool = False) -> None:
        super().__init__(optimizer=optimizer or gr.optim.Adam(0.01))
        self.item = gr.Table("item", dim=4, init=gr.init.normal(0.5))
        self.person = gr.Table("person", dim=4, init=gr.init.normal(0.5))
        self.pool, self.watch = pool, watch

    def forward(self, batch: gr.Batch) -> None:
        seen = self.item(batch.seen.item)
        pooled = seen.mean() if self.pool == "mean" else seen.sum()
        if self.watch:  # before the loss, so that all ops behind it have other numbers
            gr.output(twice=batch.weight * 2.0)
        logit = (pooled * self.person(batch.user)).row_sum() * batch.weight
        gr.loss.bce_with_logits(logit, batch.label, name="click")
        gr.metric.auc(logit, batch.label)
        gr.output(score=nn.sigmoid(logit))


class Renamed(Clicks):
    pass


def write(path: Path, seed: int, weight: float = 1.0) -> Path:
    draw = random.Random(seed)
    rows = [
        {
            "user": draw.randrange(30),
            "label": float(draw.randrange(2)),
            "weight": weight if row == 300 else 1.0,
            "seen": [{"item": draw.randrange(50)} for _ in range(draw.randrange(1, 5))],
        }
        for row in range(ROWS)
    ]
    fields = [("user", pa.int64()), ("label", pa.float32()), ("weight", pa.float32())]
    schema = pa.schema([*fields, ("seen", pa.list_(pa.struct([("item", pa.int64())])))])
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checkpoints")


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    return write(folder / "data.parquet", seed=1)


@pytest.fixture(scope="module")
def compiled(folder: Path) -> Callable[..., gr.CompiledModel]:
    """Compiles each variant once."""
    made: dict[str, gr.CompiledModel] = {}

    def compile(
        name: str, model: Callable[[], gr.Model] = Clicks, flags: tuple[str, ...] = (), **options: Any
    ) -> gr.CompiledModel:
        if name not in made:
            made[name] = gr.compile(model(), SCHEMA, output=folder / name, flags=[*draft(), *flags], **options)
        return made[name]

    return compile


@pytest.fixture(scope="module")
def checkpoint(compiled: Callable[..., gr.CompiledModel], data: Path, folder: Path) -> Path:
    compiled("base").train(data, batch=16, seed=1, checkpoint=folder / "c", progress=False)
    return folder / "c"


def failure(run: Callable[[], Any]) -> str:
    with pytest.raises(RunError) as caught:
        run()
    return str(caught.value)


def go_on(model: gr.CompiledModel, data: Path, checkpoint: Path, **flags: Any) -> Run:
    return model.train(data, batch=16, seed=1, epochs=2, checkpoint=checkpoint, resume=True, progress=False, **flags)


def copy(checkpoint: Path, to: Path) -> Path:
    subprocess.run(["cp", "-r", str(checkpoint), str(to)], check=True)
    return to


def test_another_structure_is_refused_and_named(
    compiled: Callable[..., gr.CompiledModel], data: Path, checkpoint: Path, tmp_path: Path
) -> None:
    """A sum for a mean evaluated the other's weights, and said nothing."""
    other = compiled("sum", lambda: Clicks(pool="sum"))
    for run in (
        lambda: other.evaluate(data, checkpoint=checkpoint),
        lambda: other.predict(data, tmp_path / "out.parquet", checkpoint=checkpoint),
        lambda: other.export(tmp_path / "exported", checkpoint=checkpoint),
        lambda: go_on(other, data, checkpoint),
    ):
        text = failure(run)
        assert f"'{checkpoint}' is a checkpoint of another model: op 'pool' has other attributes" in text, text
        assert "use the binary that trained it" in text
    text = failure(lambda: other.train(data, batch=16, checkpoint=checkpoint, progress=False))
    assert "holds a checkpoint of another model at step 25" in text


def test_passes_and_levels_are_not_part_of_a_model(
    compiled: Callable[..., gr.CompiledModel], data: Path, checkpoint: Path
) -> None:
    """Nor is what comes and goes beside the losses."""
    expected = compiled("base").evaluate(data, checkpoint=checkpoint)
    for name, model, options in (
        ("plain", Clicks, {"opt": 0, "flags": ("--merge-tables=false", "--fuse-transforms=false")}),
        ("watched", lambda: Clicks(watch=True), {}),
    ):
        found = compiled(name, model, **options).evaluate(data, checkpoint=checkpoint)
        assert found["auc"] == pytest.approx(expected["auc"], abs=1e-5)


def test_a_renamed_class_is_the_same_model(
    compiled: Callable[..., gr.CompiledModel], data: Path, checkpoint: Path, tmp_path: Path
) -> None:
    renamed = compiled("renamed", Renamed)
    assert renamed.evaluate(data, checkpoint=checkpoint) == compiled("base").evaluate(data, checkpoint=checkpoint)
    out = subprocess.run(
        [str(renamed.binary), "evaluate", "--data", str(data), "--checkpoint", str(checkpoint)],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert "the checkpoint is of model 'Clicks', which is 'Renamed' under another name" in out
    assert go_on(renamed, data, copy(checkpoint, tmp_path / "c")).metrics == {}


def test_another_optimizer_may_evaluate_but_not_train_on(
    compiled: Callable[..., gr.CompiledModel], data: Path, checkpoint: Path, tmp_path: Path
) -> None:
    expected = compiled("base").evaluate(data, checkpoint=checkpoint)
    for name, optimizer in (("sgd", gr.optim.SGD(0.1)), ("beta", gr.optim.Adam(0.01, betas=(0.8, 0.999)))):
        other = compiled(name, lambda optimizer=optimizer: Clicks(optimizer=optimizer))
        assert other.evaluate(data, checkpoint=checkpoint) == expected
        other.export(tmp_path / name, checkpoint=checkpoint)
        text = failure(lambda model=other: go_on(model, data, checkpoint))
        assert "was trained by another optimizer: the optimizer of 'item' was adam" in text, text
        assert "evaluate, predict and export work with it" in text
    faster = compiled("faster", lambda: Clicks(optimizer=gr.optim.Adam(0.02)))
    go_on(faster, data, copy(checkpoint, tmp_path / "c"))


def test_other_data_of_equal_length_is_refused(
    compiled: Callable[..., gr.CompiledModel], data: Path, checkpoint: Path, tmp_path: Path
) -> None:
    other = write(tmp_path / "other.parquet", seed=2)
    assert f"trained on other data: file 1 of the data, {other}, has" in failure(
        lambda: go_on(compiled("base"), other, checkpoint)
    )
    moved = copy(data, tmp_path / "moved.parquet")
    go_on(compiled("base"), moved, copy(checkpoint, tmp_path / "c"))


def test_the_end_of_an_epoch_is_saved_once_unless_an_evaluation_comes_before(
    compiled: Callable[..., gr.CompiledModel], data: Path, tmp_path: Path
) -> None:
    """All of it was written a second time, in the place of the first."""
    flags: dict[str, Any] = {"batch": ROWS // 2, "epochs": 2, "checkpoint_every": 1, "keep": 9, "progress": False}

    def generations(name: str, **more: Any) -> list[str]:
        compiled("base").train(data, checkpoint=tmp_path / name, **flags, **more)
        return sorted(path.name for path in (tmp_path / name).glob("step-*"))

    assert generations("alone") == ["step-1", "step-2", "step-3", "step-4"]
    assert generations("ends", max_steps=3) == ["step-1", "step-2", "step-3"]
    # An evaluation may take long.
    assert generations("evaluated", validation=data, eval_epochs=[2]) == ["step-1", "step-2", "step-3", "step-4.2"]


def test_a_loss_that_is_not_finite_names_the_line(compiled: Callable[..., gr.CompiledModel], tmp_path: Path) -> None:
    """An infinite feature trained to a NaN with status 0, and its checkpoint could not be read."""
    model, bad = compiled("base"), write(tmp_path / "bad.parquet", seed=1, weight=float("inf"))
    flags: dict[str, Any] = {"batch": 16, "shuffle": False, "checkpoint": tmp_path / "c", "progress": False}
    text = failure(lambda: model.train(bad, checkpoint_every=5, **flags))
    lines = Path(__file__).read_text().splitlines()
    line = 1 + next(i for i, line in enumerate(lines) if line.lstrip().startswith("gr.loss.bce_with_logits"))
    assert "loss 'click' (" in text and f"{Path(__file__).name}:{line}) is " in text, text
    # The product with the weight is infinite, or a NaN in a launch that does more.
    assert re.search(
        rf"in step 19, epoch 1: op '[^;]*{Path(__file__).name}:\d+\) made an? (NaN|infinity) in row", text
    ), text
    assert "; column 'weight' is inf in row" in text
    assert "--allow-nonfinite goes on" in text
    good = write(tmp_path / "good.parquet", seed=1)
    assert model.evaluate(good, checkpoint=tmp_path / "c")["loss"] < 2
    run = model.train(bad, overwrite=True, allow_nonfinite=True, **flags)
    assert run.history[-1]["loss"] is None
    model.export(tmp_path / "exported", checkpoint=tmp_path / "c")
    model.train(bad, resume=True, epochs=2, allow_nonfinite=True, **flags)


def test_training_goes_on_with_other_days(
    compiled: Callable[..., gr.CompiledModel], checkpoint: Path, tmp_path: Path
) -> None:
    model = compiled("base")
    days = [write(tmp_path / f"day{day}.parquet", seed=day) for day in (2, 3)]
    folder = copy(checkpoint, tmp_path / "c")
    flags: dict[str, Any] = {"batch": 16, "checkpoint": folder, "progress": False}
    unseen = [model.evaluate(days[0], checkpoint=folder, batch=16, progress=False)]
    run = model.train(days, continue_from=folder, eval_before_train=True, **flags)
    assert [Path(record["before"]).name for record in run.before] == ["day2.parquet", "day3.parquet"]
    assert [record["step"] for record in run.before] == [25, 50]
    assert [record["epoch"] for record in run.history] == [1, 1] and run.final["step"] == 75
    assert all("evaluation" not in record for record in run.history)
    assert {**run.before[0]["metrics"], "loss": run.before[0]["loss"]} == unseen[0]
    # A model with another optimizer is not trained further.
    other = compiled("adagrad", lambda: Clicks(optimizer=gr.optim.Adagrad(0.1)))
    text = failure(lambda: other.train(days[0], continue_from=folder, **{**flags, "checkpoint": tmp_path / "d"}))
    assert "was trained by another optimizer" in text and "adagrad" in text


def readers(model: gr.CompiledModel, data: Path, checkpoint: Path, out: Path) -> list[list[str]]:
    common = [str(model.binary), "--checkpoint", str(checkpoint), "--progress", "none", "--threads", "1"]
    binary, rest = common[0], common[1:]
    return [
        [binary, "evaluate", "--data", str(data), *rest],
        [binary, "predict", "--data", str(data), "--out", str(out / "out.parquet"), *rest],
        [binary, "export", "--out", str(out / "exported"), *rest],
        [binary, "info", "--json"],
    ]


def test_reading_while_a_run_saves(compiled: Callable[..., gr.CompiledModel], data: Path, tmp_path: Path) -> None:
    """Pairs of a run that saves after every step and readers of its checkpoint: none fails."""
    model = compiled("base")
    pairs = int(os.environ.get("GENREC_PAIRS", "4"))
    reads = 0
    for pair in range(pairs):
        checkpoint = tmp_path / f"c{pair}"
        run = subprocess.Popen(
            [
                str(model.binary), "train", "--data", str(data), "--batch", "16", "--epochs", "6", "--checkpoint",
                str(checkpoint), "--checkpoint-every", "1", "--keep", "1", "--progress", "none", "--threads", "1",
            ],
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        while not (checkpoint / "manifest.json").exists() and run.poll() is None:
            pass
        while run.poll() is None:
            beside = [
                subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                for command in readers(model, data, checkpoint, tmp_path)
            ]
            for reader in beside:
                _, errors = reader.communicate()
                assert reader.returncode == 0, (reader.args, errors)
                reads += 1
        assert run.wait() == 0, run.stderr and run.stderr.read()
    assert reads >= pairs
    print(f"{pairs} runs, {reads} readers beside them")


def test_a_second_run_in_the_same_folder_is_refused(
    compiled: Callable[..., gr.CompiledModel], data: Path, tmp_path: Path
) -> None:
    model = compiled("base")
    command = [str(model.binary), "train", "--data", str(data), "--epochs", "100000", "--progress", "none"]
    first = subprocess.Popen([*command, "--checkpoint", str(tmp_path / "c")])
    try:
        while not (tmp_path / "c/manifest.json").exists():
            assert first.poll() is None
        text = failure(lambda: model.train(data, checkpoint=tmp_path / "c", overwrite=True, progress=False))
        assert f"is being trained into by process {first.pid} on " in text
    finally:
        first.kill()
        first.wait()
    holder = json.loads((tmp_path / "c/checkpoint.lock").read_text())
    assert holder["pid"] == first.pid
    model.train(data, batch=16, checkpoint=tmp_path / "c", overwrite=True, progress=False)
