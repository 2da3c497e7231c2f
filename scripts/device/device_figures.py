"""Figures of a device: the packed benchmarks and their peers, each a job whose report is a part of the results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jobs import Job, Part, Work

# The most important first, with the seconds that each may take.
SECONDS = {
    "ceilings": 30,
    "attention": 80,
    "step": 25,
    "store": 45,
    "hkv": 35,
    "unique": 25,
    "columns": 20,
    "peers": 40,
}


class Figures:
    """The benchmarks of a packed folder: `programs` are those that it has, `python` has torch for the peers."""

    def __init__(self, folder: Path, programs: list[str], python: str, checkout: str = "") -> None:
        self.folder, self.programs, self.python, self.checkout = folder, programs, python, checkout

    def jobs(self) -> list[Job]:
        """In order."""
        made = []
        for name, seconds in SECONDS.items():
            if name == "peers":
                command: list[object] = [self.python, self.folder / "peers.py"]
                if self.checkout:
                    command += ["--generative-recommenders", self.checkout]
                needs: tuple[str, ...] = ("device", "torch")
            else:
                program = f"bench-cuda-{name}"
                command = [self.folder / program]
                needs = ("device",) if program in self.programs else ("device", name)
            made.append(Job(name, seconds, self.runner(command), needs, "figures"))
        return made

    def runner(self, command: list[object]) -> Work:
        """Work that runs a program, with the file of its report behind its arguments."""

        def run(part: Part, job: Job) -> list[str]:
            file = part.out / "figures.tmp"
            file.unlink(missing_ok=True)
            outcome = part.call([*command, file], job.seconds)
            # What was measured before a limit counts: programs write after every group.
            try:
                report: dict[str, Any] = json.loads(file.read_text())
            except (OSError, ValueError):
                report = {}
            file.unlink(missing_ok=True)
            job.details["report"] = report
            for figure in report.get("figures", []):
                part.say(f"  {figure['what']:<66} {figure['value']} {figure['unit']}")
            for skipped in report.get("skipped", []):
                part.say(f"  SKIPPED: {skipped['what']}: {skipped['why']}")
            return [outcome.failure] if outcome.failure else []

        return run
