"""Saving and loading a table of 1 M rows of 32 floats with Adagrad, on one rank and on two, and what the checksums cost.

    build/venv/bin/python benchmarks/checkpoint_save [--rows N] [--dim N] [--rounds N] [--folder F]

Times of the save are those of the day, flushes to disk included. Times of the checksums are the processor's (the linker sends the
runtime's calls to the program, which measures them): what else runs on the machine does not count. A second run saves
into memory (/dev/shm), where nothing waits for a disk. The share of the processor's time of a save stands beside that of the save.
Ranks are threads of one process with one compute thread each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import native  # noqa: E402

HERE = Path(__file__).resolve().parent
WRAP = "-Wl,--wrap=_ZN6genrec2rt10checksumOfEPKvl"
MOST = 0.05  # of a save's time


def measure(program: Path, folder: str, args: argparse.Namespace, ranks: int) -> dict:
    """Saves into a new folder below `folder`, and loads it."""
    with tempfile.TemporaryDirectory(dir=folder) as temporary:
        threads = args.threads if ranks == 1 else 1
        return native.run(program, threads, args.rows, args.dim, args.rounds, Path(temporary) / "checkpoint", ranks)


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, rows=1_000_000, dim=32, rounds=7)
    parser.add_argument("--folder", default=tempfile.gettempdir(), help="on the disk to save to")
    args, _ = parser.parse_known_args()
    program = native.compile_program(HERE / "checkpoint_save.cpp", [WRAP, *native.runtime_libraries()])
    rows, details = [], {}
    for place, folder in (("on disk", args.folder), ("in memory", "/dev/shm")):
        measured = details[place] = measure(program, folder, args, 1)
        seconds = {key: statistics.median(values) for key, values in measured.items() if isinstance(values, list)}
        whole, processor, checksums = seconds["save"], seconds["save_processor"], seconds["checksums_processor"]
        measured["checksum_share"] = checksums / whole
        print(
            f"  {place}: {measured['rows'] / whole / 1e6:.2f} M rows/s, {measured['bytes'] / whole / 1e9:.2f} GB/s; "
            f"checksums take {checksums * 1e3:.1f} ms, {checksums / whole:.1%} of a save (asked: under {MOST:.0%}), "
            f"{checksums / processor:.1%} of its {processor * 1e3:.0f} ms of the processor"
        )
        rows.append(
            native.summary(
                f"checkpoint, a save {place}", "ms", whole * 1e3, "without checksums", (whole - checksums) * 1e3,
                asked=1 - MOST,
            )
        )  # fmt: skip
        rows.append(
            native.summary(
                f"checkpoint, a save of 1 % {place}", "ms", seconds["incremental"] * 1e3, "a full save", whole * 1e3
            )
        )
        shared = details[f"{place}, 2 ranks"] = measure(program, folder, args, 2)
        for what in ("save", "load"):
            one, two = (statistics.median(times[what]) * 1e3 for times in (measured, shared))
            rows.append(native.summary(f"checkpoint, a {what} {place} on 2 ranks", "ms", two, "1 rank", one))
    native.finish("checkpoint_save", args, rows, details)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
