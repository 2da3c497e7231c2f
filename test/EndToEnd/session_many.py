"""A model whose batches have more rows than a chunk of 256 has, most of their lists empty, and its data:
test_planted_sessions.py.
"""

from __future__ import annotations

from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from genrec import nn
from session_models import ITEMS

MANY_BATCH = 270
MANY_SCHEMA = gr.Schema(
    {
        "user": gr.int64,
        "x": gr.float32.nullable(),  # and never is
        "target": gr.int64,
        "next": [gr.int64],
        "label": gr.float32,
        "history": [{"item": gr.int64, "kind": gr.int64, "time": gr.int64}],
        "shown": [{"item": gr.int64, "chosen": gr.float32}],
    }
)


class Many(gr.Model):
    """Products with residuals, of columns of wider rows too, and with what an activation is applied to; attention of
    three kinds, with biases; products per distinct row; crosses of features, softmax in the batch, scores of all items
    and items that rankings leave out.
    """

    def __init__(self, items: gr.Catalogue, dim: int) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.01))
        init = gr.init.normal(0.3)
        self.items, self.dim = items, dim
        self.item, self.user = gr.Table("item", dim, init), gr.Table("user", dim, init)
        self.first, self.second = gr.Table("first", 8, init), gr.Table("second", 8, init)
        self.wide = nn.Linear(17, 2 * dim)  # of looked up rows, which nobody else reads: per distinct row
        self.residual = nn.Linear(dim, dim)
        self.block = nn.HSTUBlock(
            dim, heads=2, dropout=0.1, attention_dropout=0.1,
            bias=nn.RelativePosition(9, gr.init.normal(0.3)), time_bias=nn.RelativeTime(8, init=gr.init.normal(0.3)),
        )  # fmt: skip
        later = nn.RelativeTime(8, next_event=True, init=gr.init.normal(0.3))
        self.attend = nn.SelfAttention(dim, heads=2, window=4, scale=0.7, time_bias=later)
        self.across = nn.CrossAttention(dim, heads=2)
        self.weigh = nn.DIN(dim, sizes=(8,))
        self.cross = nn.CrossNetwork(4 * dim + 1, layers=2, rank=8)
        self.mix = nn.MLP([4 * dim + 1, 12, 8], activation="gelu")
        self.top, self.ask, self.answer = nn.Linear(8, 1), nn.Linear(dim, dim), nn.Linear(8, dim)

    def forward(self, batch: gr.Batch) -> None:
        history, user = batch.history, self.ask(self.user(batch.user))
        item = self.item(history.item)
        looked_up = gr.concat(self.first(history.item), self.second(history.kind), history.kind.astype(gr.float32))
        wide = self.wide(looked_up)
        rows = wide[:, self.dim :] + nn.relu(self.residual(item))
        rows = self.block(rows, time=history.time)
        rows = rows + self.attend(nn.layer_norm(rows), time=history.time)
        shown = self.item(batch.shown.item)
        seen = self.across(shown, rows) + shown
        logit = (seen * user.fanout(batch.shown)).row_sum()
        gr.loss.bce_with_logits(logit, batch.shown.chosen, name="shown")
        gr.metric.list_ranking(logit, batch.shown.chosen, at=(1,), name="shown")

        x = gr.fill_missing(batch.x, 0.5)
        features = gr.concat(user, rows.sum(), self.weigh(user, rows), wide[:, : self.dim].mean(), x)
        crossed = self.cross(features)
        hidden = self.mix(crossed)
        gr.loss.bce_with_logits(self.top(hidden).squeeze(), batch.label, name="label")
        query = self.answer(hidden) + user
        gr.loss.in_batch_softmax(query, self.item(batch.target), batch.target, temperature=0.5, name="in_batch")
        scores = gr.scores(query, self.item, self.items, max_items=ITEMS)
        gr.loss.softmax_cross_entropy(scores, batch.target, name="scored")
        gr.metric.ranking(query, self.item, self.items, target=batch.target, exclude=history.item, at=(1, 3))
        gr.metric.ranking(query, self.item, self.items, target=batch.next, at=(1,), name="next", exclude=history.item)
        found = gr.top_k(query, self.item, self.items, k=5, exclude=history.item)
        gr.output(item=found.ids, score=found.scores, hidden=hidden)
        gr.output(shown=logit)


class Moved(gr.Model):
    """Lists that are padded, cut, tiled, shifted, joined and paired, with gradients; rows stacked as lists, products of
    all pairs of vectors, draws; vectors of items, and of lists of theirs, for the rows that a step reads.
    """

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05))
        init = gr.init.normal(0.3)
        self.items = items
        self.item, self.user, self.tag, self.title = (
            gr.Table(name, 8, init) for name in ("item", "user", "tag", "title")
        )
        self.place, self.kind = nn.PositionEmbedding(6, 8, init), nn.Embedding(3, 8, init)
        self.joined, self.tower = nn.Linear(8, 8), nn.Linear(8, 8)
        self.wide, self.asked = nn.Linear(8, 128), nn.Linear(8, 128)  # as wide as warps read
        self.heed = nn.SelfAttention(8, score="silu", fixed_length=5.0, contextual=2)
        self.top = nn.Linear(39, 1)

    def forward(self, batch: gr.Batch) -> None:
        history, shown, user = batch.history, batch.shown, self.user(batch.user)
        events = self.item(history.item) + self.place(history) + self.kind(history.kind)
        targets = gr.minimum(history.length(), gr.mod(batch.user, 3))
        events = events + self.heed(events, target=targets)
        past, now = self.joined(gr.concat_rows(events, self.item(shown.item))).split_rows()
        shifted = (gr.fill_missing(past.lead(), 0.25) * gr.fill_missing(past.lag(2), 0.5)).sum()
        both = gr.pairs(shown, history)
        paired = nn.tanh((now.fanout(both) * past.beside(both)).row_sum())
        logit = paired.sum() + nn.sin(now).row_sum()
        gr.loss.bce_with_logits(logit, shown.chosen, name="shown")
        padded = gr.fill_missing(past.truncate(4).pad(3, side="front"), 0.125)
        drawn = gr.random.uniform(history, 0.5, 1.5)
        stacked = gr.stack(user, shifted, past.max(), past.first(), (past * drawn).mean())
        weighed = (stacked * nn.softmax(stacked)).sum()
        pairs = nn.dot_interaction([user, weighed, past.last(), padded.max()], self_interaction=True)
        x = gr.fill_missing(batch.x, 0.5)
        mixed = gr.concat(pairs, past.tile(3, keep="last"), nn.cos(x), nn.square(user).row_max(), shifted[:, :3])
        gr.loss.bce_with_logits(self.top(mixed).squeeze(), batch.label, name="label")

        tags = self.tag(self.items.tags.value).mean()
        title = self.title(gr.hash(self.items.title, bits=30, kind="farmhash64"))
        item = self.item(self.items["item"]) + tags + title
        vectors, wide = self.tower(item), self.wide(item)
        gr.loss.sampled_softmax(weighed, batch.target, vectors, self.items, negatives=300, shared=True, name="next")
        gr.loss.sampled_softmax(self.asked(user), batch.target, wide, self.items, negatives=5, name="drawn")
        gr.output(weighed=weighed)
        gr.output(shown=logit)


MANY_ITEMS = 400
MANY_ITEM_SCHEMA = gr.Schema({"item": gr.int64, "title": gr.string.nullable(), "tags": [gr.int64]})


def write_many_items(path: Path) -> Path:
    columns = {
        "item": pa.array(range(MANY_ITEMS), pa.int64()),
        "title": pa.array([f"item {i % 150}" for i in range(MANY_ITEMS)]),
        "tags": pa.array([[(i * 5 + t) % 12 for t in range(i % 4)] for i in range(MANY_ITEMS)], pa.list_(pa.int64())),
    }
    pq.write_table(pa.table(columns), path)
    return path


def write_many(path: Path, x: float | None = None) -> Path:
    """A batch and a bit. One in six histories has items, one in four lists of what was shown, half of the lists of
    targets. `x`: of the first row.
    """
    rows = MANY_BATCH + 30
    draw = np.random.default_rng(3)

    def lists(one_in: int, most: int) -> list[range]:
        return [range(int(draw.integers(1, most + 1)) if row % one_in == 1 else 0) for row in range(rows)]

    def ids(below: int) -> int:
        return int(draw.integers(0, below))

    histories = [
        [{"item": ids(ITEMS), "kind": ids(3), "time": 1000 * row + 40 * (i * i) + ids(30)} for i in each]
        for row, each in enumerate(lists(6, 9))
    ]
    shown = [[{"item": ids(ITEMS), "chosen": float(ids(2))} for _ in each] for each in lists(4, 3)]
    whole, of_floats = pa.int64(), pa.float32()
    numbers = [float(v) for v in draw.normal(size=rows)]
    if x is not None:
        numbers[0] = x
    events = pa.struct({name: whole for name in ("item", "kind", "time")})
    columns = {
        "user": pa.array([ids(40) for _ in range(rows)], whole),
        "x": pa.array(numbers, of_floats),
        "target": pa.array([ids(ITEMS) for _ in range(rows)], whole),
        "next": pa.array([[ids(ITEMS) for _ in each] for each in lists(2, 3)], pa.list_(whole)),
        "label": pa.array([float(ids(2)) for _ in range(rows)], of_floats),
        "history": pa.array(histories, pa.list_(events)),
        "shown": pa.array(shown, pa.list_(pa.struct({"item": whole, "chosen": of_floats}))),
    }
    pq.write_table(pa.table(columns), path)
    return path
