"""A small model with whatever a session on a device does for a model, and its data: test_planted_sessions.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        gr.output(text=gr.concat_rows(batch.name, batch.history.word))  # neighbours are of two columns
        gr.output(pair=batch.history.item.beside(gr.pairs(earliest, batch.history)))


class Later(gr.Model):
    """The compute stage makes ids of a table. Keys of merged tables have a call of their own (--fuse-transforms)."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), clip_norm=0.4)
        self.first, self.second = (gr.Table(name, 4, gr.init.normal(0.3), id_bits=20) for name in ("first", "second"))
        self.other = gr.Table("other", 3, gr.init.normal(0.3))  # with none of its rows asked for late
        self.gate = nn.Linear(4, 1)
        self.top = nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        early = self.first(batch.history.item)
        later, last = early, early
        for first in (20, 80):  # of the second one, ids follow from rows of the first
            last, later = later, self.first(self.beside(batch.history.item, later, first))
        pooled = (early * later + last).sum()
        logit = self.top(pooled + self.second(batch.a * 1000)).squeeze() + self.other(batch.b).row_sum()
        gr.loss.bce_with_logits(logit, batch.label)

    def beside(self, item: gr.Value, rows: gr.Value, first: int) -> gr.Value:
        return item + 20 * gr.bucketize(self.gate(rows).squeeze(), [-0.1, 0.1]) + first


class Counted(gr.Model):
    """Lookups of a column with nulls and of lists (--merge-tables=false: counts are of ids as they are)."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.first, self.second = (gr.Table(name, 4, gr.init.normal(0.3), id_bits=20) for name in ("first", "second"))
        self.top = nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        rows = self.first(batch.a) + self.second(batch.history.item).sum()
        gr.loss.bce_with_logits(self.top(rows).squeeze(), batch.label)


CHECKED_SCHEMA = gr.Schema(
    {
        "a": gr.int64,
        "x": gr.float32,
        "y": gr.float32.nullable(),
        "aim": gr.int64.nullable(),
        "row": gr.int64,
        "weight": gr.float32,
        "shown": [{"item": gr.int64, "chosen": gr.float32}],
    }
)
CHECKED_ITEM = 100  # the first of the catalogue's ids: 0, which nulls have, is none


class Checked(gr.Model):
    """Ids, labels and scores that a step looks at, of which some may be whatever they are."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.items = items
        self.user, self.item = (gr.Table(name, 5, gr.init.normal(0.3)) for name in ("user", "item"))
        self.given = gr.Table("given", 5, gr.init.normal(0.3), frozen=True)
        self.top = nn.Linear(6, 1)

    def forward(self, batch: gr.Batch) -> None:
        user = self.user(batch.a)
        gr.loss.sampled_softmax(user, batch.aim, self.item, self.items, negatives=3)
        # Scores have columns of items that there are not.
        gr.loss.softmax_cross_entropy(gr.scores(user, self.item, self.items, max_items=ITEMS + 4), batch.row)
        logit = self.top(nn.relu(gr.concat(user, batch.x))).squeeze() + self.given(batch.a).row_sum()
        # Of a null that is 2, which is no label.
        gr.loss.bce_with_logits(logit, 2.0 - batch.y, weight=batch.weight)
        score = self.item(batch.shown.item).row_sum()
        gr.metric.list_ranking(score, batch.shown.chosen, at=(1,))


def write_checked(path: Path, **wrong: float) -> Path:
    """A batch and a half; `wrong` is a column's value in the row before the last of the first batch."""
    draw = np.random.default_rng(4)
    count = BATCH * 3 // 2
    columns: dict[str, list[Any]] = {
        "a": [int(v) for v in draw.integers(0, 40, count)],
        "x": [float(v) for v in draw.normal(size=count)],
        "y": [None if row % 5 == 1 else float(draw.integers(1, 3)) for row in range(count)],
        "aim": [None if row % 4 == 2 else CHECKED_ITEM + int(draw.integers(0, ITEMS)) for row in range(count)],
        "row": [int(v) for v in draw.integers(0, ITEMS, count)],
        "weight": [float(row % 3) for row in range(count)],
    }
    columns["y"][3] = 9.0  # a label of -7, which counts nothing
    chosen = [[float(v) for v in draw.integers(0, 2, row % 4)] for row in range(count)]
    for name, value in wrong.items():
        if name == "chosen":
            chosen[BATCH - 1][1] = value
        else:
            columns[name][BATCH - 2] = value
    columns["shown"] = [[{"item": int(draw.integers(0, 9)), "chosen": v} for v in each] for each in chosen]
    shown = pa.list_(pa.struct({"item": pa.int64(), "chosen": pa.float32()}))
    types = {"shown": shown} | {name: pa.float32() for name in ("x", "y", "weight")}
    pq.write_table(pa.table({name: pa.array(of, types.get(name, pa.int64())) for name, of in columns.items()}), path)
    return path


def write_rows(
    path: Path, seed: int = 2, rows: int = ROWS, wide_from: int | None = None, alone: int | None = None
) -> Path:
    """The 8th batch in this order is the first with nulls in a column of floats, the second has a longer list.

    `wide_from`: from this row on, rows have longer lists and nothing else. `alone`: the row of
    a batch, its first, that alone has an id in a column.
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

    ids = [int(v) for v in draw.integers(0, 9, rows)]
    if alone is not None:
        ids[alone : alone + BATCH] = [3] + [0] * (BATCH - 1)
    columns = {
        "a": pa.array([id or None for id in ids], pa.int64()),
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


def write_items(path: Path, first: int = 0) -> Path:
    columns = {
        "item": pa.array(range(first, first + ITEMS), pa.int64()),
        "title": pa.array([f"title {i} " + "é" * (i % 5) for i in range(ITEMS)], pa.string()),
        "price": pa.array([None if i % 5 == 0 else 0.1 * i for i in range(ITEMS)], pa.float32()),
    }
    pq.write_table(pa.table(columns), path)
    return path
