"""The slowest kernels of training steps and benchmarks, in Nsight Compute: the time of all, then everything of ten."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tempfile
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs import FILE_BYTES, Job, Outcome, Part, Work

MOST = 10  # kernels that are looked at closely
TIME = "gpu__time_duration.sum"
STEPS, LAUNCHES = 4, 4000  # of a run whose kernels are timed
OPS_SECONDS, TIMES_SECONDS, EVERYTHING_SECONDS = 40, 70, 25
CALIBRATE_SECONDS = 10
MOST_BYTES = 1 << 20  # of a profile that is kept
NEEDS = ("device", "ncu")
# ncu must not set clocks: figures are those of the card as it runs.
NCU = ["ncu", "--target-processes", "all", "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"]


# Classes of kernels, of whose time a step's shares are told. Of names that the manifest has not (it has those of the
# runtime), generated row kernels are elementwise, and those that update rows of tables are of tables.
PRODUCTS, ATTENTION, ELEMENTWISE, TABLES, OTHER = "products", "attention", "elementwise", "tables", "other"
LIBRARY_PRODUCT = re.compile(r"gemm|gemv|nvjet|cutlass|xmma|splitk|cublas", re.IGNORECASE)
GENERATED = {"row_touched_": TABLES, "row_": ELEMENTWISE, "run_": ELEMENTWISE}


@dataclass(frozen=True)
class Run:
    """A program whose kernels are timed."""

    name: str
    command: tuple[object, ...]
    is_example: bool = False  # its binary is linked with packed libraries

    def libraries(self, part: Part) -> str:
        """Its LD_LIBRARY_PATH."""
        return part.library_path if self.is_example else part.environment.get("LD_LIBRARY_PATH", "")

    def words(self, part: Part) -> list[object]:
        """Its command where the part runs, below a program that must not have its libraries."""
        return ["env", f"LD_LIBRARY_PATH={self.libraries(part)}", *self.command]


def read_csv(output: str) -> list[dict[str, str]]:
    """Launches of `ncu --csv --page raw`; what is printed before is passed over, as is the row of units."""
    lines = output.splitlines()
    begin = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    table = [line for line in lines[begin:] if line.startswith('"')]
    return [row for row in csv.DictReader(io.StringIO("\n".join(table))) if (row.get("ID") or "").isdigit()]


def time_of(row: dict[str, str]) -> float:
    """Nanoseconds of a launch."""
    try:
        return float((row.get(TIME) or "0").replace(",", ""))
    except ValueError:
        return 0.0


def base_name(kernel: str) -> str:
    """The function's own name: --kernel-name matches it."""
    name = kernel.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    words = name.partition("(")[0].partition("<")[0].rpartition("::")[2].split()
    return words[-1] if words else kernel


def class_of(kernel: str, known: dict[str, str]) -> str:
    """The class of a kernel; `known` has those of the runtime's own by their names."""
    name = base_name(kernel)
    if name in known and "cublas" not in kernel:
        return known[name]
    generated = next((kind for prefix, kind in GENERATED.items() if name.startswith(prefix)), "")
    return generated or (PRODUCTS if LIBRARY_PRODUCT.search(kernel) else OTHER)


class Profile:
    """Part 3. `runs`: what is profiled; `classes`: those of the runtime's kernels, by name."""

    def __init__(self, runs: list[Run], classes: dict[str, str] | None = None) -> None:
        self.runs, self.classes = runs, classes or {}
        self.times: dict[tuple[str, str], list[float]] = defaultdict(list)

    def jobs(self) -> list[Job]:
        """The times of every run, then the slowest kernels; the times of ops by the examples' own profiles first."""
        made = self.times_of_kernels(TIMES_SECONDS)
        shown = f"everything of the {MOST} kernels with the most time"
        made.append(Job("slowest kernels", MOST * EVERYTHING_SECONDS, self.look, NEEDS, shown))
        ops = [Job(f"ops of {run.name}", OPS_SECONDS, self.profiler(run), ("device",), "--profile")
               for run in self.runs if run.is_example]  # fmt: skip
        return [*ops, *made]

    def times_of_kernels(self, seconds: float, launches: int = LAUNCHES) -> list[Job]:
        """Those of every run, of so many launches, within so many seconds: ncu tells what it timed when it ends."""
        return [Job(f"times of {run.name}", seconds, self.timer(run, launches), NEEDS, TIME) for run in self.runs]

    def profiler(self, run: Run) -> Work:
        """Prints the times of a step's ops: what there is where ncu is not, or may not read counters.

        Beside them are the least times, by the limits of the device, which the run's program measures before.
        """

        def measure(part: Part, job: Job) -> list[str]:
            with tempfile.TemporaryDirectory(prefix="genrec-profile-") as folder:
                limits, file = Path(folder, "limits.json"), Path(folder, "profile.json")
                environment = {"LD_LIBRARY_PATH": run.libraries(part), "GENREC_MACHINE": str(limits)}
                measured = part.call([run.command[0], "calibrate"], CALIBRATE_SECONDS, **environment)
                if measured.failure or not limits.exists():
                    return [f"calibrate: {measured.failure or 'it wrote no limits'}"]
                job.details["limits"] = json.loads(limits.read_text())
                outcome = part.call([*run.command, "--profile", folder], job.seconds, **environment)
                if file.exists() and file.stat().st_size < MOST_BYTES:
                    job.details["profile"] = json.loads(file.read_text())
            if outcome.failure:
                return [outcome.failure]
            return [] if "profile" in job.details else ["it wrote no profile.json, or one that is too large to keep"]

        return measure

    @staticmethod
    def run_ncu(part: Part, words: list[object], seconds: float) -> Outcome:
        """Runs ncu without the wheels' libraries: there is an nvperf beside cuBLAS, of another version than its own."""
        return part.call([*NCU, *words], seconds, LD_LIBRARY_PATH=os.environ.get("LD_LIBRARY_PATH", ""))

    def timer(self, run: Run, launches: int) -> Work:
        """Times every kernel of a program."""

        def measure(part: Part, job: Job) -> list[str]:
            words = ["--metrics", TIME, "--launch-count", launches, "--kill", "yes", *run.words(part)]
            outcome = self.run_ncu(part, words, job.seconds)
            rows = read_csv(outcome.output)
            for row in rows:
                self.times[run.name, row["Kernel Name"]].append(time_of(row))
            total = sum(map(time_of, rows))
            mine = {kernel: times for (name, kernel), times in self.times.items() if name == run.name}
            slowest = sorted(mine, key=lambda kernel: -sum(mine[kernel]))
            job.details["launches"] = len(rows)
            job.details["kernels"] = [
                {"kernel": k, "launches": len(mine[k]), "ms": sum(mine[k]) * 1e-6, "share": sum(mine[k]) / total}
                for k in slowest
                if total
            ]
            for entry in job.details["kernels"][:MOST]:
                part.say(f"  {entry['share']:6.1%} {entry['ms']:9.3f} ms {entry['launches']:5} {entry['kernel'][:90]}")
            shares: dict[str, float] = defaultdict(float)
            for entry in job.details["kernels"]:
                shares[class_of(entry["kernel"], self.classes)] += entry["share"]
            job.details["classes"] = dict(shares)
            if shares:
                by_share = sorted(shares.items(), key=lambda pair: -pair[1])
                part.say("  by class: " + ", ".join(f"{kind} {share:.1%}" for kind, share in by_share))
            if rows:  # a run that its limit ended has shown something
                return []
            return [outcome.failure or f"ncu timed no kernel: {outcome.last_line}"]

        return measure

    def look(self, part: Part, job: Job) -> list[str]:
        """All sections of the kernels with the most time, a launch of each."""
        if not self.times:
            return ["no kernel was timed"]
        commands = {run.name: run.words(part) for run in self.runs}
        slowest = sorted(self.times, key=lambda key: -sum(self.times[key]))[:MOST]
        failures = []
        for number, (name, kernel) in enumerate(slowest, 1):
            skip = min(1, len(self.times[name, kernel]) - 1)  # the first launch of most is cold
            more = ["--set", "full", "--kernel-name", base_name(kernel), "--launch-skip", skip, "--launch-count", "1"]
            outcome = self.run_ncu(part, [*more, *commands[name]], EVERYTHING_SECONDS)
            rows = read_csv(outcome.output)
            if not rows:
                failures.append(f"{name}, {kernel[:60]}: {outcome.failure or 'ncu shows nothing'}")
                continue
            job.details[f"{number}. {name}, {kernel}"] = {key: value for key, value in rows[0].items() if value}
            self.append(part.out / "part-3.csv", outcome.output)
        return failures

    @staticmethod
    def append(path: Path, output: str) -> None:
        """Keeps ncu's own table, while the file has room."""
        table = "\n".join(line for line in output.splitlines() if line.startswith('"')) + "\n"
        size = path.stat().st_size if path.exists() else 0
        if size + len(table) < FILE_BYTES:
            with path.open("a") as file:
                file.write(table)


def runs_of(folder: Path, programs: list[str], examples: dict[str, dict[str, Any]]) -> list[Run]:
    """Training steps of `examples` (as example.json has them), then benchmarks."""
    made = []
    for name, given in examples.items():
        at = folder / "examples" / name
        flags = [flag.replace("{folder}", str(at)) for flag in given["flags"]]
        command = [at / "device", "train", "--data", at / given["train"], "--batch", given["batch"], *flags]
        command += [
            *given.get("train_flags", []),
            "--max-steps",
            STEPS,
            "--epochs",
            1000,
            "--seed",
            7,
            "--progress",
            "none",
            "--capture",
            "off",
        ]
        made.append(Run(name, tuple(command), is_example=True))
    return made + [Run(name, (folder / name,)) for name in programs]
