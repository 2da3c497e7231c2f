"""SASRec (Kang & McAuley 2018) in the public MovieLens-1M configuration: the baseline beside HSTU.

The same data, loss and evaluation as ``examples/hstu_retrieval``; two blocks of softmax attention and a feed-forward
layer of width 50, as the public generative-recommenders code builds them.
"""

from __future__ import annotations

import genrec as gr
from genrec import nn

LENGTH = 200
POSITIONS = 211
WIDTH = 50


class Block(nn.Module):
    """Softmax self-attention on a normalised query, then a feed-forward layer; both with residuals."""

    def __init__(self, dropout: float) -> None:
        self.query = nn.Linear(WIDTH, WIDTH, init=gr.init.xavier_normal())
        self.key = nn.Linear(WIDTH, WIDTH, init=gr.init.xavier_normal())
        self.value = nn.Linear(WIDTH, WIDTH, init=gr.init.xavier_normal())
        self.out = nn.Linear(WIDTH, WIDTH, init=gr.init.xavier_normal())
        self.hidden = nn.Linear(WIDTH, WIDTH, init=gr.init.xavier_normal())
        self.back = nn.Linear(WIDTH, WIDTH, init=gr.init.xavier_normal())
        self.dropout = dropout

    def forward(self, x: gr.Value) -> gr.Value:
        """Rows [WIDTH] of rows [WIDTH] of a list."""
        q = nn.layer_norm(x, eps=1e-8)
        attended = nn.attention(
            self.query(q), self.key(x), self.value(x), heads=1, score="softmax", causal=True, dropout=self.dropout
        )
        y = nn.layer_norm(q + self.out(attended), eps=1e-8)
        hidden = nn.dropout(nn.relu(self.hidden(y)), self.dropout)
        return nn.dropout(self.back(hidden), self.dropout) + y


class SASRec(gr.Model):
    """Scores every item of `items` as the next event of each user's history; data as for HSTU."""

    def __init__(self, items: gr.Catalogue, *, dropout: float = 0.2) -> None:
        super().__init__(optimizer=gr.optim.AdamW(1e-3, betas=(0.9, 0.98), weight_decay=0.0))
        self.item = gr.Table("item", dim=WIDTH, init=gr.init.truncated_normal(0.02))
        self.position = nn.PositionEmbedding(POSITIONS, WIDTH, init=gr.init.xavier_normal())
        self.blocks = [Block(dropout) for _ in range(2)]
        self.items = items
        self.dropout = dropout

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss over all events, and the ranking for the last one."""
        event = batch.history.truncate(LENGTH)
        x = nn.dropout(self.item(event.item) * WIDTH**0.5 + self.position(event), self.dropout)
        for block in self.blocks:
            x = block(x)
        query = nn.l2_normalize(x)
        candidates = self.item.l2_normalized()
        gr.loss.sampled_softmax(query, event.next, candidates, self.items, negatives=128, temperature=0.05, name="next")
        gr.metric.ranking(
            query.last(), candidates, self.items, target=batch.held_out, exclude=event.item, at=(10, 50, 200)
        )
