"""Compiles models and runs them beside the interpreter.

The oracle is genrec-run, which evaluates the model from the definitions of its ops; the compiled model runs in model-driver on
the same batches. Losses, parameters, table rows, outputs and metrics of every step must agree.
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))

# Sections of a step's result that are compared, and what each may differ by: the interpreter rounds to float after each op, the
# compiled model adds in another order.
COMPARED = ("losses", "parameters", "tables", "outputs", "metrics")


@dataclass(frozen=True)
class Tolerance:
    """Numbers agree when |a - b| <= absolute + relative * max(|a|, |b|)."""

    relative: float = 2e-4
    absolute: float = 2e-5


def tool(name: str) -> str:
    """The path of a program of the build."""
    return str(BUILD / "bin" / name)


EMULATED = (BUILD / "lib" / "libgenrec_rt_cuda_emulated.a").exists()
needs_emulator = pytest.mark.skipif(not EMULATED, reason="this build runs no kernels on the host")


def require_emulator(target: str = "cuda-emulated") -> None:
    """Skips a test, or what a fixture makes, of a target that the build has no runtime for."""
    if target != "cpu" and not EMULATED:
        pytest.skip("this build runs no kernels on the host")


def call(*arguments: str | Path) -> str:
    """Runs a program and returns what it prints; raises with its messages where it fails."""
    result = subprocess.run([str(a) for a in arguments], capture_output=True, text=True, timeout=600, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, arguments))}\nexit status {result.returncode}\n{result.stderr}")
    return result.stdout


def read_toolchain() -> dict[str, Any]:
    """What the build's genrec-compile compiles and links models with."""
    return json.loads((BUILD / "share" / "genrec" / "toolchain.json").read_text())


def write_toolchain(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """The same as `change` leaves it, for --toolchain."""
    toolchain = read_toolchain()
    change(toolchain)
    path.write_text(json.dumps(toolchain))
    return path


def write_draft_toolchain(path: Path) -> Path:
    """With models of the CPU not optimised: the same bits, compiled in a fifth of the time."""

    def change(toolchain: dict[str, Any]) -> None:
        toolchain["compile"] = ["-O0" if flag == "-O3" else flag for flag in toolchain["compile"]]
        toolchain["precompiled"] = str(BUILD / "share/genrec/PrecompiledDraft.pch")

    return write_toolchain(path, change)


@functools.cache
def draft() -> list[str]:
    """Flags of genrec-compile that do so, for tests that ask what a model computes beside another or on ranks. How they
    are optimised is for test_models.py, test_examples.py and the fuzzer.
    """
    folder = tempfile.mkdtemp(prefix="genrec-draft-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return [f"--toolchain={write_draft_toolchain(Path(folder) / 'toolchain.json')}"]


def compile_with_nvcc(unit: Path, *flags: object) -> None:
    """Compiles a model's unit as genrec-compile does, but warnings are errors, and machine code, which nobody looks at,
    is a draft; skips where there is no nvcc."""
    toolchain = read_toolchain()
    nvcc = toolchain["cuda_units"].get("nvcc")
    if not nvcc:
        pytest.skip("no nvcc")
    ccache = [shutil.which("ccache")] if shutil.which("ccache") else []
    command = [*ccache, nvcc["compiler"], *nvcc["compile"], "-Werror", "all-warnings", "--Ofast-compile=max"]
    command += [f"-I{folder}" for folder in toolchain["include"]]
    call(*command, *flags, "-c", unit, "-o", unit.with_suffix(".o"))


def read_stream(text: str) -> list[Any]:
    """The JSON values that stand one behind another in `text`."""
    decoder, position, values = json.JSONDecoder(), 0, []
    while position < len(text):
        if text[position].isspace():
            position += 1
            continue
        value, position = decoder.raw_decode(text, position)
        values.append(value)
    return values


@dataclass(frozen=True)
class Runs:
    """Results per step, of the interpreter and of the compiled model."""

    interpreted: list[dict[str, Any]]
    compiled: list[dict[str, Any]]
    batches: list[dict[str, Any]]


def read_tensors(file: bytes) -> dict[str, np.ndarray]:
    """The tensors of a safetensors file; those of bfloat16 as float32."""
    size = int.from_bytes(file[:8], "little")
    header = json.loads(file[8 : 8 + size])
    types = {"I64": np.int64, "F32": np.float32, "BF16": np.uint16}

    def read(entry: dict[str, Any]) -> np.ndarray:
        values = np.frombuffer(file[8 + size :][slice(*entry["data_offsets"])], types[entry["dtype"]])
        if entry["dtype"] == "BF16":
            values = (values.astype(np.uint32) << 16).view(np.float32)
        return values.reshape(entry["shape"])

    return {name: read(entry) for name, entry in header.items() if name != "__metadata__"}


def run_both(
    model: Path,
    folder: Path,
    *,
    mode: str = "train",
    level: int = 2,
    rows: int = 5,
    steps: int = 3,
    seed: int = 7,
    threads: int = 2,
    march: str = "native",
    flags: Sequence[str] = (),
    compile_flags: Sequence[str] = (),
) -> Runs:
    """Compiles `model` and runs `steps` random batches of `rows` root rows on both sides. `flags`: of both tools;
    `compile_flags`: of genrec-compile alone, whose model the interpreter runs.
    """
    optimised, shared, batches = folder / "model.mlir", folder / "model.so", folder / "batches.json"
    call(tool("genrec-compile"), model, f"-O{level}", "--emit=mlir", "-o", optimised, *flags, *compile_flags)
    product = ["--emit=shared", "--save-temps", "-o", shared]
    call(tool("genrec-compile"), model, f"-O{level}", f"--march={march}", *product, *flags, *compile_flags)
    text = call(
        tool("genrec-run"),
        optimised,
        *flags,
        f"--mode={mode}",
        f"--random={seed}",
        f"--rows={rows}",
        f"--steps={steps}",
        f"--seed={seed}",
        "--precision=float",
        "--json",
        "--print-batch",
        "--print=losses,outputs,metrics,parameters,tables",
    )
    values = read_stream(text)
    batches.write_text(json.dumps(values[0::2]))
    lines = call(tool("model-driver"), shared, batches, mode, str(seed), str(threads)).splitlines()
    return Runs(values[1::2], [json.loads(line) for line in lines], values[0::2])


def differences(expected: Any, actual: Any, tolerance: Tolerance, path: str = "") -> list[str]:
    """Where two results differ, as text."""
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return [f"{path}: {actual} instead of {sorted(expected)}"]
        found = [f"{path}.{key}: missing" for key in expected if key not in actual]
        for key in expected:
            if key in actual:
                found += differences(expected[key], actual[key], tolerance, f"{path}.{key}")
        return found
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            return [f"{path}: {actual} instead of {expected}"]
        return [
            text
            for i, (a, b) in enumerate(zip(expected, actual))
            for text in differences(a, b, tolerance, f"{path}[{i}]")
        ]
    if isinstance(expected, (int, float)) and isinstance(actual, (int, float)):
        limit = tolerance.absolute + tolerance.relative * max(abs(expected), abs(actual))
        return (
            []
            if math.isclose(expected, actual, rel_tol=0, abs_tol=limit)
            else [f"{path}: {actual} instead of {expected}"]
        )
    return [] if expected == actual else [f"{path}: {actual} instead of {expected}"]


def assert_same(runs: Runs, tolerance: Tolerance = Tolerance()) -> None:
    """Every section of every step agrees, and there is something to compare."""
    assert len(runs.interpreted) == len(runs.compiled) > 0
    compared = 0
    for step, (expected, actual) in enumerate(zip(runs.interpreted, runs.compiled)):
        for section in COMPARED:
            if section not in expected:
                continue
            found = differences(expected[section], actual.get(section), tolerance, section)
            assert not found, f"step {step}: " + "; ".join(found[:10])
            compared += 1
    assert compared > 0
