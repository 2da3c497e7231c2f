"""Compiled models against the interpreter, on random batches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from compiled import ROOT, assert_same, call, read_stream, run_both, tool

INPUTS = ROOT / "test" / "EndToEnd" / "Inputs"
# Of these, models as a front end writes them; others are for tests of their own.
MODELS = sorted(path.stem for path in INPUTS.glob("*.mlir") if "genrec.program @main" in path.read_text())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("level", [0, 2])
def test_training(name: str, level: int, tmp_path: Path) -> None:
    """Losses, parameters and table rows agree after every step."""
    assert_same(run_both(INPUTS / f"{name}.mlir", tmp_path, level=level))


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("mode", ["evaluate", "predict", "items"])
def test_other_modes(name: str, mode: str, tmp_path: Path) -> None:
    """Losses, metrics and outputs agree on a model as it starts."""
    text = (INPUTS / f"{name}.mlir").read_text()
    if mode == "predict" and "genrec.output" not in text:
        pytest.skip("the model has no output")
    if mode == "items" and "genrec.catalogue" not in text:
        pytest.skip("the model has no catalogue")
    assert_same(run_both(INPUTS / f"{name}.mlir", tmp_path, mode=mode))


@pytest.mark.parametrize("name", MODELS)
def test_steps_allocate_for_a_new_largest_batch_only(name: str, tmp_path: Path) -> None:
    """A batch that was seen before takes no memory on any thread; a larger one takes some, once. (Where rows come and
    leave by rule, a batch needs three steps until its tables are as they stay; five until the last rows are hot.)"""
    model, shared, file = INPUTS / f"{name}.mlir", tmp_path / "model.so", tmp_path / "batches.json"
    call(tool("genrec-compile"), model, "--emit=shared", "-o", shared)
    batches = [
        read_stream(call(tool("genrec-run"), model, "--random=3", f"--rows={rows}", "--json", "--print-batch"))[0]
        for rows in (6, 400)
    ]
    if catalogues := batches[0].get("catalogues"):
        batches[1]["catalogues"] = catalogues
    small, large = batches
    bringing = next((steps for rule, steps in (("hot_after", 5), ("admit_after", 3)) if rule in model.read_text()), 1)
    file.write_text(json.dumps([small] * (bringing + 2) + [large] * (bringing + 1) + [small] * bringing))
    lines = call(tool("model-driver"), shared, file, "train", "1", "3").splitlines()
    allocations = [json.loads(line)["allocations"] for line in lines]
    assert allocations[0] > 0 < allocations[bringing + 2]
    assert allocations[bringing : bringing + 2] == [0, 0]
    assert (allocations[2 * bringing + 2], allocations[-1]) == (0, 0)
