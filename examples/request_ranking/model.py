"""Click prediction on requests: users, requests, impressions and their tags, each computed once per row of its domain.

request ─┬─ impression ── tag     (item, position, label; the item's tags, some lists empty)
         └─ interest              (topics the user named; some lists empty)
"""

from __future__ import annotations

import genrec as gr
from genrec import nn

WIDTH = 16


class Ranker(gr.Model):
    """A two-tower-and-MLP ranker: user values per request, item values per impression.

    Data: ``user``, ``interest: list<int64>``, ``impression: list<struct<item, position, label, tags: list<int64>>>``.
    """

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(2e-3))
        initial = gr.init.normal(0.05)
        self.user = gr.Table("user", dim=WIDTH, init=initial)
        self.interest = gr.Table("interest", dim=WIDTH, init=initial)
        self.item = gr.Table("item", dim=WIDTH, init=initial)
        self.tag = gr.Table("tag", dim=WIDTH, init=initial)
        self.position = gr.Table("position", dim=4, init=initial, id_bits=8)
        self.tower = nn.MLP([2 * WIDTH, 32, WIDTH], activation="relu")
        self.head = nn.MLP([4 * WIDTH + 4, 64, 32, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss, the AUC and the click probability of every impression."""
        shown = batch.impression
        interest = self.interest(batch.interest.value).mean(batch.request)
        user = nn.dropout(self.tower(gr.concat(self.user(batch.user), interest)), 0.1)
        tags = self.tag(shown.tags.value).mean(shown)
        item = self.item(shown.item)
        place = self.position(gr.bucketize(shown["position"], [0.5, 1.5, 2.5, 3.5, 5.5, 8.5, 12.5, 20.5]))
        user_here = user.fanout(shown)
        logit = self.head(gr.concat(user_here, item, tags, user_here * item, place)).squeeze()
        gr.loss.bce_with_logits(logit, shown.label, name="click")
        gr.metric.auc(logit, shown.label, name="click")
        gr.output(probability=nn.sigmoid(logit))
