#!/usr/bin/env python3
"""Kills and stops ranks of a compiled model that trains under mpirun, at random moments, and looks at what is told and left.

    build/venv/bin/python test/Faults/kill_ranks.py --kills 50 [--ranks 3] [--seed 1] [--build build]

A rank that is killed (SIGKILL) is named, and the others end, within ten seconds. Training goes on from the checkpoint, on
another number of ranks at times, until the next kill; a run that comes to its end has the bits of one that was never killed.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SECONDS = 10  # from a kill to the end of all others
PORTIONS, ROWS, BATCH, EPOCHS, EVERY = 6, 960, 24, 5, 7
STEPS = EPOCHS * ROWS // BATCH


def write_rows(path: Path) -> Path:
    """Columns i, n, list and label of test/EndToEnd/Inputs/ruled.mlir, whose ids drift: early ones are not seen again."""
    draw = random.Random(3)
    struct = pa.list_(pa.struct([("k", pa.int64())]))
    columns = {
        "i": pa.array([draw.randrange(40) + row // 8 for row in range(ROWS)], pa.int64()),
        "n": pa.array([draw.choice([None, 3, 4, row // 40]) for row in range(ROWS)], pa.int64()),
        "list": pa.array([[{"k": draw.randrange(30)} for _ in range(draw.randrange(4))] for _ in range(ROWS)], struct),
        "label": pa.array([float(draw.randrange(2)) for _ in range(ROWS)], pa.float32()),
    }
    pq.write_table(pa.table(columns), path, row_group_size=100)
    return path


def launcher(ranks: int) -> list[str]:
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]


@dataclass
class Run:
    """A run under mpirun."""

    process: subprocess.Popen[str]

    def pids(self) -> dict[int, int]:
        """The process of each rank that has started."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = {}
        for pid in map(int, children.read_text().split() if children.exists() else []):
            try:
                environment = Path(f"/proc/{pid}/environ").read_bytes()
            except OSError:
                continue  # it has ended
            if rank := re.search(rb"\0OMPI_COMM_WORLD_RANK=(\d+)", environment):
                found[int(rank[1])] = pid
        return found

    def send(self, rank: int, number: int) -> bool:
        """Sends a signal to a rank; false where it does not run."""
        try:
            os.kill(self.pids()[rank], number)
        except (KeyError, ProcessLookupError):
            return False
        return True

    def end(self, seconds: float) -> tuple[int, str]:
        """The status and all that was said; raises where the run takes longer."""
        try:
            out, err = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        return self.process.returncode, out + err


@dataclass
class Outcome:
    """Kills that met a run, those of the run's work among them, runs that ended, and what went wrong."""

    kills: int = 0
    ends: int = 0
    slowest: float = 0  # seconds from a kill to the end of all
    steps: list[int] = field(default_factory=list)  # of the checkpoints that runs went on from
    wrong: list[str] = field(default_factory=list)


class Harness:
    def __init__(self, build: Path, folder: Path, ranks: int) -> None:
        self.folder, self.ranks = folder, ranks
        self.model = folder / "model"
        source = Path(__file__).resolve().parents[1] / "EndToEnd" / "Inputs" / "ruled.mlir"
        subprocess.run([build / "bin" / "genrec-compile", source, "-o", self.model], check=True)
        self.data = write_rows(folder / "rows.parquet")
        begin = time.monotonic()
        status, said = self.start("whole", ranks).end(120)
        if status != 0:
            raise RuntimeError(f"a run that nobody disturbs ends with {status}: {said}")
        self.duration = time.monotonic() - begin
        self.whole = self.content("whole")

    def start(self, name: str, ranks: int, *flags: str) -> Run:
        """Trains into a checkpoint, from what is there."""
        checkpoint = self.folder / name
        resumes = ["--resume"] if (checkpoint / "manifest.json").exists() else []
        words = [
            *launcher(ranks), self.model, "train", "--data", self.data, "--portions", PORTIONS, "--batch", BATCH, "--epochs",
            EPOCHS, "--seed", 5, "--threads", 1, "--progress", "lines", "--checkpoint", checkpoint, "--checkpoint-every",
            EVERY, *resumes, *flags,
        ]  # fmt: skip
        return Run(subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))

    def saved(self, name: str) -> int:
        """The step of the newest checkpoint; 0 without one."""
        steps = [int(path.name[5:]) for path in (self.folder / name).glob("step-*") if (path / "manifest.json").exists()]
        return max(steps, default=0)

    def content(self, name: str) -> bytes:
        """The tensors of the end."""
        files = sorted((self.folder / name / f"step-{STEPS}").glob("*.safetensors"))
        return b"".join(path.read_bytes() for path in files)

    def kill(self, count: int, seed: int) -> Outcome:
        """Kills a rank in each of `count` runs, which go on one from the other; from the start where one has ended."""
        draw, outcome, name = random.Random(seed), Outcome(), "killed"
        while outcome.kills < count:
            ranks = draw.choice([self.ranks, self.ranks, 2, 4])
            run = self.start(name, ranks)
            time.sleep(draw.uniform(0.05, 1.1) * self.duration * (1 - self.saved(name) / STEPS / 2))
            rank = draw.randrange(ranks)
            if run.send(rank, signal.SIGKILL):
                outcome.kills += 1
                outcome.steps.append(self.saved(name))
                self._expect_end(run, rank, outcome)
            else:
                status, said = run.end(60)
                if status != 0:
                    outcome.wrong.append(f"a run that nobody killed ends with {status}: {said[-500:]}")
                    return outcome
                self._compare(name, outcome)
        status, said = self.start(name, self.ranks).end(120)
        if status != 0:
            outcome.wrong.append(f"the last run ends with {status}: {said[-500:]}")
        self._compare(name, outcome)
        return outcome

    def _expect_end(self, run: Run, rank: int, outcome: Outcome) -> None:
        begin = time.monotonic()
        try:
            status, said = run.end(SECONDS)
        except subprocess.TimeoutExpired:
            outcome.wrong.append(f"rank {rank} was killed, and the others do not end within {SECONDS} s")
            return
        outcome.slowest = max(outcome.slowest, time.monotonic() - begin)
        if status == 0 or f"process rank {rank} with PID" not in said:
            outcome.wrong.append(f"rank {rank} was killed, and nobody says so (status {status}): {said[-500:]}")

    def _compare(self, name: str, outcome: Outcome) -> None:
        outcome.ends += 1
        if self.content(name) != self.whole:
            outcome.wrong.append(f"after {outcome.kills} kills the run ends with other bits")
        shutil.rmtree(self.folder / name)

    def stall(self, rank: int, patience: int) -> tuple[int, str, float]:
        """Stops a rank that trains: the status of the run, what it says, and after how many seconds it has ended."""
        flags = ("--comm-patience", str(patience), "--log-every", "1", "--epochs", "1000")
        run = self.start(f"stalled{rank}", self.ranks, *flags)
        assert run.process.stdout
        for line in run.process.stdout:
            if "step 20 " in line:
                break
        begin = time.monotonic()
        assert run.send(rank, signal.SIGSTOP)
        status, said = run.end(patience + 30)
        return status, said, time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=Path("build"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(arguments.build, Path(folder), arguments.ranks)
        outcome = harness.kill(arguments.kills, arguments.seed)
        for text in outcome.wrong:
            print(text)
        print(
            f"{outcome.kills} kills, at checkpoints {min(outcome.steps)} to {max(outcome.steps)} of {STEPS} steps; all ranks "
            f"had ended {outcome.slowest:.1f} s after one; {outcome.ends} runs came to their end, {len(outcome.wrong)} faults"
        )
    raise SystemExit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
