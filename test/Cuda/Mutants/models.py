"""Whole models as judges of mutants: the runs of test/EndToEnd/session_runs.py, with the archive that has mutants."""

from __future__ import annotations

import os
import queue
import sys
import time
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).parents[3]
sys.path.insert(0, str(SOURCE / "test/EndToEnd"))
import session_runs  # noqa: E402

# How many of the runs in which a mutant makes a difference have a seed.
MOST_RUNS = {1: 16, 2: 3}


@dataclass
class Run:
    name: str
    seconds: float
    reached: set[int]


class Models:
    """Compiled into `folder` once; every thread takes a copy of it to run them in."""

    def __init__(self, build: Path, folder: Path) -> None:
        headers = [build / "mutants/include", Path(__file__).parent]
        self.folder, self.runs = folder, list[Run]()
        self.whole = session_runs.Folder(folder, build / "lib/libgenrec_rt_cuda_mutants.a", headers)
        self.expected = session_runs.Expected(self.whole)
        self.copies: queue.Queue[session_runs.Folder] = queue.Queue()

    def errors(self) -> str:
        """What the compiler says, where it does not compile all of them."""
        for model in {runs.model for runs in session_runs.RUNS.values()}:
            try:
                self.whole.binary(model, "cuda-emulated")
            except Exception as error:  # noqa: BLE001 -- whatever it is, the compiler's words are in it
                return str(error)
        return ""

    def reached(self, jobs: int) -> set[int]:
        """All that make a difference in some run, which are run here without any."""
        for job in range(jobs):
            self.copies.put(self.whole.beside(self.folder / str(job)))
        for name in session_runs.RUNS:
            out = self.folder / f"reached-{name}"
            os.environ["GENREC_SIMT_REACHED"] = str(out)
            begun = time.monotonic()
            assert self.expected[name]
            del os.environ["GENREC_SIMT_REACHED"]
            numbers = set(map(int, out.read_text().split())) if out.exists() else set()
            self.runs.append(Run(name, time.monotonic() - begun, numbers))
        self.runs.sort(key=lambda each: each.seconds)
        return set().union(*(run.reached for run in self.runs))

    def see(self, number: int) -> bool:
        mine = [run.name for run in self.runs if number in run.reached]
        folder = self.copies.get()
        try:
            return not all(
                self.expected.is_left(name, folder, number, seed)
                for seed, most in MOST_RUNS.items()
                for name in mine[:most]
            )
        finally:
            self.copies.put(folder)
