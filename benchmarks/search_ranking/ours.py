"""Our side: examples/search_ranking, compiled as any user compiles it, trained by the binary."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import genrec as gr
from prepare import columns, example

PASSES = ("prune-columns", "sink-fanout", "merge-tables", "fuse-transforms", "factor-lookups")


@dataclass(frozen=True)
class Seconds:
    """Wall and processor time of a command and its children."""

    wall: float
    processor: float


def timed(command: list[str | Path]) -> Seconds:
    """Runs a command. Raises SystemExit with its messages where it fails."""
    before, begin = os.times(), time.perf_counter()
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    wall, after = time.perf_counter() - begin, os.times()
    if result.returncode:
        sys.exit(f"search_ranking: error: {command[0]} failed\n{result.stderr}")
    return Seconds(wall, after.children_user + after.children_system - before.children_user - before.children_system)


def record(train: Path, folder: Path) -> Path:
    """The model file of the example for the columns of a log."""
    schema = columns.read_schema(train)
    file = folder / "model.genrec"
    gr.write_model(gr.record(example.SearchRanker(schema), schema), file)
    return file


def compile_times(build: Path, file: Path, folder: Path) -> dict[str, float]:
    """Seconds to C++ and to a binary (wall and processor), and of the slowest pass."""
    compiler: list[str | Path] = [build / "bin" / "genrec-compile", file, "--cache=none"]
    source = timed([*compiler, "--emit=cpp", "-o", folder / "source.cpp"])
    binary = timed([*compiler, "-o", folder / "model"])
    subprocess.run(
        [build / "bin" / "genrec-translate", "--import-model", file, "-o", folder / "model.mlir"], check=True
    )
    report = subprocess.run(
        [build / "bin" / "genrec-opt", folder / "model.mlir", "--genrec-pipeline", "--mlir-timing", "-o", "/dev/null"],
        capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    rows = re.findall(r"^\s*([\d.]+) \(\s*[\d.]+%\)\s+([A-Z]\w+)$", report, re.MULTILINE)
    passes = {name: float(seconds) for seconds, name in rows if name not in ("Parser", "Output", "Rest", "Total")}
    slowest = max(passes, key=lambda name: passes[name])
    return {
        "to_cpp_seconds": source.wall,
        "to_cpp_processor_seconds": source.processor,
        "to_binary_seconds": binary.wall,
        "to_binary_processor_seconds": binary.processor,
        "cpp_bytes": (folder / "source.cpp").stat().st_size,
        "slowest_pass": slowest,
        "slowest_pass_seconds": passes[slowest],
    }


def compile_variant(build: Path, file: Path, folder: Path, off: str | None) -> Path:
    """A binary, with pass `off` left out; its plan as JSON lies beside it."""
    binary = folder / (f"without-{off}" if off else "model")
    flags = [f"--{off}=false"] if off else []
    timed([build / "bin" / "genrec-compile", file, *flags, f"--cache={folder / 'cache'}", "-o", binary])
    timed([build / "bin" / "genrec-compile", file, *flags, "--explain=json", "-o", f"{binary}.json"])
    return binary


def describe_plan(binary: Path) -> dict[str, int]:
    """Sizes of the training step: physical tables, launches of row kernels and calls, ops before."""
    plan = json.loads(Path(f"{binary}.json").read_text())
    train = next(program for program in plan["programs"] if program["name"] == "train")
    kinds = [op["op"] for op in train["ops"]]
    return {
        "logical_tables": len(plan["tables"]),
        "table_searches": kinds.count("table_rows"),
        "table_updates": kinds.count("unique_rows"),
        "forward_ops_as_written": len(next(iter(plan["graphs_before"].values()))["nodes"]),
        "ops": len(kinds),
        "row_kernels": train["row_kernels"] if isinstance(train["row_kernels"], int) else len(train["row_kernels"]),
        "buffers": len(train["buffers"]),
    }


def steps(
    binary: Path, train: Path, batch: int, warm_up: int, count: int, threads: int
) -> tuple[list[float], list[float]]:
    """Seconds of each timed step, by the binary's clock, and all losses.

    From outside they would be seen when this process runs: late, where both share a core.
    """
    command = [
        str(binary), "train", "--data", str(train), "--epochs", "1000", "--max-steps", str(warm_up + count), "--batch",
        str(batch), "--threads", str(threads), "--seed", "1", "--no-shuffle", "--progress", "json", "--log-every", "1",
    ]  # fmt: skip
    seen: list[tuple[float, float]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            event = json.loads(line)
            if event["event"] == "step":
                seen.append((event["seconds"], event["loss"]))
        errors = process.stderr.read()
    if process.returncode or len(seen) != warm_up + count:
        sys.exit(f"search_ranking: error: {binary} took {len(seen)} steps\n{errors}")
    seconds = [after - before for (before, _), (after, _) in zip(seen, seen[1:], strict=False)]
    return seconds[warm_up - 1 :], [loss for _, loss in seen]
