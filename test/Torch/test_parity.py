"""A compiled model and a PyTorch model of the same equations, from identical weights, must go the same way.

Full softmax instead of sampled negatives, no dropout, batches of 32 users in the order of the file. With the softmax
over the whole catalogue every row of the item table has a gradient in every step, so that moments of touched rows only
are the same as dense ones. Tolerances are those of issue 3: float32 on both sides, sums in different orders.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import genrec as gr
import numpy as np
import polars as pl
import pytest
import torch
from example_modules import load_example
from hstu import ITEM, LENGTH, Hstu, Tensors, initial_weights, pad
from safetensors.numpy import load_file, save_file

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
MOVIELENS = ROOT.parent / "shared" / "data" / "ml-1m"

BATCH = 32
STEPS = 50
GRADIENT_TOLERANCE = 1e-4  # of the norm of each tensor's gradient
SGD_TOLERANCE = 1e-4  # of the loss
ADAMW_TOLERANCE = 1e-3  # of the loss
# A step so large that what rounding the new weight loses is small beside the step; nothing is computed after it.
GRADIENT_RATE = 1e3
# At 0.1 the loss jumps, and PyTorch in single and in double precision part by more than the tolerance themselves.
SGD_RATE = 0.03
ADAMW_RATE = 1e-3


@dataclass
class Dataset:
    """A data set on disk, and the same as rows of the catalogue."""

    folder: Path
    ids: np.ndarray
    inputs: list[np.ndarray]
    labels: list[np.ndarray]

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What Hstu.forward takes, for the batch of `step`."""
        rows = slice(step * BATCH, (step + 1) * BATCH)
        inputs = self.inputs[rows]
        return pad(inputs), pad(self.labels[rows]), torch.tensor([len(one) for one in inputs])


@pytest.fixture(scope="session")
def dataset(tmp_path_factory) -> Dataset:
    """MovieLens-1M where it is, generated data elsewhere."""
    folder = tmp_path_factory.mktemp("data")
    if MOVIELENS.is_dir():
        load_example("hstu_retrieval", "prepare").prepare(MOVIELENS, folder)
    else:
        command = [BUILD / "bin" / "genrec-datagen", "--out", folder, "--users", str(BATCH * STEPS), "--seed", "1"]
        subprocess.run(command, check=True)
    ids = pl.read_parquet(folder / "items.parquet")["item"].to_numpy()
    place = {int(one): row for row, one in enumerate(ids)}
    histories = pl.read_parquet(folder / "train.parquet")["history"]
    assert len(histories) >= BATCH * STEPS

    def rows(name: str) -> list[np.ndarray]:
        lists = histories.head(BATCH * STEPS).list.eval(pl.element().struct.field(name)).list.tail(LENGTH)
        return [np.array([place[item] for item in one]) for one in lists.to_list()]

    return Dataset(folder, ids, rows("item"), rows("next"))


@dataclass
class Compiled:
    """A compiled model and a folder to run it in."""

    binary: Path
    dataset: Dataset
    folder: Path

    def train(self, weights: Tensors, steps: int, rate: float) -> tuple[list[float], Tensors]:
        """Losses of `steps` steps from `weights`, and the weights after them."""
        init, checkpoint, report = (self.folder / name for name in ("init.safetensors", "checkpoint", "metrics.json"))
        save_file(weights | {"item.ids": self.dataset.ids.astype(np.int64)}, init)
        command = [
            self.binary, "train", "--data", self.dataset.folder / "train.parquet", "--catalogue",
            f"items={self.dataset.folder / 'items.parquet'}", "--init", init, "--batch", BATCH, "--max-steps", steps,
            "--lr", rate, "--no-shuffle", "--progress", "none", "--checkpoint", checkpoint,
            "--overwrite", "--metrics-json", report,
        ]  # fmt: skip
        result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
        assert result.returncode == 0, result.stderr
        losses = [entry["loss"] for entry in json.loads(report.read_text())["step_losses"]]
        newest = json.loads((checkpoint / "manifest.json").read_text())["generations"][-1]["name"]
        return losses, load_file(checkpoint / newest / "model.safetensors")


def compile_model(dataset: Dataset, optimizer: gr.optim.Optimizer, folder: Path) -> Compiled:
    """The example without dropout, with full softmax."""
    model = load_example("hstu_retrieval", "model").Retrieval(
        gr.catalogue(dataset.folder / "items.parquet", id="item"),
        dropout=0.0,
        full_softmax=len(dataset.ids),
        optimizer=optimizer,
    )
    schema = gr.Schema.from_parquet(dataset.folder / "train.parquet", dataset.folder / "valid.parquet")
    file, binary = folder / "model.genrec", folder / "model"
    gr.write_model(gr.record(model, schema), file)
    command = [BUILD / "bin" / "genrec-compile", file, "-O2", "--emit=binary", "-o", binary]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return Compiled(binary, dataset, folder)


@pytest.fixture(scope="session")
def sgd(dataset, tmp_path_factory) -> Compiled:
    return compile_model(dataset, gr.optim.SGD(SGD_RATE), tmp_path_factory.mktemp("sgd"))


@pytest.fixture(scope="session")
def adamw(dataset, tmp_path_factory) -> Compiled:
    optimizer = gr.optim.AdamW(ADAMW_RATE, betas=(0.9, 0.98), weight_decay=0.0)
    return compile_model(dataset, optimizer, tmp_path_factory.mktemp("adamw"))


@pytest.fixture(scope="session")
def weights(dataset) -> Tensors:
    return initial_weights(len(dataset.ids), seed=1)


def torch_losses(dataset: Dataset, model: Hstu, optimizer: torch.optim.Optimizer) -> list[float]:
    """Trains `STEPS` steps; the loss of each before its update."""
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        loss = model(*dataset.batch(step))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def by_id(tensors: Tensors, ids: np.ndarray) -> np.ndarray:
    """The item table's rows in the order of `ids`."""
    row = {int(one): i for i, one in enumerate(tensors["item.ids"])}
    return tensors[ITEM][[row[int(one)] for one in ids]]


def test_gradients_of_the_first_step(dataset, sgd, weights):
    model = Hstu(weights)
    loss = model(*dataset.batch(0))
    loss.backward()
    losses, after = sgd.train(weights, steps=1, rate=GRADIENT_RATE)
    after[ITEM] = by_id(after, dataset.ids)
    assert losses[0] == pytest.approx(loss.item(), rel=SGD_TOLERANCE)
    errors = {}
    for name, value in weights.items():
        expected = model.weights[name].grad.numpy().astype(np.float64)
        found = (value.astype(np.float64) - after[name]) / GRADIENT_RATE
        norm = np.linalg.norm(expected)
        assert norm > 0, f"{name} has no gradient, so nothing is compared"
        errors[name] = np.linalg.norm(found - expected) / norm
    print("\n" + "\n".join(f"  {name}: {error:.2e} of the gradient's norm" for name, error in errors.items()))
    assert max(errors.values()) <= GRADIENT_TOLERANCE, errors


def check_losses(found: list[float], expected: list[float], tolerance: float) -> None:
    assert len(found) == len(expected) == STEPS
    apart = np.abs(np.array(found) / np.array(expected) - 1)
    print(f"\n  losses from {expected[0]:.4f} to {expected[-1]:.4f}, at most {apart.max():.2e} apart")
    assert expected[-1] < expected[0], "nothing was learned, so nothing is compared"
    assert apart.max() <= tolerance, f"step {apart.argmax()}: {found[apart.argmax()]} and {expected[apart.argmax()]}"


def test_losses_with_sgd(dataset, sgd, weights):
    model = Hstu(weights)
    expected = torch_losses(dataset, model, torch.optim.SGD(model.parameters(), lr=SGD_RATE))
    found, _ = sgd.train(weights, STEPS, SGD_RATE)
    check_losses(found, expected, SGD_TOLERANCE)


def test_losses_with_adamw(dataset, adamw, weights):
    model = Hstu(weights)
    optimizer = torch.optim.AdamW(model.parameters(), lr=ADAMW_RATE, betas=(0.9, 0.98), weight_decay=0.0)
    expected = torch_losses(dataset, model, optimizer)
    found, _ = adamw.train(weights, STEPS, ADAMW_RATE)
    check_losses(found, expected, ADAMW_TOLERANCE)
