"""Sides of a benchmark of training steps: binaries of ours, and peers in processes of their own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))


def run(*words: object) -> str:
    """What a program prints; ends the benchmark with its messages where it fails."""
    result = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"[bench]   error: {words[0]} failed\n{result.stderr}")
    return result.stdout


@dataclass
class Side:
    """One of those compared: its timed steps, and the losses of its first ones."""

    name: str
    warm_up: int
    seconds: list[float] = field(default_factory=list)
    first_losses: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Seconds per step."""
        return statistics.median(self.seconds)

    @property
    def fastest(self) -> float:
        """Seconds of the fastest step, which others on the machine disturbed least."""
        return min(self.seconds)

    def take_turn(self, steps: int) -> None:
        """Times `steps` steps behind the warm-up ones, on the same batches every turn."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends what runs."""


class Ours(Side):
    """A compiled binary; every turn starts from the initial weights. A step begins where the one before ended."""

    def __init__(self, name: str, binary: Path, data: Path, init: Path, batch: int, threads: int, warm_up: int) -> None:
        super().__init__(name, warm_up)
        self.command = [
            str(binary), "train", "--data", str(data), "--init", str(init), "--batch", str(batch), "--threads",
            str(threads), "--epochs", "1000", "--no-shuffle", "--log-every", "1", "--progress", "json",
        ]  # fmt: skip

    def take_turn(self, steps: int) -> None:  # noqa: D102
        command = [*self.command, "--max-steps", str(self.warm_up + steps)]
        times, losses = [], []
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stderr is not None
            for line in process.stdout:
                event = json.loads(line)
                if event["event"] == "step":
                    times.append(event["seconds"])  # its own clock: this process may read late
                    losses.append(event["loss"])
            errors = process.stderr.read()
        if process.returncode or len(times) != self.warm_up + steps:
            sys.exit(f"[bench]   error: {self.name} gave {len(times)} steps\n{errors}")
        self.seconds += [after - before for before, after in zip(times, times[1:], strict=False)][self.warm_up - 1 :]
        self.first_losses = self.first_losses or losses


class Peer(Side):
    """A process that takes steps on request; it goes on training from turn to turn, over the same batches.

    It answers every line "<first step> <steps>" of its input with {"seconds": […], "losses": […]}.
    """

    def __init__(self, name: str, command: list[object], threads: int, warm_up: int) -> None:
        super().__init__(name, warm_up)
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip

    def ask(self, first: int, steps: int) -> dict[str, list[float]]:
        """Seconds and losses of some steps."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{first} {steps}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            sys.exit(f"[bench]   error: {self.name} ended; its messages are above")
        return json.loads(answer)

    def take_turn(self, steps: int) -> None:  # noqa: D102
        if not self.first_losses:
            self.first_losses = self.ask(0, self.warm_up)["losses"]
        self.seconds += self.ask(self.warm_up, steps)["seconds"]

    def close(self) -> None:  # noqa: D102
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()
