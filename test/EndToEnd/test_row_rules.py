"""Tables whose rows come and leave by rule (bounds, times, admission), and row-wise Adagrad."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from compiled import ROOT, assert_same, call, draft, read_stream, read_tensors, run_both, tool
from launching import needs_mpi
from training import train, write_drifting_rows

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "ruled.mlir"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose ids drift: early ones are not seen again."""
    return write_drifting_rows(tmp_path_factory.mktemp("ruled") / "rows.parquet", seed=4)


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("binary") / "ruled"
    call(tool("genrec-compile"), MODEL, *draft(), "-o", path)
    return path


def test_many_steps_agree_with_the_interpreter(tmp_path: Path) -> None:
    """The same rows leave, with the same counts, over steps enough that all rules act."""
    assert_same(run_both(MODEL, tmp_path, steps=12, rows=4))


def test_rows_are_as_the_rules_say(binary: Path, data: Path, tmp_path: Path) -> None:
    """Bounds hold, states are as wide as they should be, and nothing older than its time is there."""
    tensors = read_tensors(train(binary, data, tmp_path / "checkpoint", 40, threads=2))
    rows = {
        name: tensors[f"{name}.ids"].size for name in ("free", "recent", "frequent", "passing", "admitted", "strict")
    }
    assert rows["recent"] == 3 and 17 <= rows["frequent"] <= 18 and rows["strict"] <= 4 and rows["free"] == 11
    assert tensors["free.state0"].shape == (11,) and tensors["passing.state0"].shape == (rows["passing"], 6)
    assert (tensors["passing.last_step"] == 40).all()
    assert (tensors["strict.last_step"] > 38).all() and (tensors["strict.waiting.last_step"] > 38).all()
    assert set(tensors["admitted.ids"]).isdisjoint(tensors["admitted.waiting.ids"])
    assert "free.last_step" not in tensors


def test_threads_change_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    one = train(binary, data, tmp_path / "one", 30, threads=1)
    assert train(binary, data, tmp_path / "four", 30, threads=4) == one


def test_resuming_changes_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    """Times, counts and waiting ids are saved: the same rows leave after an interruption."""
    whole = train(binary, data, tmp_path / "whole", 33)
    train(binary, data, tmp_path / "halves", 14)
    assert train(binary, data, tmp_path / "halves", 33, "--resume") == whole


@needs_mpi
def test_ranks_change_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    """The bound is on the rows of all ranks: the same leave. A run goes on, on other ranks."""
    portions = ("--portions", "6")
    whole = train(binary, data, tmp_path / "whole", 40, *portions)
    assert read_tensors(whole)["recent.ids"].size == 3
    for ranks in (1, 2, 3):
        assert train(binary, data, tmp_path / str(ranks), 40, *portions, ranks=ranks, threads=1) == whole, ranks
    for steps, ranks in ((14, 1), (27, 3), (40, 2)):
        resumed = train(binary, data, tmp_path / "parts", steps, *portions, "--resume", ranks=ranks, threads=1)
    assert resumed == whole


def test_evaluating_changes_no_bit(binary: Path, data: Path, tmp_path: Path) -> None:
    """Evaluation sees no id and lets no row leave."""
    alone = train(binary, data, tmp_path / "alone", 41)
    assert train(binary, data, tmp_path / "watched", 41, "--validation", data) == alone


def test_prediction_reads_initial_values_of_rows_that_left(binary: Path, data: Path, tmp_path: Path) -> None:
    """An id without a row predicts as before any training; prediction leaves the checkpoint as it is."""
    train(binary, data, tmp_path / "checkpoint", 20)
    scores = []
    for name in ("first", "second"):
        out = tmp_path / f"{name}.parquet"
        call(
            binary,
            "predict",
            "--data",
            data,
            "--checkpoint",
            tmp_path / "checkpoint",
            "--out",
            out,
            "--progress",
            "none",
        )
        scores.append(pq.read_table(out)["score"].to_numpy())
    assert np.isfinite(scores[0]).all() and (scores[0] == scores[1]).all()


def test_info_names_the_rules(binary: Path) -> None:
    tables = {table["name"]: table for table in json.loads(call(binary, "info", "--json"))["tables"]}
    assert tables["strict"] | {"bounded": 4, "evict": "lfu", "ttl": 2, "admit_after": 2} == tables["strict"]
    assert tables["free"]["optimizer"]["kind"] == "rowwise_adagrad" and "bounded" not in tables["free"]


def test_rowwise_adagrad_follows_its_equation(tmp_path: Path) -> None:
    """a += mean(g^2), w -= lr * g / (sqrt(a) + eps), with decay added to g: numpy beside the interpreter's gradients.
    (That binaries agree with the interpreter is the business of the tests above.)"""
    lr, decay, eps = 0.1, 0.01, 1e-10
    optimised = tmp_path / "model.mlir"
    call(
        tool("genrec-opt"),
        MODEL,
        "--genrec-infer-domains",
        "--genrec-specialize-modes",
        "--genrec-decompose-blocks",
        "--genrec-differentiate",
        "-o",
        optimised,
    )
    text = call(
        tool("genrec-run"), optimised, "--mode=train", "--random=5", "--rows=6", "--steps=5", "--seed=2", "--json",
        "--print=tables,gradients",
    )  # fmt: skip
    rows: dict[str, tuple[np.ndarray, float]] = {}
    updates = 0
    for step in read_stream(text):
        for key, values in step["tables"]["free"].items():
            after, accumulator = np.array(values[:-1]), values[-1]
            gradient = step["gradients"]["free"].get(key)
            if gradient is not None and key in rows:
                before, sum_before = rows[key]
                g = np.array(gradient) + decay * before
                expected_sum = sum_before + np.mean(g * g)
                np.testing.assert_allclose(accumulator, expected_sum, rtol=1e-6)
                np.testing.assert_allclose(after, before - lr * g / (np.sqrt(expected_sum) + eps), rtol=1e-6, atol=1e-8)
                updates += 1
            rows[key] = after, accumulator
    assert updates >= 5
