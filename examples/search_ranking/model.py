"""Clicks and orders of a search page from hundreds of columns, the naive way: a table per column, an op per column.

request ─┬─ impression            (item, position, click, order; what was shown)
         ├─ clicks                (what the user clicked before)
         └─ searches              (what the user searched for before)

all columns ── a layer ── DCN v2 ── MMoE ─┬─ click
past clicks and searches ── DIN ──┘       └─ order, given a click
"""

from __future__ import annotations

import sys
from pathlib import Path

import genrec as gr
from genrec import nn

sys.path.insert(0, str(Path(__file__).parent))

from columns import make_ids, make_number, numbered  # noqa: E402

WIDTH = 32
HIDDEN = 128
LATEST_CLICKS = 20
LATEST_SEARCHES = 10


class SearchRanker(gr.Model):
    """Two tasks over every column of `schema`, the log's own (`columns.read_schema`)."""

    def __init__(self, schema: gr.Schema) -> None:
        super().__init__(optimizer=gr.optim.Adam(1e-3))
        lists = {"request": schema.root, **schema.root.children}
        self.columns = {name: numbered(domain.features) for name, domain in lists.items()}
        self.tables = {
            c.name: self.table(c.name, c.dim) for owned in self.columns.values() for c in owned if c.has_table
        }
        self.user, self.item = self.table("user", WIDTH), self.table("item", WIDTH)
        self.query, self.position = self.table("query", WIDTH), self.table("position", 4)
        widths = {name: sum(c.dim for c in owned) for name, owned in self.columns.items()}
        self.click_rows = nn.Linear(widths["clicks"] + WIDTH + 1, WIDTH)
        self.search_rows = nn.Linear(widths["searches"] + WIDTH + 1, WIDTH)
        self.liked = nn.DIN(WIDTH, sizes=(32, 16))
        self.sought = nn.DIN(WIDTH, sizes=(32, 16))
        every = widths["request"] + 3 * WIDTH + widths["impression"] + 2 * WIDTH + 4
        self.bottom = nn.Linear(every, HIDDEN)
        self.cross = nn.CrossNetwork(HIDDEN, layers=2, rank=32)
        self.experts = nn.MMoE(HIDDEN, [64, 32], experts=4, tasks=2)
        self.click_head, self.order_head = nn.MLP([32, 16, 1]), nn.MLP([32, 16, 1])

    def table(self, name: str, dim: int) -> gr.Table:
        """A table; all have the same initializer and optimizer."""
        return gr.Table(name, dim=dim, init=gr.init.uniform(0.05), optimizer=gr.optim.Adagrad(0.02))

    def embed(self, batch: gr.Batch, owner: str, rows: gr.Domain) -> list[gr.Value]:
        """Every numbered column of `rows`: looked up, or as a number."""
        now = batch.time if owner == "request" else batch.time.fanout(rows)
        levels = [batch[c.name] for c in self.columns["request"] if c.content == "level"]
        level = levels[0] if levels and owner == "impression" else None
        return [
            self.tables[c.name](make_ids(c, rows[c.name], now, level)) if c.has_table else make_number(c, rows[c.name])
            for c in self.columns[owner]
        ]

    def forward(self, batch: gr.Batch) -> None:
        """Declares both losses, AUC and GAUC, and both probabilities of every impression."""
        shown = batch.impression
        clicked, searched = batch.clicks.truncate(LATEST_CLICKS), batch.searches.truncate(LATEST_SEARCHES)
        item, query = self.item(shown.item), self.query(gr.hash(batch.query, bits=40))

        age = gr.log1p(gr.time_delta(batch.time.fanout(clicked), clicked.time, unit=3600))
        clicks = nn.relu(
            self.click_rows(gr.concat(self.item(clicked.item), age, *self.embed(batch, "clicks", clicked)))
        )
        age = gr.log1p(gr.time_delta(batch.time.fanout(searched), searched.time, unit=3600))
        past = self.query(gr.hash(searched.query, bits=40))
        searches = nn.relu(self.search_rows(gr.concat(past, age, *self.embed(batch, "searches", searched))))

        every = gr.concat(
            self.user(batch.user), query, self.sought(query, searches), *self.embed(batch, "request", batch.request),
            item, self.liked(item, clicks), self.position(shown["position"]), *self.embed(batch, "impression", shown),
        )  # fmt: skip
        for_click, for_order = self.experts(self.cross(nn.relu(self.bottom(every))))
        click, order = self.click_head(for_click).squeeze(), self.order_head(for_order).squeeze()
        gr.loss.bce_with_logits(click, shown.click, name="click")
        gr.loss.bce_with_logits(order, shown.order, name="order")  # null without a click, so its weight is 0
        gr.metric.auc(click, shown.click, name="click auc")
        gr.metric.gauc(click, shown.click, key=batch.request_id.fanout(shown), name="click gauc")
        gr.metric.auc(order, shown.order, name="order auc")
        gr.output(click=nn.sigmoid(click), order=nn.sigmoid(order))
