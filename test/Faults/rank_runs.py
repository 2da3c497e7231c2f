"""Runs of a compiled model under mpirun that are disturbed, and the bits that must come out in the end."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PORTIONS, ROWS, BATCH, EPOCHS, EVERY = 6, 960, 24, 2, 7
STEPS = EPOCHS * ROWS // BATCH
PAUSE = 0.02  # seconds between two looks at a run


def write_rows(path: Path) -> Path:
    """Columns i, n, list and label of test/EndToEnd/Inputs/ruled.mlir; ids drift, so early ones are not seen again."""
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


def describe(pid: int) -> str:
    """The state of a process and, where a debugger is installed, the calls of its threads."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "ended"
    if not shutil.which("gdb"):
        return f"state {state}"
    words = ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt 12"]
    calls = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False).stdout
    return f"state {state}\n{calls}"


class HangError(Exception):
    """A run that does not end; the text says what its ranks did.

    Attributes:
        ranks: those that still ran; none where mpirun alone does not end.
        said: all that the run had said.
    """

    def __init__(self, text: str, ranks: list[int], said: str) -> None:
        super().__init__(text)
        self.ranks, self.said = ranks, said


class Run:
    """A run under mpirun, and what it has said so far."""

    def __init__(self, words: list[object]) -> None:
        self.process = subprocess.Popen(
            [str(w) for w in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        self.lines.extend(iter(self.process.stdout.readline, ""))

    def said(self) -> str:
        return "".join(self.lines)

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

    def wait_for_step(self, step: int, seconds: float) -> None:
        """Returns once the step was told, or the run has ended."""
        told = 0
        for _ in range(int(seconds / PAUSE)):
            if self.process.poll() is not None:
                return
            new = self.lines[told:]
            told += len(new)
            numbers = [re.search(r"step (\d+) ", line.replace(",", "")) for line in new]
            if any(int(number[1]) >= step for number in numbers if number):
                return
            time.sleep(PAUSE)
        self._give_up(f"does not come to step {step} within {seconds} s")

    def end(self, seconds: float) -> tuple[int, str]:
        """The status and all that was said. Seconds are those in which this process could run, too."""
        for _ in range(int(seconds / PAUSE)):
            if self.process.poll() is not None:
                self.reader.join()
                return self.process.returncode, self.said()
            time.sleep(PAUSE)
        self._give_up(f"does not end within {seconds} s")
        raise AssertionError

    def _give_up(self, what: str) -> None:
        """Ends mpirun and all ranks, and says what they did."""
        ranks = self.pids()
        texts = [f"{what}; rank {rank}: {describe(pid)}" for rank, pid in sorted(ranks.items())]
        for pid in (self.process.pid, *ranks.values()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        raise HangError("\n".join(texts or [what]) + f"\nsaid: {self.said()[-1000:]}", sorted(ranks), self.said())


class Training:
    """A model, its data, and what a training that nobody disturbs leaves."""

    def __init__(self, build: Path, folder: Path, ranks: int, full_every: int = 1) -> None:
        self.build, self.folder, self.ranks, self.full_every = build.resolve(), folder, ranks, full_every
        self.model = folder / "model"
        source = Path(__file__).resolve().parents[1] / "EndToEnd" / "Inputs" / "ruled.mlir"
        subprocess.run([self.build / "bin" / "genrec-compile", source, "-o", self.model], check=True)
        self.data = write_rows(folder / "rows.parquet")
        begin = time.monotonic()
        run = self.start("whole", ranks)
        run.wait_for_step(1, 60)
        self.startup = time.monotonic() - begin  # seconds to the first step
        status, said = run.end(120)
        if status != 0:
            raise RuntimeError(f"a run that nobody disturbs ends with {status}: {said}")

    def start(self, name: str, ranks: int, *flags: object, environment: dict[str, object] | None = None) -> Run:
        """Trains into a checkpoint, from what is there; ranks, not mpirun, have these variables in their environment."""
        checkpoint = self.folder / name
        resumes = ["--resume"] if (checkpoint / "manifest.json").exists() else []
        variables = [f"{key}={value}" for key, value in (environment or {}).items()]
        return Run([
            *launcher(ranks), *(["env", *variables] if variables else []), self.model, "train", "--data", self.data,
            "--portions", PORTIONS, "--batch", BATCH, "--epochs", EPOCHS, "--seed", 5, "--threads", 1, "--progress", "lines",
            "--log-every", 1, "--checkpoint", checkpoint, "--checkpoint-every", EVERY, "--checkpoint-full-every",
            self.full_every, *resumes, *flags,
        ])  # fmt: skip

    def _newest(self, name: str) -> tuple[int, Path]:
        """Step and folder of the newest saved state; step 0 without one."""
        checkpoint = self.folder / name
        if not (checkpoint / "manifest.json").exists():
            return 0, checkpoint
        newest = json.loads((checkpoint / "manifest.json").read_text())["generations"][-1]
        return newest["step"], checkpoint / newest["name"]

    def saved(self, name: str) -> int:
        """The step of the newest checkpoint; 0 without one."""
        return self._newest(name)[0]

    def _ask(self, *words: object) -> str:
        """What is wrong with a checkpoint, as genrec-checkpoint tells; "": nothing."""
        tool = [self.build / "bin" / "genrec-checkpoint", *words]
        done = subprocess.run([str(w) for w in tool], capture_output=True, text=True, check=False)
        return done.stdout + done.stderr if done.returncode else ""

    def damage(self, name: str) -> str:
        """What is wrong with what a run left; "": it is whole, or there is none."""
        return self._ask("verify", self.folder / name) if (self.folder / name / "manifest.json").exists() else ""

    def _left(self, name: str) -> list[str]:
        """What lies in a checkpoint's folder and belongs to no saved state."""
        checkpoint = self.folder / name
        manifest = json.loads((checkpoint / "manifest.json").read_text())
        named = {generation["name"] for generation in manifest["generations"]} | {*manifest["retired"]}
        unnamed = [path.name for path in checkpoint.glob("step-*") if path.name not in named]
        return unnamed + [str(path.relative_to(checkpoint)) for path in checkpoint.rglob("*.partial")]

    def difference(self, name: str) -> str:
        """What differs at the end from a run that nobody disturbed; "": no bit."""
        if self.saved(name) != STEPS:
            return f"it ends at step {self.saved(name)} instead of {STEPS}"
        if said := self._ask("diff", self.folder / "whole", self.folder / name):
            return said
        if left := self._left(name):
            return f"it leaves {left}, which no manifest names"
        if self.full_every > 1:  # which saves are full depends on when a process started
            return ""
        one, other = ((self._newest(it)[1] / "model.safetensors").read_bytes() for it in ("whole", name))
        return "" if one == other else "the files have other bytes"

    def remove(self, name: str) -> None:
        shutil.rmtree(self.folder / name, ignore_errors=True)
