"""Every example as a binary for a GPU: nvcc compiles it, it starts anywhere and says where there is no GPU.

What `make device` does with these binaries on a device is done here with those of the emulated device.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import genrec as gr
import pytest
from compiled import BUILD, ROOT, call, read_toolchain, tool, write_toolchain

sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "scripts" / "device")]

import device_examples  # noqa: E402
import device_models  # noqa: E402

UNITS = read_toolchain().get("cuda_units", {})
# Examples that have no CUDA form yet, and what the compiler says of them.
REFUSED: dict[str, str] = {}
CHECKPOINTED = "request_ranking"  # the one whose commands that read a checkpoint are tried, too
NO_DEVICE = "the model was compiled for CUDA, and there is no device"


def make(name: str, folder: Path) -> tuple[Path, device_models.Packed]:
    """The model file of an example, and its data, in `folder`."""
    os.environ.setdefault("GENREC_BIN", str(BUILD / "bin"))
    model, schema, packed = device_models.MODELS[name](folder, device_models.SMALL)
    file = folder / f"{name}.genrec"
    gr.write_model(gr.record(model, schema), file)
    return file, packed


def compile_to(file: Path, binary: Path, target: str, *more: str) -> subprocess.CompletedProcess[str]:
    command = [tool("genrec-compile"), file, f"--target={target}", *more, "-o", binary]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def refuse_warnings(toolchain: dict[str, Any]) -> None:
    """What nvcc says is not shown where it succeeds."""
    toolchain["cuda_units"]["nvcc"]["compile"] += ["-Werror", "all-warnings"]


def check_kernels(file: Path, packed: device_models.Packed, binary: Path) -> None:
    """All that are printed are in the binary, and take no more than they may."""
    printed = binary.with_suffix(".cu")
    call(tool("genrec-compile"), file, "--target=cuda", *packed.compile, "--emit=cuda-kernels", "-o", printed)
    allowance = Path(__file__).parent / "Inputs" / "row_kernels.allowance"
    checked = call(sys.executable, ROOT / "scripts" / "cuda_resources.py", binary, allowance)
    assert f"{printed.read_text().count('__global__')} kernels, 0 over" in checked


def expect_no_device(*words: object) -> None:
    """Where there is a device, nothing."""
    if Path("/dev/nvidiactl").exists():
        return
    ended = subprocess.run(list(map(str, words)), capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended
    assert NO_DEVICE in ended.stderr and "compile it with --target=cpu" in ended.stderr, ended.stderr


def test_all_examples_are_here() -> None:
    """Those of examples/ that have a model."""
    assert {path.parent.name for path in (ROOT / "examples").glob("*/model.py")} == set(device_models.EXAMPLES)
    assert REFUSED.keys() <= device_models.MODELS.keys()


@pytest.mark.skipif("nvcc" not in UNITS, reason="no nvcc")
@pytest.mark.parametrize("name", device_models.MODELS)
def test_nvcc_compiles_the_example(name: str, tmp_path: Path) -> None:
    """To a linked binary; without a device its commands end with a message, and those that need none work."""
    file, packed = make(name, tmp_path)
    binary = tmp_path / "model"
    toolchain = write_toolchain(tmp_path / "toolchain.json", refuse_warnings)
    made = compile_to(file, binary, "cuda", f"--toolchain={toolchain}", *packed.compile)
    if name in REFUSED:
        assert made.returncode == 1 and REFUSED[name] in made.stderr, made.stderr
        return
    assert made.returncode == 0, made.stderr
    check_kernels(file, packed, binary)
    for command in ("train", "evaluate", "predict"):
        assert "--data" in call(binary, command, "--help")
    assert "train" in call(binary, "--help")
    call(binary, "info")
    given = [flag.replace("{folder}", str(tmp_path)) for flag in packed.flags] + ["--progress", "none"]
    expect_no_device(binary, "train", "--data", tmp_path / packed.train, *given)
    if name != CHECKPOINTED:
        return
    cpu, checkpoint = tmp_path / "cpu", tmp_path / "checkpoint"
    assert compile_to(file, cpu, "cpu").returncode == 0
    call(cpu, "train", "--data", tmp_path / packed.train, "--checkpoint", checkpoint, "--max-steps", "1", *given)
    given += ["--data", tmp_path / packed.valid, "--checkpoint", checkpoint]
    expect_no_device(binary, "evaluate", *given)
    expect_no_device(binary, "predict", "--out", tmp_path / "out.parquet", *given)


@pytest.mark.skipif("emulator" not in UNITS, reason="this build runs no kernels on the host")
def test_what_runs_on_a_device_runs_emulated(tmp_path: Path) -> None:
    """The comparison of part 2: both binaries train and evaluate, losses and metrics agree."""
    folder = tmp_path / "criteo_dlrm"
    file, packed = make("criteo_dlrm", folder)
    for side, target in (("device", "cuda-emulated"), ("cpu", "cpu")):
        made = compile_to(file, folder / side, target)
        assert made.returncode == 0, made.stderr
    (folder / "example.json").write_text(json.dumps(packed.spec()))
    status = device_examples.main([str(tmp_path), str(tmp_path / "out"), "--steps", "3", "--batch", "32"])
    results = json.loads((tmp_path / "out" / "part-2.json").read_text())["jobs"]["example criteo_dlrm"]
    assert status == 0, results
    assert results["details"]["losses_apart"] <= device_examples.LOSS
    assert results["details"]["metrics"]["device"].keys() == results["details"]["metrics"]["cpu"].keys() >= {"loss"}
    example = device_examples.Example(folder, 3, 32)
    part = device_examples.Part(2, tmp_path / "out", 3600, {}, {})
    first = example.whole(part, "cpu", tmp_path / "first")
    runs = example.with_moved_rates(part, tmp_path)
    assert len(runs) == len(device_examples.UNITS)
    apart = [run.apart(first) for run in runs]
    assert 0 < max(map(max, apart)) <= device_examples.LOSS, apart
    assert all(steps[0] == 0 for steps in apart), apart  # before any update
