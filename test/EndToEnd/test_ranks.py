"""Communicators between processes, under mpirun: the suite that ranks in one process pass too, and what fails."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from compiled import BUILD
from launching import launcher

PROGRAM, LIBRARY = BUILD / "bin" / "genrec-mpi-ranks", BUILD / "lib" / "libgenrec-comm-mpi.so"

pytestmark = pytest.mark.skipif(not (shutil.which("mpirun") and PROGRAM.exists()), reason="no MPI on this machine")


def run(ranks: int, task: str) -> subprocess.CompletedProcess[str]:
    """`task` on `ranks` processes."""
    return subprocess.run(
        [*launcher(ranks), PROGRAM, LIBRARY, task],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"OMPI_MCA_rmaps_base_oversubscribe": "1"},
    )


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_mpi_conforms(ranks: int) -> None:
    ran = run(ranks, "conform")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(ran.stdout.splitlines()) == [f"rank {rank} of {ranks}: done" for rank in range(ranks)]


def test_a_stalled_rank_is_named() -> None:
    ran = run(3, "stall")
    assert ran.returncode != 0
    assert "waited 1000 ms for rank 1, which has not come to the rows of step 37" in ran.stdout


def test_a_rank_that_stops_once_it_has_sent_is_named() -> None:
    ran = run(2, "untaken")
    assert ran.returncode != 0
    assert "waited 1000 ms for rank 1, which has not taken the rows of step 37" in ran.stdout


def test_sizes_that_differ_are_told() -> None:
    ran = run(2, "mismatch")
    assert ran.returncode != 0
    assert "rank 0 sends more to rank 1 than the 16 bytes that it expects" in ran.stdout


@pytest.mark.parametrize("task", ["abort", "abort-before-duplicate"])
def test_an_abort_reaches_all(task: str) -> None:
    ran = run(3, task)
    assert ran.stdout.count("error: rank 1: no rows in part-7.parquet") == 2


def test_memory_may_be_given_back_behind_an_abort() -> None:
    """What was under way then has ended: MPI reads and writes no memory of an exchange that has thrown."""
    ran = run(3, "abort-under-way")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count(": done") == 3
