"""News ranking, written the naive way: everything the score of an impression depends on is computed for the impression.

request ─┬─ history                    (news the user read)
         └─ impression                 (news shown, clicked or not)
                └─ seen                (an impression's own copy of the history: all pairs of the two lists)

The compiler finds that copies of one history are alike, and encodes it once per request (`--sink-fanout`).
"""

from __future__ import annotations

import genrec as gr
from genrec import nn

LENGTH = 50
WIDTH = 64
LAYERS = 2
RATE = 0.01


class TargetAttention(nn.Module):
    """Target attention of an impression to its history: softmax of query · key over the list, then the weighted sum of
    values.
    """

    def __init__(self, dim: int) -> None:
        self.query, self.key, self.values = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, candidate: gr.Value, history: gr.Value) -> gr.Value:
        """Rows [dim] of the candidate's domain; `history` is of a list below it, or of another list of its parent."""
        return nn.cross_attention(self.query(candidate), self.key(history), self.values(history))


class NewsRanker(gr.Model):
    """HSTU over the history, target attention of the impression to it, and a network on top.

    Data: ``user``, ``history: list<struct<item>>``, ``impression: list<struct<item, label>>``. With `per_request` the
    history is encoded on the request's own list: by hand what the compiler makes of the model as it stands.
    """

    def __init__(self, per_request: bool = False, optimizer: gr.optim.Optimizer | None = None) -> None:
        super().__init__(optimizer=optimizer or gr.optim.Adagrad(RATE))
        self.per_request = per_request
        self.item = gr.Table("item", dim=WIDTH, init=gr.init.normal(0.05))
        self.user = gr.Table("user", dim=WIDTH, init=gr.init.normal(0.05))
        self.position = nn.PositionEmbedding(LENGTH, WIDTH, from_end=True)
        self.blocks = [nn.HSTUBlock(WIDTH, heads=2, fixed_length=LENGTH) for _ in range(LAYERS)]
        self.attention = TargetAttention(WIDTH)
        self.head = nn.MLP([4 * WIDTH, 128, 64, 1])

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss, AUC, the AUC within requests, and the click probability of every impression."""
        shown, read = batch.impression, batch.history.truncate(LENGTH)
        if self.per_request:
            event, id, user = read, read.item, self.user(batch.user).fanout(shown)
        else:
            event = gr.pairs(shown, read)
            id, user = read.item.beside(event), self.user(batch.user.fanout(shown))
        x = self.item(id) + self.position(event)
        for block in self.blocks:
            x = block(x)
        candidate = self.item(shown.item)
        interest = self.attention(candidate, nn.layer_norm(x))
        logit = self.head(gr.concat(user, interest, candidate, interest * candidate)).squeeze()
        gr.loss.bce_with_logits(logit, shown.label, name="click")
        gr.metric.auc(logit, shown.label)
        gr.metric.gauc(logit, shown.label, key=batch.request.fanout(shown), name="gauc")
        gr.metric.list_ranking(logit, shown.label, at=(5, 10), name="request")
        gr.output(probability=nn.sigmoid(logit))
