"""DCN v2 (Wang et al. 2021), stacked, on a click log in Criteo's layout.

13 counts ── log(1 + x), missing: 0 ──────┐
26 categories ── a table each ────────────┴── cross layers of low rank ── MLP ── click
"""

from __future__ import annotations

from typing import Any

import genrec as gr
from genrec import nn

COUNTS = [f"i{k}" for k in range(1, 14)]
CATEGORIES = [f"c{k}" for k in range(1, 27)]
WIDTH = 16
INPUTS = len(COUNTS) + WIDTH * len(CATEGORIES)


class DCNv2(gr.Model):
    """Explicit feature crosses of growing degree, then a network."""

    def __init__(
        self,
        layers: int = 2,
        rank: int | None = 32,
        optimizer: gr.optim.Optimizer | None = None,
        table: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(optimizer=optimizer or gr.optim.Adagrad(0.01))
        self.tables = [gr.Table(name, dim=WIDTH, init=gr.init.normal(0.01), **(table or {})) for name in CATEGORIES]
        self.cross = nn.CrossNetwork(INPUTS, layers=layers, rank=rank)
        self.deep = nn.MLP([INPUTS, 64, 32, 1])

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss, AUC and normalised entropy, and the click probability of every row."""
        counts = [gr.log1p(gr.clip(gr.fill_missing(batch[name], 0.0), low=0.0)) for name in COUNTS]
        vectors = [table(batch[name]) for table, name in zip(self.tables, CATEGORIES, strict=True)]
        logit = self.deep(self.cross(gr.concat(*counts, *vectors))).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, name="click")
        gr.metric.auc(logit, batch.label, name="auc")
        gr.metric.ne(logit, batch.label)
        gr.output(probability=nn.sigmoid(logit))
