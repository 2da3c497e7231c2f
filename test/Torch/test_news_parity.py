"""The compiled news ranker and PyTorch models of the same equations, from identical weights: equal losses.

PyTorch encodes the history per impression in one form and per request in the other; ours does so with and without
sink-fanout. Adagrad, whose state moves only where a gradient is not 0: touched rows only is the same as dense.
Few steps: the two PyTorch forms part by 9e-4 within 12.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import genrec as gr
import news
import pytest
import torch
from example_modules import load_example
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))

BATCH, STEPS, REQUESTS = 16, 6, 16 * 12
TOLERANCE = 1e-4  # of the loss


def log_line(request: int) -> str:
    """A request; some have read nothing, and some more than the model looks at."""
    read = " ".join(f"N{(request * 7 + 3 * event) % 90}" for event in range(request * 11 % 64))
    items = [(request * 5 + 3 * item) % 97 for item in range(2 + request % 9)]
    shown = " ".join(f"N{item}-{int((item + request) % 3 == 0)}" for item in items)
    return f"{request}\tU{request % 23}\t11/{9 + request % 5}/2019 2:{request % 60:02}:07 PM\t{read}\t{shown}"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """The folder of the prepared data."""
    folder = tmp_path_factory.mktemp("news")
    log = folder / "behaviors.tsv"
    log.write_text("\n".join(log_line(request) for request in range(REQUESTS * 5 // 4)) + "\n")
    load_example("news_request_ranking", "prepare").prepare(log, folder)
    return folder


@pytest.fixture(scope="module")
def weights(prepared) -> news.Tensors:
    """Initial values of all sides."""
    return news.initial_weights(news.read(prepared / "train.parquet").ids, seed=1)


def compiled_losses(sinks: str, weights: news.Tensors, prepared: Path, folder: Path) -> list[float]:
    """Losses of the compiled model's first steps."""
    module = load_example("news_request_ranking", "model")
    file, binary = folder / "model.genrec", folder / "model"
    schema = gr.Schema.from_parquet(prepared / "train.parquet")
    gr.write_model(gr.record(module.NewsRanker(optimizer=gr.optim.Adagrad(module.RATE)), schema), file)
    command = [BUILD / "bin" / "genrec-compile", file, f"--sink-fanout={sinks}", "-O2", "--emit=binary", "-o", binary]
    subprocess.run(command, check=True)
    ids = news.read(prepared / "train.parquet").ids
    init, report = folder / "init.safetensors", folder / "metrics.json"
    save_file(weights | {f"{name}.ids": ids[name] for name in ids}, init)
    command = [
        binary, "train", "--data", prepared / "train.parquet", "--init", init, "--batch", BATCH, "--max-steps", STEPS,
        "--no-shuffle", "--log-every", 1, "--progress", "none", "--metrics-json", report,
    ]  # fmt: skip
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return [entry["loss"] for entry in json.loads(report.read_text())["step_losses"]]


@pytest.fixture(scope="module")
def expected(prepared, weights) -> dict[bool, list[float]]:
    """Losses of PyTorch, by whether the history is encoded once per request."""
    log, losses = news.read(prepared / "train.parquet"), {}
    for deferred in (False, True):
        model = news.Ranker(weights, deferred)
        optimizer = torch.optim.Adagrad(model.parameters(), lr=load_example("news_request_ranking", "model").RATE)
        losses[deferred] = []
        for step in range(STEPS):
            loss = model.loss(log.batch(slice(step * BATCH, (step + 1) * BATCH)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[deferred].append(loss.item())
    return losses


def test_both_forms_of_the_peer_are_one_model(expected):
    assert expected[True] == pytest.approx(expected[False], rel=1e-4)
    assert len(set(expected[True])) == STEPS


@pytest.mark.parametrize("sinks", ["true", "false"])
def test_losses_agree(sinks, expected, weights, prepared, tmp_path):
    found = compiled_losses(sinks, weights, prepared, tmp_path)
    assert len(found) == STEPS
    worst = max(abs(a - b) / b for a, b in zip(found, expected[True], strict=True))
    print(f"\n  sink-fanout={sinks}: losses from {found[0]:.4f} to {found[-1]:.4f}, at most {worst:.1e} apart")
    assert worst < TOLERANCE, f"the losses part by {worst:.2e} of their size"
