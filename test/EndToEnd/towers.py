"""A small model of two tables, their data, and the weights of a checkpoint, which several tests look at."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from compiled import read_tensors
from genrec import nn

SCHEMA = gr.Schema({"user": gr.int64, "item": gr.int64, "label": gr.float32})
DIM = 4
ROWS = 64


class Towers(gr.Model):
    """Users and items, a place, and a layer; what is named in `frozen` stays."""

    def __init__(self, frozen: tuple[str, ...] = ()) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.05), name="Towers")
        self.user = gr.Table("user", dim=DIM, frozen="user" in frozen)
        self.item = gr.Table("item", dim=DIM, id_bits=20, frozen="item" in frozen)
        self.scale = gr.Parameter((DIM,), gr.init.ones(), frozen="scale" in frozen)
        self.place = nn.Embedding(8, DIM)
        self.head = nn.Linear(DIM, 1)

    def forward(self, batch: gr.Batch) -> None:
        x = self.user(batch.user) * self.item(batch.item) * self.scale + self.place(gr.mod(batch.user, 8))
        score = self.head(x).squeeze()
        gr.loss.mse(score, batch.label)
        gr.output(score=score)


def write_rows(path: Path) -> Path:
    """Writes ROWS rows of users below 12, items below 15 and labels 0 and 1."""
    rng = np.random.default_rng(1)
    rows = {"user": rng.integers(0, 12, ROWS), "item": rng.integers(0, 15, ROWS)}
    pq.write_table(pa.table({**rows, "label": pa.array(rng.integers(0, 2, ROWS), pa.float32())}), path)
    return path


def weights(model: gr.CompiledModel, folder: Path, checkpoint: Path) -> dict[str, np.ndarray]:
    """Parameters by name, and tables as "<name>.ids", "<name>.values"."""
    return {
        name: tensor
        for path in model.export(folder, checkpoint=checkpoint)
        if path.name != "items.safetensors"
        for name, tensor in read_tensors(path.read_bytes()).items()
    }
