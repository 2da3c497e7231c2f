"""Jobs of a part: programs that run under a time limit, and results that are written as they come.

A part has so many seconds. A job that the machine lacks a program for is skipped, with the reason; one whose turn comes
when the time is over is cut. `part-<n>.json` in the given folder is written anew after every job and by jobs themselves
as they go, `part-<n>.log` has what programs printed, so a part that is stopped leaves what it had found.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE_BYTES = 16 << 20  # of a file in the given folder
FILES = 8  # in it
LOG_BYTES = FILE_BYTES - (1 << 20)
PROGRAM_BYTES = 256 << 10  # that the log keeps of what one program printed


@dataclass(frozen=True)
class Outcome:
    """How a program ended. `status` None: it was ended at its limit."""

    status: int | None
    output: str
    seconds: float

    @property
    def last_line(self) -> str:
        """What it said at the end."""
        lines = self.output.strip().splitlines()
        return lines[-1].strip() if lines else "it printed nothing"

    @property
    def failure(self) -> str:
        """Why it counts as failed; "": it does not."""
        if self.status is None:
            return f"ended after {self.seconds:.0f} s, its limit: {self.last_line}"
        return "" if self.status == 0 else f"status {self.status}: {self.last_line}"


# What a job does: returns its failures, one line each.
Work = Callable[["Part", "Job"], list[str]]


@dataclass
class Job:
    """A piece of a part; `needs` names what of the machine it cannot do without."""

    name: str
    seconds: float  # it may take
    run: Work
    needs: tuple[str, ...] = ("device",)
    shown: str = ""  # what a dry run says of it
    details: dict[str, Any] = field(default_factory=dict)  # what its record has beside status and time


class Part:
    """A part that runs: its clock, its log and its results.

    `lacks` says why the machine has no "device", "torch", "ncu" or "compute-sanitizer"; what it has is not in it.
    """

    def __init__(self, number: int, out: Path, seconds: float, lacks: dict[str, str], head: dict[str, Any]) -> None:
        self.lacks = lacks
        self.out = out
        self.environment: dict[str, str] = dict(os.environ)
        self.library_path = ""  # of the examples' binaries; tests and benchmarks need none
        self.begin = time.monotonic()
        self.seconds = seconds
        self.job_end = self.begin + seconds
        self.result: dict[str, Any] = {"part": number, **head, "jobs": {}}
        self.json, self.log = out / f"part-{number}.json", out / f"part-{number}.log"
        self.lock = threading.Lock()
        self.running: set[int] = set()  # process groups
        self.log.write_text("")
        self.write()

    @property
    def left(self) -> float:
        """Seconds."""
        return self.seconds - (time.monotonic() - self.begin)

    @property
    def job_left(self) -> float:
        """Seconds of the job that runs, and of the part."""
        return min(self.left, self.job_end - time.monotonic())

    def write(self) -> None:
        """Replaces the results by what is known now."""
        with self.lock:
            self.result["seconds"] = round(time.monotonic() - self.begin, 1)
            aside = self.json.with_suffix(".tmp")
            aside.write_text(json.dumps(self.result, indent=1) + "\n")
            aside.replace(self.json)

    def say(self, text: str) -> None:
        """Prints and logs a line."""
        print(text, flush=True)
        self.keep(text + "\n")

    def keep(self, text: str) -> None:
        """Appends to the log, while it has room."""
        data = text.encode(errors="replace")
        if len(data) > PROGRAM_BYTES:
            half = PROGRAM_BYTES // 2
            data = data[:half] + f"\n[{len(data) - PROGRAM_BYTES:,} bytes are left out]\n".encode() + data[-half:]
        with self.lock:
            if self.log.stat().st_size + len(data) <= LOG_BYTES:
                with self.log.open("ab") as log:
                    log.write(data)

    def call(self, command: Iterable[object], limit: float, **more: str) -> Outcome:
        """Runs a program for at most `limit` seconds, and what is left of its job and of the part.

        `more`: its environment.
        """
        words = [str(word) for word in command]
        limit = max(min(limit, self.job_left), 1.0)
        begin = time.monotonic()
        try:
            process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**self.environment, **more}, start_new_session=True, text=True, errors="replace",
            )  # fmt: skip
        except OSError as error:
            return Outcome(127, f"{words[0]}: {error.strerror}", 0.0)
        self.running.add(process.pid)
        try:
            output, _ = process.communicate(timeout=limit)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired:
            self.end(process.pid)
            output, _ = process.communicate()
            status = None
        finally:
            self.running.discard(process.pid)
        outcome = Outcome(status, output, time.monotonic() - begin)
        self.keep(f"$ {' '.join(words)}\n{output.rstrip()}\n[{outcome.failure or 'passed'}, {outcome.seconds:.1f} s]\n")
        return outcome

    def end(self, group: int) -> None:
        """Ends a program and what it started."""
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def stop(self) -> None:
        """Ends all programs, where the part itself is ended."""
        for group in list(self.running):
            self.end(group)

    def missing(self, job: Job) -> str:
        """Why the job cannot run here; "": it can."""
        return "; ".join(self.lacks[need] for need in job.needs if self.lacks.get(need))

    def do(self, job: Job) -> None:
        """Runs a job, or says why not."""
        record: dict[str, Any] = {"status": "running"}
        self.result["jobs"][job.name] = record
        begin = time.monotonic()
        if why := self.missing(job):
            record.update(status="skipped", why=why)
            self.say(f"SKIPPED: {job.name}: {why}")
        elif self.left < 2:
            record.update(status="cut", why="the part's time was over")
            self.say(f"CUT: {job.name}: the part's time was over")
        else:
            record["details"] = job.details
            self.job_end = begin + job.seconds
            self.write()
            try:
                failures = job.run(self, job)
            except Exception as error:  # what one job makes of its results must not cost the others theirs
                failures = [f"{type(error).__name__}: {error}"]
            record.update(status="failed" if failures else "passed", seconds=round(time.monotonic() - begin, 1))
            if failures:
                record["failures"] = failures
            for failure in failures:
                self.say(f"FAILED: {job.name}: {failure}")
            if not failures:
                self.say(f"passed: {job.name} ({record['seconds']} s)")
        self.write()

    def counts(self) -> dict[str, int]:
        """Jobs by status."""
        every = [record["status"] for record in self.result["jobs"].values()]
        return {status: every.count(status) for status in ("passed", "failed", "cut", "skipped")}
