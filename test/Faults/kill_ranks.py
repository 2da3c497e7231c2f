#!/usr/bin/env python3
"""Kills and stops ranks of a compiled model that trains under mpirun, at random moments, and looks at what is told and left.

    build/venv/bin/python test/Faults/kill_ranks.py --kills 50 [--ranks 3] [--full-every 4] [--seed 1] [--build build]

A rank that is killed (SIGKILL) is named, and the others end, within ten seconds. What is saved is whole. Training goes on from
it, on another number of ranks at times, until the next kill; a run that comes to its end has the bits of one that was never
killed. With --full-every, saves are incremental between full ones.

mpirun of Open MPI 4.1 at times does not end itself where a rank is killed while it connects to mpirun, before it is one of the
program's: it names the rank, and all ranks have ended. Such runs are counted.
"""

from __future__ import annotations

import argparse
import random
import signal
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from rank_runs import STEPS, HangError, Run, Training

SECONDS = 10  # from a kill to the end of all others
LONG = 300  # a run that takes longer hangs


@dataclass
class Outcome:
    """Kills that met a run, runs that ended, and what went wrong."""

    kills: int = 0
    ends: int = 0
    stuck: int = 0  # times that mpirun did not end, though all ranks had
    slowest: float = 0  # seconds from a kill to the end of all
    steps: list[int] = field(default_factory=list)  # of the checkpoints that runs went on from
    wrong: list[str] = field(default_factory=list)


class Harness(Training):
    def kill(self, count: int, seed: int, verbose: bool = False) -> Outcome:
        """Kills a rank in each of `count` runs, which go on one from the other; from the start where one has ended."""
        draw, outcome, name = random.Random(seed), Outcome(), "killed"
        try:
            while outcome.kills < count:
                self._kill_once(name, draw, outcome)
                if verbose:
                    print(f"{outcome.kills} kills, {outcome.ends} ends, saved step {self.saved(name)}", flush=True)
            self._finish(self.start(name, self.ranks), name, outcome)
        except HangError as hang:
            outcome.wrong.append(f"after {outcome.kills} kills a run {hang}")
        return outcome

    def _kill_once(self, name: str, draw: random.Random, outcome: Outcome) -> None:
        ranks = draw.choice([self.ranks, self.ranks, 2, 4])
        run = self.start(name, ranks, "--overlap", draw.choice(["none", "keys", "rows"]))
        if draw.random() < 0.2:  # while it starts
            time.sleep(draw.random() * self.startup)
        else:
            run.wait_for_step(draw.randint(self.saved(name), STEPS + STEPS // 8), LONG)
            time.sleep(draw.random() * 0.02)
        rank = draw.randrange(ranks)
        if not run.send(rank, signal.SIGKILL):  # it has ended, or mpirun has not started it yet
            self._finish(run, name, outcome)
            return
        outcome.kills += 1
        self._expect_end(run, rank, outcome)
        outcome.steps.append(self.saved(name))
        if damage := self.damage(name):
            outcome.wrong.append(f"after {outcome.kills} kills the checkpoint is damaged: {damage}")

    def _expect_end(self, run: Run, rank: int, outcome: Outcome) -> None:
        begin = time.monotonic()
        try:
            status, said = run.end(SECONDS)
            outcome.slowest = max(outcome.slowest, time.monotonic() - begin)
        except HangError as hang:
            if hang.ranks:
                outcome.wrong.append(f"rank {rank} was killed, and the run {hang}")
                return
            status, said = 1, hang.said
            outcome.stuck += 1
        if status == 0 or f"process rank {rank} with PID" not in said:
            outcome.wrong.append(f"rank {rank} was killed, and nobody says so (status {status}): {said[-500:]}")

    def _finish(self, run: Run, name: str, outcome: Outcome) -> None:
        """Nobody disturbs the run any more."""
        status, said = run.end(LONG)
        if status != 0:
            outcome.wrong.append(
                f"after {outcome.kills} kills a run that nobody killed ends with {status}: {said[-500:]}"
            )
        elif difference := self.difference(name):
            outcome.wrong.append(f"after {outcome.kills} kills the run ends otherwise: {difference}")
        outcome.ends += 1
        self.remove(name)

    def stall(self, rank: int, patience: int) -> tuple[int, str, float]:
        """Stops a rank that trains: the status of the run, what it says, and after how many seconds it has ended."""
        run = self.start(f"stalled{rank}", self.ranks, "--comm-patience", patience, "--epochs", 1000)
        run.wait_for_step(20, LONG)
        begin = time.monotonic()
        assert run.send(rank, signal.SIGSTOP)
        status, said = run.end(patience + 30)
        return status, said, time.monotonic() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--full-every", type=int, default=1, help="of so many saves one is full")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=Path("build"))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(arguments.build, Path(folder), arguments.ranks, arguments.full_every)
        outcome = harness.kill(arguments.kills, arguments.seed, verbose=True)
    for text in outcome.wrong:
        print(text)
    print(
        f"{outcome.kills} kills, at checkpoints {min(outcome.steps)} to {max(outcome.steps)} of {STEPS} steps; all ranks "
        f"had ended {outcome.slowest:.1f} s after one, mpirun had not {outcome.stuck} times; {outcome.ends} runs came to their end, "
        f"{len(outcome.wrong)} faults"
    )
    raise SystemExit(bool(outcome.wrong))


if __name__ == "__main__":
    main()
