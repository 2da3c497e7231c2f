"""HSTU retrieval: the next item of a history, among all items of a catalogue.

The public MovieLens-1M configuration of HSTU (Zhai et al. 2024, section 4.1.1): item vectors of width 50 plus learned
positions, two blocks of one head, sampled softmax with 128 uniform negatives at temperature 0.05.
"""

from __future__ import annotations

import genrec as gr
from genrec import nn

LENGTH = 200  # events the model sees
POSITIONS = 211  # the public code reserves 11 places behind the history
WIDTH = 50


class Retrieval(gr.Model):
    """Scores every item of `items` as the next event of each user's history.

    Data: one row per user with ``history: list<struct<item, next[, time]>>``, where ``next`` is the item after each
    event (the label), and ``held_out``, the item to find (evaluation only).

    Args:
        items: the catalogue, with the column ``item``.
        time_bias: add the bucketed relative time bias; needs ``history.time``.
        dropout: rate of the embedding's and the blocks' dropout.
        full_softmax: score all items instead of sampled ones; the value is the largest size of the catalogue.
        optimizer: of the table and of all parameters.
    """

    def __init__(
        self,
        items: gr.Catalogue,
        *,
        time_bias: bool = False,
        dropout: float = 0.2,
        full_softmax: int = 0,
        optimizer: gr.optim.Optimizer | None = None,
    ) -> None:
        super().__init__(optimizer=optimizer or gr.optim.AdamW(1e-3, betas=(0.9, 0.98), weight_decay=0.0))
        self.item = gr.Table("item", dim=WIDTH, init=gr.init.truncated_normal(0.02))
        self.position = nn.PositionEmbedding(POSITIONS, WIDTH, init=gr.init.xavier_normal())
        self.blocks = [
            nn.HSTUBlock(
                WIDTH,
                heads=1,
                qk=WIDTH,
                v=WIDTH,
                dropout=dropout,
                fixed_length=POSITIONS,
                bias=nn.RelativePosition(POSITIONS),
                time_bias=nn.RelativeTime(128) if time_bias else None,
            )
            for _ in range(2)
        ]
        self.items = items
        self.time_bias = time_bias
        self.dropout = dropout
        self.full_softmax = full_softmax

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss over all events, and ranking and outputs for the last one."""
        event = batch.history.truncate(LENGTH)
        x = nn.dropout(self.item(event.item) * WIDTH**0.5 + self.position(event), self.dropout)
        for block in self.blocks:
            x = block(x, time=event.time) if self.time_bias else block(x)
        query = nn.l2_normalize(x)
        candidates = self.item.l2_normalized()
        if self.full_softmax:
            gr.loss.full_softmax(
                query, event.next, candidates, self.items, temperature=0.05, max_items=self.full_softmax, name="next"
            )
        else:
            gr.loss.sampled_softmax(
                query, event.next, candidates, self.items, negatives=128, temperature=0.05, name="next"
            )

        last = query.last()
        gr.metric.ranking(last, candidates, self.items, target=batch.held_out, exclude=event.item, at=(10, 50, 200))
        gr.metric.ranking(
            last,
            candidates,
            self.items,
            target=batch.held_out,
            exclude=batch.history.item,
            at=(10, 50, 200),
            name="whole history excluded",
        )
        found = gr.top_k(last, candidates, self.items, k=200, exclude=event.item)
        gr.output(item=found.ids, score=found.scores)
