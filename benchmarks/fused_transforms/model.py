"""The model of our side: a table for every column, with one transform in front."""

from __future__ import annotations

import genrec as gr

COLUMNS = 100
KINDS = ("bucketize", "mod", "hash")
EDGES = tuple(k / 16 for k in range(1, 16))
DIVISOR = 1000
HASH_BITS = 10


def kind_of(column: int) -> str:
    """The transform of a column: the kinds in turns."""
    return KINDS[column % len(KINDS)]


def ids_of(column: int) -> int:
    """How many ids the transform of a column can give."""
    return {"bucketize": len(EDGES) + 1, "mod": DIVISOR, "hash": 1 << HASH_BITS}[kind_of(column)]


def transform(kind: str, value: gr.Value) -> gr.Value:
    """One transform."""
    if kind == "bucketize":
        return gr.bucketize(value, EDGES)
    return gr.mod(value, DIVISOR) if kind == "mod" else gr.hash(value, bits=HASH_BITS)


class Transforms(gr.Model):
    """Data: ``c0 … c99``, floats in [0, 1) for bucketize, else integers; ``label: float``.

    `only` is a kind, or None for all of them in turns.
    """

    def __init__(self, only: str | None) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.only = only
        self.tables = [gr.Table(f"t{k}", dim=4, init=gr.init.zeros()) for k in range(COLUMNS)]

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss."""
        rows = [table(transform(self.only or kind_of(k), batch[f"c{k}"])) for k, table in enumerate(self.tables)]
        gr.loss.mean(gr.concat(*rows).row_sum() * batch.label, name="linear")


def schema(only: str | None) -> gr.Schema:
    """The columns."""
    types = {f"c{k}": gr.float32 if (only or kind_of(k)) == "bucketize" else gr.int64 for k in range(COLUMNS)}
    return gr.Schema({**types, "label": gr.float32})
