"""DLRM in PyTorch: `peer.py <train.parquet> <weights> <tables> <optimizer> <batch> <rate> <threads>`.

`tables`: "bags", an nn.EmbeddingBag(sparse=True) per category with SparseAdam or Adagrad, or "fbgemm", one batch of
tables whose exact Adagrad is part of the backward pass. Reads lines "<first step> <steps>" and answers each with the
seconds and losses of these steps as JSON. Counts are transformed, and ids made rows of the tables, before the clock
starts.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F  # noqa: N812 (what everybody calls it)
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "test" / "Torch"))

import criteo  # noqa: E402

EPS = {"adagrad": 1e-10, "adam": 1e-8}


class Bags(torch.nn.Module):
    """A table per category; a missing category is an empty bag."""

    def __init__(self, weights: list[torch.Tensor], optimizer: str, rate: float) -> None:
        super().__init__()
        self.bags = torch.nn.ModuleList(
            torch.nn.EmbeddingBag.from_pretrained(w, freeze=False, mode="sum", sparse=True) for w in weights
        )
        make = torch.optim.SparseAdam if optimizer == "adam" else torch.optim.Adagrad
        self.optimizer = make(list(self.parameters()), lr=rate, eps=EPS[optimizer])

    def inputs(self, places: torch.Tensor) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Rows and offsets of each table."""
        result = []
        for column in places.T:
            there = column >= 0
            ends = there.cumsum(0)
            result.append((column[there].contiguous(), torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]])))
        return result

    def forward(self, inputs: list[tuple[torch.Tensor, torch.Tensor]]) -> list[torch.Tensor]:
        """A vector per category."""
        return [bag(rows, offsets) for bag, (rows, offsets) in zip(self.bags, inputs, strict=True)]

    def update(self) -> None:
        """The step of the tables' optimizer."""
        self.optimizer.step()
        self.optimizer.zero_grad()


class Batched(torch.nn.Module):
    """FBGEMM's batch of tables, updated while it goes backward."""

    def __init__(self, weights: list[torch.Tensor], optimizer: str, rate: float) -> None:
        super().__init__()
        from fbgemm_gpu.split_embedding_configs import EmbOptimType
        from fbgemm_gpu.split_table_batched_embeddings_ops_common import EmbeddingLocation
        from fbgemm_gpu.split_table_batched_embeddings_ops_training import (
            ComputeDevice,
            SplitTableBatchedEmbeddingBagsCodegen,
        )

        if optimizer != "adagrad":
            raise ValueError(f"FBGEMM has only Adagrad on the CPU, got {optimizer!r}")
        self.tables = SplitTableBatchedEmbeddingBagsCodegen(
            [(*w.shape, EmbeddingLocation.HOST, ComputeDevice.CPU) for w in weights],
            optimizer=EmbOptimType.EXACT_ADAGRAD,
            learning_rate=rate,
            eps=EPS[optimizer],
        )
        for mine, given in zip(self.tables.split_embedding_weights(), weights, strict=True):
            mine.copy_(given)

    def inputs(self, places: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and offsets of all tables, one table after the other."""
        flat = places.T.reshape(-1)
        there = flat >= 0
        return flat[there], torch.cat([torch.zeros(1, dtype=torch.int64), there.cumsum(0)])

    def forward(self, inputs: tuple[torch.Tensor, torch.Tensor]) -> list[torch.Tensor]:
        """The vectors of all categories, side by side."""
        return [self.tables(*inputs)]

    def update(self) -> None:
        """The backward pass has done it."""


class Dense(torch.nn.Module):
    """Everything but the tables; parameters [inputs, outputs] become those of nn.Linear."""

    def __init__(self, weights: criteo.Tensors) -> None:
        super().__init__()
        self.bottom, self.top = self.mlp("bottom", weights, last=True), self.mlp("top", weights, last=False)
        i, j = torch.tril_indices(27, 27, offset=-1)
        self.pairs = i * 27 + j

    @staticmethod
    def mlp(path: str, weights: criteo.Tensors, last: bool) -> torch.nn.Sequential:
        """Linear layers with ReLU between, and at the end if `last`."""
        layers: list[torch.nn.Module] = []
        for index in range(sum(name.startswith(f"{path}.layers.") for name in weights) // 2):
            weight = torch.from_numpy(weights[f"{path}.layers.{index}.weight"])
            linear = torch.nn.Linear(*weight.shape)
            linear.weight.data = weight.T.contiguous()
            linear.bias.data = torch.from_numpy(weights[f"{path}.layers.{index}.bias"].copy())
            layers += [linear, torch.nn.ReLU()]
        return torch.nn.Sequential(*(layers if last else layers[:-1]))

    def forward(self, counts: torch.Tensor, vectors: list[torch.Tensor]) -> torch.Tensor:
        """The logit of every row."""
        dense = self.bottom(counts)
        stacked = torch.cat([dense, *vectors], dim=1).view(-1, 27, criteo.WIDTH)
        products = torch.bmm(stacked, stacked.transpose(1, 2)).flatten(1)
        return self.top(torch.cat([dense, products.index_select(1, self.pairs)], dim=1)).squeeze(1)


def main() -> None:
    """Answers until there are no more lines."""
    file, initial, kind, optimizer_name, batch, rate, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    torch.manual_seed(1)
    frame, weights = criteo.load(Path(file)), load_file(initial)
    rows = criteo.read(frame, criteo.vocabulary([frame]))
    values = [torch.from_numpy(weights[f"{name}.values"]) for name in criteo.CATEGORIES]
    tables = (Bags if kind == "bags" else Batched)(values, optimizer_name, float(rate))
    dense = Dense(weights)
    make = torch.optim.Adam if optimizer_name == "adam" else torch.optim.Adagrad
    optimizer = make(dense.parameters(), lr=float(rate), eps=EPS[optimizer_name], fused=True)
    size = int(batch)
    per_epoch = -(-len(rows) // size)
    for line in sys.stdin:
        first, steps = map(int, line.split())
        seconds, losses = [], []
        for step in range(first, first + steps):
            at = step % per_epoch * size
            taken = rows[slice(at, at + size)]
            inputs = tables.inputs(taken.sparse)
            begin = time.perf_counter()
            loss = F.binary_cross_entropy_with_logits(dense(taken.dense, tables(inputs)), taken.label)
            loss.backward()
            tables.update()
            optimizer.step()
            optimizer.zero_grad()
            seconds.append(time.perf_counter() - begin)
            losses.append(loss.item())
        print(json.dumps({"seconds": seconds, "losses": losses}), flush=True)


if __name__ == "__main__":
    main()
