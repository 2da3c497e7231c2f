#!/usr/bin/env python3
"""Makes one call of the system fail in a run of a compiled model, over and over, and looks at what is left.

    python test/Faults/inject.py [--count 1000] [--full-every 1] [--build build] [--verbose]

Training, resuming, evaluating, predicting and exporting of a small model run again and again; in each run the n-th call of one
kind fails: opening, writing, flushing, renaming, mapping memory, starting a thread, allocating (shim.cpp does it). A run must
end with an error that says so, or unharmed; never by a signal, and never not at all. Whatever was there before is there
afterwards: a checkpoint evaluates to the same bits as before, training resumes from it to the same bits as without the
fault, and a file that was not written anew is the old one. With --full-every, saves are incremental between full ones.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rank_runs import describe

KINDS = ("open", "write", "fsync", "rename", "mmap", "thread", "large_allocation", "allocation")
SECONDS = 30  # a run that takes longer hangs
USERS, MOVIES = 230, 40
OLD = b"what was there before"


@dataclass(frozen=True)
class Fault:
    """The `number`-th call of a kind fails, or all from it on, in one command."""

    command: str
    kind: str
    number: int
    all_after: bool = False

    def __str__(self) -> str:
        return f"{self.command}: {self.kind} {self.number}{' and all after' if self.all_after else ''}"

    @property
    def wish(self) -> str:
        return f"{self.kind}:{self.number}{'+' if self.all_after else ''}"


class HangError(Exception):
    """A run that does not end; the text says what its threads did."""


@dataclass
class Outcome:
    """How many runs ended how, and those that did not end as they must."""

    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def write_data(folder: Path) -> None:
    """Users with histories, in row groups of 50, and the catalogue."""
    state = 7

    def draw(below: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % below

    def users(count: int) -> pa.Table:
        event = pa.list_(pa.struct([("movie", pa.int64())]))
        return pa.table({
            "user": pa.array(range(count), pa.int64()),
            "label": pa.array([float(draw(2)) for _ in range(count)], pa.float32()),
            "target": pa.array([draw(MOVIES) for _ in range(count)], pa.int64()),
            "history": pa.array([[{"movie": draw(MOVIES)} for _ in range(draw(8))] for _ in range(count)], event),
        })  # fmt: skip

    pq.write_table(users(USERS), folder / "train.parquet", row_group_size=50)
    pq.write_table(users(70), folder / "valid.parquet", row_group_size=50)
    pq.write_table(pa.table({"movie": pa.array(range(MOVIES), pa.int64())}), folder / "movies.parquet")


class Harness:
    """A model, its data, and what its commands do without faults."""

    def __init__(self, build: Path, folder: Path, full_every: int = 1) -> None:
        build = build.resolve()
        self.target, self.shim = build / "bin" / "genrec-fault-target", build / "lib" / "libgenrec-fault-shim.so"
        self.folder = folder
        write_data(folder)
        data = {name: str(folder / f"{name}.parquet") for name in ("train", "valid", "movies")}
        catalogue = ["--catalogue", f"movies={data['movies']}"]
        quiet = ["--threads", "2", "--progress", "none"]
        training = [
            "train", "--data", data["train"], "--batch", "10", "--seed", "4", "--checkpoint", "ck", "--checkpoint-every", "15",
            "--checkpoint-full-every", str(full_every), "--validation", data["valid"], *catalogue, "--metrics-json", "m.json",
            *quiet,
        ]  # fmt: skip
        self.commands = {
            "train": [*training, "--epochs", "2", "--tensorboard", "tb"],
            "resume": [*training, "--epochs", "3", "--resume"],
            "evaluate": ["evaluate", "--checkpoint", "ck", "--data", data["valid"], *catalogue, "--metrics-json", "e.json", *quiet],
            "predict": ["predict", "--checkpoint", "ck", "--data", data["valid"], *catalogue, "--keys", "user", "--out", "out.parquet",
                        *quiet],
            "export": ["export", "--checkpoint", "ck", "--out", "exported", *catalogue, *quiet],
        }  # fmt: skip
        self._observe()

    def run(self, command: str, place: Path, wish: str = "", counts: Path | None = None, more: tuple[str, ...] = ()) -> Any:
        environment = {**os.environ, "LD_PRELOAD": str(self.shim)} if wish or counts else dict(os.environ)
        environment.update({"GENREC_FAULT": wish} if wish else {})
        environment.update({"GENREC_FAULT_COUNTS": str(counts)} if counts else {})
        words = [str(self.target), *self.commands[command], *more]
        process = subprocess.Popen(words, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(2 * SECONDS):  # in which this process could run, too
            try:
                out, err = process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                continue
            return subprocess.CompletedProcess(words, process.returncode, out, err)
        calls = describe(process.pid)
        process.kill()
        process.communicate()
        raise HangError(f"{command} does not end within {SECONDS} s: {calls}")

    def must(self, command: str, place: Path, **more: Any) -> None:
        done = self.run(command, place, **more)
        if done.returncode != 0:
            raise RuntimeError(f"{command} without a fault ends with {done.returncode}: {done.stderr.decode()}")

    def _observe(self) -> None:
        """What every checkpoint evaluates to, by step, and what files the commands write."""
        self.values: dict[int, Any] = {}
        for last in (15, 23, 30, 45, 46, 60, 69):
            place = self.place(f"step-{last}")
            self.must("resume", place, more=("--max-steps", str(last)))
            step, value = self.evaluation(place)
            if step != last:
                raise RuntimeError(f"a checkpoint of step {step} instead of {last}")
            self.values[step] = value
        self.good = self.folder / "step-30"  # in the middle of an epoch
        self.final = {"train": 46, "resume": 69}
        whole = self.place("whole", checkpoint=True)
        for command in ("predict", "export"):
            self.must(command, whole)
        self.written = {
            path: (whole / path).read_bytes()
            for path in ("out.parquet", *(f"exported/{name}.safetensors" for name in ("parameters", "tables", "items")))
        }
        self.counts: dict[str, dict[str, int]] = {}
        for command in self.commands:
            place = self.place("counts", checkpoint=command != "train")
            self.must(command, place, counts=place / "counts.txt")
            lines = (place / "counts.txt").read_text().splitlines()
            self.counts[command] = {name: int(number) for name, number in (line.split() for line in lines)}

    def place(self, name: str, checkpoint: bool = False, old: bool = False) -> Path:
        """A folder for a run, with a good checkpoint and old files to write over, where wanted."""
        place = self.folder / name
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if checkpoint:
            shutil.copytree(self.good / "ck", place / "ck")
        if old:
            for path in self.written:
                (place / path).parent.mkdir(exist_ok=True)
                (place / path).write_bytes(OLD)
        return place

    def evaluation(self, place: Path) -> tuple[int, Any]:
        """The step of a checkpoint and what it evaluates to; raises where it is not whole."""
        self.must("evaluate", place)
        record = json.loads((place / "e.json").read_text())["evaluation"]
        return record["step"], {key: record[key] for key in ("loss", "losses", "metrics", "rows")}

    def faults(self, count: int) -> list[Fault]:
        """`count` faults over all commands and kinds, spread evenly over the calls of each."""
        pairs = [(command, kind) for command in self.commands for kind in KINDS if self.counts[command][kind] > 0]
        quota = dict.fromkeys(pairs, 0)
        left = count
        while left > 0:  # a share for each pair, as far as it has calls
            open_pairs = [pair for pair in pairs if quota[pair] < self.counts[pair[0]][pair[1]] * 4 // 3]
            for pair in open_pairs[:left]:
                quota[pair] += 1
            left -= min(left, len(open_pairs))
            if not open_pairs:
                break
        return [fault for pair in pairs for fault in self._spread(*pair, quota[pair])]

    def _spread(self, command: str, kind: str, count: int) -> Iterator[Fault]:
        calls = self.counts[command][kind]
        # One fault in four is all calls from one on. (Without any memory nothing can be told.)
        several = 0 if kind == "allocation" else count // 4
        single = min(count - several, calls)
        for all_after, share in ((False, single), (True, several)):
            for i in range(share):
                yield Fault(command, kind, 1 + i * calls // share, all_after)

    def inject(self, fault: Fault) -> tuple[str, str]:
        """Runs a command with a fault: how it ended, and what is wrong, if anything."""
        trains = fault.command in ("train", "resume")
        place = self.place("run", checkpoint=fault.command != "train", old=not trains)
        try:
            done = self.run(fault.command, place, wish=fault.wish)
        except HangError as hang:
            return "hang", str(hang)
        said = done.stderr.decode(errors="replace")
        if done.returncode < 0:
            return "signal", f"ended by signal {-done.returncode}: {said[-500:]}"
        how = "success" if done.returncode == 0 else "error"
        if how == "error" and not re.search(r"^tiny: error: .{10,}", said, re.MULTILINE):
            return how, f"status {done.returncode} and no error told: {said[-500:]!r}"
        try:
            wrong = self._check_state(fault, place, how == "success") if trains else self._check_files(fault, place, how == "success")
        except (RuntimeError, OSError, KeyError, ValueError, HangError) as error:
            wrong = f"{how} ({said.strip()[-200:]}), then {error}"
        return how, wrong

    def _check_state(self, fault: Fault, place: Path, success: bool) -> str:
        """The checkpoint is whole, and training goes on from it to the same bits."""
        final = self.final[fault.command]
        if fault.command == "resume" or (place / "ck" / "manifest.json").exists():
            step, value = self.evaluation(place)
            if value != self.values.get(step):
                return f"the checkpoint of step {step} evaluates to {value} instead of {self.values.get(step)}"
            if success and step != final:
                return f"success at step {step} instead of {final}"
        elif success:
            return "success without a checkpoint"
        if success and not (place / "m.json").exists():
            return "success without a report"
        if not success:
            self.must("resume", place)
            step, value = self.evaluation(place)
            if (step, value) != (69, self.values[69]):
                return f"resumed to step {step} and {value} instead of 69 and {self.values[69]}"
        return ""

    def _check_files(self, fault: Fault, place: Path, success: bool) -> str:
        """What the command writes is new and whole, or old; the checkpoint is as before."""
        mine = {"predict": "out.parquet", "export": "exported/"}.get(fault.command)
        for path, new in self.written.items():
            now = (place / path).read_bytes()
            if now != OLD and (now != new or not mine or not path.startswith(mine)):
                return f"{path} is neither the old file nor the new one"
            if success and mine and path.startswith(mine) and now == OLD:
                return f"success, but {path} is the old file"
        if success and fault.command == "evaluate":
            record = json.loads((place / "e.json").read_text())["evaluation"]
            if any(record[key] != value for key, value in self.values[30].items()):
                return f"evaluates to {record}"
        step, value = self.evaluation(place)
        return "" if (step, value) == (30, self.values[30]) else f"the checkpoint evaluates to {value} at step {step}"

    def inject_all(self, faults: list[Fault], verbose: bool = False) -> Outcome:
        outcome = Outcome()
        for number, fault in enumerate(faults, 1):
            how, wrong = self.inject(fault)
            outcome.ended[how] += 1
            if wrong:
                outcome.wrong.append(f"{fault}: {wrong}")
                print(outcome.wrong[-1], flush=True)
            if verbose or number % 100 == 0:
                print(f"{number} of {len(faults)}, {len(outcome.wrong)} wrong ({fault}: {how})", flush=True)
        return outcome


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000, help="faults in all")
    parser.add_argument("--full-every", type=int, default=1, help="of so many saves one is full")
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build")
    parser.add_argument("--only", help="a command, or command:kind")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        harness = Harness(arguments.build, Path(folder), arguments.full_every)
        faults = harness.faults(arguments.count)
        if arguments.only:
            faults = [fault for fault in faults if f"{fault.command}:{fault.kind}".startswith(arguments.only)]
        outcome = harness.inject_all(faults, arguments.verbose)
    ended = ", ".join(f"{count} {how}" for how, count in sorted(outcome.ended.items()))
    print(f"{len(faults)} faults: {ended}; {len(outcome.wrong)} wrong")
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
