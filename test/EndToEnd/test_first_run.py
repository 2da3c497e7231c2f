"""Mistakes of a first run of a binary: what is asked for cannot be, and is told before any work is done."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import genrec as gr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from genrec import nn

SCHEMA = gr.Schema(
    {"user": gr.int64, "shown": [{"item": gr.int64, "clicked": gr.bool_}], "history": [{"item": gr.int64}]}
)


class Clicks(gr.Model):
    """Clicks by item and user; a probability per item that was shown."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.user, self.item = gr.Table("user", dim=4), gr.Table("item", dim=4)

    def forward(self, batch: gr.Batch) -> None:
        logit = (self.user(batch.user).fanout(batch.shown) * self.item(batch.shown.item)).row_sum()
        gr.loss.bce_with_logits(logit, batch.shown.clicked)
        gr.output(probability=nn.sigmoid(logit))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("first")
    rows = [
        {"user": i % 5, "shown": [{"item": j, "clicked": j == i % 3} for j in range(3)], "history": [{"item": 1}] * i, "vec": [1.0, 2.0]}
        for i in range(8)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "rows.parquet")
    (folder / "rows.csv").write_text("user,item\n1,2\n")
    model = gr.compile(Clicks(), SCHEMA, output=folder / "clicks")
    model.train(folder / "rows.parquet", checkpoint=folder / "ck", progress=False)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "made").mkdir()
    return tmp_path


PREDICT = ["predict", "--data", "rows.parquet", "--checkpoint", "ck"]

MISTAKES = {
    "batch_size": (
        ["train", "--data", "rows.parquet", "--batch-size", "8"],
        "there is no flag '--batch-size'; did you mean '--batch'?",
    ),
    "learning_rate": (["train", "--data", "rows.parquet", "--learning-rate", "8"], "did you mean '--lr'?"),
    "output": ([*PREDICT, "--output", "p.parquet"], "did you mean '--out'?"),
    "unknown": (["train", "--data", "rows.parquet", "--zzz"], "there is no flag '--zzz'\n"),
    "text": (["train", "--data", "rows.csv"], "\n  help: Parquet is read; text files become Parquet by genrec.data"),
    "long_text": (["train", "--data", "long.csv"], "long.csv: cannot be read: it does not end as Parquet files do"),
    "flat": (
        ["train", "--data", "flat.parquet"],
        "flat.parquet: has no column 'shown.item', which feature 'shown.item' reads, but 'item' outside of a list\n"
        "  help: a row per shown? rows of one request or user become lists by genrec.data.group",
    ),
    "generation": (
        ["evaluate", "--data", "rows.parquet", "--checkpoint", "{generation}"],
        "{generation}: is one generation of a checkpoint\n"
        "  help: name the folder above: --checkpoint ck --generation step-",
    ),
    "out_text": ([*PREDICT, "--out", "p.csv"], "--out p.csv: predict writes Parquet\n  help: name it p.parquet"),
    "out_folder": ([*PREDICT, "--out", "made"], "--out made: is a folder\n  help: name a file"),
    "out_nowhere": ([*PREDICT, "--out", "absent/p.parquet"], "--out absent/p.parquet: cannot be written: there is no folder absent"),
    "data_misspelt": (["train", "--data", "rosw.parquet"], "'rosw.parquet'\n  help: did you mean 'rows.parquet'?"),
    "a_generation_that_is_gone": (
        ["evaluate", "--data", "rows.parquet", "--checkpoint", "ck/step-999999"],
        "there is no generation step-999999 in 'ck'\n  help: --checkpoint ck is the newest; genrec-checkpoint list ck",
    ),
    "a_generation_to_start_from": (
        ["train", "--data", "rows.parquet", "--init", "{generation}"],
        "--init {generation}: is one generation of a checkpoint\n"
        "  help: --init ck takes the newest one; --init {generation}/model.safetensors takes this one",
    ),
    "export_into_a_checkpoint": (
        ["export", "--checkpoint", "ck", "--out", "ck"],
        "--out ck: holds a checkpoint\n  help: export to another folder",
    ),
    "key_of_a_vector": (
        [*PREDICT, "--out", "p.parquet", "--keys", "vec"],
        "rows.parquet: key 'vec' is of a list that the outputs do not belong to: they are rows of 'shown'\n",
    ),
    "key_of_another_list": (
        [*PREDICT, "--out", "p.parquet", "--keys", "history.item"],
        "key 'history.item' is of a list that the outputs do not belong to: they are rows of 'shown'",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_before_the_run(name: str, folder: Path) -> None:
    (folder / "long.csv").write_text("user,item\n" + "1,2\n" * 100)
    pq.write_table(pa.table({"user": [1, 1], "item": [2, 3], "clicked": [True, False]}), folder / "flat.parquet")
    generation = str(next(Path("ck").glob("step-*")))
    flags, told = MISTAKES[name]
    flags = [flag.format(generation=generation) for flag in flags]
    result = subprocess.run(["./clicks", *flags], capture_output=True, text=True, check=False)
    assert result.returncode in (1, 2)
    assert told.format(generation=generation) in result.stderr
    assert not [path for path in folder.iterdir() if path.name.startswith("p.")]


def test_a_flag_that_another_command_has_is_not_suggested(folder: Path) -> None:
    result = subprocess.run(["./clicks", "info", "--learning-rate", "1"], capture_output=True, text=True, check=False)
    assert "there is no flag '--learning-rate'" in result.stderr and "did you mean" not in result.stderr


@pytest.mark.parametrize("keys", ["user", ["user"], ["user", "shown.item"]])
def test_one_key_may_be_a_text(keys: str | list[str], folder: Path) -> None:
    model = gr.CompiledModel("clicks")
    path = model.predict("rows.parquet", "p.parquet", keys=keys, checkpoint="ck", progress=False)
    names = [keys] if isinstance(keys, str) else keys
    assert pq.read_schema(path).names == [*names, "probability"]
    assert pq.read_table(path).num_rows == 24


def test_emitted_code_beside_the_binary(tmp_path: Path) -> None:
    gr.compile(Clicks(), SCHEMA, output=tmp_path / "clicks", keep_cpp=True)
    assert "genrec_model" in (tmp_path / "clicks.cpp").read_text()
    gr.compile(Clicks(), SCHEMA, output=tmp_path / "clicks", keep_cpp=False)  # an older binary is replaced
