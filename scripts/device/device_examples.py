"""The examples' binaries for a device beside those for the CPU: equal losses, metrics that agree, times of steps.

    python3 device_examples.py FOLDER OUT [--only NAME,…] [--steps N] [--batch N]

FOLDER/<example>/ has the binaries `cpu` and `device`, and example.json: files and flags of both. Both train the same
steps from the same seed, the CPU's on all threads; then both evaluate, each its own checkpoint. Where they part, the
CPU's binary trains again with learning rates moved by a few units of a float's last place, less than other rounding
does to a weight: some models amplify rounding, and a device may not part further than ROUNDING times what such runs
do. (With portions, in-batch softmax has other negatives: such runs part by more than rounding.) A model with
`step_flops` has no binary for the CPU: it trains SPEED_STEPS steps, and its rate is reported. Prints a line per
example, and ends with 1 where one disagrees. `make device` packs this script; tests run it on binaries of the emulated
device.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import Job, Part

STEPS = 100
LOSS = 1e-5  # by how much of itself a loss may part
METRIC = 0.002  # by how much a metric may
UNITS = (1, -1, 2, -2, 4, -4)  # of 2^-23, by which learning rates of the CPU's runs move that say what rounding does
ROUNDING = 2  # times as far as these part from the first one a device may
SPEED_STEPS = 16  # of a model that is there for its speed
WARM = 10  # steps that times leave out: memory is taken, and graphs are captured there
EXAMPLE_SECONDS = 30  # for all of an example


class ExampleError(Exception):
    """A program failed, or did not do what it was asked for."""


def read_steps(lines: str) -> list[dict[str, Any]]:
    """The steps of --progress json."""
    events = [json.loads(line) for line in lines.splitlines() if line.startswith("{")]
    return [event for event in events if event.get("event") == "step"]


def step_seconds(steps: list[dict[str, Any]]) -> float | None:
    """The median time of a step behind the first ones; None of too few. Between epochs checkpoints are saved."""
    times = [
        after["seconds"] - before["seconds"]
        for before, after in zip(steps[WARM - 1 :], steps[WARM:], strict=False)
        if before.get("epoch") == after.get("epoch")
    ]
    return statistics.median(times) if times else None


@dataclass(frozen=True)
class Run:
    """What a binary's training came to: the loss of each step, the time of one, and metrics of its checkpoint."""

    losses: list[float]
    seconds: float | None
    metrics: dict[str, float]

    def apart(self, other: Run) -> list[float]:
        """By how much of itself each loss of `other` is missed."""
        return [abs(a - b) / max(abs(b), 1e-30) for a, b in zip(self.losses, other.losses, strict=True)]


def disagreements(device: Run, cpu: Run, others: list[Run]) -> list[str]:
    """What parts further than it may: than LOSS and METRIC, and than ROUNDING times what `others`, of the CPU, do."""
    failures = []
    apart, spread = device.apart(cpu), [other.apart(cpu) for other in others]
    most = LOSS
    for step, one in enumerate(apart):
        most = max([most, *(ROUNDING * run[step] for run in spread)])
        if not one <= most:  # NaN, too
            losses = f"{device.losses[step]}, on the CPU {cpu.losses[step]}"
            where = f"first in step {step + 1}, more than {most:.1e}"
            failures.append(f"losses part by {max(apart):.1e}; {where}: {losses}")
            break
    for name, value in cpu.metrics.items():
        other = device.metrics.get(name, float("nan"))
        most = max([METRIC, *(ROUNDING * abs(run.metrics[name] - value) for run in others)])
        if name != "loss" and not abs(other - value) <= most:
            failures.append(f"{name} is {other}, on the CPU {value}: more than {most:.1e} apart")
    return failures


class Example:
    """An example in its folder."""

    def __init__(self, folder: Path, steps: int, batch: int | None = None, seconds: float = EXAMPLE_SECONDS) -> None:
        self.folder, self.seconds = folder, seconds
        given = json.loads((folder / "example.json").read_text())
        self.flags = [flag.replace("{folder}", str(folder)) for flag in given["flags"]]
        self.train_flags = given.get("train_flags", [])
        self.train_data, self.valid_data = folder / given["train"], folder / given["valid"]
        self.step_flops = given.get("step_flops", 0)
        self.batch, self.steps = batch or given["batch"], SPEED_STEPS if self.step_flops else steps
        self.host: dict[str, float] = {}

    def run(self, part: Part, side: str, command: str, data: Path, *more: object) -> str:
        """What a binary prints that reads data."""
        return self.call(part, side, command, "--data", data, "--batch", self.batch, *self.flags, *more)

    def call(self, part: Part, side: str, command: str, *more: object) -> str:
        """What a binary prints; raises ExampleError where it fails."""
        words = [self.folder / side, command, *more]
        more_libraries = {"LD_LIBRARY_PATH": part.library_path} if part.library_path else {}
        outcome = part.call(words, self.seconds, **more_libraries)
        if outcome.failure:
            raise ExampleError(f"{side} {command}: {outcome.failure}")
        return outcome.output

    def train(self, part: Part, side: str, checkpoint: Path, *more: object) -> list[dict[str, Any]]:
        """Its steps; `host` gets where the thread that queues a device's steps spends one."""
        report = checkpoint.with_name(f"{checkpoint.name}-train.json")
        flags = [
            *self.train_flags, "--epochs", 1000, "--max-steps", self.steps, "--seed", 7, "--log-every", 1,
            "--progress", "json", "--checkpoint", checkpoint, "--metrics-json", report, *more,
        ]  # fmt: skip
        steps = read_steps(self.run(part, side, "train", self.train_data, *flags))
        if len(steps) != self.steps:
            raise ExampleError(f"{side} train: {len(steps)} steps, asked for {self.steps}")
        self.host = json.loads(report.read_text()).get("device", {}).get("host", self.host)
        return steps

    def evaluate(self, part: Part, side: str, checkpoint: Path) -> dict[str, float]:
        """Its metrics, and the loss."""
        report = checkpoint.with_name(f"{checkpoint.name}.json")
        more = ["--checkpoint", checkpoint, "--progress", "none", "--metrics-json", report]
        self.run(part, side, "evaluate", self.valid_data, *more)
        found = json.loads(report.read_text())["evaluation"]
        return {"loss": found["loss"], **found["metrics"]}

    def measure(self, part: Part, found: dict[str, Any]) -> list[str]:
        """The rate of a step, and whether it computed anything. `found` gets what is measured."""
        with tempfile.TemporaryDirectory(prefix="genrec-example-") as name:
            steps = self.train(part, "device", Path(name) / "device")
        found["steps"], found["batch"], found["losses"] = self.steps, self.batch, [step["loss"] for step in steps]
        found["host"] = self.host
        if (seconds := step_seconds(steps)) is not None:
            found["device_step_seconds"], found["tflops_per_second"] = seconds, self.step_flops / seconds * 1e-12
        if not all(math.isfinite(loss) for loss in found["losses"]):
            return [f"losses are not finite: {found['losses']}"]
        return []

    def whole(self, part: Part, side: str, checkpoint: Path, *more: object) -> Run:
        """Trains and evaluates."""
        steps = self.train(part, side, checkpoint, *more)
        return Run([step["loss"] for step in steps], step_seconds(steps), self.evaluate(part, side, checkpoint))

    def learning_rate(self, part: Part) -> float:
        """The largest one of the model, which --lr replaces."""
        info = json.loads(self.call(part, "cpu", "info", "--json"))
        return max(entry["optimizer"]["learning_rate"] for entry in info["tables"] + info["parameters"])

    def with_moved_rates(self, part: Part, work: Path) -> list[Run]:
        """The CPU's runs that say what rounding does, as many as there is time for."""
        runs: list[Run] = []
        rate = self.learning_rate(part)
        for units in UNITS:
            begin = time.monotonic()
            try:
                runs.append(self.whole(part, "cpu", work / f"rate{units:+d}", "--lr", rate * (1 + units * 2**-23)))
            except ExampleError as error:
                part.say(f"  no more runs to measure rounding: {error}")
                break
            if 2 * (time.monotonic() - begin) > part.job_left:
                break
        return runs

    def compare(self, part: Part, found: dict[str, Any]) -> list[str]:
        """What disagrees. `found` gets what is measured, as it is."""
        with tempfile.TemporaryDirectory(prefix="genrec-example-") as name:
            work = Path(name)
            device, cpu = (self.whole(part, side, work / side) for side in ("device", "cpu"))
            found["host"] = self.host
            found["losses_apart"], found["steps"], found["batch"] = max(device.apart(cpu)), self.steps, self.batch
            found["metrics"] = {"cpu": cpu.metrics, "device": device.metrics}
            for side, run in (("device", device), ("cpu", cpu)):
                if run.seconds is not None:
                    found[f"{side}_step_seconds"] = run.seconds
            if not disagreements(device, cpu, []):
                return []
            others = self.with_moved_rates(part, work)
            found["cpu_apart"] = max((max(other.apart(cpu)) for other in others), default=0.0)
            found["cpu_runs"] = len(others)
            return disagreements(device, cpu, others)


def host_text(host: dict[str, float]) -> str:
    """Where the host spends a step."""
    if not host.get("steps"):
        return ""
    return "; the host: " + ", ".join(
        f"{name.removesuffix('_ms')} {milliseconds:.3f}" for name, milliseconds in host.items() if name != "steps"
    )


def line(name: str, found: dict[str, Any]) -> str:
    """An example's results as text."""
    host = host_text(found.get("host", {}))
    if "tflops_per_second" in found:
        seconds, rate = found["device_step_seconds"], found["tflops_per_second"]
        return f"  {name:<22} a step {seconds * 1e3:.3f} ms, {rate:.1f} TFLOP/s{host}"
    text = f"  {name:<22} losses within {found.get('losses_apart', float('nan')):.1e} over {found.get('steps')} steps"
    times = [found.get(f"{side}_step_seconds") for side in ("device", "cpu")]
    if "cpu_apart" in found:
        text += f"; {found['cpu_runs']} runs of the CPU with moved rates within {found['cpu_apart']:.1e}"
    if all(times):
        text += f"; a step {times[0] * 1e3:.3f} ms, on the CPU {times[1] * 1e3:.3f} ms"
    return text + host


def jobs(
    folder: Path, names: list[str], refused: dict[str, str], steps: int = STEPS, batch: int | None = None
) -> list[Job]:
    """One per example; those that `refused` names have no binary for a device, and why."""

    def runner(name: str):  # noqa: ANN202
        def run(part: Part, job: Job) -> list[str]:
            try:
                example = Example(folder / name, steps, batch, job.seconds)
                failures = (example.measure if example.step_flops else example.compare)(part, job.details)
            except ExampleError as error:
                return [str(error)]
            part.say(line(name, job.details))
            return failures

        return run

    made = [
        Job(f"example {n}", EXAMPLE_SECONDS, runner(n), ("device",), f"{steps} steps on device and CPU") for n in names
    ]
    return made + [
        Job(f"example {n}", 0, lambda part, job: [], ("device", f"example {n}"), why) for n, why in refused.items()
    ]


def main(words: list[str]) -> int:
    """The comparison alone."""
    parser = argparse.ArgumentParser(description="compares the examples' binaries for a device and for the CPU")
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--batch", type=int)
    given = parser.parse_args(words)
    names = (
        given.only.split(",")
        if given.only
        else sorted(path.parent.name for path in given.folder.glob("*/example.json"))
    )
    given.out.mkdir(parents=True, exist_ok=True)
    part = Part(2, given.out, 3600, {}, {})
    for job in jobs(given.folder, names, {}, given.steps, given.batch):
        job.seconds = 3600
        part.do(job)
    return 1 if part.counts()["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
