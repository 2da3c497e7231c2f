"""A small model with whatever a session on a device does for a model, and its data: test_planted_sessions.py."""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from genrec import nn

ITEMS, ROWS, BATCH = 24, 98, 12  # the last batch has 2 rows
SCHEMA = gr.Schema(
    {
        "a": gr.int64.nullable(),
        "b": gr.int64,
        "x": gr.float32.nullable(),
        "name": gr.string.nullable(),
        "target": gr.int64,
        "label": gr.float32,
        "weight": gr.float32,
        "history": [{"item": gr.int64, "word": gr.string}],
    }
)
ITEM_SCHEMA = gr.Schema({"item": gr.int64, "title": gr.string, "price": gr.float32.nullable()})
NAMES = [None, "", "a", "bc", "a longer name, beyond what is kept in place", "é"]


class Session(gr.Model):
    """Tables that are merged, come and leave by rule, are rounded by chance or hot; columns with nulls, of texts, in
    lists and of a catalogue; domains that a step makes, one below another; optimizers, a clipped norm, dropout,
    metrics with keys and weights, of rows and of lists.
    """

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.02), clip_norm=0.05, clip_value=0.3)
        self.items = items
        adagrad, init = gr.optim.Adagrad(0.1), gr.init.normal(0.3)
        self.first, self.second = (gr.Table(name, 4, init, adagrad, id_bits=20) for name in ("first", "second"))
        self.ruled = gr.Table("ruled", 4, init, adagrad, bounded=6, ttl=3, admit_after=2)
        self.rounded = gr.Table("rounded", 6, init, gr.optim.SGD(0.1), dtype="bf16", rounding="stochastic")
        self.hot = gr.Table("hot", 6, init, adagrad, dtype="bf16", rounding="stochastic", hot_after=3)
        self.item = gr.Table("item", 5, init)
        self.scale = gr.Parameter((6,), gr.init.ones(), gr.optim.Adagrad(0.1))
        self.hidden = nn.MLP([15, 7, 5])
        self.tower = nn.Linear(6, 5)
        self.top = nn.Linear(5, 1)

    def forward(self, batch: gr.Batch) -> None:
        events = self.rounded(batch.history.item) * self.scale + self.hot(gr.hash(batch.history.word, bits=30))
        listed = events.sum()
        merged = self.first(batch.a) + self.second(gr.mod(batch.b, 17))
        query = self.hidden(gr.concat(merged, self.ruled(batch.a), listed, gr.fill_missing(batch.x, -0.5)))
        query = nn.dropout(query, 0.2)
        price = gr.fill_missing(self.items.price, 1.0)
        vectors = self.tower(gr.concat(self.item(gr.hash(self.items.title, bits=30)), price))
        gr.loss.sampled_softmax(query, batch.target, vectors, self.items, negatives=3)
        logit = self.top(query).squeeze()
        gr.loss.bce_with_logits(logit, batch.label, weight=batch.weight, name="click")
        gr.metric.rmse(logit, batch.a.astype(gr.float32), name="a")
        gr.metric.gauc(logit, batch.label, key=batch.b, weight=batch.weight)
        latest = batch.history.truncate(2)
        recent = self.rounded(latest.item).row_sum()
        gr.metric.mae(recent, batch.label.fanout(latest), name="latest")
        gr.metric.list_ranking(recent, batch.label.fanout(latest), at=(1,), name="in_list", weight=batch.weight)
        found = gr.top_k(query, vectors, self.items, k=ITEMS + 2)
        gr.metric.ranking(found, target=batch.target, at=(1, 3))
        earliest = batch.history.truncate(1, keep="first")  # which nothing else reports
        gr.output(item=found.ids, score=found.scores, name=batch.name, word=batch.history.word, latest=latest.word)
        gr.output(pair=batch.history.item.beside(gr.pairs(earliest, batch.history)))


class Later(gr.Model):
    """The compute stage makes ids of a table. Keys of merged tables have a call of their own (--fuse-transforms)."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), clip_norm=0.4)
        self.first, self.second = (gr.Table(name, 4, gr.init.normal(0.3), id_bits=20) for name in ("first", "second"))
        self.gate = nn.Linear(4, 1)
        self.top = nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        early = self.first(batch.history.item)
        later = self.first(batch.history.item + 20 * gr.bucketize(self.gate(early).squeeze(), [-0.1, 0.1]) + 20)
        pooled = (early * later).sum()
        gr.loss.bce_with_logits(self.top(pooled + self.second(batch.a * 1000)).squeeze(), batch.label)


def write_rows(path: Path, seed: int = 2, rows: int = ROWS, wide_from: int | None = None) -> Path:
    """The 8th batch in this order is the first with nulls in a column of floats, the second has a longer list.

    `wide_from`: from this row on, rows have longer lists and nothing else.
    """
    draw = np.random.default_rng(seed)
    words = [f"w{i}" * (1 + i % 4) for i in range(9)]

    def length(row: int) -> int:
        if wide_from is not None:
            return int(draw.integers(0, 5)) if row >= wide_from else row % 3
        return 18 if row == 14 else row % 3

    def history(row: int) -> list[dict[str, object]]:
        return [
            {"item": int(draw.integers(0, 14)), "word": words[int(draw.integers(0, 9))]} for _ in range(length(row))
        ]

    def has_nulls(row: int) -> bool:
        return wide_from is None and 84 <= row < 96

    columns = {
        "a": pa.array([None if v == 0 else int(v) for v in draw.integers(0, 9, rows)], pa.int64()),
        "b": pa.array([int(v) for v in draw.integers(0, 12, rows)], pa.int64()),
        "x": pa.array(
            [None if has_nulls(row) and row % 3 else float(v) for row, v in enumerate(draw.normal(size=rows))],
            pa.float32(),
        ),
        "name": pa.array([NAMES[int(v)] for v in draw.integers(0, len(NAMES), rows)], pa.string()),
        "target": pa.array([int(v) for v in draw.integers(0, ITEMS, rows)], pa.int64()),
        "label": pa.array([float(v) for v in draw.integers(0, 2, rows)], pa.float32()),
        "weight": pa.array([float(v) for v in draw.integers(0, 3, rows)], pa.float32()),
        "history": pa.array(
            [history(row) for row in range(rows)], pa.list_(pa.struct({"item": pa.int64(), "word": pa.string()}))
        ),
    }
    pq.write_table(pa.table(columns), path)
    return path


def write_items(path: Path) -> Path:
    columns = {
        "item": pa.array(range(ITEMS), pa.int64()),
        "title": pa.array([f"title {i} " + "é" * (i % 5) for i in range(ITEMS)], pa.string()),
        "price": pa.array([None if i % 5 == 0 else 0.1 * i for i in range(ITEMS)], pa.float32()),
    }
    pq.write_table(pa.table(columns), path)
    return path
