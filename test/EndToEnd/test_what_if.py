"""What --explain --world predicts is what ranks count: rows and bytes of every exchange, within 5 %."""

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
from compiled import call, draft, require_emulator, tool
from genrec import nn
from launching import launcher, needs_mpi

ROWS, BATCH = 4096, 512
COUNTS = ("looked_up", "asked", "served", "found", "id_bytes", "row_bytes", "gradient_bytes", "dense_bytes")


class Shop(gr.Model):
    """Ids of four kinds: one user per row, skewed items in two lists, hashed words, a few shops."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.01), name="Shop")
        self.user = gr.Table("user", dim=8)
        self.item = gr.Table("item", dim=20)
        self.word = gr.Table("word", dim=8)
        self.shop = gr.Table("shop", dim=8)
        self.head = nn.MLP([44, 160, 100, 1], activation="relu")  # long enough for slices

    def forward(self, batch: gr.Batch) -> None:
        seen = self.item(batch.seen.item).sum()
        words = self.word(gr.hash(batch.word, bits=9))
        x = gr.concat(self.user(batch.user), seen, words, self.shop(batch.shop))
        gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)


class Recent(gr.Model):
    """Items of lists that the step makes, and words, of one table."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.01), name="Recent")
        self.item = gr.Table("item", dim=8)
        self.head = nn.Linear(8, 1)

    def forward(self, batch: gr.Batch) -> None:
        x = self.item(batch.seen.truncate(3).item).sum() + self.item(batch.word)
        gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)


SCHEMA = gr.Schema(
    {"user": gr.int64, "word": gr.int64, "shop": gr.int64, "seen": [{"item": gr.int64}], "label": gr.float32}
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, the model file and the binary."""
    folder = tmp_path_factory.mktemp("shop")
    rng = np.random.default_rng(8)
    items = rng.zipf(1.3, 8 * ROWS) % 20000
    ends = np.cumsum(rng.integers(0, 9, ROWS))
    lists = pa.ListArray.from_arrays(
        pa.array(np.concatenate([[0], ends]), pa.int32()),
        pa.StructArray.from_arrays([pa.array(items[: ends[-1]], pa.int64())], ["item"]),
    )
    columns = {
        "user": pa.array(rng.permutation(ROWS)),
        "word": pa.array(rng.zipf(1.5, ROWS)),
        "shop": pa.array(rng.integers(0, 5, ROWS)),
        "seen": lists,
        "label": pa.array(rng.integers(0, 2, ROWS), pa.float32()),
    }
    pq.write_table(pa.table(columns), folder / "train.parquet", row_group_size=1000)
    gr.compile(Shop(), SCHEMA, output=folder / "model", flags=draft())
    return folder


def predict(folder: Path, *flags: str) -> dict[str, Any]:
    """The section of ranks."""
    text = call(tool("genrec-compile"), folder / "model.genrec", "--explain=json", f"--batch={BATCH}", *flags)
    return json.loads(text)["world"]


@pytest.fixture(scope="module")
def counted(shop: Path) -> Path:
    """The ids of the data as a file."""
    call(tool("genrec-compile"), shop / "model.genrec", "--merge-tables=false", "-o", shop / "apart")
    call(shop / "apart", "info", "--data", shop / "train.parquet", "--ids-out", shop / "ids.json")
    return shop / "ids.json"


def test_ids_are_counted_after_the_models_transforms(shop: Path, counted: Path) -> None:
    ids = json.loads(counted.read_text())
    data = pq.read_table(shop / "train.parquet")
    lists = data["seen"].to_pylist()
    rows: dict[int, int] = {}
    for events in lists:
        for item in {event["item"] for event in events}:
            rows[item] = rows.get(item, 0) + 1
    item = ids["tables"]["item"]
    assert ids["rows"] == ROWS
    assert dict(zip(item["ids"], item["rows"], strict=True)) == rows
    assert item["lookups"] == sum(map(len, lists)) == ids["domains"]["seen"]["rows"]
    assert item["rows"] == sorted(item["rows"], reverse=True)
    word = ids["tables"]["word"]
    assert max(word["ids"]) < 512 and sum(word["rows"]) == ROWS  # hashed
    merged = subprocess.run(
        [shop / "model", "info", "--data", shop / "train.parquet", "--ids-out", shop / "no.json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert merged.returncode == 1 and "--merge-tables=false" in merged.stderr
    overwriting = subprocess.run(
        [shop / "apart", "info", "--data", shop / "train.parquet", "--ids-out", shop / "train.parquet"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert overwriting.returncode == 1 and "would overwrite --data" in overwriting.stderr


@pytest.mark.parametrize("model", [Shop, Recent])
def test_a_binary_for_a_device_counts_the_same(shop: Path, model: type[gr.Model], tmp_path: Path) -> None:
    require_emulator()
    counts = []
    for target in ("cpu", "cuda-emulated"):
        binary, ids = tmp_path / target, tmp_path / f"{target}.json"
        gr.compile(model(), SCHEMA, output=binary, target=target, flags=[*draft(), "--merge-tables=false"])
        call(binary, "info", "--data", shop / "train.parquet", "--batch", "500", "--ids-out", ids)
        counts.append(json.loads(ids.read_text()))
    assert counts[0] == counts[1]
    assert counts[1]["rows"] == ROWS and counts[1]["tables"]["item"]["lookups"] > ROWS


def test_an_id_beyond_its_table_ends_counting_on_both(shop: Path, tmp_path: Path) -> None:
    """The row is named as a step names it."""
    require_emulator()
    said = []
    for target in ("cpu", "cuda-emulated"):
        model = Recent()
        model.item = gr.Table("item", dim=8, id_bits=5)
        binary = tmp_path / target
        gr.compile(model, SCHEMA, output=binary, target=target, flags=[*draft(), "--merge-tables=false"])
        command = [binary, "info", "--data", shop / "train.parquet", "--ids-out", tmp_path / "ids.json"]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        assert ended.returncode == 1
        said.append(ended.stderr)
    assert "beyond the" in said[0]
    assert said[0] == said[1]


@needs_mpi
@pytest.mark.parametrize(
    ("ranks", "portions", "replicas"),
    [
        (2, 2, ""),
        (2, 6, ""),
        (3, 4, ""),
        (4, 4, ""),
        (2, 6, "shop,item"),
        (4, 4, "word"),
        (3, 4, "user,item,word,shop"),
    ],
)
def test_predictions_are_what_ranks_count(shop: Path, counted: Path, ranks: int, portions: int, replicas: str) -> None:
    replicate = [f"--replicate={replicas or 'none'}"]
    call(
        *launcher(ranks), shop / "model", "train",
        "--data", shop / "train.parquet", "--batch", str(BATCH), "--epochs", "2", "--seed", "3", "--threads", "1",
        "--portions", str(portions), "--progress", "none", "--overlap", "none", "--metrics-json", shop / "m.json",
        *replicate,
    )  # fmt: skip
    measured = json.loads((shop / "m.json").read_text())["exchanges"]
    steps = 2 * ROWS // BATCH
    world = predict(shop, f"--world={ranks}", f"--portions={portions}", f"--ids={counted}", *replicate)
    assert sum(rank["asked"] for rank in measured["ranks"]) == sum(rank["served"] for rank in measured["ranks"])
    for predicted, rank in zip(world["per_rank"], measured["ranks"], strict=True):
        for name in COUNTS:
            count = rank[name] / steps
            assert predicted[name] == pytest.approx(count, rel=0.05), (ranks, portions, rank, name)
    # Rows and keys of the fullest owner: rank 0 is about as full.
    held = json.loads((shop / "m.json").read_text())["memory_bytes"]
    tables = sum(table["bytes"] for table in world["tables"])
    assert 0.9 < tables / (held["table_values"] + held["table_keys"]) < 1.3
    # Messages that are larger than those before take a second exchange, mostly in the first steps.
    assert world["rounds"] <= measured["rounds"] / steps < world["rounds"] + 1


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_data_are_counted_on_the_way(shop: Path, counted: Path, target: str) -> None:
    """Parquet data in place of counts; several ranks more than there are data for. For a device, too: where none is."""
    flags = ("--world=64", f"--target={target}")
    of_counts = predict(shop, *flags, f"--ids={counted}")
    assert predict(shop, *flags, f"--ids={shop / 'train.parquet'}") == of_counts
    tables = {table["name"]: table for table in of_counts["tables"]}
    assert tables["item"]["lookups_per_asked"] > 1.2 < tables["item"]["served_per_found"]
    assert tables["user"]["asked"] == pytest.approx(BATCH / 64)  # each user once
    assert tables["user"]["ids"] == ROWS
    assert sum(rank["served"] for rank in of_counts["per_rank"]) == pytest.approx(
        sum(rank["asked"] for rank in of_counts["per_rank"])
    )


def test_laws_of_frequencies(shop: Path) -> None:
    """Zipf's law by --ids: against draws from it."""
    world = predict(shop, "--world=4", "--ids=item=5000:1.1,user=4096,word=512,shop=5", f"--rows=seen={4 * BATCH}")
    item = next(table for table in world["tables"] if table["name"] == "item")
    rng = np.random.default_rng(1)
    weights = np.arange(1, 5001) ** -1.1
    draws = rng.choice(5000, (200, BATCH), p=weights / weights.sum())  # a rank's part of the batch
    distinct = np.mean([len(np.unique(draw)) for draw in draws])
    assert item["asked"] == pytest.approx(distinct, rel=0.01)
    assert item["looked_up"] == pytest.approx(BATCH)
    shops = next(table for table in world["tables"] if table["name"] == "shop")
    assert shops["asked"] == pytest.approx(5) and shops["found"] * 4 == pytest.approx(5)
    # 4 portions of 128 rows of 4,096 users that are all alike, drawn with replacement
    user = next(table for table in world["tables"] if table["name"] == "user")
    assert user["asked"] == pytest.approx(4096 * (1 - math.exp(128 * math.log1p(-1 / 4096))), rel=1e-3)


def test_what_runs_out_first(shop: Path, counted: Path) -> None:
    flags = ["--world=16", f"--ids={counted}", "--compute-ms=10"]
    assert predict(shop, *flags)["time"]["first"] == "compute"
    assert predict(shop, *flags, "--rank-memory=0.001")["time"]["first"] == "memory"
    assert predict(shop, *flags, "--network=0.01")["time"]["first"] == "network"
    assert predict(shop, *flags, "--message-us=5000")["time"]["first"] == "messages"
    slow = predict(shop, *flags, "--network=0.01")["time"]
    fast = predict(shop, *flags, "--network=0.02")["time"]
    assert slow["network_milliseconds"] == pytest.approx(2 * fast["network_milliseconds"])


def test_placement_of_small_tables(shop: Path, counted: Path) -> None:
    """Gradients of replicas go to all, which is more bytes; where messages cost more than bytes, replicas save
    rounds of them, if no table is sharded."""

    def choose(*flags: str) -> dict[str, Any]:
        world = predict(shop, f"--ids={counted}", "--replicate=none", *flags)
        world["tables"] = {table["name"]: table for table in world["tables"]}
        return world

    bytes_count = choose("--world=8", "--message-us=0")
    assert bytes_count["placement"]["replicate"] == []
    for table in bytes_count["tables"].values():
        assert table["replicated_bytes"] > table["sharded_bytes"]
        assert table["cheaper"] == "shard"
        assert table["why"].startswith("would move more bytes; with replicas of all tables, exchanges take")
    messages_count = choose("--world=8", "--message-us=1000")
    assert sorted(messages_count["placement"]["replicate"]) == ["item", "shop", "user", "word"]
    assert all("rounds of keys and values instead of" in table["why"] for table in messages_count["tables"].values())
    replicated = predict(shop, f"--ids={counted}", "--world=8", "--replicate=user,item,word,shop")
    chosen = predict(shop, f"--ids={counted}", "--world=8", "--message-us=1000")
    assert chosen["rounds"] == replicated["rounds"] and chosen["exchanges"] == replicated["exchanges"]
    rounds = messages_count["rounds"] - replicated["rounds"]
    assert rounds > 0
    placement = messages_count["placement"]
    saved = placement["sharded_milliseconds"] - placement["milliseconds"]
    assert rounds * 7 > saved > rounds * 7 - 1  # seven messages each, but for bytes
    # Replicas of all tables are more than 5 % of 20 MB; then rounds stay, and so do shards.
    full = choose("--world=8", "--message-us=1000", "--rank-memory=0.02")
    assert full["placement"]["replicate"] == []
    assert "of 1.0 MB that replicas may take" in full["tables"]["user"]["why"]
    unknown = predict(shop, "--world=8", "--message-us=1000", "--ids=item=100")["tables"]
    assert {table["why"] for table in unknown if table["name"] != "item"} == {"nothing tells its ids"}


def test_rows_that_are_looked_up_most_per_byte_stay_on_the_device(tmp_path: Path) -> None:
    class Wide(gr.Model):
        def __init__(self) -> None:
            super().__init__(name="Wide", optimizer=gr.optim.SGD(0.1))
            self.user = gr.Table("user", dim=16)
            self.item = gr.Table("item", dim=112)
            self.shop = gr.Table("shop", dim=16, ttl=9)
            self.head = nn.Linear(144, 1)

        def forward(self, batch: gr.Batch) -> None:
            x = gr.concat(self.user(batch.user), self.item(batch.item), self.shop(batch.shop))
            gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)

    schema = gr.Schema({"label": gr.float32, **{name: gr.int64 for name in ("user", "item", "shop")}})
    gr.compile(Wide(), schema, output=tmp_path / "model", flags=draft())
    ids = "--ids=user=10000,item=10000:1.05,shop=100"

    def choose(megabytes: float, *flags: str) -> dict[str, Any]:
        world = predict(tmp_path, "--world=1", "--batch=1000", ids, f"--device-memory={megabytes / 1000}", *flags)
        return {**world["host_tables"], "tables": {table["name"]: table for table in world["host_tables"]["tables"]}}

    everything = 10000 * 64 + 10000 * 448 + 100 * 128  # bytes; rules keep two numbers more per row
    assert choose(6)["row_bytes"] == pytest.approx(everything)
    assert (choose(6)["host_tables"], choose(6)["bus_bytes"]) == ("", 0)
    some = choose(2)
    tables = some["tables"]
    assert not tables["shop"]["is_on_host"] and "rules" in tables["shop"]["why"]
    # The hottest items are looked up more often per byte than users, who are more often than the other items.
    assert not tables["user"]["is_on_host"]
    kept = tables["item"]["cached_rows"]
    assert some["host_tables"] == f"item={kept}"
    assert kept * 448 == pytest.approx(2e6 - 640000 - 12800, rel=1e-3)
    assert some["bus_bytes"] == pytest.approx(2 * 448 * tables["item"]["missed_rows"])
    few = choose(0.3)["tables"]
    assert few["user"]["is_on_host"] and few["item"]["is_on_host"]
    total = few["user"]["cached_rows"] * 64 + few["item"]["cached_rows"] * 448 + 12800
    assert 0.3e6 - 448 <= total <= 0.3e6
    assert choose(0.3, "--bus=25")["milliseconds"] == pytest.approx(2 * choose(0.3)["milliseconds"])

    # 'user' and 'hot' share a store, and so the host's memory: 'hot' brings a cache of all of its rows.
    class Alike(Wide):
        def __init__(self) -> None:
            super().__init__()
            self.item = gr.Table("hot", dim=16)
            self.head = nn.Linear(48, 1)

    folder = tmp_path / "alike"
    folder.mkdir()
    gr.compile(Alike(), schema, output=folder / "model", flags=draft())
    alike = predict(folder, "--world=1", "--batch=1000", "--ids=user=10000,hot=20,shop=10", "--device-memory=0.0002")
    kept = {table["name"]: (table["is_on_host"], table["cached_rows"]) for table in alike["host_tables"]["tables"]}
    assert kept["hot"] == (True, 20) and kept["user"][0] and 0 < kept["user"][1] < 10000 and not kept["shop"][0]
    assert sorted(alike["host_tables"]["host_tables"].split(",")) == ["hot=20", f"user={kept['user'][1]}"]
    sharded = predict(tmp_path, "--world=4", "--batch=1000", ids, "--device-memory=0.0005")["host_tables"]
    assert sharded["bus_bytes"] == pytest.approx(some["bus_bytes"] / 4)


def test_tables_that_do_not_learn_are_replicated(tmp_path: Path) -> None:
    class Frozen(gr.Model):
        def __init__(self) -> None:
            super().__init__(name="Frozen")
            self.user = gr.Table("user", dim=8, frozen=True)
            self.shop = gr.Table("shop", dim=8, ttl=9)
            self.head = nn.Linear(16, 1)

        def forward(self, batch: gr.Batch) -> None:
            x = gr.concat(self.user(batch.user), self.shop(batch.shop))
            gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)

    gr.compile(Frozen(), SCHEMA, output=tmp_path / "model", flags=draft())
    world = predict(tmp_path, "--world=16", "--ids=user=1000,shop=5", "--replicate=none")
    user, store = world["tables"]
    assert (user["name"], user["cheaper"], user["replicated_bytes"]) == ("user", "replicate", 0)
    assert store["why"] == "has rules, which count what all ranks look up"
    assert world["placement"]["replicate"] == ["user"]
    replicated = predict(tmp_path, "--world=16", "--ids=user=1000,shop=5", "--replicate=user")
    rows = {line["exchange"]: line["bytes"] for line in replicated["exchanges"]}
    all_rows = {line["exchange"]: line["bytes"] for line in world["exchanges"]}
    assert rows["rows"] < all_rows["rows"]
    assert replicated["rounds"] == world["rounds"]
    assert predict(tmp_path, "--world=16", "--ids=user=1000,shop=5") == replicated
    text = call(
        tool("genrec-compile"), tmp_path / "model.genrec", "--explain", "--world=16", "--ids=user=1000,shop=5",
        f"--batch={BATCH}",
    )  # fmt: skip
    assert "ms as a run chooses: --replicate user" in text


def test_mistakes(shop: Path) -> None:
    for flags, text in (
        (["--world=5000"], "--world must be 1 to 4096 ranks, but is 5000"),
        (["--world=4", "--portions=2"], "2 --portions are too few for 4 ranks"),
        (["--world=4", "--ids=nowhere.json"], "--ids nowhere.json: No such file"),
        (["--world=4", "--ids=item=many"], "--ids takes table=n[:s]|file"),
        (["--ids=counts.json"], "a file of counted ids is read with --world only"),
        (["--world=4", "--ids=nothing=7"], "names table 'nothing', which the model lacks"),
        (["--world=4", "--ids=item=300000000"], "with --world, a table has at most 200000000 ids"),
        (["--world=4", "--network=0"], "--network must be above 0"),
        (["--world=4", "--replicate=users"], "--replicate names table 'users', which the model lacks"),
    ):
        command = [tool("genrec-compile"), shop / "model.genrec", "--explain", *flags]
        done = subprocess.run(command, capture_output=True, text=True, cwd=shop, check=False)
        assert done.returncode == 1 and text in done.stderr, done.stderr
    for content, text in (
        ("[", "is no JSON"),
        ('{"tables": {}}', 'lacks "rows"'),
        ('{"rows": 3, "tables": {"item": {"lookups": 4}}}', "table 'item' lacks"),
        ('{"rows": 3, "tables": {"item": {"lookups": 4, "rows": [9]}}}', "an id of 9 rows, of 3"),
        ('{"rows": 3, "tables": {"item": {"lookups": 4, "rows": [1], "ids": [1, 2]}}}', 'other "ids" than "rows"'),
    ):
        (shop / "bad.json").write_text(content)
        command = [tool("genrec-compile"), shop / "model.genrec", "--explain", "--world=2", "--ids=bad.json"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=shop, check=False)
        assert done.returncode == 1 and text in done.stderr, done.stderr


def test_text_and_page_show_the_same(shop: Path, counted: Path) -> None:
    flags = ["--world=4", f"--ids={counted}", f"--batch={BATCH}", "--compute-ms=5"]
    text = call(tool("genrec-compile"), shop / "model.genrec", "--explain", *flags)
    assert f"on 4 ranks, a global batch of {BATCH} root rows in 4 portions" in text
    assert "runs out first: compute" in text and "counted in 4096 root rows" in text
    page = call(tool("genrec-compile"), shop / "model.genrec", "--explain=html", *flags)
    assert "<h2>on 4 ranks</h2>" in page and "dense gradients" in page
