"""A model whose tables are merged and one whose tables are not are one model: to the bit, across checkpoints."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import ROOT, call, draft, tool
from training import compile_merged_and_apart, expect_interchangeable, random_lists, train

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "merged.mlir"
ROWS = 240


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows for merged.mlir, without the columns that only a dead op reads."""
    draw = random.Random(3)
    path = tmp_path_factory.mktemp("merged") / "rows.parquet"
    columns = {
        "i": pa.array([draw.randrange(50) for _ in range(ROWS)], pa.int64()),
        "j": pa.array([draw.randrange(50) for _ in range(ROWS)], pa.int64()),
        "text": pa.array([f"word {draw.randrange(20)}" for _ in range(ROWS)], pa.string()),
        "s": pa.array([draw.gauss(0, 1) for _ in range(ROWS)], pa.float32()),
        "n": pa.array([draw.choice([None, 3, 4, 5]) for _ in range(ROWS)], pa.int64()),
        "list": random_lists(draw, ROWS),
        "label": pa.array([float(draw.randrange(2)) for _ in range(ROWS)], pa.float32()),
    }
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The model with merged tables, and with tables apart."""
    return compile_merged_and_apart(MODEL, tmp_path_factory.mktemp("binaries"))


def test_merging_changes_no_bit(binaries: dict[str, Path], data: Path, tmp_path: Path) -> None:
    """The same training leaves the same checkpoint: rows, states, their order and their names."""
    assert train(binaries["merged"], data, tmp_path / "a", 20) == train(binaries["apart"], data, tmp_path / "b", 20)


@pytest.mark.parametrize("first,second", [("merged", "apart"), ("apart", "merged")])
def test_checkpoints_load_into_each_other(
    first: str, second: str, binaries: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    expect_interchangeable(binaries[first], binaries[second], data, tmp_path, steps=20, part=9)


def test_export_speaks_of_logical_tables(binaries: dict[str, Path], data: Path, tmp_path: Path) -> None:
    """Both binaries write the same files from one checkpoint."""
    train(binaries["merged"], data, tmp_path / "checkpoint", 9)
    written = {}
    for name, binary in binaries.items():
        call(binary, "export", "--checkpoint", tmp_path / "checkpoint", "--out", tmp_path / name)
        written[name] = {path.name: path.read_bytes() for path in sorted((tmp_path / name).iterdir())}
    assert "tables.safetensors" in written["merged"]
    assert written["merged"] == written["apart"]


def test_info_counts_the_ids_of_logical_tables(binaries: dict[str, Path], data: Path) -> None:
    """What sizes a table is known of merged ones too."""
    told = {
        name: json.loads(call(binary, "info", "--json", "--data", data, "--batch", "16"))["data"]
        for name, binary in binaries.items()
    }
    assert told["merged"]["distinct_ids"]
    assert told["merged"]["distinct_ids"] == told["apart"]["distinct_ids"]
    assert told["merged"]["explain"] == told["apart"]["explain"]


def tensors_of(file: bytes) -> dict[str, bytes]:
    """The bytes of each tensor of a safetensors file."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    return {
        name: file[8 + size :][slice(*entry["data_offsets"])]
        for name, entry in header.items()
        if name != "__metadata__"
    }


def test_adding_a_table_moves_no_key_of_the_others(binaries: dict[str, Path], data: Path, tmp_path: Path) -> None:
    """A table declared before the others, whose vectors count for nothing, changes the numbers of all members of its
    merged table, and the bits that are left for ids; ids, rows and their order stay as they were."""
    logit = "    %logit = genrec.add %base, %more : (!f, !f) -> !f\n"
    text = MODEL.read_text()
    assert text.count(logit) == 1 and text.count("  genrec.table @a ") == 1
    declaration = next(line for line in text.splitlines() if line.startswith("  genrec.table @a "))
    more = [declaration.replace("@a ", f"@more{i} ") for i in range(2)]
    lookups = (
        "    %nothing = genrec.constant dense<0.0> : tensor<f32>\n"
        "    %m0 = genrec.lookup %mi in @more0 : (!ids) -> !x\n"
        "    %m1 = genrec.lookup %mj in @more1 : (!ids) -> !x\n"
        "    %ms = genrec.add %m0, %m1 : (!x, !x) -> !x\n"
        "    %mr = genrec.row_reduce sum %ms : (!x) -> !f\n"
        "    %mz = genrec.mul %mr, %nothing : (!f, tensor<f32>) -> !f\n"
        "    %plain = genrec.add %base, %more : (!f, !f) -> !f\n"
        "    %logit = genrec.add %plain, %mz : (!f, !f) -> !f\n"
    )
    text = text.replace(declaration, "\n".join([*more, declaration])).replace(logit, lookups)
    model, larger = tmp_path / "larger.mlir", tmp_path / "larger"
    model.write_text(text)
    plan = call(tool("genrec-compile"), model, "--explain")
    assert "tables more0, more1, a, b, c are one" in plan
    call(tool("genrec-compile"), model, *draft(), "-o", larger)
    before = tensors_of(train(binaries["merged"], data, tmp_path / "before", 20))
    after = tensors_of(train(larger, data, tmp_path / "after", 20))
    assert set(after) - set(before) == {f"more{i}.{part}" for i in range(2) for part in ("ids", "values", "state0")}
    assert np.frombuffer(after["more0.ids"], np.int64).size > 0
    assert {name: after[name] for name in before} == before
