"""What tests share that start several ranks."""

from __future__ import annotations

import shutil

import pytest
from compiled import BUILD

needs_mpi = pytest.mark.skipif(
    not (shutil.which("mpirun") and (BUILD / "lib" / "libgenrec-comm-mpi.so").exists()), reason="no MPI on this machine"
)


def launcher(ranks: int) -> list[str]:
    """The words before a command that start it on so many ranks; 0: none, one process without a launcher."""
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)] if ranks else []
