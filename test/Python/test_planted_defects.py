"""The host execution of CUDA kernels catches every planted defect within eight seeds, and accuses no right kernel.

A defect is caught where a test that passes without it, with the same seed, fails with it: by an accusation (a race, a
wait without end, …) or by a wrong result.
"""

from __future__ import annotations

import importlib
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("GENREC_BUILD_DIR", SOURCE / "build")) / "bin" / "genrec-simt-tests"
SEEDS = range(1, 9)
RIGHT_SEEDS = SEEDS[:2]  # of every test without a defect; most defects are caught with one of these
OTHER_SEEDS = RIGHT_SEEDS[1:]  # by itself the program runs all its tests with the first one

sys.path.insert(0, str(SOURCE / "test/Cuda"))
planted = importlib.import_module("planted_defects")

# Nobody reads the memory of a program that its first wrong result ends.
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

pytestmark = pytest.mark.skipif(not PROGRAM.exists(), reason="not built")


def run(defect: int, seed: int, tests: str) -> subprocess.CompletedProcess[str]:
    # Whether there is an accusation counts, also without a defect, where a test that reads places fails.
    variables = {"DEFECT": str(defect), "SEED": str(seed), "PATIENCE": "20", "PLACES": "0"}
    done = subprocess.run(
        [PROGRAM, f"--gtest_filter={tests}", "--gtest_brief=1", "--gtest_break_on_failure=0",
         "--gtest_throw_on_failure", "--gtest_fail_fast"],
        env=os.environ | {f"GENREC_SIMT_{name}": value for name, value in variables.items()},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert " 0 tests from" not in done.stdout, f"no test is named {tests}"
    return done


def expect_right(tests: str, seed: int) -> None:
    done = run(0, seed, tests)
    assert done.returncode == 0, f"seed {seed}: {done.stdout[-2000:]}"


def test_there_are_at_least_forty() -> None:
    assert len(planted.DEFECTS) >= 40
    assert len({defect.name for defect in planted.DEFECTS}) == len(planted.DEFECTS)


# Of the others whole models are the judge: test/EndToEnd/test_planted_sessions.py.
OF_UNIT_TESTS = {number: defect for number, defect in enumerate(planted.DEFECTS, 1) if not defect.runs}


@pytest.mark.parametrize("tests", sorted({defect.tests for defect in OF_UNIT_TESTS.values()}))
def test_right_kernels_are_not_accused(tests: str) -> None:
    for seed in OTHER_SEEDS:
        expect_right(tests, seed)


@pytest.mark.parametrize("number", OF_UNIT_TESTS, ids=[defect.name for defect in OF_UNIT_TESTS.values()])
def test_defects_are_caught(number: int) -> None:
    defect = OF_UNIT_TESTS[number]
    seed = next((seed for seed in SEEDS if run(number, seed, defect.tests).returncode != 0), None)
    assert seed is not None, f"{defect.file}: {defect.name}"
    if seed not in RIGHT_SEEDS:
        expect_right(defect.tests, seed)


def test_a_defect_is_in_one_place() -> None:
    """That is not another one when the same line is written above it."""
    text = "f();\nstart();\nf();\n"
    of = importlib.import_module("planting").Defect
    assert planted.planted(text, [(1, of("late", "", "", "f();", behind="start();"))]).startswith("f();\nstart();\n{")
    for wrong in (of("", "", "", "f();"), of("", "", "", "g();"), of("", "", "", "f();", behind="();")):
        with pytest.raises(ValueError, match="times, not once"):
            planted.planted(text, [(1, wrong)])
