"""Runs of whole models on the emulated device, and what each of them leaves: test_planted_sessions.py compares these,
and so does test/Cuda/Mutants/judge.py.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import genrec as gr
import pyarrow as pa
import pyarrow.parquet as pq
from compiled import BUILD, draft, write_toolchain
from launching import launcher
from session_many import MANY_BATCH, MANY_ITEM_SCHEMA, MANY_SCHEMA, Many, Moved, write_many, write_many_items
from session_models import (
    BATCH,
    CHECKED_ITEM,
    CHECKED_SCHEMA,
    ITEM_SCHEMA,
    SCHEMA,
    Checked,
    Counted,
    Later,
    Session,
    write_checked,
    write_items,
    write_rows,
)

# That do not depend on how early batches are there.
COUNTS = ("allocations", "steps_captured", "captured_steps_launched", "updates_captured", "captured_updates_launched")


def link_before(archive: Path, headers: list[Path], toolchain: dict[str, Any]) -> None:
    """Puts an archive of the runtime's sources, and their headers, before the runtime's."""
    toolchain["libraries"].insert(0, str(archive))
    toolchain["include"][:0] = map(str, headers)
    del toolchain["cuda_units"]["emulator"]["precompiled"]  # of other headers
    toolchain["cuda_units"]["emulator"]["compile"].append("-Wno-narrowing")  # of a part that is signed


def write_beyond(rows: Path, path: Path) -> None:
    """The same rows, one with an id that its table has not."""
    table = pq.read_table(rows)
    ids = table["a"].to_pylist()
    ids[3] = 1 << 12  # times 1000
    pq.write_table(table.set_column(table.column_names.index("a"), "a", pa.array(ids, pa.int64())), path)


def write_late(rows: Path, path: Path) -> None:
    """The same rows, one with a weight that a step refuses which was captured before."""
    table = pq.read_table(rows)
    weights = table["weight"].to_pylist()
    weights[10 * BATCH] = -1.0
    pq.write_table(
        table.set_column(table.column_names.index("weight"), "weight", pa.array(weights, pa.float32())), path
    )


def without_times(of: Any) -> Any:
    if isinstance(of, dict):
        return {key: without_times(value) for key, value in of.items() if "second" not in key}
    return [without_times(value) for value in of] if isinstance(of, list) else of


@dataclass(frozen=True)
class Runs:
    """Of a model: up to each of the steps, each going on with the one before. Without any, its lookups are counted."""

    model: str
    steps: tuple[int, ...]
    flags: tuple[str, ...]
    ranks: int = 0
    batch: int = BATCH
    data: str = "rows.parquet"
    tolerance: float = 1e-5  # of losses beside the CPU's
    refused: str = ""  # what the run is refused with
    predicts: tuple[str, ...] | None = None  # with what was trained last
    predicts_from: str = "wide.parquet"
    on_device: tuple[str, ...] = ()  # flags that the CPU does not have


def many(model: str, *flags: str, **more: Any) -> Runs:
    """Of batches of many rows."""
    data = "many.parquet"
    return Runs(model, (2,), ("--no-shuffle", *flags), batch=MANY_BATCH, data=data, predicts_from=data, **more)


PORTIONS = ("--portions", "3")
EVALUATED_ON = ("--eval-every", "2", "--eval-batch", str(MANY_BATCH), "--validation")
RUNS = {
    "alone": Runs(
        "session",
        (13, 15),
        (
            "--no-shuffle",
            "--schedule",
            "cosine",
            "--validation",
            "wide.parquet",
            "--eval-every",
            "3",
            "--eval-batch",
            "16",
        ),
        predicts=(),
    ),
    "portions": Runs(
        "session",
        (4,),
        (*PORTIONS, "--no-shuffle", "--validation", "few.parquet", "--eval-every", "3", "--eval-batch", "12"),
        predicts=PORTIONS,
    ),
    "ranks": Runs(
        "session",
        (4,),
        (*PORTIONS, "--shard-optimizer", "--early-gradients", "on", "--overlap", "keys", "--no-shuffle"),
        ranks=2,
        data="growing.parquet",
    ),
    "replicas": Runs(
        "session",
        (4,),
        (*PORTIONS, "--replicate", "item", "--early-gradients", "on", "--no-shuffle"),
        ranks=2,
        data="growing.parquet",
    ),
    "later": Runs("later", (4,), ()),
    "refused": Runs("later", (1,), ("--no-shuffle",), data="beyond.parquet", refused="the 20 bits of table 'second'"),
    "checked": Runs("checked", (3,), ("--no-shuffle", "--check-finite"), data="checked.parquet"),
    "hosted": Runs("checked", (6,), (), data="checked.parquet", on_device=("--host-tables", f"user={BATCH}")),
    "laters": Runs(
        "later", (6,), (*PORTIONS, "--replicate", "second", "--no-shuffle"), ranks=2, data="growing.parquet"
    ),
    "missing": Runs("checked", (1,), ("--no-shuffle",), data="missing.parquet", refused="'aim'"),
    "scored": Runs("checked", (1,), ("--no-shuffle",), data="scored.parquet", refused="the catalogue has 24 rows"),
    "infinite": Runs("checked", (1,), ("--no-shuffle", "--check-finite"), data="infinite.parquet", refused="infinity"),
    "unranked": Runs(
        "checked",
        (1,),
        ("--no-shuffle", "--validation", "unranked.parquet", "--eval-every", "1", "--eval-batch", "12"),
        data="checked.parquet",
        refused="neither 0 nor 1",
    ),
    "counted": Runs("counted", (), ()),
    "profiled": Runs(
        "session",
        (3,),
        ("--no-shuffle", "--profile", "profile", "--validation", "few.parquet", "--eval-every", "3"),
    ),
    "many": many("many", *EVALUATED_ON, "many.parquet", predicts=()),
    "many16": many("many16", tolerance=4e-3),
    "moved": many("moved", predicts=()),
    "moveds": many("moved", *PORTIONS, ranks=2),
    "unscored": many("many", *EVALUATED_ON, "unscored.parquet", refused="a score is NaN"),
    "late": Runs("session", (13,), ("--no-shuffle",), data="late.parquet", refused="weight"),
}

WRONG: dict[str, dict[str, float]] = {
    "checked": {},
    "missing": {"aim": 7},
    "scored": {"row": 25},
    "infinite": {"x": float("inf")},
    "unranked": {"chosen": 3.0},
}


class Folder:
    """Binaries and data. Those of emulated devices have the sources of `archive`, and its `headers`."""

    def __init__(self, at: Path, archive: Path, headers: list[Path]) -> None:
        self.at = at
        write_rows(at / "rows.parquet")
        write_rows(at / "few.parquet", rows=3 * BATCH)
        write_beyond(at / "few.parquet", at / "beyond.parquet")
        write_rows(at / "long.parquet", rows=14 * BATCH)
        write_late(at / "long.parquet", at / "late.parquet")
        # Batches enough for an evaluation's graph to be launched again, though memory grows at first.
        write_rows(at / "wide.parquet", seed=9, rows=160, wide_from=0)
        write_rows(at / "growing.parquet", seed=9, rows=8 * BATCH, wide_from=2 * BATCH, alone=3 * BATCH)
        write_many(at / "many.parquet")
        write_many(at / "unscored.parquet", x=float("nan"))
        # Before there is a file that says how many items there are: vectors are of those that a step reads.
        self.many_items = gr.catalogue(at / "many_items.parquet", id="item", schema=MANY_ITEM_SCHEMA)
        write_many_items(at / "many_items.parquet")
        self.items, self.checked_items = (
            gr.catalogue(write_items(at / f"items{first}.parquet", first), id="item", schema=ITEM_SCHEMA)
            for first in (0, CHECKED_ITEM)
        )
        for name, wrong in WRONG.items():
            write_checked(at / f"{name}.parquet", **wrong)
        link = functools.partial(link_before, archive, headers)
        self.toolchain = write_toolchain(at / "toolchain.json", link)

    def beside(self, at: Path) -> Folder:
        """The same files, for runs at the same time."""
        at.mkdir()
        for file in filter(Path.is_file, self.at.iterdir()):
            os.link(file, at / file.name)
        other = copy.copy(self)
        other.at = at
        return other

    def binary(self, model: str, target: str) -> Path:
        """Compiled when it is first asked for."""
        binary = self.at / f"{model}.{target}"
        if not binary.exists():
            # Flags: lookups' keys in calls of their own, ids as they are, factors of bf16.
            make, schema, *given = {
                "session": (lambda: Session(self.items), SCHEMA),
                "later": (Later, SCHEMA, "--fuse-transforms=false"),
                "checked": (lambda: Checked(self.checked_items), CHECKED_SCHEMA),
                "counted": (Counted, SCHEMA, "--merge-tables=false"),
                "many": (lambda: Many(self.items, 12), MANY_SCHEMA),
                "many16": (lambda: Many(self.items, 32), MANY_SCHEMA, "--mixed-precision"),
                "moved": (lambda: Moved(self.many_items), MANY_SCHEMA),
            }[model]
            given += [f"--toolchain={self.toolchain}"] if target == "cuda-emulated" else draft()
            gr.compile(make(), schema, target=target, output=binary, flags=given)
        return binary

    def call(self, ranks: int, *words: object, **environment: object) -> None:
        variables = {"GENREC_COMM_LIBRARY": BUILD / "lib" / "libgenrec-comm-mpi.so", "GENREC_SIMT_PATIENCE": 10}
        variables = {name: str(value) for name, value in (variables | environment).items()}
        done = subprocess.run(
            [*launcher(ranks), *map(str, words)], cwd=self.at, env=os.environ | variables,
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(done.stdout + done.stderr)

    def train(self, target: str, runs: Runs, steps: int, **environment: object) -> dict[str, Any]:
        self.call(
            runs.ranks, self.binary(runs.model, target), "train", "--data", runs.data, "--batch", runs.batch,
            "--epochs", 9, "--max-steps", steps, "--seed", 5, "--threads", 1,
            "--progress", "none", "--checkpoint", "kept", "--resume", "--metrics-json", "report.json", "--log-every", 1,
            *runs.flags, *(runs.on_device if target == "cuda-emulated" else ()), **environment,
        )  # fmt: skip
        return json.loads((self.at / "report.json").read_text())

    def results(self, name: str, target: str = "cuda-emulated", **environment: object) -> Iterator[Any]:
        """The losses of each run first, then what else it left."""
        runs = RUNS[name]
        if not runs.steps:
            counting = ["--data", runs.data, "--batch", runs.batch, "--ids-out", "ids.json"]
            self.call(0, self.binary(runs.model, target), "info", *counting, **environment)
            yield json.loads((self.at / "ids.json").read_text())
        for kept in ("kept", "out"):
            shutil.rmtree(self.at / kept, ignore_errors=True)
        for steps in runs.steps:
            try:
                report = self.train(target, runs, steps, **environment)
            except RuntimeError as error:
                if not runs.refused:
                    raise
                yield str(error)
                return
            yield [step["loss"] for step in report["step_losses"]]
            yield without_times(report["history"])
            yield {what: report.get("device", {}).get(what) for what in COUNTS} | report.get("exchanges", {})
            yield (self.at / "kept" / f"step-{steps}" / "model.safetensors").read_bytes()
        if "--profile" in runs.flags:
            profile = json.loads((self.at / "profile" / "profile.json").read_text())
            yield [(op["name"], op["rows"]) for op in profile["ops"]]
        if runs.predicts is not None:
            given = ["--data", runs.predicts_from, "--checkpoint", "kept", "--batch", runs.batch, "--threads", 1]
            binary = self.binary(runs.model, target)
            self.call(0, binary, "predict", *given, *runs.predicts, "--out", "out", "--progress", "none", **environment)
            yield [pq.read_table(file).to_pydict() for file in sorted((self.at / "out").iterdir())]


class Expected:
    """What runs without a defect leave, by the name of the runs; made when they are first asked for."""

    def __init__(self, folder: Folder) -> None:
        self.folder, self.made = folder, dict[str, list[Any]]()

    def __getitem__(self, name: str) -> list[Any]:
        if name not in self.made:
            self.made[name] = list(self.folder.results(name, GENREC_SIMT_SEED=1))
        return self.made[name]

    def is_left(self, name: str, folder: Folder, number: int, seed: int) -> bool:
        """By the runs with this defect."""
        results = folder.results(name, GENREC_SIMT_DEFECT=number, GENREC_SIMT_SEED=seed)
        try:
            return all(result == known for result, known in zip(results, self[name], strict=True))
        except (RuntimeError, ValueError, subprocess.TimeoutExpired):  # ValueError: of texts that are none
            return False
