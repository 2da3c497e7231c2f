"""How unequal the work of ranks is: batches of equal rows and of equal tokens, with MovieLens-1M's histories.

    build/venv/bin/python benchmarks/token_balance [--data <MovieLens-1M folder>] [--ranks N]

Trains a small model over the histories under mpirun, once with --batch and once with --batch-tokens of as many events
in the mean, and reads the imbalance of tokens from --metrics-json: the sum over steps of the most that a rank had,
over the sum of the mean, minus 1. With whole histories, and with the last 200 events of each, as HSTU is trained.
It counts; nothing is timed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks" / "common"))

import genrec as gr  # noqa: E402
import native  # noqa: E402
import polars as pl  # noqa: E402

sys.path.insert(0, str(ROOT / "examples" / "hstu_retrieval"))

import prepare  # noqa: E402

TOKENS = 76800  # of a batch
LENGTH = 200
ASKED = 4  # times less imbalance: down by three quarters
SCHEMA = gr.Schema({"user": gr.int64, "history": [{"item": gr.int64}]})


class Mean(gr.Model):
    """Events of a history, one score of their mean: as little work as a model can have."""

    def __init__(self) -> None:
        super().__init__(optimizer=gr.optim.SGD(0.1), name="Mean")
        self.item = gr.Table("item", dim=4)
        self.top = gr.nn.Linear(4, 1)

    def forward(self, batch: gr.Batch) -> None:
        """Learns whether a user's number is even."""
        recent = batch.history.truncate(LENGTH)
        x = self.item(batch.history.item).mean() + self.item(recent.item).mean()
        gr.loss.bce_with_logits(self.top(x).squeeze(), gr.mod(batch.user, 2).astype(gr.float32))


def imbalance(binary: Path, data: Path, ranks: int, epochs: int, flags: list[str], tokens_of: str) -> dict:
    """What a run reports of its ranks' work."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "m.json"
        command = [
            "mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), str(binary), "train", "--data", str(data),
            "--epochs", str(epochs), "--threads", "1", "--progress", "none", "--metrics-json", str(report), *flags,
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"[bench]   error: {' '.join(command)}\n{done.stderr}")
        run = json.loads(report.read_text())
    imbalances = run["work"]["imbalance"]["tokens"]
    return {"imbalance": imbalances[tokens_of], "steps": run["timings"]["steps"], "by_rank": run["work"]["by_rank"]}


def main() -> int:
    """Prepares, compiles, trains, prints, writes."""
    parser = native.arguments(__doc__, ranks=4, epochs=5, tokens=TOKENS)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data" / "ml-1m", help="MovieLens-1M")
    args, _ = parser.parse_known_args()
    if not args.data.exists():
        native.skipped("token_balance", f"there is no folder {args.data}; --data names MovieLens-1M")
        return 0
    if not shutil.which("mpirun"):
        native.skipped("token_balance", "there is no mpirun")
        return 0
    rows, details = [], {}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        prepare.prepare(args.data, out)
        lengths = pl.read_parquet(out / "train.parquet")["history"].list.len()
        binary = Path(gr.compile(Mean(), SCHEMA, output=out / "model").binary)
        for name, what, mean in (
            ("history", "whole histories", lengths.mean()),
            ("recent", f"the last {LENGTH} events", lengths.clip(upper_bound=LENGTH).mean()),
        ):
            batch = round(args.tokens / mean)
            fixed = imbalance(binary, out / "train.parquet", args.ranks, args.epochs, ["--batch", str(batch)], name)
            tokens = imbalance(
                binary, out / "train.parquet", args.ranks, args.epochs, ["--batch-tokens", f"{name}={args.tokens}"], name
            )
            details[what] = {"batch": batch, "rows": fixed, "tokens": tokens}
            print(f"  {what}: {batch} rows or {args.tokens} tokens per batch, {fixed['steps']} and {tokens['steps']} steps")
            rows.append(
                native.summary(
                    f"{args.ranks} ranks, {what}: imbalance of tokens", "%", tokens["imbalance"] * 100, "batches of equal rows",
                    fixed["imbalance"] * 100, asked=ASKED,
                )
            )  # fmt: skip
    native.finish("token_balance", args, rows, details)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
