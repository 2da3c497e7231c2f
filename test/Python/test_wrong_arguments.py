"""Every call of a model with one argument of another kind: it works, or it is told at the user's line."""

import genrec as gr
import pytest
from genrec import nn  # noqa: F401 (the calls below name it)

SCHEMA = gr.Schema(
    {
        "user": gr.int64,
        "name": gr.string,
        "price": gr.float32,
        "age": gr.float32.nullable(),
        "history": [{"item": gr.int64, "time": gr.timestamp("s")}],
        "other": [{"item": gr.int64, "label": gr.float32}],
    }
)

# A call that works, as its function and the texts of its arguments.
CALLS = [
    ("self.user", "batch.user"), ("self.user.l2_normalized", "1e-6"), ("gr.concat", "u", "u"), ("gr.concat", "[u, u]"),
    ("gr.concat_rows", "h", "h"), ("gr.where", "b", "u", "0.0"), ("gr.maximum", "u", "u"), ("gr.minimum", "u", "1.0"),
    ("gr.pairs", "batch.history", "batch.other"), ("gr.hash", "batch.name", "52"), ("gr.mod", "batch.user", "7"),
    ("gr.multi_hash", "batch.name", "16", "2"), ("gr.cross", "batch.user", "batch.name", "bits=40"),
    ("gr.bucketize", "batch.price", "[1.0, 2.0]"), ("gr.clip", "batch.price", "0.0", "1.0"),
    ("gr.log1p", "batch.price"), ("gr.scale", "batch.price", "2.0", "1.0"), ("gr.fill_missing", "batch.age", "0.0"),
    ("gr.sequence_length", "batch.history"), ("gr.time_delta", "t", "t", "3600", "[1, 24]"),
    ("gr.top_k", "u", "self.item", "self.items", "3"), ("gr.scores", "u", "self.item", "self.items", "5"),
    ("gr.rank", "u", "batch.user", "self.item", "self.items", "batch.history.item"), ("gr.output", "x=u"),
    ("gr.loss.mean", "s"), ("gr.loss.bce_with_logits", "s", "batch.price"),
    ("gr.loss.sampled_softmax", "u", "batch.user", "self.item", "self.items", "4", "0.5"),
    ("gr.loss.in_batch_softmax", "u", "u", "batch.user", "0.5", "s"),
    ("gr.loss.full_softmax", "u", "batch.user", "self.item", "self.items", "0.5", "9"),
    ("gr.metric.auc", "s", "batch.price"), ("gr.metric.gauc", "s", "batch.price", "batch.user"),
    ("gr.metric.ne", "s", "batch.price"), ("gr.metric.ranking", "u", "self.item", "self.items", "batch.user"),
    ("nn.relu", "u"), ("nn.softmax", "u"), ("nn.dropout", "u", "0.1"), ("nn.l2_normalize", "u", "1e-6"),
    ("nn.layer_norm", "u", "self.norm.scale"), ("nn.rms_norm", "u", "self.norm.scale"),
    ("nn.linear", "u", "self.dense.weight", "self.dense.bias"), ("self.dense", "u"), ("self.block", "h"),
    ("self.attend", "u", "h"), ("nn.cross_attention", "u", "h", "h", "2"), ("self.position", "batch.history"),
    ("self.embedding", "batch.user"), ("nn.dot_interaction", "[u, u]"), ("self.cross", "u"), ("self.din", "u", "h"),
    ("h.truncate", "3", "'last'"), ("h.pad", "3", "'back'"), ("h.tile", "3", "'first'"), ("h.lead", "1"),
    ("h.lag", "1"),
    ("h.pool", "'sum'", "batch"), ("h.sum", "batch"), ("h.last", "batch"), ("u.fanout", "batch.history"),
    ("o.beside", "gr.pairs(batch.history, batch.other)"), ("u.astype", "gr.float64"), ("u.__add__", "u"),
    ("u.__lt__", "0.5"), ("u.__pow__", "2"), ("u.__getitem__", "(slice(None), 0)"),
    ("batch.history.truncate", "3", "'last'"), ("batch.history.pad", "3", "'back'"),
    ("batch.history.position", "False"), ("batch.__getitem__", "'user'"),
]  # fmt: skip

WRONG = [
    "None", "'items.parquet'", "-1", "2.5", "[]", "[None]", "object()", "gr.Table", "batch", "batch.history",
    "batch.name", "h", "self.user", "self.items", "self.dense", "self.dense.weight", "float('nan')", "10**30",
]  # fmt: skip


class Small(gr.Model):
    """Everything that the calls use; `text` is the call."""

    def __init__(self, text):
        super().__init__()
        self.text = text
        self.user, self.item = gr.Table("user", dim=4), gr.Table("item", dim=4)
        self.items = gr.catalogue("items.parquet", schema=gr.Schema({"item": gr.int64}, root="items"))
        self.dense, self.norm, self.block = nn.Linear(4, 2), nn.LayerNorm(4), nn.HSTUBlock(4)
        self.attend, self.din = nn.CrossAttention(4), nn.DIN(4)
        self.position, self.embedding = nn.PositionEmbedding(9, 4), nn.Embedding(9, 4)
        self.cross = nn.CrossNetwork(4, 2)

    def forward(self, batch):
        u, h, o = self.user(batch.user), self.item(batch.history.item), self.item(batch.other.item)
        s, b, t = u.row_sum(), u > 0.5, batch.history.time
        scope = {**globals(), **locals()}
        eval(compile(self.text, "<call>", "eval"), scope)
        gr.output(done=batch.user)


def texts(function, *arguments):
    """The call with each of its arguments in turn replaced by each wrong thing."""
    for i, argument in enumerate(arguments):
        keyword = argument.partition("=")[0]
        name = f"{keyword}=" if keyword != argument and keyword.isidentifier() else ""
        for wrong in WRONG:
            yield f"{function}({', '.join([*arguments[:i], name + wrong, *arguments[i + 1 :]])})"


@pytest.mark.parametrize("call", CALLS, ids=[f"{i}-{call[0]}" for i, call in enumerate(CALLS)])
def test_a_wrong_argument_is_told_at_the_users_line(call):
    gr.record(Small(f"{call[0]}({', '.join(call[1:])})"), SCHEMA)
    silent = []
    for text in texts(*call):
        try:
            gr.record(Small(text), SCHEMA)
        except gr.ModelError as error:
            said = str(error)
            if not said.startswith(("<call>:1: error: ", __file__)) and "test_wrong_arguments.py:" not in said:
                silent.append(f"{text}: no line: {said}")
        except Exception as error:
            silent.append(f"{text}: {type(error).__name__}: {error}")
    assert not silent, "\n".join(silent)
