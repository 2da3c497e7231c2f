"""What `calibrate` of a compiled model measures is what its profiles and --explain predict times from."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import genrec as gr
import pytest
from compiled import BUILD, call, draft, require_emulator
from test_cuda_models import SCHEMA, Clicks, write_rows

COMPILER = BUILD / "bin" / "genrec-compile"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet")


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, gr.CompiledModel]:
    """By target, with products of bf16."""
    require_emulator()
    folder = tmp_path_factory.mktemp("models")
    return {
        target: gr.compile(
            Clicks(), SCHEMA, target=target, output=folder / target, flags=[*draft(), "--mixed-precision"]
        )
        for target in ("cpu", "cuda-emulated")
    }


@pytest.fixture(scope="module")
def limits(models: dict[str, gr.CompiledModel], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What was measured, by target."""
    folder = tmp_path_factory.mktemp("limits")
    files = {}
    for target, model in models.items():
        files[target] = folder / f"{target}.json"
        told = call(model.binary, "calibrate", "--out", files[target])
        assert json.loads(files[target].read_text())["processor"] in told
        assert f"written to {files[target]}" in told
    return files


def profile(model: gr.CompiledModel, rows: Path, machine: Path, folder: Path) -> tuple[dict[str, Any], str]:
    """The profile of nine steps, and what was printed."""
    done = subprocess.run(
        [
            *(model.binary, "train", "--data", rows, "--batch", "12", "--epochs", "8", "--max-steps", "9"),
            *("--threads", "1", "--profile", folder),
        ],
        env=os.environ | {"GENREC_MACHINE": str(machine)}, capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    return json.loads((folder / "profile.json").read_text()), done.stdout + done.stderr


def explain(model: gr.CompiledModel, target: str, machine: Path) -> str:
    environment = os.environ | {"GENREC_MACHINE": str(machine)}
    command = [COMPILER, model.model_file, f"--target={target}", "--mixed-precision", "--explain"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_a_device_has_limits_of_its_own(limits: dict[str, Path]) -> None:
    cpu, device = (json.loads(limits[target].read_text()) for target in ("cpu", "cuda-emulated"))
    assert cpu["threads"] > 0 and device["threads"] == 0
    assert cpu["processor"] != device["processor"]
    assert device["bf16_flops_per_second"] > 0
    for measured in (cpu, device):
        assert len(measured["copies"]) == len(measured["gathers"]) >= 2


def test_limits_of_others_are_not_written_over(
    models: dict[str, gr.CompiledModel], limits: dict[str, Path], tmp_path: Path
) -> None:
    """An emulated device's are kept where they are asked for alone; $GENREC_MACHINE may name a machine to predict."""

    def calibrate(program: Path, *flags: str, machine: Path) -> str:
        environment = os.environ | {"GENREC_MACHINE": str(machine)}
        done = subprocess.run([program, *flags], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        return done.stderr

    assert "--out <file>" in calibrate(models["cuda-emulated"].binary, "calibrate", machine=tmp_path / "none.json")
    before = limits["cuda-emulated"].read_bytes()
    for program in ((models["cpu"].binary, "calibrate"), (BUILD / "bin" / "genrec-calibrate",)):
        assert "has the limits of emulated device, not of " in calibrate(*program, machine=limits["cuda-emulated"])
    assert limits["cuda-emulated"].read_bytes() == before


@pytest.mark.parametrize("target", ["cpu", "cuda-emulated"])
def test_times_are_predicted_from_limits_of_the_same_kind(
    models: dict[str, gr.CompiledModel], limits: dict[str, Path], rows: Path, target: str, tmp_path: Path
) -> None:
    other = next(each for each in limits if each != target)
    told, text = profile(models[target], rows, limits[target], tmp_path / "own")
    assert told["predicted_milliseconds_per_step"] > 0
    assert all(op["predicted_milliseconds"] > 0 for op in told["ops"] if op["bytes"] > 0)
    assert "at least, all ops:" in text
    told, text = profile(models[target], rows, limits[other], tmp_path / "other")
    assert "predicted_milliseconds_per_step" not in told
    assert "calibrate` once on this machine" in text

    name = json.loads(limits[target].read_text())["processor"]
    on = f"threads of {name}" if target == "cpu" else f"on {name}"
    assert on in explain(models[target], target, limits[target])
    by = "genrec-compile --calibrate" if target == "cpu" else "`calibrate` of the compiled model on its device"
    assert f"times are predicted after {by}" in explain(models[target], target, limits[other])


def test_products_of_bf16_take_the_rate_of_bf16(
    models: dict[str, gr.CompiledModel], limits: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """A device that multiplies nothing but floats: by the profile and by --explain its products take the longest."""
    slow = json.loads(limits["cuda-emulated"].read_text()) | {"bf16_flops_per_second": 1.0}
    machine = tmp_path / "slow.json"
    machine.write_text(json.dumps(slow))
    told, _ = profile(models["cuda-emulated"], rows, machine, tmp_path / "profile")
    most = max(told["ops"], key=lambda op: op["predicted_milliseconds"])
    assert most["bound"] == "arithmetic" and most["name"] in ("linear", "fused_linear", "weight_gradient")
    assert most["predicted_milliseconds"] == pytest.approx(most["flops"] * 1e3, rel=1e-3)
    text = explain(models["cuda-emulated"], "cuda-emulated", machine)
    assert any("linear" in line and line.endswith(" arithmetic") for line in text.splitlines())
