"""Tables whose values are bfloat16: what is stored, how it is rounded, and that bits depend on nothing else."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import ROOT, Tolerance, assert_same, call, draft, needs_emulator, read_tensors, run_both, tool
from launching import needs_mpi
from training import (
    compile_merged_and_apart,
    expect_interchangeable,
    train,
    train_given_rows,
    write_drifting_rows,
    write_steps_model,
)

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "bf16_rows.mlir"
BF16 = ("nearest", "chance", "chance_too", "odd", "ruled")
# A value that is rounded from another float may be the next bfloat16.
NEAR = Tolerance(relative=1e-2, absolute=1e-3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_drifting_rows(tmp_path_factory.mktemp("bf16") / "rows.parquet", seed=4)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("binary") / "bf16_rows"
    call(tool("genrec-compile"), MODEL, *draft(), "-o", path)
    return path


def dtypes(file: bytes) -> dict[str, str]:
    header = json.loads(file[8 : 8 + int.from_bytes(file[:8], "little")])
    return {name: entry["dtype"] for name, entry in header.items() if name != "__metadata__"}


@pytest.mark.parametrize("march", ["native", "x86-64-v3"])
def test_many_steps_agree_with_the_interpreter(tmp_path: Path, march: str) -> None:
    """Of the values of rows, which are rounded by the same random numbers, all but a few have the same bits."""
    runs = run_both(MODEL, tmp_path, steps=12, rows=4, march=march)
    assert_same(runs, NEAR)
    expected, actual = runs.interpreted[-1]["tables"], runs.compiled[-1]["tables"]
    same = count = 0
    for name in BF16:
        dim = 7 if name in ("odd", "ruled") else 6
        for row in expected[name]:
            left, right = expected[name][row][:dim], actual[name][row][:dim]
            assert not np.any(np.array(right, np.float32).view(np.uint32) & 0xFFFF), (name, row)
            same += sum(a == b for a, b in zip(left, right, strict=True))
            count += dim
    assert count > 200 and same > 0.98 * count


def test_checkpoints_hold_the_bits(binary: Path, data: Path, tmp_path: Path) -> None:
    """Values of bf16 are BF16, states and other tables F32; a table exports as floats."""
    file = train(binary, data, tmp_path / "checkpoint", 20)
    types = dtypes(file)
    assert all(types[f"{name}.values"] == "BF16" for name in BF16) and types["wide.values"] == "F32"
    assert types["odd.state0"] == "F32" and types["nearest.state0"] == "F32"
    out = tmp_path / "odd.parquet"
    call(tool("genrec-checkpoint"), "export", tmp_path / "checkpoint", "--table", "odd", "--out", out)
    tensors = read_tensors(file)
    vectors = {row["id"]: row["vector"] for row in pq.read_table(out).to_pylist()}
    assert sorted(vectors) == sorted(tensors["odd.ids"].tolist())
    for index, row in zip(tensors["odd.ids"].tolist(), tensors["odd.values"], strict=True):
        assert vectors[index] == row.tolist()


def test_threads_change_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    one = train(binary, data, tmp_path / "one", 30, threads=1)
    assert train(binary, data, tmp_path / "four", 30, threads=4) == one


def test_resuming_changes_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    whole = train(binary, data, tmp_path / "whole", 33)
    train(binary, data, tmp_path / "halves", 14)
    assert train(binary, data, tmp_path / "halves", 33, "--resume") == whole


def test_merging_changes_no_bit(data: Path, tmp_path: Path) -> None:
    """Random numbers follow from the name of a table, whatever store it shares."""
    binaries = compile_merged_and_apart(MODEL, tmp_path)
    assert "tables chance, chance_too are one" in call(tool("genrec-compile"), MODEL, "--explain")
    expect_interchangeable(binaries["merged"], binaries["apart"], data, tmp_path, 33, 14)


@needs_mpi
def test_ranks_change_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    """Values travel as they are stored; owners round by the same numbers. A run goes on, on other ranks."""
    portions = ("--portions", "6")
    whole = train(binary, data, tmp_path / "whole", 40, *portions)
    for ranks in (1, 2, 3):
        assert train(binary, data, tmp_path / str(ranks), 40, *portions, ranks=ranks, threads=1) == whole, ranks
    for steps, ranks in ((14, 1), (27, 3), (40, 2)):
        resumed = train(binary, data, tmp_path / "parts", steps, *portions, "--resume", ranks=ranks, threads=1)
    assert resumed == whole
    replicas = (*portions, "--replicate", "chance,odd")
    assert train(binary, data, tmp_path / "replicas", 40, *replicas, ranks=2, threads=1) == whole


@needs_emulator
@pytest.mark.parametrize("dim", [1, 16, 64, 130, 200])
def test_rows_of_any_width_have_the_same_bits(tmp_path: Path, dim: int) -> None:
    """Instruction sets and lanes of a device draw the same random bits, in groups of 64 columns and beyond."""
    model, rows = tmp_path / "steps.mlir", tmp_path / "rows.parquet"
    write_steps_model(model, "rounding = #genrec<row_rounding stochastic>,", dim)
    pq.write_table(pa.table({"i": pa.array([3, 5, 3, 7] * 4 * 20, pa.int64())}), rows)
    files = []
    for number, flags in enumerate((["--march=native"], ["--march=x86-64-v3"], ["--target=cuda-emulated"])):
        call(tool("genrec-compile"), model, *draft(), *flags, "-o", tmp_path / f"model{number}")
        files.append(train(tmp_path / f"model{number}", rows, tmp_path / f"run{number}", 20, threads=1))
    assert files[1] == files[0] and files[2] == files[0]
    values = read_tensors(files[0])["t.values"]
    assert len(set(values.ravel().tolist())) > 1


def compile_emulated(folder: Path) -> Path:
    model = folder / "model"
    call(tool("genrec-compile"), MODEL, *draft(), "--target=cuda-emulated", "-o", model)
    return model


@needs_emulator
def test_devices_have_the_same_bits(binary: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulated: on the device and in the host's memory behind a cache."""
    model = compile_emulated(tmp_path)
    whole = train(binary, data, tmp_path / "host", 20)
    for seed in ("1", "2"):
        monkeypatch.setenv("GENREC_SIMT_SEED", seed)
        assert train(model, data, tmp_path / f"device{seed}", 20, threads=1) == whole
    cached = ("--host-tables", "chance=8,odd=8,nearest=8")
    assert train(model, data, tmp_path / "cached", 20, *cached, threads=1) == whole


@needs_emulator
@needs_mpi
def test_ranks_with_devices_have_the_same_bits(binary: Path, data: Path, tmp_path: Path) -> None:
    """Those of the CPU's portions, on any number of ranks. A run goes on, on ranks of both kinds."""
    model, portions = compile_emulated(tmp_path), ("--portions", "6")
    whole = train(binary, data, tmp_path / "whole", 10, *portions)
    for ranks, overlap in ((1, "none"), (2, "keys"), (3, "none")):
        given = (*portions, "--overlap", overlap)
        assert train(model, data, tmp_path / str(ranks), 10, *given, ranks=ranks, threads=1) == whole, ranks
    for steps, ranks, of in ((4, 3, model), (7, 2, binary), (10, 2, model)):
        resumed = train(of, data, tmp_path / "parts", steps, *portions, "--resume", ranks=ranks, threads=1)
    assert resumed == whole


@needs_emulator
@needs_mpi
def test_values_of_devices_travel_as_they_are(binary: Path, data: Path, tmp_path: Path) -> None:
    """Beside others that are rounded: the bits of the CPU's ranks."""
    model, wire = compile_emulated(tmp_path), ("--row-wire", "bf16")
    kept = [train(of, data, tmp_path / f"{of.name}.kept", 8, *wire, ranks=2, threads=1) for of in (binary, model)]
    assert kept[0] == kept[1]


def train_steps(rounding: str, folder: Path, *more: str | Path) -> np.ndarray:
    """The row of id 3 after 128 steps of an eighth of a unit in the last place of what is just below 1."""
    model, binary, rows = folder / "steps.mlir", folder / "steps", folder / "rows.parquet"
    write_steps_model(model, f"rounding = #genrec<row_rounding {rounding}>,")
    call(tool("genrec-compile"), model, *draft(), "-o", binary)
    pq.write_table(pa.table({"i": pa.array([3] * 16 * 128, pa.int64())}), rows)
    return read_tensors(train(binary, rows, folder / "checkpoint", 128, *more))["t.values"][0]


def test_small_steps_add_up_stochastically(tmp_path: Path) -> None:
    """To nearest no step is seen; by chance the mean of the columns moves by the sum of the steps: 128 * 2^-11."""
    folders = [tmp_path / "nearest", tmp_path / "stochastic"]
    for folder in folders:
        folder.mkdir()
    assert (train_steps("nearest", folders[0]) == 1).all()
    values = train_steps("stochastic", folders[1])
    # A column is a sum of 128 draws of p = 1/8: its deviation is sqrt(128 * 7/64) * 2^-8 = 0.0146, the mean's an
    # eighth.
    assert abs(values.mean() - (1 - 128 * 2**-11)) < 4 * 0.0146 / 8
    assert 0.5 * 0.0146 < values.std() < 2 * 0.0146
    assert len(set(values.tolist())) > 5


def test_values_that_are_given_round_to_nearest(binary: Path, data: Path, tmp_path: Path) -> None:
    rows, rounded = train_given_rows(binary, data, tmp_path)
    assert len(rows) >= 40 and all((rows[index] == rounded[index]).all() for index in range(40))


def test_reports_say_so(binary: Path) -> None:
    tables = {table["name"]: table for table in json.loads(call(binary, "info", "--json"))["tables"]}
    assert tables["odd"] | {"element": "bf16", "rounding": "stochastic"} == tables["odd"]
    assert "element" not in tables["wide"]
    text = call(tool("genrec-compile"), MODEL, "--explain")
    assert "chance: dim 6, sgd, 12 bytes per row, bf16 values, rounded stochastically" in text
    assert "wide: dim 6, sgd, 24 bytes per row\n" in text
