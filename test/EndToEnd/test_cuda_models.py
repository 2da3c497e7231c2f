"""Whole models for CUDA: the emulated binary has commands, files and results of the CPU's; nvcc compiles its unit."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import ROOT, call, compile_with_nvcc, draft, read_tensors, read_toolchain, require_emulator, tool
from genrec import nn

sys.path.insert(0, str(ROOT / "examples"))

from example import generate, load_example  # noqa: E402

TARGETS = ("cpu", "cuda-emulated")
COUNTS, CATEGORIES, WIDTH, ROWS, BATCH = 2, 3, 4, 60, 16
SCHEMA = gr.Schema(
    {
        "label": gr.float32,
        "weight": gr.float32,
        **{f"i{k}": gr.float32.nullable() for k in range(COUNTS)},
        **{f"c{k}": gr.int64.nullable() for k in range(CATEGORIES)},
    }
)


class Clicks(gr.Model):
    """A DLRM: tables that become one, a network of the counts, products of all pairs, a network on top."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.tables = [gr.Table(f"c{k}", dim=WIDTH, id_bits=20, init=gr.init.normal(0.3)) for k in range(CATEGORIES)]
        self.bottom = nn.MLP([COUNTS, 8, WIDTH], final="relu")
        self.top = nn.MLP([WIDTH + CATEGORIES * (CATEGORIES + 1) // 2, 8, 1])

    def forward(self, batch: gr.Batch) -> None:
        counts = [gr.log1p(gr.clip(gr.fill_missing(batch[f"i{k}"], 0.0), low=0.0)) for k in range(COUNTS)]
        dense = self.bottom(gr.concat(counts))
        vectors = [table(batch[f"c{k}"]) for k, table in enumerate(self.tables)]
        products = nn.dot_interaction(dense, *vectors)
        logit = self.top(gr.concat(dense, products)).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, weight=batch.weight, name="click")
        gr.metric.auc(logit, batch.label, name="auc")
        gr.output(probability=nn.sigmoid(logit))


class Crosses(gr.Model):
    """A DCN v2 whose gradients are clipped by their norm; rows of one table come and leave by rule."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.05), clip_norm=0.3)
        self.tables = [gr.Table(f"c{k}", dim=WIDTH, id_bits=20, init=gr.init.normal(0.3)) for k in range(2)]
        self.tables.append(gr.Table("c2", dim=WIDTH, id_bits=20, bounded=4, admit_after=2))
        inputs = COUNTS + WIDTH * CATEGORIES
        self.cross = nn.CrossNetwork(inputs, layers=2, rank=4)
        self.deep = nn.MLP([inputs, 8, 1])

    def forward(self, batch: gr.Batch) -> None:
        counts = [gr.fill_missing(batch[f"i{k}"], 0.0) * 0.1 for k in range(COUNTS)]
        vectors = [table(batch[f"c{k}"]) for k, table in enumerate(self.tables)]
        logit = self.deep(self.cross(gr.concat(*counts, *vectors))).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, name="click")


def write_rows(path: Path, **changes: dict[int, Any]) -> Path:
    """Writes ROWS rows, some values of them null; `changes`: values by row of columns."""
    draw = np.random.default_rng(3)
    columns: dict[str, list[Any]] = {"label": [float(x) for x in draw.integers(0, 2, ROWS)], "weight": [1.0] * ROWS}
    for k in range(COUNTS):
        columns[f"i{k}"] = [None if x < 0 else float(x) for x in draw.integers(-3, 20, ROWS)]
    for k in range(CATEGORIES):
        columns[f"c{k}"] = [None if x == 0 else int(x) for x in draw.integers(0, 9, ROWS)]
    for name, values in changes.items():
        for row, value in values.items():
            columns[name][row] = value
    types = {"label": pa.float32(), "weight": pa.float32(), **{f"i{k}": pa.float32() for k in range(COUNTS)}}
    pq.write_table(pa.table({name: pa.array(v, types.get(name, pa.int64())) for name, v in columns.items()}), path)
    return path


@dataclass
class Made:
    """A binary per target, and data."""

    binaries: dict[str, Path]
    data: Path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("clicks")
    require_emulator()
    binaries = {
        target: gr.compile(Clicks(), SCHEMA, target=target, output=folder / target, flags=draft()).binary
        for target in TARGETS
    }
    return Made(binaries, write_rows(folder / "rows.parquet"))


def train(binary: Path, data: Path, folder: Path, *more: str, steps: int = 8, batch: int = BATCH) -> dict[str, Any]:
    """Trains into the checkpoint `folder` and returns the report."""
    report = folder.parent / f"{folder.name}.json"
    call(
        binary, "train", "--data", data, "--batch", str(batch), "--epochs", "4", "--max-steps", str(steps),
        "--seed", "5", "--threads", "1", "--progress", "none", "--checkpoint", folder, "--metrics-json", report,
        "--log-every", "1", *more,
    )  # fmt: skip
    return json.loads(report.read_text())


def tensors(folder: Path) -> dict[str, np.ndarray]:
    """What the newest generation of a checkpoint holds."""
    newest = max(folder.glob("step-*"), key=lambda path: int(path.name.partition("-")[2]))
    return {
        name: t for file in sorted(newest.glob("*.safetensors")) for name, t in read_tensors(file.read_bytes()).items()
    }


def expect_close(
    actual: dict[str, np.ndarray], expected: dict[str, np.ndarray], atol: float = 2e-6, outliers: float = 0.0
) -> None:
    """But for biases of keys: a softmax does not depend on them, so their gradients are rounding.

    Up to a share `outliers` of a parameter's elements may be 10 times as far away: an adaptive optimizer makes a whole
    step of a gradient that is little more than rounding.
    """
    assert actual.keys() == expected.keys()
    for name, values in expected.items():
        if ".key.bias" in name:
            continue
        if values.dtype == np.int64:
            assert (actual[name] == values).all(), name
        else:
            far = ~np.isclose(actual[name], values, rtol=2e-4, atol=atol)
            bound = 10 * atol if 0 < far.sum() <= outliers * values.size else atol
            np.testing.assert_allclose(actual[name], values, rtol=2e-4, atol=bound, err_msg=name)


def expect_same_training(
    binaries: dict[str, Path], data: Path, folder: Path, steps: int, atol: float = 2e-6, outliers: float = 0.0,
    batch: int = BATCH,
) -> None:  # fmt: skip
    """Training on both targets has the same losses and the same checkpoint."""
    losses, kept = [], []
    for target in TARGETS:
        report = train(binaries[target], data, folder / f"{target}.checkpoint", steps=steps, batch=batch)
        losses.append([step["loss"] for step in report["step_losses"]])
        kept.append(tensors(folder / f"{target}.checkpoint"))
    assert len(losses[0]) == steps
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-5)
    expect_close(kept[1], kept[0], atol, outliers)


def test_training_has_the_losses_and_the_checkpoint_of_the_cpu(made: Made, tmp_path: Path) -> None:
    expect_same_training(made.binaries, made.data, tmp_path, steps=8)


def test_checkpoints_go_from_one_target_to_the_other(made: Made, tmp_path: Path) -> None:
    cpu, cuda = (made.binaries[target] for target in TARGETS)
    train(cpu, made.data, tmp_path / "whole")
    train(cpu, made.data, tmp_path / "mixed", steps=2)
    train(cuda, made.data, tmp_path / "mixed", "--resume", steps=5)
    train(cpu, made.data, tmp_path / "mixed", "--resume", steps=8)
    expect_close(tensors(tmp_path / "mixed"), tensors(tmp_path / "whole"))


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(made: Made, tmp_path: Path) -> None:
    cuda = made.binaries["cuda-emulated"]
    train(cuda, made.data, tmp_path / "whole")
    train(cuda, made.data, tmp_path / "halves", steps=3)
    train(cuda, made.data, tmp_path / "halves", "--resume")
    whole, halves = tensors(tmp_path / "whole"), tensors(tmp_path / "halves")
    assert whole.keys() == halves.keys()
    assert all((whole[name] == halves[name]).all() for name in whole)


def test_a_device_that_is_too_small_is_told(made: Made, tmp_path: Path) -> None:
    """With what is held there; what was saved before stays."""
    binary, state = made.binaries["cuda-emulated"], tmp_path / "state"
    train(binary, made.data, state, steps=2)
    kept = tensors(state)
    given = ["train", "--data", made.data, "--checkpoint", state, "--resume", "--progress", "none"]
    memory = {**os.environ, "GENREC_SIMT_DEVICE_BYTES": str(5 << 20)}
    result = subprocess.run([binary, *given], capture_output=True, text=True, check=False, env=memory)
    assert result.returncode == 1
    assert re.search(r"out of device memory: .* of 5.0 MiB are free; held by c0.chunks 512.0 KiB, ", result.stderr)
    assert "help: a smaller --batch takes less" in result.stderr
    assert all((tensors(state)[name] == values).all() for name, values in kept.items())


def test_the_other_commands_agree(made: Made, tmp_path: Path) -> None:
    """Of rows with ids that training has not seen, too."""
    checkpoint, unseen = tmp_path / "checkpoint", write_rows(tmp_path / "unseen.parquet", c1={4: 77, 30: 78})
    train(made.binaries["cpu"], made.data, checkpoint)
    metrics, scores = [], []
    for target in TARGETS:
        out, report = tmp_path / f"{target}.parquet", tmp_path / f"{target}.metrics.json"
        given = ["--data", unseen, "--checkpoint", checkpoint, "--batch", str(BATCH), "--threads", "1"]
        call(made.binaries[target], "evaluate", *given, "--metrics-json", report)
        call(made.binaries[target], "predict", *given, "--out", out)
        metrics.append(json.loads(report.read_text())["evaluation"])
        scores.append(pq.read_table(out)["probability"].to_numpy())
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-5)
    assert metrics[1]["loss"] == pytest.approx(metrics[0]["loss"], rel=1e-5)
    assert metrics[1]["metrics"] == pytest.approx(metrics[0]["metrics"], rel=1e-5)


def test_clipped_norms_and_rules_about_rows(tmp_path: Path) -> None:
    binaries = {
        target: gr.compile(Crosses(), SCHEMA, target=target, output=tmp_path / target, flags=draft()).binary
        for target in TARGETS
    }
    expect_same_training(binaries, write_rows(tmp_path / "rows.parquet"), tmp_path, steps=6)


def test_lists_of_lists_train_as_on_the_cpu(tmp_path: Path) -> None:
    """The request ranker: lists in lists, some empty, pools, values of requests at impressions, dropout, Adam."""
    generate(tmp_path / "data", kind="requests", users=12, seed=3)
    data = tmp_path / "data" / "train.parquet"
    schema = gr.Schema.from_parquet(data)
    binaries = {}
    for target in TARGETS:
        ranker = load_example("request_ranking", "model").Ranker()
        binaries[target] = gr.compile(ranker, schema, target=target, output=tmp_path / target, flags=draft()).binary
    expect_same_training(binaries, data, tmp_path, steps=3)


class Attending(gr.Model):
    """The latest events attend to each other, what is shown to them.

    Gradients of what a softmax does not depend on (the key's bias) are rounding: no optimizer that divides by them.
    """

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.item = gr.Table("item", dim=8, init=gr.init.normal(0.3))
        self.block = nn.HSTUBlock(8, heads=2, dropout=0.1, attention_dropout=0.2, bias=nn.RelativePosition(9))
        self.cross = nn.CrossAttention(8, heads=2)
        self.top = nn.MLP([16, 1])

    def forward(self, batch: gr.Batch) -> None:
        x = self.block(self.item(batch.seen.truncate(6).item))
        shown = self.item(batch.shown.item)
        logit = self.top(gr.concat(self.cross(shown, x), shown)).squeeze()
        gr.loss.bce_with_logits(logit, batch.shown.label, name="click")


def write_attended(path: Path) -> Path:
    """Users with two lists, some of them empty."""
    draw = np.random.default_rng(4)
    seen = [[{"item": int(i)} for i in draw.integers(0, 30, draw.integers(0, 12))] for _ in range(20)]
    shown = [
        [{"item": int(i), "label": float(i % 2)} for i in draw.integers(0, 30, draw.integers(0, 5))] for _ in range(20)
    ]
    types = pa.struct({"item": pa.int64()}), pa.struct({"item": pa.int64(), "label": pa.float32()})
    lists = {"seen": pa.array(seen, pa.list_(types[0])), "shown": pa.array(shown, pa.list_(types[1]))}
    pq.write_table(pa.table(lists), path)
    return path


def test_attention_trains_as_on_the_cpu(tmp_path: Path) -> None:
    """Within truncated lists, with dropout and a bias of positions, and to the rows of another list."""
    data = write_attended(tmp_path / "attended.parquet")
    binaries = compile_both(Attending, gr.Schema.from_parquet(data), tmp_path)
    expect_same_training(binaries, data, tmp_path, steps=3)


def expect_same_error(binaries: dict[str, Path], data: Path, folder: Path, command: str) -> str:
    """Both targets refuse the data with the same words, which name its file; returns them."""
    said = []
    for target in TARGETS:
        given = ["--data", data, "--batch", str(BATCH), "--progress", "none"]
        if command == "train":
            given += ["--seed", "5"]
        else:
            given += ["--checkpoint", folder / "trained"]
        if command != "train" and not said:
            train(binaries[target], write_histories(folder / "users.parquet"), folder / "trained", steps=1)
        whole = [binaries[target], command, *given]
        result = subprocess.run(list(map(str, whole)), capture_output=True, text=True, check=False)
        assert result.returncode == 1, result.stderr
        said.append(result.stderr.replace(str(binaries[target]), "model").replace(target, "model"))
    assert data.name in said[0] and said[1] == said[0]
    return said[0]


#
# Retrieval: catalogues, ranks among their items, the best of them.
#

ITEMS = [7 * i + 3 for i in range(40)]


def write_histories(path: Path, **changes: dict[int, int]) -> Path:
    """Users with the items after each event and one to find; `changes`: values by user of `held_out`, or of the first
    event's `next`."""
    draw = np.random.default_rng(5)
    histories, held_out = [], []
    for user in range(32):
        items = [ITEMS[i] for i in draw.integers(0, len(ITEMS), draw.integers(2, 9))]
        pairs = enumerate(zip(items, items[1:], strict=False))
        histories.append([{"item": a, "next": b, "time": 100 * i + int(draw.integers(0, 90))} for i, (a, b) in pairs])
        held_out.append(changes.get("held_out", {}).get(user, ITEMS[int(draw.integers(0, len(ITEMS)))]))
        histories[user][0]["next"] = changes.get("next", {}).get(user, histories[user][0]["next"])
    event = pa.struct({"item": pa.int64(), "next": pa.int64(), "time": pa.int64()})
    columns = {"history": pa.array(histories, pa.list_(event)), "held_out": pa.array(held_out, pa.int64())}
    pq.write_table(pa.table(columns), path)
    return path


def compile_both(
    make: Callable[[], gr.Model], schema: gr.Schema, folder: Path, targets: tuple[str, ...] = TARGETS, **options: Any
) -> dict[str, Path]:
    return {
        target: gr.compile(make(), schema, target=target, output=folder / target, **options, flags=draft()).binary
        for target in targets
    }


def make_retrieval(
    name: str,
    model: str,
    folder: Path,
    targets: tuple[str, ...] = TARGETS,
    compile_options: dict[str, Any] | None = None,
    constants: dict[str, int] | None = None,
    **options: Any,
) -> Made:
    """A retrieval example with a catalogue of ITEMS; `constants` replace those of its module."""
    items = folder / "items.parquet"
    pq.write_table(pa.table({"item": pa.array(ITEMS, pa.int64())}), items)
    data = write_histories(folder / "users.parquet")
    module = load_example(name, "model")
    for constant, value in (constants or {}).items():
        setattr(module, constant, value)
    kind = getattr(module, model)
    catalogue = gr.catalogue(str(items), id="item")
    schema = gr.Schema.from_parquet(data)
    binaries = compile_both(lambda: kind(catalogue, **options), schema, folder, targets, **(compile_options or {}))
    return Made(binaries, data)


def expect_same_evaluation(
    binaries: dict[str, Path], data: Path, checkpoint: Path, folder: Path, predicts: bool
) -> list[pa.Table]:
    """Both targets evaluate alike; returns what they predict."""
    metrics, tables = [], []
    for target in TARGETS:
        out, report = folder / f"{target}.parquet", folder / f"{target}.metrics.json"
        given = ["--data", data, "--checkpoint", checkpoint, "--batch", "8", "--threads", "1", "--progress", "none"]
        call(binaries[target], "evaluate", *given, "--metrics-json", report)
        metrics.append(json.loads(report.read_text())["evaluation"])
        if predicts:
            call(binaries[target], "predict", *given, "--out", out)
            tables.append(pq.read_table(out))
    assert metrics[1]["metrics"].keys() == metrics[0]["metrics"].keys() != set()
    assert metrics[1]["metrics"] == pytest.approx(metrics[0]["metrics"], rel=1e-5)
    assert metrics[1]["loss"] == pytest.approx(metrics[0]["loss"], rel=1e-5)
    return tables


def expect_same_run(made: Made, folder: Path, steps: int = 8, predicts: bool = True, outliers: float = 0.0) -> None:
    """Losses, checkpoints that go from one target to the other and back, metrics and predictions.

    Adam divides gradients by their size, so a weight whose gradient is little more than rounding differs by a part of
    its rate, 1e-3.
    """
    cpu, cuda = (made.binaries[target] for target in TARGETS)
    atol = 2e-4
    expect_same_training(made.binaries, made.data, folder, steps, atol, outliers)
    train(cpu, made.data, folder / "mixed", steps=2)
    train(cuda, made.data, folder / "mixed", "--resume", steps=4)
    train(cpu, made.data, folder / "mixed", "--resume", steps=steps)
    expect_close(tensors(folder / "mixed"), tensors(folder / "cpu.checkpoint"), atol)
    tables = expect_same_evaluation(made.binaries, made.data, folder / "mixed", folder, predicts)
    for field in tables[0].schema if tables else []:
        expected, actual = (np.array(table[field.name].to_pylist(), dtype=float) for table in tables)
        close = 1e-5 if "float" in str(field.type) else 0
        np.testing.assert_allclose(actual, expected, rtol=close, atol=close, err_msg=field.name)


@pytest.fixture(scope="module")
def hstu(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return make_retrieval("hstu_retrieval", "Retrieval", tmp_path_factory.mktemp("hstu"), time_bias=True)


def test_hstu_runs_as_on_the_cpu(hstu: Made, tmp_path: Path) -> None:
    expect_same_run(hstu, tmp_path)


def test_a_batch_may_be_one_row(made: Made, hstu: Made, tmp_path: Path) -> None:
    """Which has room for no other."""
    for model in (made, hstu):
        expect_same_training(model.binaries, model.data, tmp_path / model.data.stem, steps=5, batch=1)


def test_sasrec_runs_as_on_the_cpu(tmp_path: Path) -> None:
    expect_same_run(make_retrieval("sasrec", "SASRec", tmp_path), tmp_path, steps=4, predicts=False, outliers=1e-3)


@pytest.mark.parametrize(
    ("command", "change"),
    [("train", {"next": {11: 5, 13: 6}}), ("evaluate", {"held_out": {9: -4}})],
    ids=["next", "held_out"],
)
def test_an_item_that_the_catalogue_lacks_is_named(
    command: str, change: dict[str, dict[int, int]], hstu: Made, tmp_path: Path
) -> None:
    expect_same_error(hstu.binaries, write_histories(tmp_path / "bad.parquet", **change), tmp_path, command)


@pytest.mark.parametrize(
    "change", [{"label": {37: 2.0}}, {"weight": {38: -0.5}}, {"c2": {21: 1 << 20}}], ids=["label", "weight", "id"]
)
def test_errors_are_those_of_the_cpu(change: dict[str, dict[int, Any]], made: Made, tmp_path: Path) -> None:
    expect_same_error(made.binaries, write_rows(tmp_path / "bad.parquet", **change), tmp_path, "train")


def test_a_loss_that_is_no_number_is_told_as_on_the_cpu(made: Made, tmp_path: Path) -> None:
    """Op, line and row are named by the step that runs a second time, and by --check-finite."""
    given = ["train", "--data", made.data, "--batch", str(BATCH), "--seed", "5", "--progress", "none", "--lr", "1e30"]
    said = {}
    for target in TARGETS:
        for more in ((), ("--check-finite",)):
            command = [made.binaries[target], *given, "--epochs", "9", *more]
            result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
            assert result.returncode == 1, result.stderr
            said[target, more] = result.stderr.partition("error: ")[2]
    assert "--check-finite looks at gradients too" in said["cpu", ()]
    for more in ((), ("--check-finite",)):
        assert said["cuda-emulated", more] == said["cpu", more]
        assert "test_cuda_models.py:" in said["cpu", more]


def test_nvcc_compiles_the_unit(made: Made, tmp_path: Path) -> None:
    source = tmp_path / "unit.cu"
    call(tool("genrec-compile"), f"{made.binaries['cpu']}.genrec", "--target=cuda", "--emit=cpp", "-o", source)
    compile_with_nvcc(source)


def test_a_binary_for_a_gpu_needs_one(made: Made, tmp_path: Path) -> None:
    """It links, and says what is missing where there is no device."""
    if "nvcc" not in read_toolchain()["cuda_units"] or Path("/dev/nvidiactl").exists():
        pytest.skip("no nvcc, or there is a device")
    binary = tmp_path / "clicks"
    call(tool("genrec-compile"), f"{made.binaries['cpu']}.genrec", "--target=cuda", "-o", binary)
    assert "probability" in call(binary, "info")
    command = [binary, "train", "--data", made.data, "--progress", "none"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "the model was compiled for CUDA, and there is no device" in result.stderr
    assert "compile it with --target=cpu" in result.stderr
