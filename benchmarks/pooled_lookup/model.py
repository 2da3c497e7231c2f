"""The model of our side: tables whose rows are summed over lists of ids, and a loss that is linear in the sums."""

from __future__ import annotations

from typing import Any

import genrec as gr

TABLES = 8
WIDTH = 64
RATE = 0.05


class Pooled(gr.Model):
    """Data: ``f0 … f7: list<int64>``, ``weight: float``. The gradient of every column of a sum is the row's weight."""

    def __init__(self, optimizer: gr.optim.Optimizer | None = None, **storage: Any) -> None:
        super().__init__(optimizer=optimizer or gr.optim.Adagrad(RATE))
        initial = gr.init.uniform(0.01)
        self.tables = [gr.Table(f"t{k}", dim=WIDTH, init=initial, **storage) for k in range(TABLES)]

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss."""
        sums = [table(batch[f"f{k}"].value).sum(batch.request) for k, table in enumerate(self.tables)]
        gr.loss.mean(gr.concat(*sums).row_sum() * batch.weight, name="linear")


def schema() -> gr.Schema:
    """The columns."""
    lists = {f"f{k}": [gr.int64] for k in range(TABLES)}
    return gr.Schema({**lists, "weight": gr.float32})
