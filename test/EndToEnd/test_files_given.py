"""What the files are that a binary is given: nothing that is read is overwritten; paths with commas; catalogues that
are elsewhere."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import draft

SCHEMA = gr.Schema({"user": gr.int64, "item": gr.int64})


class Taste(gr.Model):
    """Users against items."""

    def __init__(self, items: gr.Catalogue) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1))
        self.user, self.item = gr.Table("user", dim=4), gr.Table("item", dim=4)
        self.items = items

    def forward(self, batch: gr.Batch) -> None:
        query = self.user(batch.user)
        gr.loss.sampled_softmax(query, batch.item, self.item, self.items, negatives=3)
        gr.output(user=batch.user, best=gr.top_k(query, self.item, self.items, k=1))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> gr.CompiledModel:
    folder = tmp_path_factory.mktemp("files")
    before = Path.cwd()
    os.chdir(folder)
    try:
        pq.write_table(pa.table({"item": np.arange(20)}), "items.parquet")
        pq.write_table(pa.table({"user": np.arange(60) % 7, "item": np.arange(60) % 20}), "train.parquet")
        model = gr.compile(Taste(gr.catalogue("items.parquet")), SCHEMA, output=folder / "taste", flags=draft())
        model.train("train.parquet", batch=16, progress=False)
    finally:
        os.chdir(before)
    return model


@pytest.fixture
def model(made: gr.CompiledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> gr.CompiledModel:
    """The model, its checkpoint and its data in a folder of the test's own, which is the working folder."""
    for entry in made.binary.parent.iterdir():
        (shutil.copytree if entry.is_dir() else shutil.copy2)(entry, tmp_path / entry.name)
    monkeypatch.chdir(tmp_path)
    return gr.CompiledModel("taste")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# Each: the command and its flags, and what is told.
OVERWRITING = {
    "data": (["predict", "--data", "train.parquet", "--out", "train.parquet"], "--data train.parquet, which is read"),
    "relative": (["predict", "--data", "train.parquet", "--out", "./x/../train.parquet"], "--data train.parquet"),
    "link": (["predict", "--data", "train.parquet", "--out", "link.parquet"], "--data train.parquet"),
    "linked": (["predict", "--data", "link.parquet", "--out", "train.parquet"], "--data link.parquet"),
    "hard_link": (["predict", "--data", "hard.parquet", "--out", "train.parquet"], "--data hard.parquet"),
    "folder": (["predict", "--data", "x", "--out", "x/more.parquet"], "--data x/more.parquet"),
    "partial": (["predict", "--data", "x2.partial", "--out", "x2"], "--data x2.partial"),
    "catalogue": (["predict", "--data", "train.parquet", "--out", "items.parquet"], "catalogue items: items.parquet"),
    "given_catalogue": (
        ["predict", "--data", "train.parquet", "--catalogue", "items=other.parquet", "--out", "other.parquet"],
        "catalogue items: other.parquet",
    ),
    "program": (["predict", "--data", "train.parquet", "--out", "taste"], "the program"),
    "checkpoint": (["predict", "--data", "train.parquet", "--out", "{ck}/manifest.json"], "--checkpoint {ck}/manif"),
    "metrics_data": (["evaluate", "--data", "train.parquet", "--metrics-json", "train.parquet"], "--data train"),
    "metrics_manifest": (["evaluate", "--data", "train.parquet", "--metrics-json", "{ck}/manifest.json"], "--checkpo"),
    "train_metrics": (["train", "--data", "train.parquet", "--metrics-json", "train.parquet"], "--data train.parquet"),
    "train_validation": (
        ["train", "--data", "train.parquet", "--validation", "link.parquet", "--metrics-json", "link.parquet"],
        "link.parquet",
    ),
    "pipe": (["evaluate", "--data", "train.parquet", "--metrics-json", "pipe"], "pipe: a file would take the place of"),
    "printed": (["evaluate", "--data", "train.parquet", "--metrics-json", "/proc/self/fd/1"], "fd/1: a file would"),
    "device": (["predict", "--data", "train.parquet", "--out", "null"], "null: a file would take the place of a dev"),
    "profile": (["train", "--data", "train.parquet,p/trace.json", "--profile", "p"], "--data p/trace.json"),
    "two_outputs": (
        ["train", "--data", "train.parquet", "--profile", "p", "--metrics-json", "p/profile.json"],
        "is what --metrics-json writes, too",
    ),
    "export": (["export", "--out", "exported"], "--checkpoint {ck}"),
    "tensorboard": (
        ["train", "--data", "train.parquet", "--tensorboard", "curves", "--metrics-json", "./curves"],
        "is the folder that --tensorboard writes into",
    ),
    "new_checkpoint": (
        ["train", "--data", "train.parquet", "--checkpoint", "new", "--metrics-json", "new"],
        "is the folder that --checkpoint writes into",
    ),
    "tensorboard_data": (
        ["train", "--data", "train.parquet", "--tensorboard", "link.parquet"],
        "--tensorboard link.parquet: is the file of --data train.parquet, which is read; a folder is needed",
    ),
}


@pytest.mark.parametrize("name", OVERWRITING)
def test_nothing_that_is_read_is_overwritten(model: gr.CompiledModel, tmp_path: Path, name: str) -> None:
    for folder in ("x", "p", "exported"):
        (tmp_path / folder).mkdir()
    (tmp_path / "link.parquet").symlink_to("train.parquet")
    (tmp_path / "hard.parquet").hardlink_to("train.parquet")
    for copy in ("x/more.parquet", "x2.partial", "p/trace.json"):
        shutil.copy("train.parquet", tmp_path / copy)
    shutil.copy("items.parquet", "other.parquet")
    os.mkfifo("pipe")
    (tmp_path / "null").symlink_to("/dev/null")
    tensors = next(model.checkpoint.rglob("*.safetensors"))
    (tmp_path / "exported" / "tables.safetensors").symlink_to(tensors)
    flags, told = OVERWRITING[name]
    if flags[0] != "train":
        flags = [*flags, "--checkpoint", "{ck}"]
    flags = [flag.format(ck="taste.checkpoint") for flag in flags]
    before = contents(tmp_path)
    result = subprocess.run(["./taste", *flags], capture_output=True, text=True, check=False)
    assert result.returncode == 1, result.stdout
    assert "error: " in result.stderr and told.format(ck="taste.checkpoint") in result.stderr
    assert "help: name another file" in result.stderr or "help: name a folder" in result.stderr
    assert contents(tmp_path) == before


def test_what_is_printed_is_not_replaced(model: gr.CompiledModel) -> None:
    given = ["--data", "train.parquet", "--checkpoint", model.checkpoint.name, "--metrics-json", "log"]
    with Path("log").open("w") as log:
        result = subprocess.run(["./taste", "evaluate", *given], stdout=log, stderr=subprocess.PIPE, check=False)
    assert result.returncode == 1 and b"--metrics-json log: a file would take the place of" in result.stderr


def test_python_is_told_too(model: gr.CompiledModel) -> None:
    before = Path("train.parquet").read_bytes()
    with pytest.raises(gr.RunError, match="would overwrite --data train.parquet, which is read"):
        model.predict(data="train.parquet", out="train.parquet")
    with pytest.raises(gr.RunError, match="would overwrite --data train.parquet, which is read"):
        model.train("train.parquet", metrics_json="train.parquet", checkpoint=False)
    assert Path("train.parquet").read_bytes() == before


def test_an_older_output_is_replaced(model: gr.CompiledModel) -> None:
    for _ in range(2):
        model.predict("train.parquet", "out.parquet", progress=False)
        model.evaluate("train.parquet", metrics_json="m.json", progress=False)
        model.export("exported")
    assert pq.read_metadata("out.parquet").num_rows == 60


def test_paths_with_commas(model: gr.CompiledModel) -> None:
    """A path that is there as it stands is one path; a list in Python is never taken apart."""
    Path("day=1,2").mkdir()
    rows = pq.read_table("train.parquet")
    for name, part in (("day=1,2/a,b.parquet", rows[:20]), ("day=1,2/c.parquet", rows[20:])):
        pq.write_table(part, name)

    def count(data: object) -> int:
        return pq.read_metadata(model.predict(data, "out.parquet", progress=False)).num_rows

    assert count("day=1,2") == 60
    assert count("day=1,2/a,b.parquet") == 20
    assert count("day=1,2/?,?.parquet") == 20
    assert count(["day=1,2/a,b.parquet", Path("day=1,2/c.parquet")]) == 60
    assert count(["train.parquet", "day=1,2"]) == 120
    files = ["--data", "day=1,2/a,b.parquet", "--data", "day=1,2/c.parquet", "train.parquet"]
    subprocess.run(
        ["./taste", "predict", *files, "--out", "out.parquet", "--checkpoint", "taste.checkpoint"],
        check=True, capture_output=True,
    )  # fmt: skip
    assert pq.read_metadata("out.parquet").num_rows == 120


def test_a_relative_catalogue_elsewhere_names_the_flag(
    model: gr.CompiledModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(gr.RunError) as raised:
        model.predict("../train.parquet", "out.parquet")
    assert str(raised.value) == (
        "Taste: error: catalogue 'items': there is no file 'items.parquet' in this folder; the model names it by this "
        'relative path\n  help: pass --catalogue items=<file>; in Python, catalogues={"items": <file>}'
    )
    out = model.predict("../train.parquet", "out.parquet", catalogues={"items": "../items.parquet"}, progress=False)
    assert pq.read_metadata(out).num_rows == 60


@pytest.mark.parametrize("command", ["train", "evaluate", "predict", "export"])
def test_what_is_skipped_in_the_folder_of_a_catalogue_is_told(model: gr.CompiledModel, command: str) -> None:
    Path("items").mkdir()
    shutil.copy("items.parquet", "items/items.parquet")
    Path("items/items.csv").write_text("item\n1\n")
    flags = ["--checkpoint", "taste.checkpoint", "--catalogue", "items=items"]
    flags += [] if command == "export" else ["--data", "train.parquet"]
    flags += {"train": ["--overwrite"], "predict": ["--out", "p.parquet"], "export": ["--out", "e"]}.get(command, [])
    result = subprocess.run(["./taste", command, *flags], capture_output=True, text=True, check=True)
    told = "skipped in 'items': items.csv (no .parquet, .parq or .pq files)"
    assert (result.stdout + result.stderr).count(told) == 1


def test_compile_into_a_folder(tmp_path: Path, model: gr.CompiledModel) -> None:
    (tmp_path / "models").mkdir()
    compiled = gr.compile(Taste(gr.catalogue("items.parquet")), SCHEMA, output=tmp_path / "models")
    assert compiled.binary == tmp_path / "models" / "taste" and os.access(compiled.binary, os.X_OK)
    with pytest.raises(gr.CompileError, match=r"-o .*/models is a folder; name the file: -o .*/models/other"):
        gr.compile(Taste(gr.catalogue("items.parquet")), SCHEMA, output="other", flags=["-o", str(tmp_path / "models")])
