"""DLRM (Naumov et al. 2019) on a click log in Criteo's layout: one table per category, one op per column.

dense   13 counts ── log(1 + x), missing: 0 ── MLP ──────┐
sparse  26 categories ── a table each, missing: 0 ───────┴── dot products of all pairs ── MLP ── click
"""

from __future__ import annotations

from typing import Any

import genrec as gr
from genrec import nn

COUNTS = [f"i{k}" for k in range(1, 14)]
CATEGORIES = [f"c{k}" for k in range(1, 27)]
WIDTH = 16
PAIRS = 27 * 26 // 2


def dense_features(batch: gr.Batch) -> gr.Value:
    """The counts as rows [13]: log(1 + x) of what is not negative; a missing count is 0."""
    return gr.concat([gr.log1p(gr.clip(gr.fill_missing(batch[name], 0.0), low=0.0)) for name in COUNTS])


class DLRM(gr.Model):
    """Dot products between the embeddings of all categories and of the counts, and a network on top.

    `table` holds options of every table: an optimizer of its own, rules about its rows.
    """

    def __init__(self, optimizer: gr.optim.Optimizer | None = None, table: dict[str, Any] | None = None) -> None:
        super().__init__(optimizer=optimizer or gr.optim.Adagrad(0.01))
        self.tables = [gr.Table(name, dim=WIDTH, init=gr.init.normal(0.01), **(table or {})) for name in CATEGORIES]
        self.bottom = nn.MLP([len(COUNTS), 64, 32, WIDTH], final="relu")
        self.top = nn.MLP([WIDTH + PAIRS, 64, 32, 1])

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss, AUC and normalised entropy, and the click probability of every row."""
        dense = self.bottom(dense_features(batch))
        vectors = [table(batch[name]) for table, name in zip(self.tables, CATEGORIES, strict=True)]
        products = nn.dot_interaction(dense, *vectors)
        logit = self.top(gr.concat(dense, products)).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, name="click")
        gr.metric.auc(logit, batch.label, name="auc")
        gr.metric.ne(logit, batch.label)
        gr.output(probability=nn.sigmoid(logit))
