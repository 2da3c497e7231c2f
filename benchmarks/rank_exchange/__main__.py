"""Exchanges of table rows between two ranks: the runtime's, beside what MPI does with the same.

    build/venv/bin/python benchmarks/rank_exchange [--batch N] [--turns N] [--steps N]

60 features, dimensions 4 to 128, every id three times: one fused exchange of ids, rows and gradients beside one
MPI_Alltoallv of each per feature, over shared memory and over TCP. What carrying the bytes takes, beside one large
MPI_Alltoallv of as many. Ids by Zipf's law, dimension 64: with each deduplication and without. One thread per rank.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import native  # noqa: E402

HERE = Path(__file__).resolve().parent
RANKS = 2
TRANSPORTS = {"shared memory": [], "TCP": ["--mca", "pml", "ob1", "--mca", "btl", "tcp,self"]}


def measure(program: Path, transport: str, *words: object) -> dict:
    """What the program prints on two ranks."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = ["mpirun", *root, "--oversubscribe", "--bind-to", "core", *TRANSPORTS[transport], "-n", str(RANKS)]
    library = native.BUILD / "lib" / "libgenrec-comm-mpi.so"
    result = subprocess.run([*command, program, library, *map(str, words)], stdout=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"[bench]   error: {program.name} failed with status {result.returncode}")
    return json.loads(result.stdout)


def medians(measured: dict) -> dict[str, float]:
    """Milliseconds of every list."""
    return {name: statistics.median(of) * 1e3 for name, of in measured.items() if isinstance(of, list)}


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, batch=2048, turns=7, steps=8)
    args, _ = parser.parse_known_args()
    args.threads = 1
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "ompi-c"], capture_output=True, text=True)
    if flags.returncode or not shutil.which("mpirun"):
        native.skipped("rank_exchange", "there is no Open MPI")
        return 0
    program = native.compile_program(HERE / "rank_exchange.cpp", [*native.runtime_libraries(), *flags.stdout.split()])
    rows, details = [], {}
    for transport in TRANSPORTS:
        # The batch of all ranks, and as many rows on each of them.
        for batch in (args.batch // RANKS, args.batch):
            of = details[f"features, {batch} rows per rank, {transport}"] = measure(
                program, transport, "features", batch, args.turns, args.steps
            )
            times = medians(of)
            print(
                f"  {batch} rows per rank, {transport}: {of['rounds']} rounds beside {of['peer_rounds']}; "
                f"{of['bytes'] / 1e6:.2f} MB of {of['deduplicated_bytes'] / 1e6:.2f} MB deduplicated, "
                f"beside {of['peer_bytes'] / 1e6:.2f} MB"
            )
            what = f"60 features, {batch} rows per rank, {transport}"
            peer = "an MPI_Alltoallv per feature"
            rows.append(native.summary(what, "ms", times["step"], peer, times["peer_step"], asked=3))
        of = details[f"rate, {transport}"] = measure(program, transport, "rate", args.batch, args.turns, args.steps)
        times = medians(of)
        what = f"carrying {of['bytes'] / 1e6:.1f} MB in {of['rounds']} rounds, {transport}"
        rows.append(
            native.summary(what, "ms", times["carrying"], "one MPI_Alltoallv", times["peer_carrying"], asked=0.85)
        )
        of = details[f"zipf, {transport}"] = measure(program, transport, "zipf", args.batch, args.turns, args.steps)
        times = medians(of)
        what = f"Zipf 1.05, dimension 64, {transport}"
        for name, asked in (("requester", {}), ("owner", {}), ("none", {"asked": 1.5})):
            rows.append(native.summary(what, "ms", times["both"], f"deduplicated by {name}", times[name], **asked))
    native.finish("rank_exchange", args, rows, details)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
