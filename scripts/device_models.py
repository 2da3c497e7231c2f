"""The examples as `make device` packs them: models, generated data, and the flags that their binaries run with.

All data is drawn from a seed, so that nothing has to be at hand; MovieLens-1M is taken where it is. The size of a job
is that of a benchmark, or small for tests (`SMALL`). Three models are no examples of their own: `hstu_large`, an HSTU
whose products and attention are most of a step, `hstu_large_shared`, the same with negatives that all rows of a batch
share, and `hstu_movielens`, what benchmarks/hstu_train trains. What a peer on the device reads is peer.npz in a model's
folder.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType

import genrec as gr
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from genrec import nn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

from example import generate, load_example  # noqa: E402


@dataclass(frozen=True)
class Sizes:
    """Rows of generated data, columns of the widest, and of the large HSTU layers, heads of 128, users and batch."""

    users: int = 2000
    events: int = 100
    clicks: int = 20_480
    requests: int = 6400
    search_users: int = 270
    search_requests: int = 720  # two batches
    columns: int = 660
    targets: int = 8  # positives of a user
    movielens: Path = ROOT.parent / "shared" / "data" / "ml-1m"
    movielens_users: int = 6040
    layers: int = 8
    heads: int = 8
    large_users: int = 64
    large_events: int = 4099
    large_batch: int = 32


SMALL = Sizes(
    users=40, events=12, clicks=256, requests=60, search_users=5, search_requests=10,
    columns=60, targets=3, movielens=Path(), movielens_users=40,
    layers=2, heads=1, large_users=4, large_events=67, large_batch=2,
)  # fmt: skip


@dataclass
class Packed:
    """What example.json says: files in the example's folder, flags of both binaries ({folder} is that folder), and
    where the data is from.

    A model with `step_flops` is there for its speed: it has no binary for the CPU, and trains a few steps.
    """

    train: str
    valid: str
    batch: int
    flags: list[str] = field(default_factory=list)
    compile: list[str] = field(default_factory=list)  # flags of genrec-compile
    step_flops: float = 0  # of products and attention
    train_flags: list[str] = field(default_factory=list)  # of that command alone
    data: str = "drawn"

    def spec(self) -> dict[str, object]:
        """As JSON has it."""
        return asdict(self)


Made = tuple[gr.Model, gr.Schema, Packed]


def write(path: Path, columns: dict[str, pa.Array]) -> None:
    """A Parquet file in small groups of rows."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=8192, compression="zstd")


def retrieval(example: str, name: str, **options: bool) -> Callable[[Path, Sizes], Made]:
    """A model of histories over a catalogue."""

    def make(folder: Path, sizes: Sizes) -> Made:
        generate(folder, users=sizes.users, events=sizes.events, seed=1)
        train, valid = folder / "train.parquet", folder / "valid.parquet"
        model = getattr(load_example(example, "model"), name)(
            gr.catalogue(folder / "items.parquet", id="item"), **options
        )
        flags = ["--catalogue", "items={folder}/items.parquet"]
        return model, gr.Schema.from_parquet(train, valid), Packed(train.name, valid.name, 128, flags)

    return make


def requests(folder: Path, sizes: Sizes) -> Made:
    """Requests with impressions, whose items have tags."""
    generate(folder, kind="requests", users=sizes.users, seed=1)
    schema = gr.Schema.from_parquet(folder / "train.parquet")
    return load_example("request_ranking", "model").Ranker(), schema, Packed("train.parquet", "valid.parquet", 256)


def news(folder: Path, sizes: Sizes) -> Made:
    """Requests with a history and five impressions; what a user read is clicked more often."""
    draw = np.random.default_rng(2)
    items, users, shown = 20_000, 5_000, 5
    event, impression = pa.struct({"item": pa.int64()}), pa.struct({"item": pa.int64(), "label": pa.float32()})
    for name, count in (("train", sizes.requests), ("valid", sizes.requests // 4)):
        taste = draw.integers(0, 20, count)
        history, shown_rows = [], []
        for topic in taste:
            read = draw.integers(0, items // 20, draw.integers(10, 60)) * 20 + topic
            history.append([{"item": int(i)} for i in read])
            mine = draw.random(shown) < 0.5
            given = np.where(mine, draw.integers(0, items // 20, shown) * 20 + topic, draw.integers(0, items, shown))
            clicked = draw.random(shown) < np.where(mine, 0.6, 0.1)
            shown_rows.append([{"item": int(i), "label": float(c)} for i, c in zip(given, clicked, strict=True)])
        write(
            folder / f"{name}.parquet",
            {
                "request": pa.array(np.arange(count)),
                "user": pa.array(draw.integers(0, users, count)),
                "history": pa.array(history, pa.list_(event)),
                "impression": pa.array(shown_rows, pa.list_(impression)),
            },
        )
    schema = gr.Schema.from_parquet(folder / "train.parquet")
    return (
        load_example("news_request_ranking", "model").NewsRanker(),
        schema,
        Packed("train.parquet", "valid.parquet", 64),
    )


def clicks(example: str, name: str) -> Callable[[Path, Sizes], Made]:
    """A click log in Criteo's layout: ids by a power law, counts, some of each missing."""

    def make(folder: Path, sizes: Sizes) -> Made:
        prepare = load_example("criteo_dlrm", "prepare")
        draw = np.random.default_rng(3)
        for part, count in (("train", sizes.clicks), ("valid", sizes.clicks // 4)):
            ids = {c: draw.zipf(1.2, count) % 10_000 for c in prepare.CATEGORIES}
            counts = {c: np.floor(draw.exponential(20, count)).astype(np.float32) for c in prepare.COUNTS}
            logit = sum(((value * 2654435761 >> 7) % 3 - 1) * 0.4 for value in list(ids.values())[:6])
            label = (draw.random(count) < 1 / (1 + np.exp(1 - logit))).astype(np.float32)
            columns = {"label": pa.array(label)}
            for c, value in {**counts, **ids}.items():
                columns[c] = pa.array(value, mask=draw.random(count) < 0.05)
            write(folder / f"{part}.parquet", columns)
        model = getattr(load_example(example, "model"), name)()
        return model, prepare.SCHEMA, Packed("train.parquet", "valid.parquet", 2048)

    return make


def two_tower(folder: Path, sizes: Sizes) -> Made:
    """Positives of generated histories, with what was seen before each."""
    generate(folder, users=sizes.users, events=sizes.events, seed=1)
    load_example("two_tower", "prepare").from_histories(folder, sizes.targets)
    model = load_example("two_tower", "model").TwoTower(gr.catalogue(folder / "items.parquet", id="item"))
    flags = ["--catalogue", "items={folder}/items.parquet"]
    schema = gr.Schema.from_parquet(folder / "train.parquet")
    return model, schema, Packed("train.parquet", "valid.parquet", 512, flags)


def search(folder: Path, sizes: Sizes) -> Made:
    """A search page's log, hundreds of columns: whole batches of it, as the peer takes them."""
    generate(folder, kind="search", columns=sizes.columns, users=sizes.search_users, seed=1)
    sys.path.insert(0, str(ROOT / "examples" / "search_ranking"))  # its model imports `columns`
    schema = importlib.import_module("columns").read_schema(folder / "train.parquet")
    model = load_example("search_ranking", "model").SearchRanker(schema)
    train = folder / "train.parquet"
    pq.write_table(pq.read_table(train).slice(0, sizes.search_requests), train, row_group_size=360, compression="zstd")
    log = load("search_ranking", "prepare").prepare(train, folder)
    log.arrays.rename(folder / "peer.npz")
    return model, schema, Packed("train.parquet", "valid.parquet", 360, train_flags=["--no-shuffle"])


def load(benchmark: str, name: str) -> ModuleType:
    """A module of a benchmark, which is no package."""
    path = ROOT / "benchmarks" / benchmark / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{benchmark}_{name}", path)
    assert spec is not None and spec.loader is not None
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def draw_events(users: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Events and items of MovieLens-1M's shape: users with 20 to 2,314 events, some 166 in the mean, of 3,706 items."""
    draw = np.random.default_rng(5)
    counts = np.clip(np.exp(draw.normal(np.log(96), 1.04, users)).astype(np.int64), 20, 2314)
    items = np.floor(3706 * draw.random(counts.sum()) ** 2).astype(np.int64) + 1
    events = pl.DataFrame({"user": np.repeat(np.arange(users), counts), "item": items})
    return events, pl.DataFrame({"item": np.arange(1, 3707)})


def movielens(folder: Path, sizes: Sizes) -> Made:
    """HSTU in its MovieLens-1M configuration, position bias only, as benchmarks/hstu_train trains it."""
    prepare = load("hstu_train", "prepare")
    real = any((sizes.movielens / name).exists() for name in ("ratings_chrono.csv.zst", "ratings.dat"))
    events, items = prepare.read(sizes.movielens) if real else draw_events(sizes.movielens_users)
    longer = events.group_by("user").len().filter(pl.col("len") > prepare.HELD_BACK)
    events = events.join(longer, on="user", how="semi", maintain_order="left")
    made = prepare.write_set("all", events, items, folder)
    made.arrays.rename(folder / "peer.npz")
    fields = {"user": gr.int64, "history": [{"item": gr.int64, "next": gr.int64}], "held_out": gr.int64}
    model = load_example("hstu_retrieval", "model").Retrieval(gr.catalogue(made.items, id="item"))
    packed = Packed(
        made.train.name, "valid.parquet", 128, ["--catalogue", "items={folder}/items.parquet"],
        train_flags=["--no-shuffle"], data="MovieLens-1M" if real else "drawn, of the shape of MovieLens-1M",
    )  # fmt: skip
    return model, gr.Schema(fields), packed


HEAD = 128  # columns of a head of the large model
ITEMS = 50_000  # of its catalogue
NEGATIVES = 128


class Large(gr.Model):
    """HSTU (Zhai et al. 2024) at a size whose products and attention fill a device: the next item of long histories."""

    def __init__(self, items: gr.Catalogue, sizes: Sizes, shared: bool) -> None:
        super().__init__(optimizer=gr.optim.AdamW(1e-3))
        width = HEAD * sizes.heads
        self.item = gr.Table("item", dim=width, init=gr.init.truncated_normal(0.02))
        self.blocks = [
            nn.HSTUBlock(
                width, heads=sizes.heads, qk=HEAD, v=HEAD, fixed_length=sizes.large_events,
                bias=nn.RelativePosition(sizes.large_events),
            )
            for _ in range(sizes.layers)
        ]  # fmt: skip
        self.items = items
        self.shared = shared

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss."""
        x = self.item(batch.history.item)
        for block in self.blocks:
            x = block(x)
        gr.loss.sampled_softmax(
            nn.l2_normalize(x), batch.history.next, self.item.l2_normalized(), self.items,
            negatives=NEGATIVES, shared=self.shared, temperature=0.05, name="next",
        )  # fmt: skip


def large_flops(sizes: Sizes, shared: bool) -> float:
    """Multiplications and additions of a training step, without those that only repeat others.

    A layer has products of [rows, width] by [width, 4 width] and by [width, width], twice more backward; attention has
    two products over the pairs of a causal mask forward, four more backward. Shared negatives are a product, too.
    """
    width, rows = HEAD * sizes.heads, sizes.large_batch * sizes.large_events
    products = 3 * 2 * rows * 5 * width * width
    attention = 6 * 2 * sizes.large_batch * sizes.large_events * (sizes.large_events + 1) / 2 * width
    negatives = 3 * 2 * rows * NEGATIVES * width if shared else 0
    return float(sizes.layers * (products + attention) + negatives)


def large(folder: Path, sizes: Sizes, shared: bool = False) -> Made:
    """Histories of equal lengths, so that a step is known before it runs."""
    draw = np.random.default_rng(4)
    users, events = sizes.large_users, sizes.large_events
    ids = draw.integers(0, ITEMS, (users, events + 1))
    history = pa.StructArray.from_arrays(
        [pa.array(ids[:, :-1].ravel()), pa.array(ids[:, 1:].ravel())], names=["item", "next"]
    )
    rows = pa.ListArray.from_arrays(pa.array(np.arange(users + 1, dtype=np.int32) * events), history)
    write(folder / "train.parquet", {"history": rows})
    write(folder / "items.parquet", {"item": pa.array(np.arange(ITEMS))})
    train = folder / "train.parquet"
    packed = Packed(
        train.name, train.name, sizes.large_batch, ["--catalogue", "items={folder}/items.parquet"],
        ["--mixed-precision"], large_flops(sizes, shared),
    )  # fmt: skip
    model = Large(gr.catalogue(folder / "items.parquet", id="item"), sizes, shared)
    return model, gr.Schema.from_parquet(train), packed


EXAMPLES: dict[str, Callable[[Path, Sizes], Made]] = {
    "criteo_dcnv2": clicks("criteo_dcnv2", "DCNv2"),
    "criteo_dlrm": clicks("criteo_dlrm", "DLRM"),
    "hstu_retrieval": retrieval("hstu_retrieval", "Retrieval", time_bias=True),
    "news_request_ranking": news,
    "request_ranking": requests,
    "sasrec": retrieval("sasrec", "SASRec"),
    "search_ranking": search,
    "two_tower": two_tower,
}
LARGE, MOVIELENS = "hstu_large", "hstu_movielens"
MODELS = {LARGE: large, f"{LARGE}_shared": partial(large, shared=True), MOVIELENS: movielens, **EXAMPLES}
