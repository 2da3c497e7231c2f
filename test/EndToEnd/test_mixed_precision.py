"""Models whose products round their factors to bfloat16: binaries against the interpreter, which rounds likewise, and
against the same models in float32.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled import ROOT, Tolerance, assert_same, differences, run_both

INPUTS = ROOT / "test" / "EndToEnd" / "Inputs"
# A factor that is rounded from another float may be another bfloat16, 2^-8 of it away.
NEAR = Tolerance(relative=4e-3, absolute=1e-3)
MODELS = ["hstu", "wide", "classes", "fanned", "pooled"]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("level, march", [(0, "native"), (2, "native"), (2, "x86-64-v3")])
def test_training(name: str, level: int, march: str, tmp_path: Path) -> None:
    """Losses, parameters and table rows agree after a step."""
    runs = run_both(
        INPUTS / f"{name}.mlir", tmp_path, level=level, march=march, steps=2, compile_flags=["--mixed-precision"]
    )
    assert_same(runs, NEAR)


def test_results_differ_from_float(tmp_path: Path) -> None:
    """By more than rounding of floats: the flag reaches the binary and the interpreter alike."""
    plain, mixed = tmp_path / "plain", tmp_path / "mixed"
    plain.mkdir()
    mixed.mkdir()
    model = INPUTS / "hstu.mlir"
    left = run_both(model, plain, steps=2)
    right = run_both(model, mixed, steps=2, compile_flags=["--mixed-precision"])
    for one, other in ((left.compiled, right.compiled), (left.interpreted, right.interpreted)):
        assert differences(one[-1]["losses"], other[-1]["losses"], Tolerance(relative=2e-6, absolute=0))
        assert not differences(one[-1]["losses"], other[-1]["losses"], Tolerance(relative=2e-2))
    text = (mixed / "model.so.cpp").read_text()
    assert ", true>" in text and "kernels::attention" in text


def test_blocks_of_rows_round_likewise(tmp_path: Path) -> None:
    """Many rows, which run in blocks with weights packed once."""
    runs = run_both(INPUTS / "hstu.mlir", tmp_path, rows=60, steps=1, compile_flags=["--mixed-precision"])
    assert_same(runs, NEAR)
