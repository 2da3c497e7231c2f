"""Lists in lists are read as deep as a schema may have them; a file of deeper ones is an error that says so."""

import genrec as gr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD
from genrec.schema import MOST_DOMAIN_DEPTH


def write(path, depth):
    """Two rows: 1.5 above a list in a list and so on, at whose end lies 7; and 2.5 above 7 and 8."""
    kind, values = pa.struct([("y", pa.int64())]), [[{"y": 7}], [{"y": 7}, {"y": 8}]]
    for _ in range(depth - 1):
        kind, values = pa.struct([("list", pa.list_(kind))]), [[{"list": one}] for one in values]
    table = pa.table({"x": pa.array([1.5, 2.5], pa.float32()), "list": pa.array(values, pa.list_(kind))})
    pq.write_table(table, path)


class Deepest(gr.Model):
    """What lies at the bottom beside what lies at the top; no parameters, so there is no checkpoint."""

    def __init__(self, depth):
        self.depth = depth

    def forward(self, batch):
        rows = batch
        for _ in range(self.depth):
            rows = rows.list
        gr.output(x=batch.x.fanout(rows), y=rows.y)


def test_the_deepest_lists(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GENREC_BIN", str(BUILD / "bin"))
    write("deep.parquet", MOST_DOMAIN_DEPTH)
    model = gr.compile(Deepest(MOST_DOMAIN_DEPTH), gr.Schema.from_parquet("deep.parquet"), output="deepest")
    found = pq.read_table(model.predict("deep.parquet", "out.parquet", progress=False))
    assert found["x"].to_pylist() == [1.5, 2.5, 2.5]
    assert found["y"].to_pylist() == [7, 7, 8]


def test_deeper_lists(tmp_path):
    write(tmp_path / "deep.parquet", MOST_DOMAIN_DEPTH + 1)
    with pytest.raises(gr.DataError, match="too deeply nested|at most 32"):
        gr.Schema.from_parquet(tmp_path / "deep.parquet")
