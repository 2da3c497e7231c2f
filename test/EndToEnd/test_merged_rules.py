"""Tables with rules about their rows, merged and apart: the same rows leave, to the bit, across checkpoints."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled import ROOT, assert_same, call, read_tensors, run_both, tool
from launching import needs_mpi
from training import compile_merged_and_apart, expect_interchangeable, train, write_drifting_rows

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "merged_rules.mlir"
PAIRS = [("few", "fewer"), ("seen", "often"), ("now", "then")]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows whose ids drift: early ones are not seen again."""
    return write_drifting_rows(tmp_path_factory.mktemp("rules") / "rows.parquet", seed=6)


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The model with merged tables, and with tables apart."""
    return compile_merged_and_apart(MODEL, tmp_path_factory.mktemp("binaries"))


def test_tables_of_the_same_rules_are_merged() -> None:
    plan = call(tool("genrec-compile"), MODEL, "--explain")
    for pair in PAIRS:
        assert f"tables {', '.join(pair)} are one" in plan
    assert "6 logical tables in 3 stores" in plan


def test_many_steps_agree_with_the_interpreter(tmp_path: Path) -> None:
    assert_same(run_both(MODEL, tmp_path, steps=12, rows=4))


def test_merging_changes_no_bit(binaries: dict[str, Path], data: Path, tmp_path: Path) -> None:
    """Rows, states, counts and waiting ids are the same, and every bound holds for each table alone."""
    merged = train(binaries["merged"], data, tmp_path / "a", 40)
    assert merged == train(binaries["apart"], data, tmp_path / "b", 40)
    tensors = read_tensors(merged)
    rows = {name: tensors[f"{name}.ids"].size for pair in PAIRS for name in pair}
    assert rows["few"] == 5 and 0 < rows["fewer"] <= 5
    assert 17 <= rows["seen"] <= 18 and 17 <= rows["often"] <= 18
    assert (tensors["now.last_step"] > 38).all() and rows["then"] > rows["now"] > 0
    assert tensors["few.waiting.ids"].size + tensors["fewer.waiting.ids"].size > 0


@needs_mpi
def test_ranks_change_no_bit(binaries: dict[str, Path], data: Path, tmp_path: Path) -> None:
    """Every bound is on the rows of one table on all ranks."""
    apart = train(binaries["apart"], data, tmp_path / "apart", 40, "--portions", "4")
    for ranks in (2, 4):
        folder = tmp_path / str(ranks)
        assert train(binaries["merged"], data, folder, 40, "--portions", "4", ranks=ranks, threads=1) == apart, ranks


@pytest.mark.parametrize("first,second", [("merged", "apart"), ("apart", "merged")])
def test_checkpoints_load_into_each_other(
    first: str, second: str, binaries: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    expect_interchangeable(binaries[first], binaries[second], data, tmp_path, steps=33, part=14)
