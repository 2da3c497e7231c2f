"""Programs of benchmarks in C++: built for this machine against the runtime of ``make build``, run, read."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
RESULTS = ROOT / "benchmarks" / "results"
sys.path.insert(0, str(ROOT / "benchmarks" / "hstu_train"))

import report  # noqa: E402


def arguments(description: str, **defaults: int) -> argparse.ArgumentParser:
    """--threads and --results, and an integer flag for each of `defaults`."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=report.available_cores())
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the results")
    for name, value in defaults.items():
        parser.add_argument(f"--{name}", type=int, default=value, help=f"default {value}")
    return parser


def package_flags(*names: str) -> list[str]:
    """What pkg-config says to link for packages, nothing where one of them is not installed."""
    result = subprocess.run(["pkg-config", "--libs", *names], capture_output=True, text=True)
    return result.stdout.split() if result.returncode == 0 else []


def skipped(what: str, why: str) -> None:
    """Says loudly that a peer is left out."""
    print(f"\n!!! {what} is SKIPPED: {why}\n", flush=True)


def compile_program(source: Path, flags: list[str]) -> Path:
    """The program of one source file, compiled as compiled models are."""
    if not (BUILD / "lib" / "libgenrec_rt.a").exists():
        sys.exit(f"[bench]   error: {BUILD} has no lib/libgenrec_rt.a: run make build first")
    toolchain = json.loads((BUILD / "share" / "genrec" / "toolchain.json").read_text())
    program = BUILD / "bench" / source.parent.name / source.stem
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [
        toolchain["compiler"],
        *toolchain["compile"],
        *(f"-I{folder}" for folder in toolchain["include"]),
        str(source),
    ]
    command += [str(BUILD / "lib" / "libgenrec_rt.a"), *toolchain["link"], *flags, "-o", str(program)]
    subprocess.run(command, check=True)
    return program


def runtime_libraries() -> list[str]:
    """What a program links that runs a compiled model: all that the runtime needs, and where it lies."""
    toolchain = json.loads((BUILD / "share" / "genrec" / "toolchain.json").read_text())
    libraries = [word for word in toolchain["libraries"] if not word.endswith("_main.a")]
    return [*libraries, *(f"-Wl,-rpath,{folder}" for folder in toolchain["rpath"])]


def run(program: Path, *words: object, **environment: str) -> dict:
    """The JSON object that a program prints."""
    result = subprocess.run(
        [str(program), *map(str, words)], stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    if result.returncode:
        sys.exit(f"[bench]   error: {program.name} failed with status {result.returncode}")
    return json.loads(result.stdout)


def medians(times: dict[str, list[float]]) -> dict[str, float]:
    """The median of every list."""
    return {name: statistics.median(values) for name, values in times.items()}


def summary(what: str, unit: str, ours: float, peer: str, theirs: float, **more: object) -> dict[str, object]:
    """A row of the table of all benchmarks, lower figures being better.

    `more` may hold `asked` (a ratio), and `limit` (in words) with `limit_share`, how much of what the machine can do at
    best is reached.
    """
    row = {"what": what, "unit": unit, "ours": ours, "peer": peer, "theirs": theirs, "ratio": theirs / ours}
    return row | more


def finish(name: str, args: argparse.Namespace, rows: list[dict[str, object]], details: dict[str, object]) -> None:
    """Prints the rows of the table and writes the results."""
    for row in rows:
        asked = f", asked {row['asked']}x" if "asked" in row else ""
        share = f"; {row['limit_share']:.0%} of {row['limit']}" if "limit" in row else ""
        print(
            f"  {row['what']:<48} {row['ours']:9.3f} {row['unit']}, {row['peer']} {row['theirs']:9.3f}: "
            f"{row['ratio']:5.2f}x{asked}{share}"
        )
    said = {key: value for key, value in vars(args).items() if key != "results"}
    path = report.write(name, {"arguments": said, "summary": rows, **details}, args.results)
    print(f"[bench]   wrote {path}")
