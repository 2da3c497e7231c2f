"""Sampled softmax over a large catalogue: the items that a step reads, beside all of them.

    build/venv/bin/python benchmarks/picked_rows [--items 1000000] [--negatives 8192]

Two models of users and items, tables of 64 floats: the vectors of the items are those of the table, or go through two
linear layers as well. Negatives are shared by the rows of a batch. Each model is compiled with `pick-catalogue-rows`
and without it (`--pick-catalogue-rows=false`), on one process; per binary the median time of a step over runs that take
turns, the memory of the step and the resident memory that training adds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "hstu_train"))

import report  # noqa: E402

ASKED = 5.0
SIDES = {"genrec": [], "for all items": ["--pick-catalogue-rows=false"]}


def parse_arguments() -> argparse.Namespace:
    """Command line; flags of other benchmarks are passed over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000, help="items of the catalogue")
    parser.add_argument("--negatives", type=int, default=8192, help="drawn per step")
    parser.add_argument("--batch", type=int, default=128, help="rows per step")
    parser.add_argument("--dim", type=int, default=64, help="of tables and vectors")
    parser.add_argument("--steps", type=int, default=12, help="steps per run; the first is not counted")
    parser.add_argument("--runs", type=int, default=3, help="runs per binary")
    parser.add_argument("--threads", type=int, default=report.available_cores())
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench" / "picked_rows", help="folder to work in")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results", help="folder of the results")
    parser.add_argument("--compile-only", action="store_true", help="write data and binaries, measure nothing")
    return parser.parse_known_args()[0]


def write_data(args: argparse.Namespace) -> None:
    """All items, and users with an item each."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    draw = np.random.default_rng(1)
    pq.write_table(pa.table({"item": pa.array(np.arange(args.items))}), args.out / "items.parquet")
    rows = args.batch * args.steps
    users = {"user": pa.array(np.arange(rows)), "target": pa.array(draw.integers(0, args.items, rows))}
    pq.write_table(pa.table(users), args.out / "users.parquet")


def compile_models(args: argparse.Namespace) -> dict[str, dict[str, Path]]:
    """By model and side, its binary."""
    import genrec as gr
    from genrec import nn

    class Towers(gr.Model):
        def __init__(self, items: gr.Catalogue, layers: int) -> None:
            super().__init__(optimizer=gr.optim.Adagrad(0.05))
            self.item, self.user = gr.Table("item", dim=args.dim), gr.Table("user", dim=args.dim)
            self.tower = nn.MLP([args.dim] * (layers + 1), activation="relu") if layers else None
            self.items = items

        def forward(self, batch: gr.Batch) -> None:
            vectors = self.item(self.items["item"])
            gr.loss.sampled_softmax(
                self.user(batch.user), batch.target, self.tower(vectors) if self.tower else vectors, self.items,
                negatives=args.negatives, temperature=1.0, shared=True, name="next",
            )  # fmt: skip

    schema = gr.Schema.from_parquet(args.out / "users.parquet")
    binaries: dict[str, dict[str, Path]] = {}
    for name, layers in (("table", 0), ("table and two layers", 2)):
        for side, flags in SIDES.items():
            output = args.out / f"{name}-{side}".replace(" ", "_")
            items = gr.catalogue(args.out / "items.parquet", id="item", name="items")
            gr.compile(Towers(items, layers), schema, output=output, flags=flags)
            binaries.setdefault(name, {})[side] = output
    return binaries


def run(binary: Path, args: argparse.Namespace) -> dict[str, object]:
    """Trains for the steps of the data; seconds per step after the first, memory, losses."""
    metrics = args.out / "metrics.json"
    command = [
        binary, "train", "--data", args.out / "users.parquet", "--catalogue", f"items={args.out / 'items.parquet'}",
        "--batch", args.batch, "--epochs", 1, "--seed", 1, "--threads", args.threads, "--progress", "none",
        "--log-every", 1, "--metrics-json", metrics,
    ]  # fmt: skip
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"picked_rows: error: {binary.name} failed\n{result.stderr}")
    told = json.loads(metrics.read_text())
    timings, memory = told["timings"], told["memory_bytes"]
    return {
        "seconds": (timings["total_seconds"] - timings["start_to_first_step_seconds"]) / (timings["steps"] - 1),
        "arenas": memory["arenas"],
        "added": memory["resident_after"] - memory["resident_at_start"],
        "losses": [step["loss"] for step in told["step_losses"]],
    }


def main() -> None:
    """Measures, prints, writes."""
    args = parse_arguments()
    args.out.mkdir(parents=True, exist_ok=True)
    write_data(args)
    binaries = compile_models(args)
    if args.compile_only:
        return
    runs: dict[tuple[str, str], list[dict]] = {}
    for _ in range(args.runs):
        for model, sides in binaries.items():
            for side, binary in sides.items():
                runs.setdefault((model, side), []).append(run(binary, args))
    print(
        f"\n{args.items:,} items x {args.dim}, {args.negatives:,} shared negatives, batch {args.batch}, "
        f"{args.threads} threads"
    )
    print(f"{'':<40}{'ms per step':>14}{'arena MB':>12}{'added MB':>12}{'first loss':>12}")
    summary, results = [], {}
    for model in binaries:
        step = {}
        for side in SIDES:
            made = runs[model, side]
            step[side] = statistics.median(one["seconds"] for one in made)
            last = made[-1]
            print(
                f"{model + ', ' + side:<40}{step[side] * 1e3:>14.2f}{last['arenas'] / 1e6:>12.1f}"
                f"{last['added'] / 1e6:>12.1f}{last['losses'][0]:>12.6f}"
            )
            results[f"{model}, {side}"] = {"step_seconds": step[side], "runs": made}
        ratio = step["for all items"] / step["genrec"]
        print(f"{model}: {ratio:.1f} times faster (asked: {ASKED:g})")
        summary.append(
            {"what": f"sampled softmax of {args.items:,} items, {model}", "unit": "ms", "ours": step["genrec"] * 1e3}
            | {"peer": "for all items", "theirs": step["for all items"] * 1e3, "ratio": ratio, "asked": ASKED}
        )
    told = ("items", "negatives", "batch", "dim", "steps", "runs", "threads")
    arguments = {name: getattr(args, name) for name in told}
    content = {"arguments": arguments, "summary": summary, "models": results}
    print(f"wrote {report.write('picked_rows', content, args.results)}")


if __name__ == "__main__":
    main()
