"""What ends a run of ranks with emulated devices: errors, columns that are not finite, ranks that are gone; and the
communicator that they hear of it by.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import BUILD, ROOT
from launching import launcher, needs_mpi
from test_cuda_models import BATCH, TARGETS, Clicks, Crosses, write_rows
from test_cuda_ranks import MPI, PORTIONS, compile_both, saved, start, train_on

sys.path.insert(0, str(ROOT / "test" / "Faults"))

from rank_runs import Run  # noqa: E402


@pytest.fixture(scope="module")
def binaries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return compile_both(Clicks(), tmp_path_factory.mktemp("clicks"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.parquet")


@needs_mpi
def test_an_error_on_one_rank_ends_all_with_its_words(binaries: dict[str, Path], rows: Path, tmp_path: Path) -> None:
    bad = write_rows(tmp_path / "bad.parquet", c1={55: 1 << 30})
    ran = start(
        binaries["cuda-emulated"], 2, "train", "--data", bad, "--batch", BATCH, "--epochs", "1", "--no-shuffle",
        "--threads", "1", "--progress", "none",
    )  # fmt: skip
    assert ran.returncode != 0
    assert "row 55" in ran.stderr and "c1" in ran.stderr


@needs_mpi
@pytest.mark.parametrize("ranks", [0, 2])
@pytest.mark.parametrize("portion", [0, 1, 3])
def test_a_column_that_is_not_finite_is_named_as_on_the_cpu(
    portion: int, ranks: int, binaries: dict[str, Path], tmp_path: Path
) -> None:
    """Whichever portion and rank has the row."""
    bad = write_rows(tmp_path / "bad.parquet", i0={BATCH + portion * BATCH // 4 + 2: float("inf")})
    said = []
    for target in TARGETS:
        ran = start(
            binaries[target], ranks, "train", "--data", bad, "--batch", BATCH, "--epochs", "1", "--no-shuffle",
            "--threads", "1", "--progress", "none", *PORTIONS,
        )  # fmt: skip
        assert ran.returncode != 0
        told = re.search(r"loss 'click'.*?\n  help: .*?\n", ran.stderr, re.DOTALL)
        assert told, ran.stderr
        said.append(told[0])
    assert "column 'i0' is inf in row 2 of 'request'" in said[0]
    assert said[1] == said[0]


@needs_mpi
def test_the_op_that_made_a_nan_first_is_named_as_on_the_cpu(tmp_path: Path) -> None:
    """Not the norm of what all ranks gave, which each of them finds not finite."""
    bad = write_rows(tmp_path / "bad.parquet", i0={2 * BATCH - 2: float("inf")})  # rank 1 has it
    said = []
    for binary in compile_both(Crosses(), tmp_path).values():
        ran = start(
            binary, 2, "train", "--data", bad, "--batch", BATCH, "--epochs", "1", "--no-shuffle", "--threads", "1",
            "--progress", "none", "--check-finite", *PORTIONS,
        )  # fmt: skip
        assert ran.returncode != 0
        told = re.search(r"error: .*?\n  help: .*?\n", ran.stderr, re.DOTALL)
        assert told, ran.stderr
        said.append(told[0])
    assert "column 'i0' is inf" in said[0]
    assert said[1] == said[0]


@needs_mpi
@pytest.mark.parametrize(
    ("number", "patience"), [(signal.SIGKILL, 300), (signal.SIGSTOP, 15)], ids=["killed", "stopped"]
)
def test_a_rank_that_is_gone_ends_the_others(
    number: signal.Signals, patience: int, binaries: dict[str, Path], rows: Path, tmp_path: Path
) -> None:
    """It is named, where it was stopped with the step. What was saved goes on with the bits of an undisturbed run.

    Between processes, the emulated NCCL waits in its calls, with a patience of its own.
    """
    binary, steps, disturbed = binaries["cuda-emulated"], 6, tmp_path / "disturbed"
    given = [
        "--data", rows, "--batch", BATCH, "--epochs", "40", "--seed", "5", "--threads", "1", "--log-every", "1",
        *PORTIONS, "--checkpoint", disturbed, "--progress", "lines", "--checkpoint-every", "2", "--overlap", "keys",
    ]  # fmt: skip
    variables = ["env", f"GENREC_COMM_LIBRARY={MPI}", f"GENREC_SIMT_PATIENCE={patience}"]
    run = Run([*launcher(2), *variables, binary, "train", *given, "--comm-patience", patience])
    run.wait_for_step(3, 200)
    assert run.send(1, number)
    status, said = run.end(120)
    assert status != 0
    if number == signal.SIGKILL:
        assert "process rank 1 with PID" in said
    else:
        assert re.search(r"for rank 1.*of step \d+|of step \d+.*for rank 1", said), said
    reached = int(json.loads((disturbed / "manifest.json").read_text())["generations"][-1]["step"])
    train_on(binary, 0, rows, disturbed, "--resume", "--epochs", "40", steps=max(reached, steps))
    train_on(binary, 0, rows, tmp_path / "whole", "--epochs", "40", steps=max(reached, steps))
    assert saved(disturbed) == saved(tmp_path / "whole")


@needs_mpi
def test_flags_that_cannot_act_are_refused_as_on_the_cpu(binaries: dict[str, Path], rows: Path) -> None:
    for flags in (
        ("--replicate", "c9"),
        ("--replicate", "c0", "--gradient-wire", "bf16"),
        ("--deduplicate", "none", "--portions", "4"),
    ):
        said = {
            target: start(binaries[target], 2, "train", "--data", rows, "--batch", BATCH, *flags) for target in TARGETS
        }
        assert said["cuda-emulated"].returncode == said["cpu"].returncode != 0
        errors = {target: [line for line in ran.stderr.splitlines() if "error" in line] for target, ran in said.items()}
        assert errors["cuda-emulated"] == errors["cpu"] != []


def communicate(ranks: int, task: str, **environment: str) -> subprocess.CompletedProcess[str]:
    program = BUILD / "bin" / "genrec-nccl-ranks"
    if not program.exists():
        pytest.skip("this build runs no kernels on the host")
    command = [*launcher(ranks), str(program), str(MPI), task]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False,
                          env=os.environ | environment)  # fmt: skip


@needs_mpi
@pytest.mark.parametrize("check", ["", "1"])
def test_nccl_conforms_between_processes(check: str) -> None:
    ran = communicate(2, "conform", **({"GENREC_COMM_CHECK": check} if check else {}))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert sorted(ran.stdout.splitlines()) == [f"rank {rank} of 2: done" for rank in range(2)]


@needs_mpi
def test_an_abort_reaches_ranks_with_devices() -> None:
    assert communicate(3, "abort").stdout.count("error: rank 1: no rows in part-7.parquet") == 2


@needs_mpi
def test_a_rank_that_nccl_waits_for_is_named() -> None:
    assert "error: rank 0: waited 500 ms for rank 1, to connect GPUs" in communicate(2, "stall").stdout


@needs_mpi
def test_ranks_that_differ_are_named() -> None:
    ran = communicate(2, "differ", GENREC_COMM_CHECK="1")
    assert ran.returncode != 0
    assert "the keys of step 36" in ran.stdout and "the keys of step 37" in ran.stdout
