"""How deep lists may lie in lists, how long chains of ops may be: at the limit and beyond it."""

import genrec as gr
import pyarrow as pa
import pytest
from genrec.schema import MOST_DOMAIN_DEPTH
from model_writing import ROOT, record_with


def nested(depth):
    """The fields of lists in lists."""
    fields = {"x": gr.float32}
    for _ in range(depth):
        fields = {"x": gr.float32, "list": [fields]}
    return fields


def nested_arrow(depth):
    kind = pa.struct([("x", pa.float32())])
    for _ in range(depth):
        kind = pa.struct([("list", pa.list_(kind))])
    return pa.schema([("list", kind.field("list").type)])


def test_lists_in_lists_up_to_the_limit():
    def forward(batch):
        rows = batch
        for _ in range(MOST_DOMAIN_DEPTH):
            rows = rows.list
        gr.output(total=rows.x.sum(to=batch))

    recording = record_with(forward, gr.Schema(nested(MOST_DOMAIN_DEPTH)))
    assert len(recording.domains) == MOST_DOMAIN_DEPTH + 1


@pytest.mark.parametrize("depth", [MOST_DOMAIN_DEPTH + 1, 900])
def test_lists_in_lists_beyond_the_limit(depth):
    with pytest.raises(gr.DataError, match=f"lies in {MOST_DOMAIN_DEPTH + 1} lists, .* at most {MOST_DOMAIN_DEPTH}"):
        gr.Schema(nested(depth))
    with pytest.raises(gr.DataError, match=f"lies in {MOST_DOMAIN_DEPTH + 1} lists"):
        gr.Schema.from_arrow(nested_arrow(depth))


def test_lists_of_plain_values_count():
    fields = [gr.int64]
    for _ in range(MOST_DOMAIN_DEPTH):
        fields = [{"list": fields}]
    with pytest.raises(gr.DataError, match="at most"):
        gr.Schema({"list": fields})


def test_pairs_of_pairs_beyond_the_limit():
    def forward(batch):
        rows = batch.list
        for _ in range(MOST_DOMAIN_DEPTH):
            # Below the rows, beside themselves: each pairs two lists of one parent.
            rows = gr.pairs(rows, rows)

    with pytest.raises(gr.ModelError, match=f"would lie below {MOST_DOMAIN_DEPTH + 1} lists"):
        record_with(forward, gr.Schema(nested(1)))


def test_the_compiler_has_the_same_limit():
    header = (ROOT / "include/genrec/Dialect/GenRec/IR/GenRec.h").read_text()
    assert f"kMostDomainDepth = {MOST_DOMAIN_DEPTH};" in header


def test_lists_cut_thousands_of_times():
    """At alternate ends, so that no cut makes another needless."""

    def forward(batch):
        rows = batch.list
        for count in range(1500, 0, -1):
            rows = rows.truncate(count, keep="first" if count % 2 else "last")
        gr.output(total=rows.x.sum())

    recording = record_with(forward, gr.Schema(nested(1)))
    assert sum(op.name == "derive" for op in recording.ops) == 1500


def test_chains_of_many_ops():
    def forward(batch):
        x = batch.x
        for _ in range(5_000):
            x = x + batch.x
        gr.output(x=x)

    assert len(gr.model_bytes(record_with(forward, gr.Schema({"x": gr.float32})))) > 5_000
