"""Metrics of a compiled model against numpy, labels that are none, losses without rows, outputs of several domains."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft
from genrec import nn

CLASSES, ITEMS, USERS = 3, 12, 60
AT = (1, 3)
SCHEMA = gr.Schema(
    {
        "user": gr.int64,
        "kind": gr.int64.nullable(),
        "trust": gr.float32,
        "seen": [{"item": gr.int64}],
        "wanted": [{"item": gr.int64}],
        "shown": [
            {
                "item": gr.int64,
                "price": gr.float32,
                "clicked": gr.float32.nullable(),
                "bought": gr.int64,
                "seconds": gr.float32,
                "weight": gr.float32,
            }  # fmt: skip
        ],
    }
)


class Measured(gr.Model):
    """A loss and a metric of every kind."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adam(0.01))
        self.user = gr.Table("user", dim=4, init=gr.init.normal(1.0))
        self.item = gr.Table("item", dim=4, init=gr.init.normal(1.0))
        self.kind, self.score, self.time = nn.Linear(4, CLASSES), nn.Linear(9, 1), nn.Linear(4, 1)
        self.items = items

    def forward(self, batch: gr.Batch) -> None:
        shown, query = batch.shown, self.user(batch.user)
        logit = self.score(gr.concat(self.item(shown.item), query, shown.price)).squeeze()
        seconds = self.time(self.item(shown.item)).squeeze()
        gr.loss.softmax_cross_entropy(self.kind(query), batch.kind, name="kind")
        gr.loss.bce_with_logits(logit, shown.clicked, weight=shown.weight, name="click")
        gr.loss.mse(seconds, shown.seconds, name="square", scale=0.1)
        gr.loss.mae(seconds, shown.seconds, name="absolute", scale=0.1)

        bought = shown.bought
        gr.metric.auc(logit, shown.clicked)
        gr.metric.auc(logit, bought, name="buy", weight=shown.weight)
        gr.metric.gauc(logit, bought, key=shown.item, weight=shown.weight)
        gr.metric.ne(logit, bought, weight=shown.weight)
        gr.metric.rmse(seconds, shown.seconds, weight=shown.weight)
        gr.metric.mae(seconds, shown.seconds)
        gr.metric.list_ranking(gr.where(logit > 0.0, 1.0, 0.0), bought, at=AT, name="ties", weight=batch.trust)
        gr.metric.list_ranking(logit, bought, at=AT, name="lists")
        found = gr.top_k(query, self.item, self.items, k=ITEMS, exclude=batch.seen.item)
        gr.metric.ranking(found, target=batch.wanted.item, at=AT, weight=batch.trust)
        gr.output(query=query, found=found, kind=batch.kind)
        gr.output(logit=logit, seconds_guessed=seconds)


def make_rows(seed: int) -> list[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    rows = []
    for user in range(USERS):
        items = [int(i) for i in draw.integers(1, ITEMS + 1, 6)]
        shown = [
            {
                "item": item, "price": float(np.float32(draw.normal())),
                "clicked": None if draw.random() < 0.1 else float(draw.integers(0, 2)),
                "bought": int(draw.integers(0, 2)), "seconds": float(np.float32(draw.normal())),
                "weight": float(draw.integers(0, 3)),
            }
            for item in items[: draw.integers(0, 7)]
        ]  # fmt: skip
        rows.append(
            {
                "user": user, "kind": None if user % 7 == 0 else int(draw.integers(0, CLASSES)),
                "trust": float(draw.integers(0, 4)),
                # One user has seen all items; some want one twice.
                "seen": [{"item": i} for i in (range(1, ITEMS + 1) if user == 3 else items[: draw.integers(0, 4)])],
                "wanted": [{"item": int(i)} for i in draw.integers(1, ITEMS + 1, draw.integers(0, 4))],
                "shown": shown,
            }
        )  # fmt: skip
    return rows


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    entry = pa.struct([("item", pa.int64())])
    shown = pa.struct(
        [
            ("item", pa.int64()), ("price", pa.float32()), ("clicked", pa.float32()), ("bought", pa.int64()),
            ("seconds", pa.float32()), ("weight", pa.float32()),
        ]
    )  # fmt: skip
    fields = [
        ("user", pa.int64()), ("kind", pa.int64()), ("trust", pa.float32()), ("seen", pa.list_(entry)),
        ("wanted", pa.list_(entry)), ("shown", pa.list_(shown)),
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), path, row_group_size=25)
    return path


@dataclass(frozen=True)
class Trained:
    """The model, its folder and the rows it is measured on."""

    model: gr.CompiledModel
    folder: Path
    rows: list[dict[str, Any]]

    def run(self, command: str, rows: list[dict[str, Any]], *flags: str) -> subprocess.CompletedProcess[str]:
        """The binary on other data, without touching the checkpoint."""
        data = write(self.folder / "other.parquet", rows)
        given = ["--checkpoint", str(self.model.checkpoint)] if command != "train" else ["--epochs", "1"]
        return subprocess.run(
            [self.model.binary, command, "--data", data, "--batch", "16", *given, *flags],
            capture_output=True, text=True, check=False,
        )  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("metrics")
    pq.write_table(pa.table({"item": np.arange(1, ITEMS + 1)}), folder / "items.parquet")
    model = gr.compile(
        Measured(gr.catalogue(folder / "items.parquet", id="item")), SCHEMA, output=folder / "model", flags=draft()
    )
    model.train(write(folder / "train.parquet", make_rows(1)), epochs=2, batch=16, progress=False)
    rows = make_rows(2)
    write(folder / "valid.parquet", rows)
    return Trained(model, folder, rows)


# -- the definitions, pair by pair and list by list --------------------------------------------------------------------


def auc(score: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    up, down = label == 1, label == 0
    order = np.sign(score[up][:, None] - score[down][None, :])
    pairs = weight[up][:, None] * weight[down][None, :]
    return float((pairs * (order + 1) / 2).sum() / pairs.sum())


def gauc(score: np.ndarray, label: np.ndarray, weight: np.ndarray, key: np.ndarray) -> tuple[float, int]:
    total = areas = 0.0
    skipped = 0
    for one in np.unique(key[weight > 0]):
        mine = (key == one) & (weight > 0)
        if len(set(label[mine])) < 2:
            skipped += 1
            continue
        areas += weight[mine].sum() * auc(score[mine], label[mine], weight[mine])
        total += weight[mine].sum()
    return areas / total, skipped


def ne(logit: np.ndarray, label: np.ndarray, weight: np.ndarray) -> float:
    entropy = weight @ (np.logaddexp(0, logit) - label * logit) / weight.sum()
    p = weight @ label / weight.sum()
    return float(entropy / -(p * np.log(p) + (1 - p) * np.log(1 - p)))


def ranking(lists: list[list[int]], weights: list[float]) -> dict[str, float]:
    """Of the ranks of the targets of each list; lists without any do not count."""
    sums: dict[str, float] = {}
    total = 0.0
    for ranks, weight in zip(lists, weights, strict=True):
        if not ranks:
            continue
        total += weight
        values = {"mrr": 1 / min(ranks)}
        for n in AT:
            hits = [rank for rank in ranks if rank <= n]
            best = sum(1 / np.log2(place + 1) for place in range(1, min(n, len(ranks)) + 1))
            values[f"hr@{n}"] = float(bool(hits))
            values[f"recall@{n}"] = len(hits) / len(ranks)
            values[f"ndcg@{n}"] = sum(1 / np.log2(rank + 1) for rank in hits) / best
        for name, value in values.items():
            sums[name] = sums.get(name, 0.0) + weight * value
    return {name: value / total for name, value in sums.items()}


def rank_targets(scores: dict[int, float], targets: list[int], excluded: set[int]) -> list[int]:
    """The places of the distinct targets among what is not excluded, ties against them."""
    wanted = list(dict.fromkeys(targets))
    order = sorted(
        (i for i in scores if i in wanted or i not in excluded),
        key=lambda i: (-scores[i], i in wanted, wanted.index(i) if i in wanted else 0),
    )
    return [order.index(target) + 1 for target in wanted]


def rank_in_list(scores: np.ndarray, labels: list[int]) -> list[int]:
    order = sorted(range(len(labels)), key=lambda i: (-scores[i], labels[i], i))
    return [place + 1 for place, i in enumerate(order) if labels[i] == 1]


def test_metrics_are_those_of_numpy(trained):
    valid = trained.folder / "valid.parquet"
    measured = trained.model.evaluate(valid, batch=16, progress=False)
    tables = trained.model.predict(valid, trained.folder / "predicted", batch=16, progress=False)
    assert set(tables) == {"request", "shown"}
    shown = [entry for row in trained.rows for entry in row["shown"]]
    logit, guess = (tables["shown"][name].to_numpy().astype(float) for name in ("logit", "seconds_guessed"))
    column = {name: np.array([entry[name] for entry in shown], float) for name in ("bought", "weight", "seconds")}
    bought, weight, seconds = column["bought"], column["weight"], column["seconds"]
    clicked = np.array([entry["clicked"] is not None for entry in shown])
    clicks = np.array([entry["clicked"] or 0.0 for entry in shown])
    ones = np.ones(len(shown))

    expected = {
        "auc": auc(logit[clicked], clicks[clicked], ones[clicked]),
        "buy": auc(logit, bought, weight),
        "ne": ne(logit, bought, weight),
        "rmse": float(np.sqrt(weight @ (guess - seconds) ** 2 / weight.sum())),
        "mae": float(np.abs(guess - seconds).mean()),
    }
    keys = np.array([entry["item"] for entry in shown])
    expected["gauc"], skipped = gauc(logit, bought, weight, keys)
    assert measured["gauc.skipped"] == skipped

    ends = np.cumsum([len(row["shown"]) for row in trained.rows])
    lists = [(logit[end - len(row["shown"]) : end], [e["bought"] for e in row["shown"]])
             for row, end in zip(trained.rows, ends, strict=True)]  # fmt: skip
    trust = [row["trust"] for row in trained.rows]
    for name, of, weights in (("lists", lambda s: s, [1.0] * USERS), ("ties", lambda s: (s > 0).astype(float), trust)):
        ranks = [rank_in_list(of(scores), labels) for scores, labels in lists]
        expected |= {f"{name}.{key}": value for key, value in ranking(ranks, weights).items()}

    trained.model.export(trained.folder / "exported")
    vectors = read_items(trained.folder / "exported" / "items.safetensors")
    ranks = []
    for row, query in zip(trained.rows, tables["request"]["query"].to_pylist(), strict=True):
        scores = {item: float(np.float64(query) @ vector) for item, vector in vectors.items()}
        ranks.append(rank_targets(scores, [e["item"] for e in row["wanted"]], {e["item"] for e in row["seen"]}))
    expected |= ranking(ranks, trust)

    assert {name: measured[name] for name in expected} == pytest.approx(expected, rel=1e-6)
    assert set(measured) == {*expected, "loss", "gauc.skipped"}


def read_items(path: Path) -> dict[int, np.ndarray]:
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    head = json.loads(data[8 : 8 + size])
    types = {"F32": np.float32, "I64": np.int64}
    tensors = {
        name: np.frombuffer(data[8 + size :][slice(*entry["data_offsets"])], types[entry["dtype"]])
        .reshape(entry["shape"])
        for name, entry in head.items()
        if name != "__metadata__"
    }  # fmt: skip
    ids = next(tensor for tensor in tensors.values() if tensor.dtype == np.int64)
    rows = next(tensor for tensor in tensors.values() if tensor.dtype == np.float32)
    return {int(i): row.astype(float) for i, row in zip(ids, rows, strict=True)}


# -- predictions -------------------------------------------------------------------------------------------------------


def test_outputs_of_each_domain_are_a_table(trained):
    out = trained.folder / "by_domain"
    tables = trained.model.predict(
        trained.folder / "valid.parquet", out, keys=["user", "shown.item"], batch=16, progress=False
    )
    assert sorted(path.name for path in out.iterdir()) == ["request.parquet", "shown.parquet"]
    assert tables["request"].column_names == ["user", "query", "found", "found_score", "kind"]
    assert tables["request"]["user"].to_pylist() == [row["user"] for row in trained.rows]
    assert tables["shown"]["user"].to_pylist() == [row["user"] for row in trained.rows for _ in row["shown"]]
    assert tables["shown"]["shown.item"].to_pylist() == [e["item"] for row in trained.rows for e in row["shown"]]
    # A null leaves as a null.
    assert tables["request"]["kind"].to_pylist() == [row["kind"] for row in trained.rows]
    with pytest.raises(gr.RunError, match=r"one\.parquet is one file, but the outputs are rows of request, shown"):
        trained.model.predict(trained.folder / "valid.parquet", trained.folder / "one.parquet", progress=False)
    assert not (trained.folder / "one.parquet").exists()


def test_past_the_last_item_top_k_is_null(trained):
    table = trained.model.predict(trained.folder / "valid.parquet", trained.folder / "null", progress=False)["request"]
    for row, ids, scores in zip(
        trained.rows, table["found"].to_pylist(), table["found_score"].to_pylist(), strict=True
    ):
        left = ITEMS - len({entry["item"] for entry in row["seen"]})
        assert len(ids) == ITEMS
        assert [i is None for i in ids] == [n >= left for n in range(ITEMS)]
        assert [s is None for s in scores] == [n >= left for n in range(ITEMS)]
    assert table["found"].to_pylist()[3] == [None] * ITEMS


# -- labels that are none ----------------------------------------------------------------------------------------------


def change(where: str, value: object) -> Callable[[dict[str, Any]], None]:
    def apply(row: dict[str, Any]) -> None:
        if where in row:
            row[where] = value
        else:
            row["shown"] = [{"item": 1, "price": 0.0, "clicked": 1.0, "bought": 0, "seconds": 0.0, "weight": 1.0}]
            row["shown"][0][where] = value

    return apply


BAD = {
    "class above": ("kind", CLASSES, ["train", "evaluate"],
                    r"column 'kind', the label of the loss 'kind' \(\S+test_metrics\.py:\d+\) is 3, beyond 0 to 2"),
    "class below": ("kind", -1, ["train", "evaluate"], r"the label of the loss 'kind' .* is -1, beyond 0 to 2"),
    "click of two": ("clicked", 2.0, ["train", "evaluate"],
                     r"column 'shown\.clicked', the label of the loss 'click' .* is 2, beyond 0 to 1"),
    "click of nan": ("clicked", float("nan"), ["train", "evaluate"], r"the label of the loss 'click' .* is nan"),
    "fraction bought": ("bought", 5, ["evaluate"],
                        r"the label is (5, but must be|neither) 0 (or|nor) 1, in .*test_metrics\.py:\d+"),
    "negative weight": ("weight", -0.5, ["train", "evaluate"],
                        r"column 'shown\.weight', the weight of the loss 'click' \(\S+test_metrics\.py:\d+\) is -0\.5, "
                        r"but must be a number of at least 0"),
    "infinite weight": ("weight", float("inf"), ["train"], r"the weight of the loss 'click' .* is inf, but must be"),
    "trust": ("trust", float("inf"), ["evaluate"], r"the weight is inf, in the metric '\w+' \(\S+test_metrics\.py"),
    "seconds of nan": ("seconds", float("nan"), ["evaluate"], r"the label is nan, which is not finite, in the metric"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_label_that_is_none_is_named_with_its_row(trained, case):
    where, value, commands, message = BAD[case]
    rows = make_rows(3)
    change(where, value)(rows[41])
    for command in commands:
        run = trained.run(command, rows, *(["--no-shuffle"] if command == "train" else []))
        assert run.returncode != 0, case
        assert re.search(message, run.stderr), run.stderr
        # Row 41 of the file is the 17th of the second group of 25.
        assert re.search(r"other\.parquet, row group 1, row 16\b", run.stderr), run.stderr


def test_rows_without_weight_are_not_looked_at(trained):
    rows = make_rows(3)
    change("clicked", 7.0)(rows[41])
    rows[41]["shown"][0]["weight"] = 0.0
    assert trained.run("train", rows).returncode == 0


def test_a_feature_that_is_not_finite_is_named(trained):
    rows = make_rows(3)
    change("price", float("inf"))(rows[41])
    # Found by what came of it, or by the loss of the step.
    for flags in (["--check-finite"], []):
        run = trained.run("train", rows, *flags, "--no-shuffle")
        assert run.returncode != 0
        where = r"column 'shown\.price' is inf in row \d+ of 'shown' \(.*row group 1, row 16\)"
        assert re.search(where, run.stderr), run


# -- without rows ------------------------------------------------------------------------------------------------------


def without_labels() -> list[dict[str, Any]]:
    rows = make_rows(4)
    for row in rows:
        row["kind"], row["trust"] = None, 0.0
        for entry in row["shown"]:
            entry["clicked"], entry["weight"] = None, 0.0
    return rows


def test_a_loss_of_no_rows_is_none(trained, capsys):
    path = write(trained.folder / "unlabelled.parquet", without_labels())
    measured = trained.model.evaluate(path, batch=16, metrics_json=trained.folder / "m.json")
    assert {name for name, value in measured.items() if value is None} == {
        "auc", "buy", "gauc", "ne", "rmse", "hr@1", "hr@3", "recall@1", "recall@3", "ndcg@1", "ndcg@3", "mrr",
        "ties.hr@1", "ties.hr@3", "ties.recall@1", "ties.recall@3", "ties.ndcg@1", "ties.ndcg@3", "ties.mrr",
    }  # fmt: skip
    assert measured["loss"] > 0 and measured["mae"] > 0  # of what has rows
    shown = capsys.readouterr().out
    assert "(kind: no rows)" in shown and "auc no rows" in shown
    record = json.loads((trained.folder / "m.json").read_text())["evaluation"]
    assert record["losses"]["kind"] is None and record["losses"]["click"] is None
    assert {"kind", "click", "auc", "mrr"} <= set(record["no_rows"])
    assert "mae" not in record["no_rows"] and "loss" not in record["no_rows"]
    text = trained.run("evaluate", without_labels(), "--progress", "lines").stdout
    assert "AUC no rows" in text and "(kind: no rows)" in text


def test_a_validation_without_rows_is_never_best(trained):
    empty = write(trained.folder / "empty.parquet", [])
    run = trained.model.train(
        trained.folder / "train.parquet", validation=empty, epochs=3, batch=16, patience=1, monitor="loss",
        checkpoint=trained.folder / "never", progress=False,
    )  # fmt: skip
    assert run.history[0]["evaluation"]["loss"] is None
    assert "loss" in run.history[0]["evaluation"]["no_rows"]
    assert run.best is None and run.stopped_early
    assert "auc no rows" in repr(run)
