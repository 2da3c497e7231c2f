"""The words that start a binary on several ranks."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from genrec.errors import RunError

INSTALL = "install Open MPI: apt install openmpi-bin (Debian, Ubuntu), dnf install openmpi (Fedora), or name a launcher"

# Of the environment: in a batch job, mpirun knows machines and slots from the batch system.
_BATCH_JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID", "PE_HOSTFILE")
# Where a process is a rank itself (the runtime's launcher.cpp has the same ones).
_RANKS = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_SIZE")


def launcher_words(ranks: int | None, launcher: Sequence[str] = ()) -> list[str]:
    """What stands before a command that `ranks` processes run together; nothing for one, or None.

    Uses mpirun unless `launcher` names another program with its flags, to which "-n" and the number are added. Each
    rank gets cores of its own where there are as many; as root, Open MPI is told that this is meant.

    Raises `ValueError` for a number that makes no sense, `RunError` where the launcher is missing.
    """
    if isinstance(launcher, str):
        raise TypeError(f"launcher takes a list of words, {launcher.split()!r}, got the text {launcher!r}")
    if ranks is None:
        if launcher:
            raise ValueError(f"launcher={list(launcher)!r} needs a number of ranks: ranks=2")
        return []
    if isinstance(ranks, bool) or not isinstance(ranks, int) or ranks < 1:
        raise ValueError(f"ranks must be a number of at least 1, got {ranks!r}")
    if launcher:
        if shutil.which(launcher[0]) is None:
            raise RunError(f"the launcher {launcher[0]} was not found", 127)
        return [*launcher, "-n", str(ranks)]
    if ranks == 1:
        return []
    for variable in _RANKS:
        if int(os.environ.get(variable, "1") or 1) > 1:
            raise RunError(
                f"ranks={ranks} in a process that is a rank itself ({variable}={os.environ[variable]})\n"
                "  help: start this program without mpirun; it starts the ranks",
                1,
            )
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        raise RunError(f"ranks={ranks} needs mpirun, which was not found in PATH\n  help: {INSTALL}", 127)
    return [mpirun, *(_open_mpi_flags(ranks) if _is_open_mpi(mpirun) else []), "-n", str(ranks)]


def told_by_ranks(text: str) -> str:
    """What ranks wrote to standard error, without the boxes of Open MPI that say how they ended; the boxes, where
    ranks wrote nothing.
    """
    outside, is_inside = [], False
    for line in text.splitlines():
        if len(line) > 60 and not line.strip("-"):
            is_inside = not is_inside
        elif not is_inside:
            outside.append(line)
    return "\n".join(outside).strip() or text


def _is_open_mpi(mpirun: str) -> bool:
    result = subprocess.run(
        [mpirun, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    return "open mpi" in result.stdout.lower() or "open-mpi" in result.stdout.lower()


def _open_mpi_flags(ranks: int) -> list[str]:
    flags = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    if any(variable in os.environ for variable in _BATCH_JOBS):
        return flags
    usable = os.sched_getaffinity(0)
    cores = len({_siblings(cpu) for cpu in usable})
    if ranks > cores:
        return [*flags, "--oversubscribe", "--bind-to", "none"]
    if len(usable) < (os.cpu_count() or 1):
        # mpirun would bind ranks to cores that this process may not use.
        return [*flags, "--bind-to", "none"]
    return [*flags, "--map-by", f"slot:PE={cores // ranks}", "--bind-to", "core"]


def _siblings(cpu: int) -> str:
    """The hardware threads of a core, as text that is the same for each of them."""
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text()
    except OSError:
        return str(cpu)
