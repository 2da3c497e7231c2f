"""What `--replicate` changes of a step on two ranks: small hot tables sharded, all rows on every rank, or as a run
chooses.

    build/venv/bin/python benchmarks/rank_placement [--latency US] [--batch N] [--epochs N] [--rounds N]

Four tables of 1,000 ids (Zipf 1.05) and dimension 16, looked up by every row, and an MLP; two processes under mpirun,
one thread each, in turns: all tables sharded (none), all replicated, and as a run chooses by itself (auto). Then the
same with a fifth table of 1 M ids that stays sharded, so that rounds stay, too. And each with `--latency` microseconds
more per exchange (GENREC_COMM_LATENCY_US), where a round that is saved shows. All runs of a model must have equal
losses.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import genrec as gr  # noqa: E402
import native  # noqa: E402
import numpy as np  # noqa: E402
import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from genrec import nn  # noqa: E402

HOT = tuple(f"hot{i}" for i in range(4))
HOT_IDS, IDS, EXPONENT = 1_000, 1_000_000, 1.05


class Ranker(gr.Model):
    """Ids of small tables, one of a large one on request, and an MLP."""

    def __init__(self, has_large: bool) -> None:
        super().__init__(optimizer=gr.optim.Adagrad(0.05), name="Ranker")
        self.names = (*HOT, "large") if has_large else HOT
        self.tables = [gr.Table(name, dim=16) for name in self.names]
        self.head = nn.MLP([16 * len(self.names), 64, 1], activation="relu")

    def forward(self, batch: gr.Batch) -> None:
        """Declares the loss."""
        x = gr.concat(*(table(batch[name]) for table, name in zip(self.tables, self.names, strict=True)))
        gr.loss.bce_with_logits(self.head(x).squeeze(), batch.label)


def write_data(path: Path, rows: int) -> None:
    """Ids by Zipf's law, the same at every call."""
    random = np.random.default_rng(1)

    def draw(ids: int) -> pa.Array:
        weights = np.arange(1, ids + 1) ** -EXPONENT
        return pa.array(np.searchsorted(np.cumsum(weights) / weights.sum(), random.random(rows)).astype(np.int64))

    columns = {name: draw(HOT_IDS) for name in HOT} | {"large": draw(IDS)}
    columns["label"] = pa.array(random.integers(0, 2, rows), pa.float32())
    pq.write_table(pa.table(columns), path, row_group_size=rows // 8)


# What --replicate says.
FLAGS = {"sharded": "none", "replicated": ",".join(HOT), "auto": "auto"}


def train(folder: Path, model: str, replicate: str, latency: int, args: argparse.Namespace) -> dict:
    """What a run of two ranks reports."""
    command = [
        "mpirun", "--allow-run-as-root", "--bind-to", "core", "-n", "2", str(folder / model), "train", "--data",
        str(folder / "train.parquet"), "--batch", str(args.batch), "--epochs", str(args.epochs), "--threads", "1",
        "--overlap", "none", "--progress", "none", "--metrics-json", str(folder / "m.json"),
        "--replicate", replicate,
    ]  # fmt: skip
    environment = os.environ | {"GENREC_COMM_LATENCY_US": str(latency)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"[bench]   error: mpirun failed\n{done.stderr}")
    return json.loads((folder / "m.json").read_text())


def compare(folder: Path, model: str, latency: int, args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Medians of all placements, of runs in turns, without the first epochs: a run chooses in the second."""
    times: dict[str, list[float]] = {name: [] for name in FLAGS}
    details: dict[str, dict[str, Any]] = {}
    losses = set()
    for _ in range(args.rounds):
        for name in times:
            report = train(folder, model, FLAGS[name], latency, args)
            steps = report["timings"]["steps"] / len(report["history"])
            times[name].extend(record["seconds"] * 1e3 / steps for record in report["history"][2:])
            losses.add(report["history"][-1]["loss"])
            counts = report["exchanges"]
            received = sum(counts[key] for key in ("id_bytes", "row_bytes", "gradient_bytes"))
            details[name] = {
                "rounds": counts["rounds"] / report["timings"]["steps"],
                "kilobytes": received * 1e-3 / report["timings"]["steps"],
                "chosen": [move["replicated"] for move in report["placement"]["moves"]],
            }
    if len(losses) != 1:
        sys.exit(f"[bench]   error: losses depend on --replicate: {losses}")
    for name, each in times.items():
        details[name]["milliseconds"] = statistics.median(each)
    return details


def main() -> int:
    """Builds, runs, prints, writes."""
    args, _ = native.arguments(__doc__, latency=1000, batch=2048, steps=60, epochs=6, rounds=3).parse_known_args()
    if not shutil.which("mpirun"):
        native.skipped("rank_placement", "there is no mpirun on this machine")
        return 0
    folder = native.BUILD / "bench" / "rank_placement"
    folder.mkdir(parents=True, exist_ok=True)
    write_data(folder / "train.parquet", args.steps * args.batch)
    names = (*HOT, "large")
    schema = gr.Schema({name: gr.int64 for name in names} | {"label": gr.float32})
    rows, details = [], {}
    for model, what in (("small", "4 small tables"), ("mixed", "4 small tables, a large one")):
        gr.compile(Ranker(model == "mixed"), schema, output=folder / model)
        for latency in (0, args.latency):
            key = f"{model}, {latency} us more per exchange"
            both = details[key] = compare(folder, model, latency, args)
            for name, each in both.items():
                print(
                    f"  {key}, {name}: {each['milliseconds']:.3f} ms a step, {each['rounds']:.2f} rounds, "
                    f"{each['kilobytes']:.1f} KB of rows come to a rank"
                    + "".join(f", chosen {c}" for c in each["chosen"])
                )
            rows.extend(
                native.summary(
                    f"2 ranks, {what} {name}, {latency} us more per exchange", "ms",
                    both[name]["milliseconds"], "sharded", both["sharded"]["milliseconds"],
                )
                for name in ("replicated", "auto")
            )  # fmt: skip
    native.finish("rank_placement", args, rows, details)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
