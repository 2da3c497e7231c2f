"""Whole models see what is wrong in a session on a device: defects planted there change a result, or end a run.

The undamaged model is the same binary without a defect; its losses are those of the CPU's.
"""

from __future__ import annotations

import importlib
import sys

import numpy as np
import pytest
from compiled import BUILD, ROOT
from launching import needs_mpi
from session_runs import RUNS, Expected, Folder

sys.path.insert(0, str(ROOT / "test/Cuda"))
planted = importlib.import_module("planted_defects")

SEEDS = (1, 2)
DEFECTS = {number: defect for number, defect in enumerate(planted.DEFECTS, 1) if defect.runs}
ARCHIVE = BUILD / "lib" / "libgenrec_rt_cuda_planted.a"

pytestmark = [pytest.mark.skipif(not ARCHIVE.exists(), reason="not built"), needs_mpi]


@pytest.fixture(autouse=True)
def nothing_of_a_device_is_kept() -> None:
    """Runs with a defect may keep what they like (conftest.py)."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("sessions"), ARCHIVE, [BUILD / "planted-defects/include"])


@pytest.fixture(scope="module")
def expected(folder: Folder) -> Expected:
    return Expected(folder)


@pytest.mark.parametrize("name", RUNS)
def test_without_a_defect_losses_are_those_of_the_cpu(name: str, folder: Folder, expected: Expected) -> None:
    cpu = list(folder.results(name, "cpu"))
    if RUNS[name].refused or not RUNS[name].steps:
        assert cpu == expected[name] and RUNS[name].refused in str(cpu[0])
        return
    for run in range(0, 4 * len(RUNS[name].steps), 4):
        np.testing.assert_allclose(expected[name][run], cpu[run], rtol=RUNS[name].tolerance)


@pytest.mark.parametrize("name", RUNS)
def test_seeds_change_no_result(name: str, folder: Folder, expected: Expected) -> None:
    assert list(folder.results(name, GENREC_SIMT_SEED=2)) == expected[name]


@pytest.mark.parametrize("number", DEFECTS, ids=[defect.name for defect in DEFECTS.values()])
def test_defects_are_caught(number: int, folder: Folder, expected: Expected) -> None:
    name = DEFECTS[number].runs
    assert not all(expected.is_left(name, folder, number, seed) for seed in SEEDS), DEFECTS[number].file
