"""What a catalogue says about items, on compiled binaries: lists of items, columns by id, rows of several values."""

from __future__ import annotations

import json
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft
from genrec import nn

ITEMS, USERS, DIM = 30, 64, 4


def write_items(path: Path, ids: range = range(ITEMS)) -> Path:
    """Items with a price (some null), a flag, a number, an image and 0 to 3 tags."""
    draw = np.random.default_rng(1)
    pq.write_table(
        pa.table(
            {
                "item": pa.array([10 * i for i in ids], pa.int64()),
                "price": pa.array([None if i % 7 == 3 else i / 4 for i in ids], pa.float32()),
                "new": pa.array([i % 3 == 0 for i in ids], pa.bool_()),
                "year": pa.array([1990 + i for i in ids], pa.int32()),
                "image": pa.array(draw.normal(size=(len(ids), DIM)).tolist(), pa.list_(pa.float32(), DIM)),
                "tags": pa.array([[(i * 5 + t) % 12 for t in range(i % 4)] for i in ids], pa.list_(pa.int64())),
            }
        ),
        path,
    )
    return path


def write_users(path: Path, missing: int | None = None) -> Path:
    """Users with 0 to 4 events each, whose items may be null, and an item to find."""
    draw = np.random.default_rng(2)
    rows = []
    for user in range(USERS):
        events = [{"item": 10 * int(draw.integers(ITEMS)) if draw.random() < 0.8 else None} for _ in range(user % 5)]
        rows.append(
            {"user": user, "target": 10 * (user % ITEMS), "profile": [float(user), 1.0, 2.0], "history": events}
        )
    if missing is not None:
        rows[missing]["history"] = [{"item": 20}, {"item": 7}]
    schema = pa.schema(
        [
            ("user", pa.int64()),
            ("target", pa.int64()),
            ("profile", pa.list_(pa.float32(), 3)),
            ("history", pa.list_(pa.struct([("item", pa.int64())]))),
        ]
    )
    pq.write_table(pa.Table.from_pylist(rows, schema), path, row_group_size=20)
    return path


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with items.parquet and users.parquet."""
    folder = tmp_path_factory.mktemp("catalogue")
    write_items(folder / "items.parquet")
    write_users(folder / "users.parquet")
    return folder


def schema_of(folder: Path) -> gr.Schema:
    return gr.Schema.from_parquet(folder / "users.parquet", nullable=["history.item"])


def items_of(folder: Path) -> gr.Catalogue:
    path = folder / "items.parquet"
    return gr.catalogue(path, id="item", schema=gr.Schema.from_parquet(path, root="items", nullable=["price"]))


class Towers(gr.Model):
    """Item vectors of the item, its tags, its latest tag and its image; queries of the items that a user saw."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.2))
        self.item, self.tag = gr.Table("item", dim=8), gr.Table("tag", dim=8)
        self.image = nn.Linear(DIM, 8)
        self.user = gr.Table("user", dim=8)
        self.items = items

    def forward(self, batch: gr.Batch) -> None:
        items = self.items
        tags = self.tag(items.tags.value)
        vectors = self.item(items.item) + tags.mean() + tags.truncate(1).sum() + self.image(items.image)
        vectors = nn.l2_normalize(vectors)
        query = nn.l2_normalize(self.user(batch.user) + self.item(batch.history.item).sum())
        gr.loss.sampled_softmax(query, batch.target, vectors, items, negatives=16, temperature=0.1)
        found = gr.top_k(query, vectors, items, k=5)
        gr.metric.ranking(found, target=batch.target, at=(5,))
        gr.output(found=found.ids, score=found.scores)


def test_lists_of_a_catalogue_train_rank_and_export(data: Path, tmp_path: Path) -> None:
    """An item tower over tags learns, finds what it was trained to find, and leaves the vectors that it compares."""
    model = gr.compile(Towers(items_of(data)), schema_of(data), output=tmp_path / "towers", flags=draft())
    users, checkpoint = data / "users.parquet", tmp_path / "ckpt"
    before = model.train(users, validation=users, epochs=1, batch=16, seed=3, checkpoint=tmp_path / "first")
    run = model.train(users, validation=users, epochs=40, batch=16, seed=3, checkpoint=checkpoint)
    assert run.metrics["hr@5"] > max(0.9, before.metrics["hr@5"])
    model.predict(users, tmp_path / "top.parquet", checkpoint=checkpoint, keys=["target"])
    top = pq.read_table(tmp_path / "top.parquet").to_pydict()
    hits = [target in found for target, found in zip(top["target"], top["found"], strict=True)]
    assert np.mean(hits) == pytest.approx(run.metrics["hr@5"])
    model.export(tmp_path / "exported", checkpoint=checkpoint)
    assert any((tmp_path / "exported").iterdir())


class Columns(gr.Model):
    """Columns of the catalogue by the ids of events, and what can be computed of bools."""

    def __init__(self, items: gr.Catalogue) -> None:
        self.items = items

    def forward(self, batch: gr.Batch) -> None:
        items, item = self.items, batch.history.item
        price, new = items.price[item], items.new[item]
        year = items.year[item].astype(gr.float32)
        cheap = gr.fill_missing(price, 100.0) < 3.0
        gr.output(
            price=gr.fill_missing(price, -1.0),
            new=new,
            year=year,
            image=items.image[item],
            tagged=items.tags.value.sum()[item],
            both=new & cheap,
            either=new | cheap,
            neither=~(new | cheap),
            flipped=~new & ~cheap,
        )


def predict(model: gr.CompiledModel, users: Path, out: Path) -> None:
    """What a model of transforms alone gives out; it needs no checkpoint."""
    call(model.binary, "predict", "--data", users, "--out", out, "--keys", "user", "--progress", "none")


def test_columns_by_id_are_those_of_the_items(data: Path, tmp_path: Path) -> None:
    """Every value is that of the item with the event's id; null where the id is null."""
    model = gr.compile(Columns(items_of(data)), schema_of(data), output=tmp_path / "columns", flags=draft())
    predict(model, data / "users.parquet", tmp_path / "out.parquet")
    got = pq.read_table(tmp_path / "out.parquet").to_pylist()
    listed = {row["item"]: row for row in pq.read_table(data / "items.parquet").to_pylist()}
    events = [
        (row["user"], event["item"])
        for row in pq.read_table(data / "users.parquet").to_pylist()
        for event in row["history"]
    ]
    assert len(got) == len(events) > 50
    for row, (user, item) in zip(got, events, strict=True):
        of = listed.get(item) or {"price": None, "new": None, "year": None, "image": None, "tags": []}
        cheap = of["price"] is not None and of["price"] < 3
        assert row["user"] == user
        assert row["price"] == (of["price"] if of["price"] is not None else -1)
        assert (row["new"], row["year"], row["image"]) == (of["new"], of["year"], of["image"])
        assert row["tagged"] == (sum(of["tags"]) if item in listed else None)
        if item not in listed:
            assert row["both"] is row["either"] is row["neither"] is row["flipped"] is None
            continue
        assert row["both"] == (of["new"] and cheap)
        assert row["either"] == (of["new"] or cheap)
        assert row["neither"] == row["flipped"] == (not of["new"] and not cheap)


def test_an_id_that_the_catalogue_lacks_names_file_and_row(data: Path, tmp_path: Path) -> None:
    """Reading a column by an id that is no item's is an error, not a zero."""
    users = write_users(tmp_path / "users.parquet", missing=33)
    model = gr.compile(Columns(items_of(data)), schema_of(data), output=tmp_path / "columns", flags=draft())
    with pytest.raises(RuntimeError) as raised:
        predict(model, users, tmp_path / "out.parquet")
    message = str(raised.value)
    assert f"{users}, row group 1, row 13" in message
    assert "feature 'history.item' has id 7, which is not in the catalogue" in message


class Profile(gr.Model):
    """Rows of several values as features: as they are, in a layer, stacked with others."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1))
        self.layer = nn.Linear(3, 3)

    def forward(self, batch: gr.Batch) -> None:
        fields = gr.stack(batch.profile, batch.profile * 2.0, batch.profile * batch.user.astype(gr.float32))
        first, second, third = fields.split_rows()
        joined = gr.concat_rows(batch.profile, second)
        gr.loss.mean((self.layer(batch.profile * 0.01) - 1.0).row_sum() ** 2)
        gr.output(
            profile=batch.profile, sum=fields.sum(), last=fields.last(), third=third, joined=joined.sum(),
            count=fields.domain.length(), ages=first[:, 0],
        )  # fmt: skip


def test_rows_of_values_and_stacks(data: Path, tmp_path: Path) -> None:
    """Fixed-size lists arrive as they are in the file, at every batch size; stacks pool and come apart."""
    model = gr.compile(Profile(), schema_of(data), output=tmp_path / "profile", flags=draft())
    users = data / "users.parquet"
    run = model.train(users, epochs=3, batch=7, checkpoint=tmp_path / "ckpt")
    losses = [epoch["loss"] for epoch in json.loads(json.dumps(run.history))]
    assert losses[-1] < losses[0]
    model.predict(users, tmp_path / "out.parquet", checkpoint=tmp_path / "ckpt", keys=["user"], batch=9)
    out = pq.read_table(tmp_path / "out.parquet").to_pylist()
    profiles = pq.read_table(users).column("profile").to_pylist()
    assert len(out) == USERS
    for user, (row, profile) in enumerate(zip(out, profiles, strict=True)):
        x = np.array(profile)
        assert row["profile"] == profile
        assert row["sum"] == (x * (3 + user)).tolist()
        assert row["last"] == row["third"] == (x * user).tolist()
        assert row["joined"] == (x * 3).tolist()
        assert (row["count"], row["ages"]) == (3, profile[0])


LISTS, FIXED = pa.list_(pa.float32()), pa.list_(pa.float32(), 3)


@pytest.mark.parametrize(
    ("column", "kind", "message"),
    [
        ([[1.0, 2.0], [3.0, 4.0]], LISTS, "row 0: feature 'profile' has 2 values, the model reads 3 per row"),
        ([[1.0, 2.0, 3.0], [3.0, None, 4.0]], FIXED, "row 1: feature 'profile' is null in place 1 of its 3 values"),
        ([[1.0, 2.0, 3.0], None], FIXED, "row 1: feature 'profile' is null"),
        ([1.0, 2.0], pa.float32(), "column 'profile' lies in no list"),
    ],
)
def test_mistakes_in_rows_of_values(
    column: list[object], kind: pa.DataType, message: str, data: Path, tmp_path: Path
) -> None:
    """What is wrong with a column of several values per row is said with file, row and place."""
    model = gr.compile(Profile(), schema_of(data), output=tmp_path / "profile", flags=draft())
    table = {"user": pa.array([0, 1], pa.int64()), "profile": pa.array(column, kind)}
    pq.write_table(pa.table(table), tmp_path / "bad.parquet")
    with pytest.raises(gr.RunError) as raised:
        model.train(tmp_path / "bad.parquet", epochs=1, batch=2)
    assert message in str(raised.value) and "bad.parquet" in str(raised.value)
