"""What two ranks hide of the latency of their exchanges, and which table rows travel before the step that needs them.

    build/venv/bin/python benchmarks/rank_overlap [--latency US] [--batch N] [--epochs N] [--rounds N]

A table of 1 M ids (Zipf 1.05, lists of 8), dimension 64, and an MLP; two processes under mpirun, one thread each. Every
exchange is made to take `--latency` microseconds longer (GENREC_COMM_LATENCY_US), with `--overlap` none, keys, rows.
Epochs after the first count: all ids have rows. By how many latencies a step becomes longer is the number of rounds
that nothing hides: gradients wait for the backward pass, and rows that the step before updates wait for that update.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import genrec as gr  # noqa: E402
import native  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from genrec import nn  # noqa: E402

IDS, LENGTH, EXPONENT = 1_000_000, 8, 1.05
LEAST_EARLY = 0.55
OVERLAPS = ("none", "keys", "rows")


class Ranker(gr.Model):
    """Mean of a list of ids, and an MLP."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05))
        self.item = gr.Table("item", dim=64)
        self.head = nn.MLP([64, 512, 256, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss."""
        gr.loss.bce_with_logits(self.head(self.item(batch.items.item).mean()).squeeze(), batch.label)


def write_data(path: Path, rows: int) -> None:
    """Lists of ids by Zipf's law, the same at every call."""
    random = np.random.default_rng(1)
    weights = np.arange(1, IDS + 1) ** -EXPONENT
    ids = np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(rows * LENGTH))
    offsets = pa.array(np.arange(0, rows * LENGTH + 1, LENGTH), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, pa.StructArray.from_arrays([pa.array(ids.astype(np.int64))], ["item"]))
    label = pa.array(random.integers(0, 2, rows), pa.float32())
    pq.write_table(pa.table({"items": lists, "label": label}), path, row_group_size=rows // 8)


def train(folder: Path, overlap: str, latency: int, batch: int, epochs: int) -> dict:
    """What a run of two ranks reports."""
    command = [
        "mpirun", "--allow-run-as-root", "--bind-to", "core", "-n", "2", str(folder / "model"), "train", "--data",
        str(folder / "train.parquet"), "--batch", str(batch), "--epochs", str(epochs), "--threads", "1", "--overlap",
        overlap, "--progress", "none", "--metrics-json", str(folder / "m.json"),
    ]  # fmt: skip
    environment = os.environ | {"GENREC_COMM_LATENCY_US": str(latency)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"[bench]   error: mpirun failed\n{done.stderr}")
    return json.loads((folder / "m.json").read_text())


def per_step(folder: Path, overlap: str, args: argparse.Namespace) -> dict[str, float]:
    """Rounds and bytes per step of the second epoch."""
    first, both = (train(folder, overlap, 0, args.batch, epochs) for epochs in (1, 2))
    steps = both["timings"]["steps"] - first["timings"]["steps"]
    return {name: (both["exchanges"][name] - first["exchanges"][name]) / steps for name in both["exchanges"]}


def milliseconds(report: dict) -> list[float]:
    """Of a step, by epoch, without the first."""
    steps = report["timings"]["steps"] / len(report["history"])
    return [record["seconds"] * 1e3 / steps for record in report["history"][1:]]


def main() -> int:
    """Builds, runs, prints, writes."""
    args, _ = native.arguments(__doc__, latency=5000, batch=4096, steps=40, epochs=4, rounds=3).parse_known_args()
    if not shutil.which("mpirun"):
        native.skipped("rank_overlap", "there is no mpirun on this machine")
        return 0
    folder = native.BUILD / "bench" / "rank_overlap"
    folder.mkdir(parents=True, exist_ok=True)
    write_data(folder / "train.parquet", args.steps * args.batch)
    schema = gr.Schema({"items": [{"item": gr.int64}], "label": gr.float32})
    gr.compile(Ranker(), schema, output=folder / "model")
    runs = {(overlap, latency): [] for overlap in OVERLAPS for latency in (0, args.latency)}
    losses = set()
    for _ in range(args.rounds):
        for (overlap, latency), times in runs.items():
            report = train(folder, overlap, latency, args.batch, args.epochs)
            times.extend(milliseconds(report))
            losses.add(report["history"][-1]["loss"])
    if len(losses) != 1:
        sys.exit(f"[bench]   error: losses depend on --overlap: {losses}")
    details, rows = {}, []
    times = {key: statistics.median(each) for key, each in runs.items()}
    for overlap in OVERLAPS:
        counts = per_step(folder, overlap, args)
        shown = (times[overlap, args.latency] - times[overlap, 0]) * 1e3 / args.latency
        details[overlap] = {
            "milliseconds": times[overlap, 0],
            "milliseconds_with_latency": times[overlap, args.latency],
            "latencies_that_show": shown,
        } | counts
        print(
            f"  {overlap}: {times[overlap, 0]:.2f} ms a step; with {args.latency} us more per exchange "
            f"{times[overlap, args.latency]:.2f} ms: {shown:.2f} of {counts['rounds']:.2f} rounds show"
        )
    early = details["rows"]
    details["early_share"] = share = early["early_row_bytes"] / early["row_bytes"]
    print(f"  {share:.1%} of {early['row_bytes'] / 1e6:.2f} MB of rows a step come early (asked: {LEAST_EARLY:.0%})")
    rows.append(
        native.summary(
            "2 ranks, latency in every exchange", "ms", times["rows", args.latency], "without overlap",
            times["none", args.latency],
        )
    )  # fmt: skip
    native.finish("rank_overlap", args, rows, details)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
