"""A two-tower retrieval model: users and items are encoded apart, and meet in a dot product.

Trained as Yi et al. 2019 ("Sampling-Bias-Corrected Neural Modeling for Large Corpus Item Recommendations"): the
negatives of a row are the items of the other rows of its batch, corrected by how often these are drawn.
"""

from __future__ import annotations

import genrec as gr
from genrec import nn

WIDTH = 64
TEMPERATURE = 0.05


class TwoTower(gr.Model):
    """Scores every item of `items` for a user with a history.

    Data: one row per positive with ``history: list<item>`` (what was seen before), ``item`` (the positive) and
    ``log_q`` (the logarithm of its share of all positives; training only).

    Args:
        items: the catalogue, with the column ``item``.
        corrected: subtract ``log_q`` from the logits.
        negatives: 0 takes the batch's items; otherwise so many are drawn from the catalogue for each row.
    """

    def __init__(self, items: gr.Catalogue, *, corrected: bool = True, negatives: int = 0) -> None:
        super().__init__(optimizer=gr.optim.AdamW(1e-3, weight_decay=0.0))
        self.item = gr.Table("item", dim=WIDTH, init=gr.init.truncated_normal(0.02))
        self.seen = gr.Table("seen", dim=WIDTH, init=gr.init.truncated_normal(0.02))
        self.user_tower = nn.MLP([2 * WIDTH, 2 * WIDTH, WIDTH])
        self.item_tower = nn.MLP([WIDTH, 2 * WIDTH, WIDTH])
        self.items = items
        self.corrected = corrected
        self.negatives = negatives

    def encode_user(self, batch: gr.Batch) -> gr.Value:
        """Rows [WIDTH]: the mean of what was seen, and what was seen last."""
        vectors = self.seen(batch.history)
        return nn.l2_normalize(self.user_tower(gr.concat([vectors.mean(), vectors.last()])))

    def encode_item(self, id: gr.Value) -> gr.Value:
        """Rows [WIDTH] of ids; the catalogue's are encoded by the same function."""
        return nn.l2_normalize(self.item_tower(self.item(id)))

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss, the ranking of the item among all, and the best items of each user."""
        user = self.encode_user(batch)
        if self.negatives:
            gr.loss.sampled_softmax(
                user, batch.item, self.encode_item, self.items, negatives=self.negatives, temperature=TEMPERATURE
            )
        else:
            log_q = batch.log_q if self.corrected else None
            gr.loss.in_batch_softmax(
                user, self.encode_item(batch.item), batch.item, temperature=TEMPERATURE, log_q=log_q
            )
        gr.metric.ranking(
            user, self.encode_item, self.items, target=batch.item, exclude=batch.history, at=(10, 50, 200)
        )
        found = gr.top_k(user, self.encode_item, self.items, k=200, exclude=batch.history)
        gr.output(item=found.ids, score=found.scores)
