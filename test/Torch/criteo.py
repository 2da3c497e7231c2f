"""DLRM and DCN v2 in PyTorch, from the papers' equations: the models of examples/criteo_dlrm and examples/criteo_dcnv2.

Parameters have the names and shapes of the compiled models. A table is a matrix here, a row per distinct id, with
sparse gradients; a missing category looks up zeros, an id that was never trained on its initial value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import torch
import torch.nn.functional as F  # noqa: N812 (what everybody calls it)

COUNTS = [f"i{k}" for k in range(1, 14)]
CATEGORIES = [f"c{k}" for k in range(1, 27)]
WIDTH, RANK, LAYERS = 16, 32, 2
PAIRS = 27 * 26 // 2
INPUTS = len(COUNTS) + WIDTH * len(CATEGORIES)

Tensors = dict[str, np.ndarray]


@dataclass
class Rows:
    """Rows of the log: counts as the model takes them, categories as rows of their tables (-1: missing)."""

    label: torch.Tensor
    dense: torch.Tensor
    sparse: torch.Tensor

    def __getitem__(self, rows: slice | torch.Tensor) -> Rows:
        return Rows(self.label[rows], self.dense[rows], self.sparse[rows])

    def __len__(self) -> int:
        return len(self.label)


def vocabulary(frames: list[pl.DataFrame]) -> dict[str, np.ndarray]:
    """The distinct ids of each category, ascending."""
    return {name: np.unique(np.concatenate([f[name].drop_nulls().to_numpy() for f in frames])) for name in CATEGORIES}


def read(frame: pl.DataFrame, ids: dict[str, np.ndarray]) -> Rows:
    """The rows of a frame."""
    dense = frame.select(pl.col(COUNTS).fill_null(0.0).clip(lower_bound=0.0).log1p()).to_numpy()
    sparse = []
    for name in CATEGORIES:
        column = frame[name]
        place = np.searchsorted(ids[name], column.fill_null(0).to_numpy()).clip(max=max(len(ids[name]) - 1, 0))
        sparse.append(np.where(column.is_null().to_numpy(), -1, place))
    return Rows(
        torch.from_numpy(frame["label"].to_numpy().copy()),
        torch.from_numpy(dense.astype(np.float32)),
        torch.from_numpy(np.stack(sparse, axis=1)),
    )


def load(file: Path) -> pl.DataFrame:
    """What the example's prepare wrote."""
    return pl.read_parquet(file)


def initial_weights(model: str, ids: dict[str, np.ndarray], seed: int) -> Tensors:
    """Random weights from the distributions that training starts from."""
    random = np.random.default_rng(seed)
    weights: Tensors = {}
    for name in CATEGORIES:
        weights[f"{name}.values"] = (random.standard_normal((len(ids[name]), WIDTH)) * 0.01).astype(np.float32)

    def uniform(bound: float, *shape: int) -> np.ndarray:
        return random.uniform(-bound, bound, shape).astype(np.float32)

    def mlp(path: str, sizes: list[int]) -> None:
        for i, (a, b) in enumerate(zip(sizes, sizes[1:], strict=False)):
            weights[f"{path}.layers.{i}.weight"] = uniform(1 / math.sqrt(a), a, b)
            weights[f"{path}.layers.{i}.bias"] = uniform(1 / math.sqrt(a), b)

    if model == "dlrm":
        mlp("bottom", [len(COUNTS), 64, 32, WIDTH])
        mlp("top", [WIDTH + PAIRS, 64, 32, 1])
        return weights
    bound = math.sqrt(6 / (INPUTS + RANK))
    for i in range(LAYERS):
        weights[f"cross.weights.{i}"] = uniform(bound, RANK, INPUTS)
        weights[f"cross.reduces.{i}"] = uniform(bound, INPUTS, RANK)
        weights[f"cross.biases.{i}"] = np.zeros(INPUTS, np.float32)
    mlp("deep", [INPUTS, 64, 32, 1])
    return weights


class Ranker(torch.nn.Module):
    """DLRM or DCN v2; `weights` are its initial values by name."""

    def __init__(self, model: str, weights: Tensors) -> None:
        super().__init__()
        self.model = model
        self.weights = {name: torch.nn.Parameter(torch.from_numpy(value.copy())) for name, value in weights.items()}
        for name, parameter in self.weights.items():
            self.register_parameter(name.replace(".", "_"), parameter)

    def embeddings(self, sparse: torch.Tensor) -> list[torch.Tensor]:
        """A vector per category; zeros where it is missing."""
        result = []
        for column, name in enumerate(CATEGORIES):
            place = sparse[:, column]
            vectors = F.embedding(place.clamp(min=0), self.weights[f"{name}.values"], sparse=True)
            result.append(vectors * (place >= 0)[:, None])
        return result

    def mlp(self, path: str, x: torch.Tensor, last: bool) -> torch.Tensor:
        """Linear layers with ReLU after each; after the last one if `last`."""
        count = sum(name.startswith(f"{path}.layers.") and name.endswith(".weight") for name in self.weights)
        for i in range(count):
            x = x @ self.weights[f"{path}.layers.{i}.weight"] + self.weights[f"{path}.layers.{i}.bias"]
            x = F.relu(x) if i + 1 < count or last else x
        return x

    def forward(self, rows: Rows) -> torch.Tensor:
        """The logit of every row."""
        vectors = self.embeddings(rows.sparse)
        if self.model == "dlrm":
            dense = self.mlp("bottom", rows.dense, last=True)
            stacked = torch.stack([dense, *vectors], dim=1)
            products = stacked @ stacked.transpose(1, 2)
            i, j = torch.tril_indices(27, 27, offset=-1)
            return self.mlp("top", torch.cat([dense, products[:, i, j]], dim=1), last=False).squeeze(1)
        start = x = torch.cat([rows.dense, *vectors], dim=1)
        for layer in range(LAYERS):
            mixed = x @ self.weights[f"cross.reduces.{layer}"] @ self.weights[f"cross.weights.{layer}"]
            x = start * (mixed + self.weights[f"cross.biases.{layer}"]) + x
        return self.mlp("deep", x, last=False).squeeze(1)

    def loss(self, rows: Rows) -> torch.Tensor:
        """The mean cross entropy."""
        return F.binary_cross_entropy_with_logits(self(rows), rows.label)
