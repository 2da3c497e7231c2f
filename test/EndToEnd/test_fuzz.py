"""Random models: their binaries against the interpreter."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from compiled import call, tool
from launching import needs_mpi


def test_binaries_of_random_models() -> None:
    """Four models agree at -O0 and -O2, one of them compiled as users do; a model that does not is in the message."""
    assert "4 seeds agree, 0 disagree" in call(tool("genrec-fuzz"), "--compiled", "--seeds", "1..4")


def test_a_sum_of_looked_up_values_that_nearly_cancel() -> None:
    """The sum of a table's row is a thousandth of its elements: rounding changes it by many units of itself."""
    text = call(tool("genrec-fuzz"), "--compiled", "--seeds", "540242..540242", "--level", "0")
    assert "1 seeds agree, 0 disagree" in text


def test_a_gradient_off_by_a_thousandth_is_noticed() -> None:
    """What two binaries may differ by is too little for one gradient that is scaled by 1.001."""
    command = [tool("genrec-fuzz"), "--compiled", "--seeds", "2..2", "--no-shrink", "--scale-gradient=1.001"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 1, result.stderr
    assert "0 seeds agree, 1 disagree" in result.stdout, result.stdout + result.stderr


@pytest.mark.parametrize(("seeds", "level"), [("1..5", 2), ("6..10", 0), ("31..35", 2), ("44..48", 0)])
def test_random_models_on_the_emulated_device(seeds: str, level: int) -> None:
    """All that have a form there; a seed of whose models none has one is left out."""
    if not Path(tool("model-driver-emulated")).exists():
        pytest.skip("this build runs no kernels on the host")
    text = call(tool("genrec-fuzz"), "--target=cuda-emulated", "--seeds", seeds, "--level", str(level))
    agree = re.search(r"(\d+) seeds agree, 0 disagree", text)
    assert agree and int(agree[1]) >= 4, text


@pytest.mark.parametrize(("seeds", "ranks", "level"), [("1..2", 2, 2), ("4..4", 3, 0)])
def test_random_models_on_emulated_ranks(seeds: str, ranks: int, level: int) -> None:
    """Ranks are threads with a device each; portions on another number of ranks have the same bits."""
    if not Path(tool("model-driver-emulated")).exists():
        pytest.skip("this build runs no kernels on the host")
    words = ["--target=cuda-emulated", "--seeds", seeds, "--world", str(ranks), "--level", str(level)]
    text = call(tool("genrec-fuzz"), *words)
    assert re.search(r"[12] seeds agree, 0 disagree", text), text
    ranked, repeated = map(int, re.findall(r"(\d+) binaries ran on several ranks, (\d+) on two", text)[0])
    assert ranked >= 1 and repeated >= 1, text


def test_a_wrong_gradient_on_the_emulated_device_is_noticed() -> None:
    if not Path(tool("model-driver-emulated")).exists():
        pytest.skip("this build runs no kernels on the host")
    command = [
        tool("genrec-fuzz"), "--target=cuda-emulated", "--seeds", "2..2", "--no-shrink", "--scale-gradient=1.001",
        "--level", "0",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 1, result.stderr
    assert "0 seeds agree, 1 disagree" in result.stdout, result.stdout + result.stderr


def run_ranks(seeds: str, ranks: int, level: int, *flags: str) -> None:
    """Binaries of all seeds, on so many ranks, agree with the interpreter, and some, bit by bit, with other ranks."""
    words = ["--compiled", "--seeds", seeds, "--world", str(ranks), "--level", str(level), *flags]
    text = call(tool("genrec-fuzz"), *words)
    assert "0 disagree" in text
    ranked, repeated = map(int, re.findall(r"(\d+) binaries ran on several ranks, (\d+) on two", text)[0])
    assert ranked >= 3 and repeated >= 2, text


@pytest.mark.parametrize(("seeds", "ranks", "level"), [("101..105", 2, 2), ("108..112", 4, 0)])
def test_binaries_of_random_models_on_ranks(seeds: str, ranks: int, level: int) -> None:
    run_ranks(seeds, ranks, level)


@needs_mpi
def test_binaries_of_random_models_on_processes() -> None:
    """Ranks that mpirun starts have the bits of ranks that are threads."""
    run_ranks("115..118", 3, 2, "--mpi")


def test_a_wrong_gradient_on_ranks_is_noticed() -> None:
    command = [
        tool("genrec-fuzz"), "--compiled", "--seeds", "2..2", "--no-shrink", "--scale-gradient=1.001", "--world", "2",
        "--level", "0",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert result.returncode == 1, result.stderr
    assert "2 ranks, " in result.stderr
