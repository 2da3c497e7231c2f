"""Transforms of 100 columns, fused, beside PyTorch column by column, torch.compile and Polars.

    build/venv-torch/bin/python benchmarks/fused_transforms [--threads N] [--rounds N] [--rows N …]

Bucketize (15 edges), mod and hash (XXH3), a third of the columns each at 10,000 rows, and each alone at 1 M rows.
Ours is a compiled model with a table behind every column (model.py): what is timed is the one launch that computes the
keys of all tables. The peers give the transformed columns. In turns.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import native  # noqa: E402

HERE = Path(__file__).resolve().parent
SMALL, LARGE = 10_000, 1_000_000


def build(only: str | None) -> Path:
    """The program of ours.cpp with the compiled model in it."""
    import genrec as gr
    import model

    folder = native.BUILD / "bench" / "fused_transforms"
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / (only or "all")
    file, compiled = stem.with_suffix(".genrec"), stem.with_suffix(".o")
    gr.write_model(gr.record(model.Transforms(only), model.schema(only)), file)
    subprocess.run([native.BUILD / "bin" / "genrec-compile", file, "--emit=object", "-o", compiled], check=True)
    program = native.compile_program(HERE / "ours.cpp", [str(compiled), *native.runtime_libraries()])
    return program.rename(stem)


def compare(only: str | None, rows: int, args) -> dict[str, object]:
    """Seconds of every round by contestant, and what the machine can copy."""
    import peers

    with subprocess.Popen(
        [build(only), str(args.threads), str(rows)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        limits = json.loads(process.stdout.readline())

        def ours() -> float:
            process.stdin.write("\n")
            process.stdin.flush()
            return float(process.stdout.readline())

        runs = {"genrec": ours, **peers.contestants(only, rows, args.threads)}
        ours()
        times: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(args.rounds):
            for name, run in runs.items():
                times[name].append(run())
        process.stdin.close()
    return {"kind": only or "all", "rows": rows, "limits": limits, "seconds": times}


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, rounds=9)
    parser.add_argument("--rows", type=int, nargs="*", default=[SMALL, LARGE], help="rows of the columns")
    args, _ = parser.parse_known_args()
    os.environ["POLARS_MAX_THREADS"] = str(args.threads)  # read when Polars is loaded
    try:
        import polars  # noqa: F401
        import torch  # noqa: F401
    except ImportError as error:
        native.skipped("fused_transforms", f"{error}; scripts/setup-torch installs it, then use build/venv-torch")
        return 0
    rows, details = [], []
    for count in args.rows:
        for only in (None,) if count < LARGE else (None, "bucketize", "mod", "hash"):
            measured = compare(only, count, args)
            details.append(measured)
            medians = {name: statistics.median(seconds) for name, seconds in measured["seconds"].items()}
            ours = medians.pop("genrec")
            limits = measured["limits"]
            for peer, theirs in medians.items():
                more: dict[str, object] = {"asked": 10} if count <= SMALL else {}
                if peer == "PyTorch":
                    share = limits["bytes"] / limits["copy_bytes_per_second"] / ours
                    more |= {"limit": "copying as many bytes", "limit_share": share}
                what = f"100 columns x {count:,}, {only or 'bucketize, mod, hash'}"
                rows.append(native.summary(what, "ms", ours * 1e3, peer, theirs * 1e3, **more))
    native.finish("fused_transforms", args, rows, {"measured": details})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
