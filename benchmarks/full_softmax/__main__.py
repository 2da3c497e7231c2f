"""HSTU trained with a softmax over the whole catalogue: logits in blocks of classes, beside all of them at once.

    build/venv/bin/python benchmarks/full_softmax [--data <MovieLens-1M folder>]

``examples/hstu_retrieval`` with ``full_softmax`` and with its sampled softmax, on the users whose histories fill all
200 events of the model: the product of 25,600 rows with every item of the catalogue. Per variant the median time of a
step, the arena that the binary reports and the resident memory that training adds, runs taking turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "hstu_train"))

import ours  # noqa: E402
import report  # noqa: E402
from prepare import Sequences, load_example, prepare  # noqa: E402

BIN = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build")) / "bin"
# Columns of the logits at a time; 0 for all of them; None for the sampled softmax.
VARIANTS = {"blocks of classes": 512, "all classes at once": 0, "sampled softmax, 128 negatives": None}


def parse_arguments() -> argparse.Namespace:
    """Command line; flags of other benchmarks are passed over."""
    parser = report.movielens_arguments(__doc__, "full_softmax")
    parser.add_argument("--steps", type=int, default=6, help="steps per run; the first is not counted")
    parser.add_argument("--runs", type=int, default=3, help="runs per variant")
    return parser.parse_known_args()[0]


def compile_variant(name: str, columns: int | None, sequences: Sequences, out: Path) -> ours.Binary:
    """The example with a full softmax, `columns` classes at a time; with its sampled one for None."""
    import genrec as gr

    fields = {"user": gr.int64, "history": [{"item": gr.int64, "next": gr.int64}], "held_out": gr.int64}
    items = gr.catalogue(sequences.items, id="item")
    size = 0 if columns is None else count_items(sequences.items)
    model = load_example("hstu_retrieval", "model").Retrieval(items, full_softmax=size)
    folder = out / name.replace(" ", "_").replace(",", "")
    folder.mkdir(parents=True, exist_ok=True)
    gr.write_model(gr.record(model, gr.Schema(fields)), folder / "model.genrec")
    block = f"--split-classes={columns or 0}"
    command = [BIN / "genrec-compile", folder / "model.genrec", block, "-o", folder / "model"]
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"full_softmax: error: genrec-compile failed\n{result.stderr}")
    return ours.Binary(folder / "model", 0.0)


def count_items(catalogue: Path) -> int:
    """Rows of a Parquet file."""
    import pyarrow.parquet as parquet

    return parquet.read_metadata(catalogue).num_rows


def main() -> None:
    """Measures, prints, writes."""
    args = parse_arguments()
    if not args.data.is_dir():
        print(f"\n!!! full_softmax is SKIPPED: no data at {args.data}; pass --data <folder of MovieLens-1M>\n")
        return
    args.out.mkdir(parents=True, exist_ok=True)
    sequences = prepare(args.data, args.out)["full"]
    binaries = {name: compile_variant(name, columns, sequences, args.out) for name, columns in VARIANTS.items()}
    seconds: dict[str, list[float]] = {name: [] for name in VARIANTS}
    memory: dict[str, list[dict[str, int]]] = {name: [] for name in VARIANTS}
    losses: dict[str, list[float]] = {}
    for _ in range(args.runs):
        for name, binary in binaries.items():
            run = ours.run(binary, sequences, args.steps, args.batch, args.threads, args.out)
            timings: dict[str, float] = run.report["timings"]  # type: ignore[assignment]
            rest = timings["total_seconds"] - timings["start_to_first_step_seconds"]
            seconds[name].append(rest / (timings["steps"] - 1))
            memory[name].append(run.report["memory_bytes"])  # type: ignore[arg-type]
            losses[name] = run.losses
    items = count_items(sequences.items)
    print(f"\nHSTU, batch {args.batch} x 200 events, {items:,} items, {args.threads} threads")
    print(f"{'':<34}{'ms per step':>14}{'arena MB':>12}{'added MB':>12}{'first loss':>12}")
    results: dict[str, object] = {}
    for name in VARIANTS:
        step = statistics.median(seconds[name])
        arena = memory[name][-1]["arenas"]
        added = statistics.median(use["resident_after"] - use["resident_at_start"] for use in memory[name])
        print(f"{name:<34}{step * 1e3:>14.1f}{arena / 1e6:>12.1f}{added / 1e6:>12.1f}{losses[name][0]:>12.5f}")
        results[name] = {"step_seconds": step, "arena_bytes": arena, "added_bytes": added, "losses": losses[name]}
    arguments = {"batch": args.batch, "steps": args.steps, "runs": args.runs, "threads": args.threads, "items": items}
    print(f"wrote {report.write('full_softmax', {'arguments': arguments, 'variants': results}, args.results)}")


if __name__ == "__main__":
    main()
