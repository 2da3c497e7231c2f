"""The compiled DLRM and DCN v2 and PyTorch models of the same equations, from identical weights: 100 equal losses.

Adagrad, whose state moves only where a gradient is not 0: touched rows only is the same as dense.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import criteo
import genrec as gr
import pytest
import torch
from example_modules import load_example
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
LOG = ROOT.parent / "shared" / "data" / "criteo-80k" / "criteo_80k.tsv.zst"
MODELS = {"dlrm": ("criteo_dlrm", "DLRM"), "dcnv2": ("criteo_dcnv2", "DCNv2")}

BATCH, STEPS, RATE = 256, 100, 0.01
TOLERANCE = 1e-4  # of the loss

pytestmark = pytest.mark.skipif(not LOG.exists(), reason=f"there is no click log at {LOG}")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> tuple[Path, object]:
    """The folder of the prepared data, and its schema."""
    folder = tmp_path_factory.mktemp("criteo")
    prepare = load_example("criteo_dlrm", "prepare")
    prepare.prepare(LOG, folder)
    return folder, prepare.SCHEMA


def compiled_losses(name: str, weights: criteo.Tensors, prepared, folder: Path) -> list[float]:
    """Losses of the compiled model's first steps."""
    data, schema = prepared
    example, class_name = MODELS[name]
    model = getattr(load_example(example, "model"), class_name)(optimizer=gr.optim.Adagrad(RATE))
    file, binary = folder / "model.genrec", folder / "model"
    gr.write_model(gr.record(model, schema), file)
    subprocess.run([BUILD / "bin" / "genrec-compile", file, "-O2", "--emit=binary", "-o", binary], check=True)
    init, report = folder / "init.safetensors", folder / "metrics.json"
    save_file(weights, init)
    command = [
        binary, "train", "--data", data / "train.parquet", "--init", init, "--batch", BATCH, "--max-steps", STEPS,
        "--no-shuffle", "--log-every", 1, "--progress", "none", "--metrics-json", report,
    ]  # fmt: skip
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [entry["loss"] for entry in json.loads(report.read_text())["step_losses"]]


@pytest.mark.parametrize("name", list(MODELS))
def test_losses_agree(name, prepared, tmp_path):
    frame = criteo.load(prepared[0] / "train.parquet")[: BATCH * STEPS]
    ids = criteo.vocabulary([frame])
    weights = criteo.initial_weights(name, ids, seed=1)
    model = criteo.Ranker(name, weights)
    rows = criteo.read(frame, ids)
    optimizer = torch.optim.Adagrad(model.parameters(), lr=RATE)
    expected = []
    for step in range(STEPS):
        loss = model.loss(rows[slice(step * BATCH, (step + 1) * BATCH)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    named = weights | {f"{column}.ids": ids[column] for column in criteo.CATEGORIES}
    got = compiled_losses(name, named, prepared, tmp_path)
    assert len(got) == STEPS
    worst = max(abs(a - b) / b for a, b in zip(got, expected, strict=True))
    assert worst < TOLERANCE, f"the losses part by {worst:.2e} of their size"
    assert expected[-1] < expected[0], "the model has not learned, so that little was compared"
