#!/usr/bin/env python3
"""Makes one rank fail, or kills it, at a call of the system in the middle of a save that all ranks write together.

    build/venv/bin/python test/Faults/fail_ranks.py [--count 60] [--ranks 3] [--full-every 3] [--build build] [--verbose]

In each run the n-th opening, writing, flushing or renaming of a file of the checkpoint fails on one rank (a full disk, say:
all its writes from one on), or the rank is killed there; shim.cpp does it. The run must end within seconds, with an error that
says what failed on which rank, or with all that it had to do done. What was saved before is whole, and training goes on from it,
on another number of ranks, to the bits of a run without the fault.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from rank_runs import HangError, Run, Training

KINDS = ("open", "write", "fsync", "rename")
SECONDS = 60  # of a run that fails


@dataclass(frozen=True)
class Fault:
    rank: int
    kind: str
    number: int
    how: str  # "": this call fails; "+": all from it on do; "!": the rank is killed

    def __str__(self) -> str:
        what = {"": "fails", "+": "and all after it fail", "!": "kills it"}[self.how]
        return f"rank {self.rank}: {self.kind} {self.number} {what}"


class Harness(Training):
    def _environment(self, name: str, rank: int, **more: object) -> dict[str, object]:
        shim = self.build / "lib" / "libgenrec-fault-shim.so"
        return {"LD_PRELOAD": shim, "GENREC_FAULT_RANK": rank, "GENREC_FAULT_UNDER": self.folder / name, **more}

    def start_without_thread(self, rank: int, number: int) -> Run:
        """A run whose steps are dispatched ahead, and of which a rank cannot start its n-th thread."""
        name = "threadless"
        self.remove(name)
        environment = {**self._environment(name, rank), "GENREC_FAULT": f"thread:{number}"}
        return self.start(name, self.ranks, "--overlap", "rows", environment=environment)

    def count(self, rank: int) -> dict[str, int]:
        """How many calls of each kind a rank makes."""
        counts = self.folder / "counts.txt"
        self.start(
            "counted", self.ranks, environment=self._environment("counted", rank, GENREC_FAULT_COUNTS=counts)
        ).end(300)
        self.remove("counted")
        lines = (line.split() for line in counts.read_text().splitlines())
        return {kind: int(number) for kind, number in lines if kind in KINDS}

    def faults(self, count: int) -> list[Fault]:
        """`count` faults or a few more, spread over ranks, kinds, ways and the calls of each."""
        counts = [self.count(rank) for rank in range(self.ranks)]
        pairs = [(rank, kind) for rank in range(self.ranks) for kind in KINDS if counts[rank][kind] > 0]
        ways = ("!", "", "+")
        each = -(-count // (len(pairs) * len(ways)))
        found = []
        for rank, kind in pairs:
            calls = counts[rank][kind]
            for at, how in enumerate(ways):  # other calls for each way
                number = min(each, calls)
                found += [
                    Fault(rank, kind, 1 + (i * len(ways) + at) * calls // (number * len(ways)), how)
                    for i in range(number)
                ]
        return found

    def inject(self, fault: Fault) -> tuple[str, str]:
        """How a run with a fault ended, and what is wrong; "": nothing."""
        name = "failing"
        self.remove(name)
        wish = f"{fault.kind}:{fault.number}{fault.how}"
        try:
            run = self.start(name, self.ranks, environment=self._environment(name, fault.rank, GENREC_FAULT=wish))
            status, said = run.end(SECONDS)
            how = "success" if status == 0 else "killed" if fault.how == "!" else "error"
            wrong = self._judge(fault, name, how, said)
            if not wrong and how != "success":
                status, said = self.start(name, 1 + fault.number % 4).end(300)
                wrong = f"then resuming ends with {status}: {said[-500:]}" if status else ""
        except HangError as hang:
            return "hang", str(hang)
        return how, wrong or self.difference(name)

    def _judge(self, fault: Fault, name: str, how: str, said: str) -> str:
        if how == "killed" and f"process rank {fault.rank} with PID" not in said:
            return f"nobody says that the rank was killed: {said[-500:]}"
        if how == "error":
            errors = re.findall(r"^\w+: error: (.*)$", said, re.MULTILINE)
            if len(errors) != 1:
                return f"{len(errors)} errors are told: {said[-700:]}"
            if str(self.folder / name) not in errors[0]:
                return f"the error names no file: {errors[0]}"
            if set(re.findall(r"\brank (\d+)", errors[0])) - {"0"} != ({str(fault.rank)} - {"0"}):
                return f"the error does not name the rank: {errors[0]}"
        return self.damage(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--full-every", type=int, default=1, help="of so many saves one is full")
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    ended: Counter[str] = Counter()
    faults = 0
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(arguments.build, Path(folder), arguments.ranks, arguments.full_every)
        for fault in harness.faults(arguments.count):
            how, wrong = harness.inject(fault)
            ended[how] += 1
            faults += bool(wrong)
            if wrong or arguments.verbose:
                print(f"{fault}: {how}{': ' if wrong else ''}{wrong}", flush=True)
    runs = ", ".join(f"{count} {how}" for how, count in sorted(ended.items()))
    print(f"{ended.total()} runs: {runs}; {faults} wrong")
    raise SystemExit(bool(faults))


if __name__ == "__main__":
    main()
