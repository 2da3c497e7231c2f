"""What `make device` holds models against, on the CPU: the peers run, and their jagged operators are FBGEMM's."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "device"), str(ROOT / "benchmarks" / "hstu_train")]

import device_models  # noqa: E402
import device_pack  # noqa: E402
import jagged  # noqa: E402

LENGTHS = [3, 0, 5, 1]


def operators(of_fbgemm: bool) -> tuple:
    if of_fbgemm:
        pytest.importorskip("fbgemm_gpu")
        ops = torch.ops.fbgemm
        return ops.asynchronous_complete_cumsum, ops.dense_to_jagged, ops.jagged_to_padded_dense
    return jagged.complete_cumsum, jagged.dense_to_jagged, jagged.jagged_to_padded


def use(of_fbgemm: bool) -> list[torch.Tensor]:
    """Results and gradients of all operators, on the same values."""
    cumsum, to_jagged, to_padded = operators(of_fbgemm)
    torch.manual_seed(3)
    offsets = cumsum(torch.tensor(LENGTHS))
    dense = torch.randn(len(LENGTHS), 6, 4, requires_grad=True)
    values = torch.randn(sum(LENGTHS), 4, requires_grad=True)
    rows = to_jagged(dense, [offsets])[0]
    padded = to_padded(values, [offsets], [6], 0.5)
    (rows.square().sum() + (padded * torch.arange(6)[None, :, None]).square().sum()).backward()
    return [offsets, rows.detach(), padded.detach(), dense.grad, values.grad]


def test_jagged_operators_are_those_of_fbgemm() -> None:
    for ours, theirs in zip(use(False), use(True), strict=True):
        assert torch.equal(ours, theirs)


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scripts and data as they are unpacked on a device's machine; a batch of the small data is its whole."""
    folder = tmp_path_factory.mktemp("packed")
    device_pack.pack_peers(folder, None)
    for name in ("search_ranking", "hstu_movielens"):
        device_models.MODELS[name](folder / "examples" / name, device_models.SMALL)
    script = folder / "torch_examples.py"
    text = script.read_text().replace("WARM, STEPS = 10, 40", "WARM, STEPS = 2, 6")
    text = text.replace("SEARCH_BATCH = 2048, 64, 128, 360", "SEARCH_BATCH = 64, 8, 16, 5")
    script.write_text(text)
    return folder


def run(folder: Path, *words: str) -> dict:
    """The report of torch_examples.py on the CPU."""
    command = [
        sys.executable,
        "-W",
        "ignore",
        folder / "torch_examples.py",
        "--device",
        "cpu",
        *words,
        folder / "report.json",
    ]
    ended = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return json.loads((folder / "report.json").read_text())


def test_peers_of_examples_train(staged: Path) -> None:
    """Every model takes its steps, and its loss falls or stays where it begins: batches repeat."""
    report = run(staged, "--only", "search_ranking,criteo_dlrm,criteo_dcnv2,news_request_ranking")
    found = {figure["what"].removeprefix("PyTorch, a step of "): figure for figure in report["figures"]}
    tables = ["a table per width", "a table each"]
    assert {"criteo_dlrm", "criteo_dcnv2", "news_request_ranking"} <= found.keys(), report
    for name in tables:
        assert {f"search_ranking, {name}", f"search_ranking, {name}, transformed before"} <= found.keys(), report
        figure = found[f"search_ranking, {name}, transformed before"]
        # Two losses of a probability near one half.
        assert abs(figure["first_loss"] - 2 * math.log(2)) < 0.3 and figure["last_loss"] < figure["first_loss"]
    assert all(figure["value"] > 0 and figure["unit"] == "ms" for figure in found.values())


def test_what_was_not_packed_is_said(staged: Path) -> None:
    """The public code, and data."""
    report = run(staged, "--only", "hstu_movielens")
    assert "packed without the public code: make device PEER=" in report["skipped"][0]["why"]
    report = run(staged, "--only", "search_ranking", "--examples", str(staged / "none"))
    assert "search_ranking was packed without data for its peer" in report["skipped"][0]["why"]


def test_the_public_code_has_the_same_losses_with_our_operators(staged: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a checkout of it is given; fbgemm_gpu is hidden from one of both."""
    import os

    checkout = os.environ.get("GENERATIVE_RECOMMENDERS")
    if not checkout:
        pytest.skip("GENERATIVE_RECOMMENDERS names no checkout of the public HSTU code")
    device_pack.pack_peers(staged, Path(checkout))
    reports = [run(staged, "--only", "hstu_movielens")]
    (staged / "fbgemm_gpu.py").write_text("raise ImportError('hidden')\n")
    reports.append(run(staged, "--only", "hstu_movielens"))
    (staged / "fbgemm_gpu.py").unlink()
    shutil.rmtree(staged / device_pack.PUBLIC_CODE)
    with_fbgemm, without = (report["figures"][0] for report in reports)
    assert with_fbgemm["what"].endswith("public code, eager")
    assert without["what"].endswith("public code without FBGEMM, eager")
    for loss in ("first_loss", "last_loss"):
        assert without[loss] == pytest.approx(with_fbgemm[loss], rel=1e-5)
    assert with_fbgemm["last_loss"] < with_fbgemm["first_loss"]
