"""What a rank holds, receives and computes: rows that it owns, bytes of distinct ids, its portions."""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft
from genrec import nn
from launching import launcher, needs_mpi

pytestmark = needs_mpi

ROWS, BATCH, EPOCHS = 4000, 400, 2
SCHEMA = gr.Schema({"user": gr.int64, "seen": [{"item": gr.int64}], "label": gr.float32})
DIMS = {"user": 16, "item": 20}
LINE = 16  # floats: rows of a table begin at a whole line of a message


class Shop(gr.Model):
    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05), name="Shop")
        self.user = gr.Table("user", dim=DIMS["user"])
        self.item = gr.Table("item", dim=DIMS["item"])
        self.head = nn.MLP([36, 16, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        x = gr.concat(self.user(batch.user), nn.relu(self.item(batch.seen.item)).sum())
        gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)


def make_data() -> tuple[np.ndarray, list[np.ndarray]]:
    """Users, each of which comes twice, and skewed items; the first half of a batch has the longer lists."""
    rng = np.random.default_rng(3)
    users = rng.permutation(np.arange(ROWS) // 2)
    lengths = np.where(np.arange(ROWS) % BATCH < BATCH // 2, rng.integers(8, 20, ROWS), rng.integers(0, 4, ROWS))
    return users, [rng.zipf(1.2, length) % 3000 for length in lengths]


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    users, lists = make_data()
    columns = {
        "user": pa.array(users),
        "seen": pa.array([[{"item": int(i)} for i in items] for items in lists]),
        "label": pa.array(np.arange(ROWS) % 2, pa.float32()),
    }
    pq.write_table(pa.table(columns), folder / "train.parquet", row_group_size=500)
    gr.compile(Shop(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def train(folder: Path, ranks: int, *flags: str) -> dict[str, Any]:
    given = ["--data", "train.parquet", "--no-shuffle", "--epochs", str(EPOCHS), "--threads", "1", "--seed", "1"]
    if "--batch-tokens" not in flags:
        given += ["--batch", str(BATCH)]
    words = [*launcher(ranks), str(folder / "model"), "train", *given, "--metrics-json", "m.json", *flags]
    subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120, check=True)
    return json.loads((folder / "m.json").read_text())


def distinct(portions: int) -> dict[str, list[list[set[int]]]]:
    """By table and step, the distinct ids of every portion."""
    users, lists = make_data()
    columns = {"user": [[user] for user in users], "item": lists}
    ends = [BATCH * p // portions for p in range(portions + 1)]

    def ids(table: str, first: int, portion: int) -> set[int]:
        rows = columns[table][first + ends[portion] : first + ends[portion + 1]]
        return {int(i) for row in rows for i in row}

    return {
        table: [[ids(table, first, p) for p in range(portions)] for first in range(0, ROWS, BATCH)] for table in columns
    }


@pytest.mark.parametrize(("ranks", "portions"), [(2, 2), (2, 4), (3, 6), (4, 4)])
def test_bytes_are_those_of_distinct_ids(shop: Path, ranks: int, portions: int) -> None:
    report = train(shop, ranks, "--portions", str(portions), "--overlap", "none")
    steps, each = ROWS // BATCH, portions // ranks
    cut = distinct(portions)
    asked = np.zeros(ranks)
    row_bytes = np.zeros(ranks)
    sums = np.zeros(ranks)  # bytes of gradients that a rank gives: per portion at most one sum per row
    for table, dim in DIMS.items():
        for step in cut[table]:
            for rank in range(ranks):
                of_rank = step[rank * each : (rank + 1) * each]
                ids = len(set[int]().union(*of_rank))
                asked[rank] += EPOCHS * ids
                row_bytes[rank] += EPOCHS * 4 * (ids * dim + LINE * (ranks - 1))
                sums[rank] += EPOCHS * (4 * ids + 4 * dim * sum(len(own) for own in of_rank))
    measured = report["exchanges"]["ranks"]
    for rank in range(ranks):
        assert measured[rank]["asked"] == asked[rank]
        assert measured[rank]["row_bytes"] <= row_bytes[rank]
        assert measured[rank]["id_bytes"] <= 8 * measured[rank]["served"]
    # An owner has about 1 / ranks of what all give; nobody sends a gradient twice.
    total = sum(rank["gradient_bytes"] for rank in measured)
    assert total <= sums.sum()
    for rank in measured:
        assert rank["gradient_bytes"] <= 1.25 * sums.sum() / ranks
    assert sum(rank["served"] for rank in measured) == asked.sum()
    assert report["timings"]["steps"] == EPOCHS * steps


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_rows_are_those_of_the_owner(shop: Path, ranks: int) -> None:
    users, lists = make_data()
    ids = {"user": len(set(users.tolist())), "item": len({int(i) for items in lists for i in items})}
    report = train(shop, ranks)
    for table, count in ids.items():
        held = [rank["table_rows"][table] for rank in report["work"]["by_rank"]]
        assert sum(held) == count
        share = count / ranks  # the owner is drawn for each id: five standard deviations
        assert max(held) <= share + 5 * math.sqrt(share * (1 - 1 / ranks)), held
    replicated = train(shop, ranks, "--replicate", "item")["work"]["by_rank"]
    assert [rank["table_rows"]["item"] for rank in replicated] == ranks * [ids["item"]]
    assert sum(rank["table_rows"]["user"] for rank in replicated) == ids["user"]


def test_work_of_ranks(shop: Path) -> None:
    """Batches cut by rows give the first rank the longer lists; cut by tokens, both compute about as much."""
    flops = {}
    for name, cut in (("rows", []), ("tokens", ["--batch-tokens", "seen=4000"])):
        report = train(shop, 2, *cut, "--profile", name)
        profile = json.loads((shop / name / "profile.json").read_text())
        ranks = profile["by_rank"]
        assert [rank["rank"] for rank in ranks] == [0, 1]
        flops[name] = [rank["flops"] for rank in ranks]
        assert all(rank["milliseconds_by_phase"]["compute"] > 0 for rank in ranks)
        for rank, work in zip(ranks, report["work"]["by_rank"], strict=True):
            assert 0 <= work["seconds_idle"] <= work["seconds_in_exchanges"]
            assert rank["idle_milliseconds"] * report["timings"]["steps"] == pytest.approx(1e3 * work["seconds_idle"])
    assert flops["rows"][0] > 1.2 * flops["rows"][1]
    assert max(flops["tokens"]) < 1.1 * min(flops["tokens"])
    # One rank with both portions does what the two do together, but for parameters, which both update.
    train(shop, 0, "--portions", "2", "--profile", "alone")
    alone = json.loads((shop / "alone" / "profile.json").read_text())
    assert "by_rank" not in alone
    both = 2 * sum(op["flops"] for op in alone["ops"])  # of a portion each
    assert both <= sum(flops["rows"]) < 1.1 * both
