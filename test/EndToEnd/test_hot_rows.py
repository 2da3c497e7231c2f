"""Hot rows of bf16 tables: floats, of which lookups read the upper halves; which rows are hot depends on sightings."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from compiled import ROOT, Tolerance, assert_same, call, draft, needs_emulator, read_tensors, run_both, tool
from launching import launcher, needs_mpi
from training import (
    compile_merged_and_apart,
    expect_interchangeable,
    train,
    train_given_rows,
    write_drifting_rows,
    write_steps_model,
)

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "hot_rows.mlir"
HOT_AFTER = {"nearest": 3, "chance": 4, "chance_too": 4, "odd": 2, "ruled": 3, "all": 1}
# A value that is rounded from another float may be the next bfloat16, and so may one that is read.
NEAR = Tolerance(relative=1e-2, absolute=1e-3)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_drifting_rows(tmp_path_factory.mktemp("hot") / "rows.parquet", seed=4)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("binary") / "hot_rows"
    call(tool("genrec-compile"), MODEL, *draft(), "-o", path)
    return path


def lower_halves(values: np.ndarray) -> np.ndarray:
    """Which rows have a value that is no bfloat16."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & 0xFFFF).any(axis=1)


@pytest.mark.parametrize("march", ["native", "x86-64-v3"])
def test_many_steps_agree_with_the_interpreter(tmp_path: Path, march: str) -> None:
    """The same rows are hot, and of the values all but a few have nearly the same bits."""
    runs = run_both(MODEL, tmp_path, steps=12, rows=4, march=march)
    assert_same(runs, NEAR)
    expected, actual = runs.interpreted[-1]["tables"], runs.compiled[-1]["tables"]
    near = count = hot = 0
    for name in HOT_AFTER:
        dim = 7 if name in ("odd", "ruled") else 6
        left, right = (
            np.array([rows[name][row][:dim] for row in expected[name]], np.float32) for rows in (expected, actual)
        )
        assert (lower_halves(left) == lower_halves(right)).all(), name
        hot += int(lower_halves(left).sum())
        near += int(np.isclose(left, right, rtol=1e-5, atol=1e-6).sum())
        count += left.size
    assert hot > 20 and count > 200 and near > 0.97 * count


def test_rows_are_hot_by_their_sightings(binary: Path, data: Path, tmp_path: Path) -> None:
    """Those seen in fewer steps are bfloat16; checkpoints hold both as F32."""
    tensors = read_tensors(train(binary, data, tmp_path / "checkpoint", 20))
    for name, after in HOT_AFTER.items():
        values, steps = tensors[f"{name}.values"], tensors[f"{name}.steps"]
        assert values.dtype == np.float32
        is_hot = steps >= after
        assert not lower_halves(values[~is_hot]).any(), name
        assert lower_halves(values[is_hot]).mean() > 0.9, name
    assert sum((tensors[f"{name}.steps"] < after).sum() for name, after in HOT_AFTER.items()) > 20
    assert "wide.steps" not in tensors


def test_threads_change_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    one = train(binary, data, tmp_path / "one", 30, threads=1)
    assert train(binary, data, tmp_path / "four", 30, threads=4) == one


def test_resuming_changes_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    """Which rows are hot, and all of their bits, are saved."""
    whole = train(binary, data, tmp_path / "whole", 33)
    train(binary, data, tmp_path / "halves", 14)
    assert train(binary, data, tmp_path / "halves", 33, "--resume") == whole


def test_incremental_saves_hold_all_bits(binary: Path, data: Path, tmp_path: Path) -> None:
    """Rows become hot between them, leave, and come again cold."""
    saves = ("--checkpoint-every", "3", "--checkpoint-full-every", "9", "--keep", "99")
    train(binary, data, tmp_path / "plain", 20)
    train(binary, data, tmp_path / "parts", 20, *saves)
    call(tool("genrec-checkpoint"), "diff", tmp_path / "plain", tmp_path / "parts")
    whole = train(binary, data, tmp_path / "whole", 33)
    train(binary, data, tmp_path / "resumed", 17, *saves)
    assert train(binary, data, tmp_path / "resumed", 33, "--resume", "--checkpoint-full-every", "1") == whole


def test_tools_show_floats(binary: Path, data: Path, tmp_path: Path) -> None:
    tensors = read_tensors(train(binary, data, tmp_path / "checkpoint", 20))
    out = tmp_path / "odd.parquet"
    call(tool("genrec-checkpoint"), "export", tmp_path / "checkpoint", "--table", "odd", "--out", out)
    vectors = {row["id"]: row["vector"] for row in pq.read_table(out).to_pylist()}
    for index, row in zip(tensors["odd.ids"].tolist(), tensors["odd.values"], strict=True):
        assert vectors[index] == row.tolist()
    call(tool("genrec-checkpoint"), "verify", tmp_path / "checkpoint")


def test_merging_changes_no_bit(data: Path, tmp_path: Path) -> None:
    binaries = compile_merged_and_apart(MODEL, tmp_path)
    assert "tables chance, chance_too are one" in call(tool("genrec-compile"), MODEL, "--explain")
    expect_interchangeable(binaries["merged"], binaries["apart"], data, tmp_path, 33, 14)


@needs_mpi
def test_ranks_change_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    """Owners count sightings and keep lower halves; upper halves travel. A run goes on, on other ranks."""
    portions = ("--portions", "6")
    whole = train(binary, data, tmp_path / "whole", 40, *portions)
    for ranks, overlap in ((1, "none"), (2, "keys"), (2, "rows"), (3, "none"), (3, "rows")):
        given = (*portions, "--overlap", overlap)
        out = tmp_path / f"{ranks}{overlap}"
        assert train(binary, data, out, 40, *given, ranks=ranks, threads=1) == whole, (ranks, overlap)
    for steps, ranks in ((14, 1), (27, 2), (40, 1)):
        resumed = train(binary, data, tmp_path / "parts", steps, *portions, "--resume", ranks=ranks, threads=1)
    assert resumed == whole


@needs_mpi
def test_tables_with_hot_rows_are_not_replicated(binary: Path, data: Path) -> None:
    words = [*launcher(2), str(binary), "train", "--data", str(data), "--replicate", "odd"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert "table 'odd' cannot be replicated: its rules (bounded, ttl, admit_after, hot_after)" in done.stderr


def steps_model(folder: Path, more: str, dim: int = 64) -> Path:
    folder.mkdir()
    call(tool("genrec-compile"), write_steps_model(folder / "steps.mlir", more, dim), *draft(), "-o", folder / "steps")
    pq.write_table(pa.table({"i": pa.array([3] * 16 * 128, pa.int64())}), folder / "rows.parquet")
    return folder / "steps"


@pytest.mark.parametrize("rounding", ["nearest", "stochastic"])
@pytest.mark.parametrize("dim", [1, 7, 64, 200])
def test_small_steps_of_hot_rows_add_up(tmp_path: Path, rounding: str, dim: int) -> None:
    """Exactly: each step is a multiple of 2^-11, and floats near 1 have all of them. Before, they are lost or drawn."""
    more = f"rounding = #genrec<row_rounding {rounding}>, hot_after = "
    first = steps_model(tmp_path / "first", more + "1 : i64,", dim)
    values = read_tensors(train(first, first.parent / "rows.parquet", first.parent / "ck", 128))["t.values"][0]
    assert (values == np.float32(1 - 128 * 2**-11)).all()
    later = steps_model(tmp_path / "later", more + "29 : i64,", dim)
    cold = read_tensors(train(later, later.parent / "rows.parquet", later.parent / "cold", 28))["t.values"][0]
    values = read_tensors(train(later, later.parent / "rows.parquet", later.parent / "ck", 128))["t.values"][0]
    assert not lower_halves(cold[None]).any()
    assert rounding == "stochastic" or (cold == 1).all()
    assert (values == cold - np.float32(100 * 2**-11)).all()


def test_lookups_read_upper_halves(tmp_path: Path) -> None:
    """Rounded towards 0, whatever the lower half: 1 - 3 * 2^-11 reads as 1 - 2^-8."""
    binary = steps_model(tmp_path / "model", "hot_after = 1 : i64,", dim=4)
    train(binary, binary.parent / "rows.parquet", tmp_path / "ck", 3)
    out = tmp_path / "sums.parquet"
    call(
        binary, "predict", "--data", binary.parent / "rows.parquet", "--checkpoint", tmp_path / "ck", "--out", out,
        "--progress", "none",
    )  # fmt: skip
    assert (pq.read_table(out)["sum"].to_numpy() == np.float32(4 * (1 - 2**-8))).all()


def test_given_values_are_of_cold_rows(binary: Path, data: Path, tmp_path: Path) -> None:
    """--init says nothing of sightings: values are rounded to nearest, and rows are hot when they were seen."""
    rows, rounded = train_given_rows(binary, data, tmp_path)
    assert all((rows[index] == rounded[index]).all() for index in range(40))


def test_reports_say_so(binary: Path) -> None:
    tables = {table["name"]: table for table in json.loads(call(binary, "info", "--json"))["tables"]}
    assert tables["odd"]["hot_after"] == 2 and "hot_after" not in tables["wide"]
    text = call(tool("genrec-compile"), MODEL, "--explain", "--ids", "chance=1000")
    assert "chance: dim 6, sgd, 12 bytes per row, 12 more where hot, bf16 values, rounded stochastically, " in text
    assert "rounded stochastically, hot after 4 steps" in text
    assert "the lower halves of 1000 hot rows, 64 bytes each" in text
    assert "wide: dim 6, sgd, 24 bytes per row\n" in text


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("device") / "hot_rows"
    call(tool("genrec-compile"), MODEL, *draft(), "--target=cuda-emulated", "-o", path)
    return path


@needs_emulator
def test_devices_have_the_same_bits(
    binary: Path, device: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether steps are captured or not, in whatever order work runs. Evaluation in between counts nothing."""
    whole = train(binary, data, tmp_path / "host", 23)
    for seed, more in (
        ("1", ("--validation", data, "--eval-every", "1", "--eval-batch", "160")),
        ("2", ("--capture", "off")),
    ):
        monkeypatch.setenv("GENREC_SIMT_SEED", seed)
        report = tmp_path / f"{seed}.json"
        given = ("--metrics-json", report, *more)
        assert train(device, data, tmp_path / f"device{seed}", 23, *given, threads=1) == whole, seed
        assert (json.loads(report.read_text())["device"]["captured_steps_launched"] > 0) == (seed == "1")


@needs_emulator
def test_a_run_goes_on_on_a_device(binary: Path, device: Path, data: Path, tmp_path: Path) -> None:
    """And from there on the CPU, from full and from incremental generations; all files of both have the same bytes."""
    saves = ("--checkpoint-every", "2", "--checkpoint-full-every", "6", "--keep", "99")
    kept = {}
    for name, order in (
        ("host", (binary,) * 3),
        ("mixed", (binary, device, binary)),
        ("too", (device, binary, device)),
    ):
        for steps, of in zip((5, 11, 17), order, strict=True):
            train(of, data, tmp_path / name, steps, "--resume", *saves, threads=1)
        files = sorted((tmp_path / name).glob("step-*/*.safetensors"))
        kept[name] = {str(path.relative_to(tmp_path / name)): path.read_bytes() for path in files}
    assert len(kept["host"]) >= 8
    assert kept["mixed"] == kept["host"] and kept["too"] == kept["host"]


@needs_emulator
def test_devices_read_upper_halves_and_export_floats(binary: Path, device: Path, data: Path, tmp_path: Path) -> None:
    """Predictions from one checkpoint are the CPU's; so are the floats that --init gives, and their bits at the end."""
    train(binary, data, tmp_path / "checkpoint", 20)
    scores = []
    for model in (binary, device):
        out = tmp_path / f"{model.parent.name}.parquet"
        given = ("--checkpoint", tmp_path / "checkpoint", "--out", out, "--progress", "none")
        call(model, "predict", "--data", data, *given)
        scores.append(pq.read_table(out)["score"].to_numpy())
    assert len(scores[0]) == 320 and (scores[0] == scores[1]).all()
    (tmp_path / "given").mkdir()
    rows, rounded = train_given_rows(device, data, tmp_path / "given")
    assert all((rows[index] == rounded[index]).all() for index in range(40))


@needs_emulator
@pytest.mark.parametrize("dim", [7, 64])
def test_rows_of_any_width_add_up_on_devices(tmp_path: Path, dim: int) -> None:
    """A lane of a device has one value, or packs of two."""
    rows, files = tmp_path / "rows.parquet", []
    more = "rounding = #genrec<row_rounding stochastic>, hot_after = 5 : i64,"
    model = write_steps_model(tmp_path / "steps.mlir", more, dim)
    pq.write_table(pa.table({"i": pa.array([3, 5, 3, 7] * 4 * 12, pa.int64())}), rows)
    for target in ("cpu", "cuda-emulated"):
        call(tool("genrec-compile"), model, *draft(), f"--target={target}", "-o", tmp_path / target)
        files.append(train(tmp_path / target, rows, tmp_path / f"{target}.run", 12, threads=1))
    assert files[1] == files[0]
    assert lower_halves(read_tensors(files[0])["t.values"]).all()


@needs_emulator
@needs_mpi
def test_ranks_with_devices_have_the_same_bits(binary: Path, device: Path, data: Path, tmp_path: Path) -> None:
    """Owners count, keep and update; upper halves travel. A run goes on, on ranks of both kinds."""
    portions = ("--portions", "6")
    whole = train(binary, data, tmp_path / "whole", 12, *portions)
    given = (*portions, "--overlap", "keys")
    assert train(device, data, tmp_path / "two", 12, *given, ranks=2, threads=1) == whole
    for steps, ranks, of in ((5, 3, device), (8, 2, binary), (12, 1, device)):
        resumed = train(of, data, tmp_path / "parts", steps, *portions, "--resume", ranks=ranks, threads=1)
    assert resumed == whole


@needs_emulator
def test_tables_with_hot_rows_stay_on_the_device(device: Path, data: Path) -> None:
    words = [str(device), "train", "--data", str(data), "--host-tables", "odd=8"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and "table 'odd' has hot rows and its values in host memory" in done.stderr
    assert "keep its values on the device, or leave 'hot_after' out" in done.stderr
