"""One small model, compiled and trained once: what its binary exports, predicts and tells of data."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, tool

ITEMS = 30
USERS = 40
PADDING = 0
SCHEMA = gr.Schema(
    {
        "user": gr.int64,
        "next": gr.int64,
        "price": gr.float32.nullable(),
        "history": [{"item": gr.int64.padded(PADDING), "word": gr.string}],
    }
)


class Small(gr.Model):
    """Users against normalised items. The items of a history are never looked at, nor are prices."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.01))
        self.item = gr.Table("item", dim=8, init=gr.init.normal(0.5))
        self.person = gr.Table("person", dim=8, init=gr.init.normal(0.5))
        self.items = items

    def forward(self, batch: gr.Batch) -> None:
        query = self.person(batch.user)
        gr.loss.sampled_softmax(
            query, batch.next, self.item.l2_normalized(), self.items, negatives=4, temperature=0.5, name="next"
        )
        gr.output(events=batch.history.length(), has_price=batch.price.valid)


@dataclass(frozen=True)
class Trained:
    """The model, its data, and what the data holds."""

    model: gr.CompiledModel
    folder: Path
    rows: list[dict[str, object]]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("commands")
    pq.write_table(pa.table({"item": np.arange(1, ITEMS + 1)}), folder / "items.parquet")
    rows: list[dict[str, object]] = []
    for user in range(USERS):
        # Every third entry is padding; some histories hold nothing else.
        entries = [{"item": PADDING if n % 3 == 0 else 1 + n, "word": f"w{n}"} for n in range(user % 7)]
        price = None if user % 4 == 0 else user / 2
        rows.append({"user": user, "next": 1 + user % ITEMS, "price": price, "history": entries})
    event = pa.struct([("item", pa.int64()), ("word", pa.string())])
    fields = [("user", pa.int64()), ("next", pa.int64()), ("price", pa.float32()), ("history", pa.list_(event))]
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), folder / "train.parquet", row_group_size=15)
    model = gr.compile(
        Small(gr.catalogue(folder / "items.parquet", id="item")), SCHEMA, output=folder / "model", flags=draft()
    )
    model.train(folder / "train.parquet", epochs=2, batch=16, progress=False)
    return Trained(model, folder, rows)


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Its tensors by name."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    types = {"F32": np.float32, "I64": np.int64}
    tensors = {}
    for name, entry in head.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = np.frombuffer(data[8 + size + begin : 8 + size + end], dtype=types[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def test_export_writes_items_as_the_model_defines_them(trained: Trained) -> None:
    files = {path.name: path for path in trained.model.export(trained.folder / "exported")}
    items, tables = (read_safetensors(files[name]) for name in ("items.safetensors", "tables.safetensors"))
    assert sorted(items) == ["items.ids", "items.vectors"]
    assert items["items.ids"].tolist() == list(range(1, ITEMS + 1))
    rows = {int(i): row for i, row in zip(tables["item.ids"], tables["item.values"], strict=True)}
    raw = np.stack([rows[item] for item in range(1, ITEMS + 1)])
    expected = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    assert np.allclose(items["items.vectors"], expected, rtol=1e-5, atol=1e-6)
    assert not np.allclose(items["items.vectors"], raw, rtol=1e-2)


def test_padding_is_dropped_though_its_feature_is_not_looked_at(trained: Trained) -> None:
    trained.model.predict(trained.folder / "train.parquet", trained.folder / "out.parquet", keys=["user"])
    written = pq.read_table(trained.folder / "out.parquet").to_pylist()
    lengths = {row["user"]: sum(e["item"] != PADDING for e in row["history"]) for row in trained.rows}  # type: ignore[attr-defined]
    assert {row["user"]: row["events"] for row in written} == lengths
    assert len(set(lengths.values())) > 2


def test_nulls_of_a_column_that_is_not_read_otherwise(trained: Trained) -> None:
    trained.model.predict(trained.folder / "train.parquet", trained.folder / "out.parquet", keys=["user"])
    written = pq.read_table(trained.folder / "out.parquet").to_pylist()
    assert {row["user"]: bool(row["has_price"]) for row in written} == {
        row["user"]: row["price"] is not None for row in trained.rows
    }
    columns = {column["column"]: column for column in trained.model.info()["columns"]}
    assert columns["price"]["type"] == "any type"


def test_info_counts_what_explain_asks_for(trained: Trained) -> None:
    binary, data = trained.model.binary, trained.folder / "train.parquet"
    told = json.loads(call(binary, "info", "--json", "--data", data, "--batch", "16"))["data"]
    domains = {domain["name"]: domain for domain in told["domains"]}
    assert domains["request"] == {"name": "request", "rows": USERS, "largest_batch": 16}
    assert domains["items"]["rows"] == ITEMS
    assert told["distinct_ids"] == {"item": ITEMS, "person": USERS}
    assert "history" not in domains  # training does not read them
    text = call(tool("genrec-compile"), trained.folder / "model.genrec", "--explain", *told["explain"].split())
    assert f"{ITEMS} distinct ids" in text
    assert f"{USERS} distinct ids" in text


def test_mistakes_of_the_sizes_told_are_named(trained: Trained) -> None:
    for flag, message in (
        ("--rows=histry=4", "--rows names domain 'histry', which the model lacks; it has 'request', "),
        ("--ids=4", "--ids takes table=n, n a number of at least 0, but got '4'"),
        ("--longest=history=x", "--longest takes [list=]n, n a number of at least 0, but got 'history=x'"),
        ("--batch=0", "--batch must be at least 1, but is 0"),
    ):
        command = [tool("genrec-compile"), str(trained.folder / "model.genrec"), "--explain", flag]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 1
        assert message in result.stderr


class Columns(gr.Model):
    """Transforms alone."""

    def forward(self, batch: gr.Batch) -> None:
        gr.output(bucket=gr.mod(batch.user, 7), price=gr.fill_missing(batch.price, -1.0) ** 3)


def test_results_that_cannot_be_printed_are_an_error(trained: Trained) -> None:
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run([trained.model.binary, "info"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert ran.returncode == 1
    assert "error: cannot write the results to the standard output\n  help: free some space" in ran.stderr


def test_a_model_of_transforms_alone_needs_no_checkpoint(trained: Trained) -> None:
    model = gr.compile(Columns(), SCHEMA, output=trained.folder / "columns", flags=draft())
    data = trained.folder / "train.parquet"
    call(model.binary, "predict", "--data", data, "--out", trained.folder / "columns.parquet", "--progress", "none")
    out = pq.read_table(trained.folder / "columns.parquet").to_pylist()
    assert [row["bucket"] for row in out] == [row["user"] % 7 for row in trained.rows]
    assert [row["price"] for row in out] == [-1 if row["price"] is None else row["price"] ** 3 for row in trained.rows]
