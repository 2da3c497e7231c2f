"""The search model of hundreds of columns: its data, its plan, and that no pass changes what it computes."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import genrec as gr
import polars as pl
import pytest
from compiled import ROOT, call, tool, write_draft_toolchain

COLUMNS = 60
PASSES = ("prune-columns", "sink-fanout", "merge-tables", "fuse-transforms", "factor-lookups")


def generate(folder: Path, columns: int, users: int) -> Path:
    """Data of `columns` feature columns."""
    call(tool("genrec-datagen"), "--kind", "search", "--columns", str(columns), "--users", str(users), "--out", folder)
    return folder


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """examples/search_ranking/model.py."""
    sys.path.insert(0, str(ROOT / "examples" / "search_ranking"))
    try:
        return importlib.import_module("model")
    finally:
        sys.path.pop(0)
        sys.modules.pop("model", None)


def record(example: ModuleType, data: Path, file: Path) -> gr.Schema:
    """Writes the example's model for the columns of `data`."""
    schema = sys.modules["columns"].read_schema(data / "train.parquet")
    gr.write_model(gr.record(example.SearchRanker(schema), schema), file)
    return schema


@pytest.fixture(scope="module")
def small(example: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data and a model of COLUMNS columns."""
    folder = tmp_path_factory.mktemp("search")
    generate(folder, COLUMNS, 40)
    record(example, folder, folder / "model.genrec")
    return folder


@pytest.mark.parametrize("columns", [20, 60, 660])
def test_data_has_the_columns_asked_for(columns: int, tmp_path: Path) -> None:
    names = gr.Schema.from_parquet(generate(tmp_path, columns, 5) / "train.parquet").columns
    features = [n for n in names if n not in ("request_id", "impression.click", "impression.order")]
    assert len(features) == columns
    numbered = [n for n in names if n[-3:].isdigit()]
    assert len(numbered) == columns - 9
    tables = sum(not n.split(".")[-1].startswith(("amount_", "ratio_", "count_")) for n in numbered)
    assert tables + 4 == columns * 8 // 11


def test_data_follows_its_seed_and_tells_the_truth(small: Path, tmp_path: Path) -> None:
    again = generate(tmp_path, COLUMNS, 40)
    assert (again / "train.parquet").read_bytes() == (small / "train.parquet").read_bytes()
    rows = pl.read_parquet(small / "train.parquet")
    assert rows["time"].is_sorted()
    assert rows["searches"].list.len().min() == 0
    shown = rows.select(pl.col("impression").explode()).unnest("impression")
    # An order is known of what was clicked, and of that alone.
    assert (shown["order"].is_null() == (shown["click"] == 0)).all()
    assert 0.05 < shown["click"].mean() < 0.5
    # What a column says of an item it says every time, unless it is drawn anew, as every fifth is.
    ids = [name for name in shown.columns if name.startswith(("id_", "text_"))]
    values = shown.group_by("item").agg(pl.col(name).n_unique() for name in ids).max()
    drawn = {name: int(name[-3:]) % 5 == 4 for name in ids}
    assert set(drawn.values()) == {True, False}
    assert all((values[name][0] > 1) == drawn[name] for name in ids)
    truth = json.loads((small / "references.json").read_text())["informed ranking"]
    assert truth["click"] > 0.7 and truth["order"] > 0.6


def test_more_columns_keep_what_is_drawn(tmp_path: Path) -> None:
    """Who asks for what does not depend on how many columns describe it."""
    few, many = (generate(tmp_path / str(n), n, 20) / "train.parquet" for n in (20, 80))
    assert pl.read_parquet(few)["user", "time", "query"].equals(pl.read_parquet(many)["user", "time", "query"])


def losses(binary: Path, data: Path) -> list[float]:
    """The losses of six steps; all but the first depend on the updates before."""
    lines = call(
        binary, "train", "--data", data / "train.parquet", "--batch", "16", "--max-steps", "6", "--epochs", "2",
        "--seed", "3", "--threads", "2", "--progress", "json", "--log-every", "1", "--overwrite",
        "--checkpoint", binary.with_suffix(".checkpoint"),
    )  # fmt: skip
    events = [json.loads(line) for line in lines.splitlines()]
    return [event["loss"] for event in events if event["event"] == "step"]


def compile_model(small: Path, folder: Path, *flags: str) -> Path:
    binary, toolchain = folder / "binary", write_draft_toolchain(folder / "toolchain.json")
    call(tool("genrec-compile"), small / "model.genrec", *flags, f"--toolchain={toolchain}", "-o", binary)
    return binary


@pytest.fixture(scope="module")
def optimised(small: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_model(small, tmp_path_factory.mktemp("optimised"))


@pytest.mark.parametrize("name", PASSES)
def test_no_pass_changes_the_losses(name: str, optimised: Path, small: Path, tmp_path: Path) -> None:
    """To the bit; where a linear layer is split its sum has another order, and by tables if they are merged."""
    if name in ("sink-fanout", "factor-lookups"):
        with_pass, flags = losses(optimised, small), []
    else:
        (tmp_path / "with").mkdir()
        flags = ["--factor-lookups=false"]
        with_pass = losses(compile_model(small, tmp_path / "with", *flags), small)
    without = losses(compile_model(small, tmp_path, f"--{name}=false", *flags), small)
    assert len(with_pass) == 6 and len(set(with_pass)) == 6
    if flags:
        assert without == with_pass
    else:
        assert without[0] == pytest.approx(with_pass[0], rel=1e-5)
        assert without == pytest.approx(with_pass, rel=1e-3)


def test_evaluates_and_predicts(optimised: Path, small: Path, tmp_path: Path) -> None:
    losses(optimised, small)
    model = gr.CompiledModel(optimised)
    checkpoint = optimised.with_suffix(".checkpoint")
    metrics = model.evaluate(small / "valid.parquet", checkpoint=checkpoint)
    assert {"click auc", "click gauc", "click gauc.skipped", "order auc", "loss"} <= set(metrics)
    out = model.predict(small / "valid.parquet", tmp_path / "out.parquet", keys=["request_id"], checkpoint=checkpoint)
    written, read = pl.read_parquet(out), pl.read_parquet(small / "valid.parquet")
    assert written["request_id"].equals(read.explode("impression")["request_id"])
    for name in ("click", "order"):
        assert written[name].is_between(0, 1).all()


def test_plan_of_660_columns(example: ModuleType, tmp_path: Path) -> None:
    """480 tables are five, the keys of all columns are one launch, and no column of ids is in memory."""
    record(example, generate(tmp_path, 660, 5), tmp_path / "model.genrec")
    plan = json.loads(call(tool("genrec-compile"), tmp_path / "model.genrec", "--explain=json", "-o", "-"))
    assert len(plan["tables"]) == 480
    assert {table["dim"] for table in plan["tables"]} == {4, 8, 16, 32, 64}
    train = next(program for program in plan["programs"] if program["name"] == "train")
    kinds = [op["op"] for op in train["ops"]]
    assert kinds.count("transform_columns") == 1
    assert kinds.count("table_rows") == kinds.count("unique_rows") == 5
    assert not {"hash", "mod", "bucketize", "cross", "lookup"} & set(kinds)
    # A buffer of a column has its name. There are none but the columns of lists that are cut, as they are in the data.
    names = {table["name"] for table in plan["tables"]}
    cut = {c["column"].split(".")[-1] for c in plan["columns"] if c["domain"] in ("clicks", "searches")}
    assert cut & names
    assert not {b["name"] for b in train["buffers"]} & (names - cut - {"item", "query"})
    assert len(kinds) < len(next(iter(plan["graphs_before"].values()))["nodes"]) / 8


def test_datagen_refuses_too_few_columns(tmp_path: Path) -> None:
    command = [tool("genrec-datagen"), "--kind", "search", "--columns", "19", "--out", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert "--columns: must be 20 to 100000, got 19" in result.stderr + result.stdout
