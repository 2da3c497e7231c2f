"""A schema and what records functions of it, for tests."""

import genrec as gr

SCHEMA = gr.Schema(
    {
        "user": gr.int64,
        "age": gr.int32.nullable(),
        "interest": [gr.int64.padded(0)],
        "history": [{"item": gr.int64, "price": gr.float32, "tags": [{"tag": gr.int64.nullable()}]}],
    }
)


class Recorder(gr.Model):
    """A model whose forward is a function."""

    def __init__(self, function, **parts):
        self.function = function
        self.__dict__.update(parts)

    def forward(self, batch):
        self.kept = self.function(batch)
        gr.output(user=batch.user)


def record(function, schema=SCHEMA, **parts):
    """The recording of `function(batch)`, its ops by name, and what the function returned."""
    model = Recorder(function, **parts)
    recording = gr.record(model, schema)
    ops = {}
    for op in recording.ops:
        ops.setdefault(op.name, []).append(op)
    return recording, ops, model.kept


ITEM = gr.Table("item", dim=3)
