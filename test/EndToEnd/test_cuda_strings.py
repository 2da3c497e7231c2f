"""Columns of strings on the emulated device: of the data, of lists in it, and of a catalogue."""

from __future__ import annotations

import json
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import call, draft, require_emulator
from genrec import nn
from test_cuda_models import TARGETS, expect_same_training, tensors, train
from test_cuda_steps import run

USERS, BATCH = 64, 16
TITLES = [f"title {i} " + "é" * (i % 5) for i in range(20)]


class Texts(gr.Model):
    """Tables of the hashes of a nullable column, of words in lists, some of which are cut off, and of titles."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.items = items
        self.person, self.word, self.title = (gr.Table(n, dim=8, init=gr.init.normal(0.3)) for n in ("n", "w", "t"))
        self.top = nn.MLP([16, 8])

    def forward(self, batch: gr.Batch) -> None:
        words = batch.history.truncate(4)
        person = self.person(gr.hash(batch.name, bits=40))
        said = self.word(gr.hash(words.word, bits=40, kind="farmhash64")).sum()
        query = nn.l2_normalize(self.top(gr.concat(person, said)))
        vectors = nn.l2_normalize(self.title(gr.hash(self.items.title, bits=40, kind="murmur3")))
        gr.loss.sampled_softmax(query, batch.target, vectors, self.items, negatives=8, temperature=0.2)
        found = gr.top_k(query, vectors, self.items, k=3)
        gr.metric.ranking(found, target=batch.target, at=(3,))
        gr.output(found=found.ids, name=batch.name)


class Words(gr.Model):
    """Gives the words of the lists back, as they are cut."""

    def __init__(self) -> None:
        super().__init__()

    def forward(self, batch: gr.Batch) -> None:
        words = batch.history.truncate(4)
        gr.output(word=words.word, hashed=gr.hash(words.word, bits=63))


def write_users(path: Path, longest: int = 40) -> Path:
    """Users with a name (some null, some empty) and words of up to `longest` characters; batches differ in text."""
    draw = np.random.default_rng(6)

    def text() -> str:
        return "".join(chr(97 + int(c)) for c in draw.integers(0, 26, draw.integers(0, longest + 1)))

    names = [f"user {i % 9}" * (1 + i % 4) if i % 7 else None for i in range(USERS)]
    names[3] = ""
    known = [text() for _ in range(25)]
    histories = [
        [{"word": known[int(w)] * (1 if user < USERS // 2 else 3)} for w in draw.integers(0, 25, draw.integers(0, 7))]
        for user in range(USERS)
    ]
    columns = {
        "name": pa.array(names, pa.string()),
        "target": pa.array([int(t) for t in draw.integers(0, len(TITLES), USERS)], pa.int64()),
        "history": pa.array(histories, pa.list_(pa.struct({"word": pa.string()}))),
    }
    pq.write_table(pa.table(columns), path, row_group_size=BATCH)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, and a binary of Texts per target."""
    folder = tmp_path_factory.mktemp("texts")
    require_emulator()
    pq.write_table(pa.table({"item": pa.array(range(len(TITLES)), pa.int64()), "title": TITLES}), folder / "items")
    schema = gr.Schema.from_parquet(write_users(folder / "users.parquet"), nullable=["name"])
    for target in TARGETS:
        items = gr.catalogue(str(folder / "items"), id="item")
        gr.compile(Texts(items), schema, target=target, output=folder / target, flags=draft())
    return folder


def test_training_has_the_losses_and_the_checkpoint_of_the_cpu(folder: Path, tmp_path: Path) -> None:
    binaries = {target: folder / target for target in TARGETS}
    expect_same_training(binaries, folder / "users.parquet", tmp_path, steps=8)


def test_a_resumed_run_has_the_bits_of_an_uninterrupted_one(folder: Path, tmp_path: Path) -> None:
    for name, steps in (("whole", (8,)), ("halves", (3, 8))):
        for step in steps:
            more = ["--resume"] if (tmp_path / name).exists() else []
            train(folder / "cuda-emulated", folder / "users.parquet", tmp_path / name, *more, steps=step)
    whole, halves = tensors(tmp_path / "whole"), tensors(tmp_path / "halves")
    assert all((whole[name] == halves[name]).all() for name in whole)


def test_the_other_commands_agree(folder: Path, tmp_path: Path) -> None:
    """Of names that training has not seen, too; null is not the empty string."""
    unseen = write_users(tmp_path / "unseen.parquet", longest=300)
    train(folder / "cpu", folder / "users.parquet", tmp_path / "trained", steps=4)
    metrics, tables = [], []
    for target in TARGETS:
        out, report = tmp_path / f"{target}.parquet", tmp_path / f"{target}.json"
        given = ["--data", unseen, "--checkpoint", tmp_path / "trained", "--batch", "16", "--progress", "none"]
        call(folder / target, "evaluate", *given, "--metrics-json", report)
        call(folder / target, "predict", *given, "--out", out)
        metrics.append(json.loads(report.read_text())["evaluation"]["metrics"])
        tables.append(pq.read_table(out).to_pydict())
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-5)
    assert tables[1] == tables[0]
    assert tables[0]["name"] == pq.read_table(unseen)["name"].to_pylist()


def test_strings_come_back_as_they_were(tmp_path: Path) -> None:
    data = write_users(tmp_path / "users.parquet")
    schema = gr.Schema.from_parquet(data)
    tables = []
    for target in TARGETS:
        require_emulator(target)
        binary = gr.compile(Words(), schema, target=target, output=tmp_path / target, flags=draft()).binary
        call(binary, "predict", "--data", data, "--batch", "16", "--out", tmp_path / "out", "--progress", "none")
        tables.append(pq.read_table(tmp_path / "out").to_pydict())
    histories = pq.read_table(data)["history"].to_pylist()
    assert tables[0]["word"] == [event["word"] for history in histories for event in history[-4:]]
    assert tables[1] == tables[0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_step_takes_no_memory(seed: int, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of batches that differ in text alone; their steps are captured."""
    monkeypatch.setenv("GENREC_SIMT_SEED", str(seed))
    table = pq.read_table(folder / "users.parquet")
    draw = np.random.default_rng(seed)
    words = [[{"word": "w" * int(size)} for size in draw.integers(20, 40, 4)] for _ in range(USERS)]
    history = pa.array(words, table["history"].type)
    data, binary, reports = tmp_path / "even.parquet", folder / "cuda-emulated", []
    pq.write_table(table.set_column(table.column_names.index("history"), "history", history), data)
    for steps in (12, 20):
        reports.append(run(binary, data, tmp_path / "report.json", steps=steps)["device"])
    before, after = reports
    assert after["waits"] - before["waits"] == 8
    assert after["allocations"] == before["allocations"]
    assert after["steps_captured"] == before["steps_captured"] > 0
    assert after["captured_steps_launched"] - before["captured_steps_launched"] == 8
    assert after["not_captured"] == []
