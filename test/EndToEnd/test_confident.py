"""The gradient of a sampled softmax whose answer is right, but for a probability far below the rounding of 1."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from compiled import ROOT, call, tool

MODEL = ROOT / "test" / "EndToEnd" / "Inputs" / "confident.mlir"
DIFFERENTIATED = "builtin.module(genrec.model(genrec-infer-domains,genrec-specialize-modes,genrec-differentiate))"
# The vectors of the items are (10, 10) and (-10, -10).
BATCH = {
    "rows": [{"query": [1.0, 1.0], "target": 5}],
    "catalogues": {"items": [{"id": 5, "image": [10.0, 0.0]}, {"id": 6, "image": [-10.0, 0.0]}]},
}


def interpret(folder: Path, pipeline: str) -> dict[str, Any]:
    (folder / "batch.json").write_text(json.dumps(BATCH))
    return json.loads(
        call(
            tool("genrec-run"), MODEL, f"--batch={folder / 'batch.json'}", "--mode=train", "--seed=3", "--json",
            "--print=parameters", f"--pipeline={pipeline}",
        )
    )  # fmt: skip


def run_binary(folder: Path, level: int) -> dict[str, Any]:
    (folder / "batches.json").write_text(json.dumps([BATCH]))
    call(tool("genrec-compile"), MODEL, f"-O{level}", "--emit=shared", "-o", folder / "model.so")
    return json.loads(call(tool("model-driver"), folder / "model.so", folder / "batches.json", "train", "3"))


@pytest.mark.parametrize("level", ["differentiated", "lowered", 0, 2])
def test_what_the_negatives_get_is_taken_from_the_positive(level: str | int, tmp_path: Path) -> None:
    """1 - exp(-40) is 1 in double. A gradient of the probability minus 1 would be 0 for the positive's vector."""
    if isinstance(level, int):
        step = run_binary(tmp_path, level)
    else:
        step = interpret(
            tmp_path, DIFFERENTIATED if level == "differentiated" else "builtin.module(genrec-graph-pipeline)"
        )
    weight = step["parameters"]["w"]
    weight = [x for row in weight for x in row] if isinstance(weight[0], list) else weight
    # Of 8 draws, so many are of the other item. Both vectors move along (1, 1), by as much each.
    drawn = (weight[0] - 1.0) / (1e16 * math.exp(-40.0) * 20.0)
    assert round(drawn) in range(1, 9)
    assert drawn == pytest.approx(round(drawn), rel=1e-5)
    assert weight == pytest.approx([weight[0], weight[0], 1.0, 1.0])
