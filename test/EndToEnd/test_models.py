"""Compiled models against the interpreter, on random batches."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled import ROOT, assert_same, run_both

INPUTS = ROOT / "test" / "EndToEnd" / "Inputs"
MODELS = sorted(path.stem for path in INPUTS.glob("*.mlir"))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("level", [0, 2])
def test_training(name: str, level: int, tmp_path: Path) -> None:
    """Losses, parameters and table rows agree after every step."""
    assert_same(run_both(INPUTS / f"{name}.mlir", tmp_path, level=level))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", ["evaluate", "predict"])
def test_other_modes(name: str, mode: str, tmp_path: Path) -> None:
    """Losses, metrics and outputs agree on a model as it starts."""
    text = (INPUTS / f"{name}.mlir").read_text()
    if mode == "predict" and "genrec.output" not in text:
        pytest.skip("the model has no output")
    assert_same(run_both(INPUTS / f"{name}.mlir", tmp_path, mode=mode))
