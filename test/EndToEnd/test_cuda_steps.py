"""Steps on the emulated device: what is taken, waited for, captured and dispatched ahead changes no result."""

from __future__ import annotations

import json
import re
import subprocess
import time
from pathlib import Path
from typing import Any

import genrec as gr
import pytest
from compiled import call, draft, require_emulator
from test_cuda_models import BATCH, SCHEMA, Attending, Clicks, Crosses, tensors, train, write_attended, write_rows

SEEDS = (1, 2, 3)  # of the order in which what is queued runs


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(Clicks(), tmp_path_factory.mktemp("clicks"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet")


def build(model: gr.Model, folder: Path, *flags: str) -> Path:
    require_emulator()
    return gr.compile(model, SCHEMA, target="cuda-emulated", output=folder / "cuda", flags=[*draft(), *flags]).binary


def run(binary: Path, data: Path, report: Path, *more: str, steps: int) -> dict[str, Any]:
    """Trains without a checkpoint, and returns the report."""
    call(
        binary, "train", "--data", data, "--batch", str(BATCH), "--epochs", "8", "--max-steps", str(steps),
        "--seed", "5", "--threads", "1", "--progress", "none", "--metrics-json", report, "--log-every", "1", *more,
    )  # fmt: skip
    return json.loads(report.read_text())


def losses(report: dict[str, Any]) -> list[float]:
    return [step["loss"] for step in report["step_losses"]]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_step_takes_no_memory_and_waits_once(
    clicks: Path, rows: Path, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All ids are known after an epoch of 4 steps, and the steps of all slots are captured by the tenth."""
    monkeypatch.setenv("GENREC_SIMT_SEED", str(seed))
    short = run(clicks, rows, tmp_path / "short.json", steps=10)
    long = run(clicks, rows, tmp_path / "long.json", steps=18)
    assert losses(long)[:10] == losses(short)
    before, after = short["device"], long["device"]
    assert after["allocations"] == before["allocations"]
    assert after["waits"] - before["waits"] == 8
    assert after["steps_captured"] == before["steps_captured"] > 0
    assert after["captured_steps_launched"] - before["captured_steps_launched"] == 8
    assert after["not_captured"] == []


def test_a_report_says_where_the_host_spends_a_step(clicks: Path, rows: Path, tmp_path: Path) -> None:
    """Of steps that are one launch; what it does adds up to less than the run took."""
    begin = time.perf_counter()
    report = run(clicks, rows, tmp_path / "report.json", steps=18)["device"]
    seconds = time.perf_counter() - begin
    host = report["host"]
    steps = host.pop("steps")
    assert 10 <= steps <= report["captured_steps_launched"] - report["steps_captured"]
    assert list(host) == ["data_ms", "batch_ms", "dispatch_ms", "stages_ms", "wait_ms", "end_ms"]
    assert all(milliseconds > 0 for milliseconds in host.values())
    assert host["wait_ms"] == max(host.values())  # an emulated device is the slower one
    assert steps * sum(host.values()) < 1e3 * seconds
    none = run(clicks, rows, tmp_path / "none.json", "--capture", "off", steps=6)["device"]["host"]
    assert set(none.values()) == {0}


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("model", [Clicks, Crosses], ids=["clicks", "crosses"])
def test_captured_steps_have_the_bits_of_others(
    model: type[gr.Model], rows: Path, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a learning rate that changes from step to step, and with rules about rows."""
    binary = build(model(), tmp_path)
    monkeypatch.setenv("GENREC_SIMT_SEED", str(seed))
    reports, kept = {}, {}
    for capture in ("on", "off"):
        folder, flags = tmp_path / f"{capture}", ["--capture", capture, "--schedule", "cosine"]
        reports[capture] = train(binary, rows, folder, *flags, steps=12)
        kept[capture] = tensors(folder)
    assert losses(reports["on"]) == losses(reports["off"])
    assert kept["on"].keys() == kept["off"].keys()
    assert all((kept["on"][name] == kept["off"][name]).all() for name in kept["on"])
    assert reports["on"]["device"]["captured_steps_launched"] > 0
    assert reports["off"]["device"]["captured_steps_launched"] == 0
    ahead = [report["device"]["steps_dispatched_ahead"] for report in reports.values()]
    # All but the first steps of three epochs; rows that leave by rule leave before the next step.
    assert ahead == ([9, 9] if model is Clicks else [0, 0])


def test_dropout_draws_anew_in_each_launch_of_a_captured_step(tmp_path: Path) -> None:
    """Of rows and of attention's scores: the seed and the step are in the device's memory."""
    require_emulator()
    data, reports = write_attended(tmp_path / "attended.parquet"), {}
    schema = gr.Schema.from_parquet(data)
    binary = gr.compile(Attending(), schema, target="cuda-emulated", output=tmp_path / "cuda", flags=draft()).binary
    for capture in ("on", "off"):
        reports[capture] = run(binary, data, tmp_path / "report.json", "--capture", capture, steps=14)
    assert losses(reports["on"]) == losses(reports["off"])
    assert reports["on"]["device"]["captured_steps_launched"] > 2


def test_a_profile_has_the_ops_of_the_cpu(rows: Path, tmp_path: Path) -> None:
    """
    Their names, calls and work; stacked domains have room for all parts on a device, which updates all parameters in
    one launch, behind the rows of tables.
    """
    ops = {}
    for target in ("cpu", "cuda-emulated"):
        require_emulator(target)
        binary = gr.compile(Clicks(), SCHEMA, target=target, output=tmp_path / target, flags=draft()).binary
        folder = tmp_path / f"{target}.profile"
        report = run(binary, rows, tmp_path / "report.json", "--profile", str(folder), steps=9)
        profile = json.loads((folder / "profile.json").read_text())
        ops[target] = profile["ops"]
        trace = json.loads((folder / "trace.json").read_text())
        spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
        assert all(event["dur"] >= 0 for event in spans)
    assert report["device"]["not_captured"] == ["with --profile the calls of a step are timed one by one"]
    cpu, cuda = ops.values()
    updates = [op for op in cpu if re.fullmatch("row_(.*)_rows_update_\\1", op["name"])]
    cpu = [op for op in cpu if op not in updates]
    joint = cuda.pop()
    assert (joint["name"], joint["stage"], joint["calls_per_step"]) == ("update_parameters", "update", 1)
    assert len(updates) > 3 and joint["bytes"] == sum(op["bytes"] for op in updates)
    names = [re.search(r"of ([\w.]+) \(", op["what"])[1] for op in updates]
    assert all(name in joint["what"] for name in names[:8]), joint["what"]
    for key in ("name", "stage", "what", "where", "calls_per_step"):
        assert [op[key] for op in cuda] == [op[key] for op in cpu]
    for on_cpu, on_cuda in zip(cpu, cuda, strict=True):
        if on_cpu["stage"] in ("compute", "update"):
            assert (on_cuda["rows"], on_cuda["bytes"]) == (on_cpu["rows"], on_cpu["bytes"]), on_cpu["name"]
        assert on_cuda["milliseconds"] > 0
    phases = profile["milliseconds_per_step_by_phase"]
    assert phases["compute"] >= sum(op["milliseconds"] for op in cuda if op["stage"] == "compute") * 0.999


def test_the_first_value_that_is_not_finite_is_named_as_on_the_cpu(rows: Path, tmp_path: Path) -> None:
    """In a step that is captured, too: the learning rate makes weights grow without bound."""
    said = []
    for target in ("cpu", "cuda-emulated"):
        require_emulator(target)
        binary = gr.compile(Clicks(), SCHEMA, target=target, output=tmp_path / target, flags=draft()).binary
        command = [binary, "train", "--data", rows, "--batch", str(BATCH), "--progress", "none", "--check-finite"]
        command += ["--seed", "5", "--threads", "1", "--epochs", "8", "--lr", "1e18"]
        result = subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)
        assert result.returncode == 1
        said.append(result.stderr.replace(str(binary), "model").replace(target, "model"))
    assert "made a" in said[0] and said[1] == said[0]
