"""genrec-checkpoint on what compiled models save: incremental generations, and a checkpoint of given values."""

from __future__ import annotations

import subprocess
from pathlib import Path

import genrec as gr
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import BUILD, draft, read_tensors

ROWS = 600
SCHEMA = gr.Schema({"user": gr.int64, "item": gr.int64, "label": gr.float32})


class Clicks(gr.Model):
    """Rows of items leave when they were not seen for some steps."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.1), name="Clicks")
        self.item = gr.Table("item", dim=8, ttl=8)
        self.user = gr.Table("user", dim=8)
        self.top = gr.nn.Linear(16, 1)

    def forward(self, batch: gr.Batch) -> None:
        logit = self.top(gr.concat(self.item(batch.item), self.user(batch.user))).squeeze()
        gr.loss.bce_with_logits(logit, batch.label)


def tool(*words: str | Path, status: int = 0) -> str:
    command = [str(BUILD / "bin" / "genrec-checkpoint"), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tool")
    draw = np.random.default_rng(2)
    for day in (1, 2):
        columns = {
            "user": pa.array(draw.integers(0, 100, ROWS)),
            "item": pa.array(np.arange(ROWS) // 4 + day * 50 + draw.integers(0, 9, ROWS)),
            "label": pa.array(draw.integers(0, 2, ROWS), pa.float32()),
        }
        pq.write_table(pa.table(columns), folder / f"day{day}.parquet")
    model = gr.compile(Clicks(), SCHEMA, output=folder / "model", flags=draft())
    flags = {"batch": 20, "shuffle": False, "checkpoint": folder / "ck", "progress": False}
    model.train(folder / "day1.parquet", checkpoint_every=10, checkpoint_full_every=9, keep=4, **flags)
    return folder


@pytest.fixture(scope="module")
def exported(folder: Path) -> Path:
    """What the model's own export writes of the newest generation, which is incremental."""
    gr.CompiledModel(folder / "model").export(folder / "exported", checkpoint=folder / "ck")
    return folder / "exported"


@pytest.mark.parametrize("command", ["list", "verify"])
def test_results_that_cannot_be_printed_are_an_error(folder: Path, command: str) -> None:
    words = [BUILD / "bin" / "genrec-checkpoint", command, folder / "ck"]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert ran.returncode == 1
    assert "error: cannot write the results to the standard output\n  help: free some space" in ran.stderr


def test_list_and_verify(folder: Path) -> None:
    lines = tool("list", folder / "ck").splitlines()
    assert [line.split(":")[0] for line in lines] == ["step-10", "step-20", "step-30"]
    assert "full, " in lines[0] and "incremental, built on step-10, " in lines[1]
    removed = [line.split("item: ")[1].split(";")[0] for line in lines[1:3]]
    assert all(" rows changed, " in text and not text.endswith(" 0 removed") for text in removed), removed
    assert [line.split(": ")[1].split(",")[0] for line in tool("verify", folder / "ck").splitlines()] == ["whole"] * 3
    assert "error: there is no checkpoint in" in tool("list", folder / "none", status=1)


def test_diff(folder: Path) -> None:
    assert tool("diff", folder / "ck/step-30", folder / "ck") == "the same\n"
    told = tool("diff", folder / "ck/step-10", folder / "ck", status=1)
    assert "table 'item': " in told and " rows added, " in told and "values by at most " in told
    assert "parameter 'top.weight': changed by at most " in told


def test_export(folder: Path, exported: Path) -> None:
    tool("export", folder / "ck", "--table", "item", "--out", folder / "item.parquet")
    table = pq.read_table(folder / "item.parquet")
    tensors = read_tensors((exported / "tables.safetensors").read_bytes())
    assert table["id"].to_pylist() == tensors["item.ids"].tolist() and len(table) > 30
    np.testing.assert_array_equal(np.array(table["vector"].to_pylist(), np.float32), tensors["item.values"])
    told = tool("export", folder / "ck", "--table", "itme", "--out", folder / "x.parquet", status=1)
    assert "has no table 'itme'; it has item, user" in told and not (folder / "x.parquet").exists()


def test_import(folder: Path, exported: Path) -> None:
    shared = folder / "model.so"
    compiled = [str(BUILD / "bin" / "genrec-compile"), "--emit=shared", str(folder / "model.genrec"), "-o", str(shared)]
    subprocess.run(compiled, check=True, capture_output=True)
    np.save(folder / "weight.npy", np.full((16, 1), 0.5, np.float32))
    told = tool(
        "import", "--model", shared, "--out", folder / "new", f"item={exported}", f"top.weight={folder}/weight.npy"
    )
    assert "filled: item (" in told and "not filled: user" in told and "not filled: top.bias" in told
    # It differs from the run in what was not given.
    told = tool("diff", folder / "new", folder / "ck", status=1)
    assert "table 'user': 100 rows added" in told and "parameter 'top.weight'" in told
    model = gr.CompiledModel(folder / "model")
    run = model.train(folder / "day2.parquet", continue_from=folder / "new", checkpoint=folder / "went", progress=False)
    assert run.final["step"] > 0
    told = tool("import", "--model", shared, "--out", folder / "new", f"item={exported}", status=1)
    assert "new holds a checkpoint\n  help: name another folder" in told
    for no_library in (folder / "model", folder / "day1.parquet"):
        told = tool("import", "--model", no_library, "--out", folder / "newer", f"item={exported}", status=1)
        assert "cannot be loaded as a compiled model" in told and "--emit=shared -o model.so\n" in told
